"""Which part may import which, imports for the type checker included; what knows never imports Pulumi."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ARROWS: dict[str, tuple[str, ...]] = {
    "catalog": (),
    "config": ("catalog",),
    "resources": ("config", "catalog"),
    "modules": ("resources", "config", "catalog"),
    "views": ("resources", "config", "catalog"),
    "quota": ("views", "resources", "config", "catalog"),
    "rules": ("quota", "views", "resources", "config", "catalog"),
    "clients": ("quota", "resources", "config", "catalog"),
    "policy": ("rules", "quota", "views", "resources", "config", "catalog"),
    "checks": ("rules", "quota", "views", "resources", "config", "catalog"),
    "cli": ("policy", "checks", "clients", "rules", "quota", "views", "resources", "config", "catalog"),
}
"""What a room of the core may import beside itself."""
CORE = tuple(f"training_platform.{room}" for room in ARROWS)
PARTS: dict[str, tuple[str, ...]] = {
    "jobs": (),
    "sandbox": (),
    "simulate": ("jobs",),
    "adopt": (),
    "verify": ("adopt", "jobs"),
}
"""The parts beside the core, each with those that it may import."""
REPORT_TABLES = ("markdown_tables", "markup", "tables", "terminal_tables")
APART: dict[str, tuple[str, ...]] = {
    "kueue_model": (
        "training_platform.catalog.nearest", "training_platform.config.reading",
        *(f"training_platform.checks.reports.{name}" for name in REPORT_TABLES),
    ),
    "local_google_cloud": (
        "training_platform.config.reading", "training_platform.rules.documents",
        *(f"training_platform.catalog.{name}" for name in (
            "FILESTORE_TIERS", "MACHINE_TYPES", "ZONES", "locations", "nearest", "reading.own_document", "types",
            "zones",
        )),
    ),
}  # fmt: skip
"""The packages with users of their own, each with the modules and names of the platform that it may import."""
BELOW = {"simulate": ("kueue_model",), "sandbox": ("local_google_cloud",)}
"""The parts that import a package of ``APART``."""
PLAIN = tuple(f"training_platform.{room}" for room in ("catalog", "config", "resources", "views", "quota", "rules"))
OURS = ("training_platform", *APART)
FOLDERS = (*OURS, "policies")

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(found.name)
    print(found.name)
loaded = sorted(name for name in sys.modules if name.startswith("pulumi"))
sys.exit(f"loads {loaded[0]} and {len(loaded) - 1} more" if loaded else 0)
"""


@pytest.mark.parametrize(
    "package", [*PLAIN, "kueue_model", "training_platform.parts.jobs", "training_platform.parts.simulate"]
)
def test_importing_all_of_a_plain_package_loads_no_pulumi(package: str) -> None:
    command = [sys.executable, "-c", IMPORT_ALL, package]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert {package, *done.stdout.split()} == {name for name, _ in _sources(package)}, done.stderr


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_of_the_core_imports_only_itself_and_those_below_it(room: str) -> None:
    package = f"training_platform.{room}"

    assert _other_imports(package, [package, *(f"training_platform.{name}" for name in ARROWS[room])]) == []


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_the_core_and_as_little_of_other_parts_as_is_written_here(part: str) -> None:
    package = f"training_platform.parts.{part}"
    used = tuple(f"training_platform.parts.{name}" for name in PARTS[part])

    assert _other_imports(package, [package, *used, *CORE, *BELOW.get(part, ())]) == []
    assert all(any(_within(imported, name) for _, imported in _ours(package)) for name in used)


@pytest.mark.parametrize("package", APART)
def test_a_package_with_users_of_its_own_imports_no_rooms_of_the_platform(package: str) -> None:
    assert _other_imports(package, [package, *APART[package]]) == []


def test_no_two_files_import_each_other_by_any_way_round() -> None:
    files = {name: path for folder in FOLDERS for name, path in _sources(folder)}
    imports = {
        name: {_module(imported, files) for imported in _imports(path)} - {name, ""} for name, path in files.items()
    }

    assert len(imports) > 200
    assert _circles(imports) == []


def _ours(package: str) -> Iterator[tuple[str, str]]:
    """Yield each module of a package with each of our modules that it imports."""
    for name, path in _sources(package):
        yield from ((name, imported) for imported in _imports(path) if _within(imported, *OURS))


def _other_imports(package: str, allowed: Collection[str]) -> list[str]:
    imports = list(_ours(package))
    assert imports or package == "training_platform.catalog"
    return [f"{name} imports {imported}" for name, imported in imports if not _within(imported, *allowed)]


def _sources(package: str) -> Iterator[tuple[str, Path]]:
    """Return name and file of every module in a package; a package bears the name of its folder."""
    for path in sorted((ROOT / package.replace(".", "/")).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Return what a file imports, at its top or inside functions; relative imports are refused by the linter."""
    imported_names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported_names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported_names += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(imported_names)


def _module(imported: str, files: Collection[str]) -> str:
    """Return our file that an import reads, for a name in it or for itself; "" for others' files."""
    while imported and imported not in files:
        imported = imported.rpartition(".")[0]
    return imported


def _circles(imports: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the files that reach themselves, those together that reach one another."""
    reached = {name: _reached(name, imports) for name in imports}
    circles = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in imports}
    return [list(circle) for circle in sorted(circles) if circle]


def _reached(start: str, imports: Mapping[str, Collection[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(imports[name])
    return reached


def _within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)
