"""Which part may import which: data flows from the catalogue to the rules, and none of those four knows Pulumi."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LAYERS = ("catalog", "config", "resources", "quota", "rules")
PLAIN = tuple(f"training_platform.{part}" for part in LAYERS)  # each may import those before it
OURS = ("modules", "training_platform")
ABOVE = tuple(f"training_platform.{part}" for part in ("rules", "checks", "policy", "cli", "sandbox"))

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(found.name)
    print(found.name)
loaded = sorted(name for name in sys.modules if name.startswith("pulumi"))
sys.exit(f"loads {loaded[0]} and {len(loaded) - 1} more" if loaded else 0)
"""


@pytest.mark.parametrize("package", [*PLAIN, "training_platform.jobs"])
def test_importing_all_of_a_plain_package_loads_no_pulumi(package: str) -> None:
    command = [sys.executable, "-c", IMPORT_ALL, package]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert {package, *done.stdout.split()} == {name for name, _ in _sources(package)}


@pytest.mark.parametrize("package", PLAIN)
def test_a_plain_package_imports_only_itself_and_those_before_it(package: str) -> None:
    allowed = PLAIN[: PLAIN.index(package) + 1]

    assert [
        f"{name} imports {imported}"
        for name, path in _sources(package)
        for imported in _imports(path)
        if _within(imported, *OURS) and not _within(imported, *allowed)
    ] == []


def test_plain_packages_import_no_pulumi_inside_a_function_either() -> None:
    assert [
        f"{name} imports {imported}"
        for package in PLAIN
        for name, path in _sources(package)
        for imported in _imports(path)
        if imported.startswith("pulumi")
    ] == []


def test_components_import_no_rule_and_no_reader_of_plans() -> None:
    components = list(_sources("modules"))

    assert components
    assert [
        f"{name} imports {imported}"
        for name, path in components
        for imported in _imports(path)
        if _within(imported, *ABOVE)
    ] == []


def test_nothing_imports_the_command_line() -> None:
    assert [
        f"{name} imports {imported}"
        for part in OURS
        for name, path in _sources(part)
        for imported in _imports(path)
        if _within(imported, "training_platform.cli") and not _within(name, "training_platform.cli")
    ] == []


@pytest.mark.parametrize("line", ["import a.b.c", "from a.b import c", "def f():\n    from a.b import c"])
def test_every_form_of_import_is_seen(line: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(line)

    assert list(_imports(tmp_path / "x.py")) == ["a.b.c"]


def _sources(package: str) -> Iterator[tuple[str, Path]]:
    """Return name and file of every module in a package; a package bears the name of its folder."""
    for path in sorted((ROOT / package.replace(".", "/")).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def _imports(path: Path) -> Iterator[str]:
    """Return what a file imports, at its top or inside functions; relative imports are refused by the linter."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)
