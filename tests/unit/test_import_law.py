"""Who may import whom: what keeps the program runnable in a cloud without the simulator, and facts free of both."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

STANDARD_LIBRARY = frozenset(sys.stdlib_module_names)
OURS = frozenset(
    {
        "facts",
        "settings",
        "preflight",
        "livechecks",
        "components",
        "ops",
        "simulator",
        "planner",
        "policy",
        "bench",
    }
)

LAW = {
    "facts": {"facts"},
    "settings": {"facts", "preflight"},
    "preflight": {"facts", "settings", "preflight"},
    "livechecks": {"facts", "settings", "livechecks"},
    "components": {"facts", "components"},
    "__main__": {"facts", "settings", "livechecks", "components"},
    "ops": {"facts", "settings", "preflight", "ops"},
    "simulator": {"facts", "settings", "preflight", "simulator"},
}
"""Which of our packages each may import. `preflight` is the decoder and rules behind `settings`."""

STANDARD_LIBRARY_ONLY = ("facts", "simulator/toolchain", "simulator/bootstrap.py")
"""These run before anything is installed, or are read everywhere: besides each other, no package at all."""


def imports_of(source: str, package: str) -> Iterator[str]:
    """The full names that a module imports, wherever it does: inside functions and through importlib too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"{package}.{node.module or ''}" if node.level else str(node.module)
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) in {"import_module", "__import__"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def breaches(package: str, source: str) -> list[str]:
    """The imports of ours that the law does not allow to a module of `package`."""
    roots = {name.split(".")[0] for name in imports_of(source, package)}
    return sorted((roots & OURS) - LAW[package])


def foreign(source: str) -> list[str]:
    """The imports that are neither standard library nor may run before anything is installed."""
    allowed = ("facts", "simulator.toolchain")
    return sorted(
        name
        for name in imports_of(source, "simulator.toolchain")
        if name.split(".")[0] not in STANDARD_LIBRARY
        and not f"{name}.".startswith(tuple(f"{a}." for a in allowed))
    )


def modules_of(repository: Path, package: str) -> list[Path]:
    single = repository / f"{package}.py"
    return [single] if single.exists() else sorted((repository / package).rglob("*.py"))


@pytest.mark.parametrize("package", sorted(LAW))
def test_a_package_imports_only_what_the_law_allows(repository: Path, package: str) -> None:
    modules = modules_of(repository, package)
    assert modules, f"{package} has no modules: has it moved?"
    found = {
        str(path.relative_to(repository)): wrong
        for path in modules
        if (wrong := breaches(package, path.read_text(encoding="utf-8")))
    }
    assert not found


@pytest.mark.parametrize("place", STANDARD_LIBRARY_ONLY)
def test_what_runs_before_the_environment_needs_the_standard_library_only(
    repository: Path, place: str
) -> None:
    root = repository / place
    modules = [root] if root.is_file() else sorted(root.rglob("*.py"))
    assert modules
    found = {
        str(path.relative_to(repository)): wrong
        for path in modules
        if (wrong := foreign(path.read_text(encoding="utf-8")))
    }
    assert not found


@pytest.mark.parametrize(
    ("package", "line", "found"),
    [
        ("components", "import settings", ["settings"]),
        ("components", "from simulator.cloud import cloud", ["simulator"]),
        ("ops", "def late():\n    import simulator.cluster", ["simulator"]),
        ("ops", "import importlib\nimportlib.import_module('simulator')", ["simulator"]),
        ("livechecks", "from simulator.cloud import cloud\nimport ops.render", ["ops", "simulator"]),
        ("simulator", "from components.network import Network", ["components"]),
        ("facts", "from settings import Settings", ["settings"]),
        ("components", "from . import network\nfrom facts import tpu\nimport pulumi", []),
    ],
)
def test_the_law_is_seen_to_be_broken(package: str, line: str, found: list[str]) -> None:
    assert breaches(package, line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import yaml", ["yaml"]),
        ("from simulator import files", ["simulator"]),
        ("from simulator.toolchain import machine\nfrom facts import versions\nimport json", []),
    ],
)
def test_a_foreign_import_is_seen(line: str, found: list[str]) -> None:
    assert foreign(line) == found
