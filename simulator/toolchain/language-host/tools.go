//go:build tools

// Package toolchain names the program that this module's go.mod and go.sum are for: Pulumi's language host for
// Python, from the newest release of sdk/v3 that still holds it (later ones have it in a module of its own that
// the Go proxy does not serve). It is never compiled.
package toolchain

import _ "github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python"
