"""Cautions."""

from typing import Any


def of(settings: Any) -> list[str]:
    """Warnings of the settings."""
    return []
