"""Fixtures that every test may use, and the options that they read."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root folder."""
    return Path(__file__).resolve().parent.parent
