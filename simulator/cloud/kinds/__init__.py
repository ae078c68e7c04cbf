"""The resource types that the region answers, one module a family."""
