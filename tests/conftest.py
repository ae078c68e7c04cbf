"""Fixtures that every test may use, and the options that they read."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options that tests read."""
    parser.addoption(
        "--regenerate-golden", action="store_true", help="write tests/golden/ anew from the plans as they are"
    )


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout's root folder."""
    return Path(__file__).resolve().parent.parent
