"""Which part may import which, imports for the type checker included; what knows never imports Pulumi."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from training_platform.checks.parts import installed_parts

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
DOORS = {
    "kueue_model": ("kueue_model", "kueue_model.imports", "kueue_model.output", "kueue_model.results"),
    "local_google_cloud": ("local_google_cloud.api", "local_google_cloud.kubernetes"),
}
"""The modules of each package of ``APART`` that others import from: their ``__all__``, or all public names."""
PLAIN = tuple(f"training_platform.{room}" for room in ("catalog", "config", "resources", "views", "quota", "rules"))
OURS = ("training_platform", *APART)
FOLDERS = (*OURS, "policies")
STORY_NAMES = {
    "agenda", "asks", "base", "child", "fleet", "judge", "known", "leash", "misfit", "of_cluster", "room", "sheet",
    "side", "together", "ways",
}  # fmt: skip
"""Module names that say nothing of what is inside."""

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


@pytest.mark.parametrize(("later_step", "callers"), [("comparison", {"run", "every_rule"}), ("reports", {"output"})])
def test_the_steps_of_a_check_know_no_later_one(later_step: str, callers: set[str]) -> None:
    package = "training_platform.checks"
    importing = {name for name, imported in _ours(package) if _within(imported, f"{package}.{later_step}")}

    assert {name for name in importing if name.count(".") == 2} == {f"{package}.{caller}" for caller in callers}


@pytest.mark.parametrize("package", APART)
def test_what_a_package_with_users_of_its_own_may_import_it_imports(package: str) -> None:
    imports = [imported for _, imported in _ours(package)]

    assert [name for name in APART[package] if not any(_within(imported, name) for imported in imports)] == []


@pytest.mark.parametrize("package", APART)
def test_others_import_a_package_with_users_of_its_own_by_its_doors(package: str) -> None:
    folders = ("training_platform", "policies", "tools", "benchmarks", "tests")
    files = [file for folder in folders for file in _sources(folder) if not file[0].startswith(f"tests.{package}.")]
    imports = [(name, imported) for name, path in files for imported in _imports(path) if _within(imported, package)]

    public = {*_public(package)}

    assert imports
    assert [f"{name} imports {imported}" for name, imported in imports if imported not in public] == []


def _public(package: str) -> Iterator[str]:
    """Yield the public names of a package by its doors."""
    for door in DOORS[package]:
        tree = ast.parse(dict(_sources(package))[door].read_text())
        exported = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and _targets(node) == ["__all__"]
        ]
        if exported:
            yield from (f"{door}.{name}" for name in exported[0])
            continue
        defined = [getattr(node, "name", "") for node in tree.body]
        defined += [name for node in tree.body for name in _targets(node)]
        yield from (f"{door}.{name}" for name in defined if name and not name.startswith("_"))


def _targets(node: ast.stmt) -> list[str]:
    """Return the names that an assignment of a module sets."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.target.id] if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else []


def test_a_part_says_which_parts_it_needs() -> None:
    assert {name: part.needs for name, part in installed_parts().items()} == PARTS


def test_tests_of_the_core_import_no_part() -> None:
    tests = ROOT / "tests"
    of_part = re.compile(r"^\s*(?:from|import) (?:training_platform|tests)\.parts\b", re.MULTILINE)
    files = [path for room in ("training_platform", "stacks") for path in (tests / room).rglob("*.py")]

    assert [str(path.relative_to(tests)) for path in files if of_part.search(path.read_text())] == []


def test_no_test_file_is_imported_by_another() -> None:
    """What tests share is in files of their own, and fixtures that several files use in ``conftest.py``."""
    importing = re.compile(r"^from tests\.(?:\w+\.)*test_\w+ import", re.MULTILINE)
    files = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("*.py")]

    assert [str(path) for path in files if importing.search((ROOT / "tests" / path).read_text())] == []


def test_every_room_and_part_has_its_arrows() -> None:
    package = ROOT / "training_platform"

    assert {path.name for path in package.iterdir() if any(path.glob("*.py"))} == {*ARROWS, "parts"}
    assert {path.name for path in (package / "parts").iterdir() if any(path.glob("*.py"))} == set(PARTS)


@pytest.mark.parametrize("room", ARROWS)
def test_the_core_names_no_part_in_a_path_or_a_text(room: str) -> None:
    naming = re.compile(rf"parts[./](?:{'|'.join(PARTS)})\b")
    files = [
        path
        for path in (ROOT / "training_platform" / room).rglob("*.py")
        if naming.search(path.read_text(encoding="utf-8"))
    ]

    assert [path.relative_to(ROOT).as_posix() for path in files] == []


def test_the_help_imports_no_model_and_no_catalogue() -> None:
    program = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); "
    program += "from training_platform.cli.main import main; sys.argv[1:] = ['--help']; main()"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    imported = set(done.stdout.split())
    assert "click" in imported
    assert imported.isdisjoint({"pydantic", "training_platform.catalog.loader"})


def test_no_two_files_import_each_other_by_any_way_round() -> None:
    files = {name: path for folder in FOLDERS for name, path in _sources(folder)}
    imports = {
        name: {_module(imported, files) for imported in _imports(path)} - {name, ""} for name, path in files.items()
    }

    assert len(imports) > 200
    assert _circles(imports) == []


def test_a_module_is_called_after_what_is_inside_it() -> None:
    assert [name for part in OURS for name, _ in _sources(part) if name.rpartition(".")[2] in STORY_NAMES] == []


def test_plain_packages_import_no_pulumi_inside_a_function_either() -> None:
    sources = [source for package in PLAIN for source in _sources(package)]
    assert [
        f"{name} imports {imported}"
        for name, path in sources
        for imported in _imports(path, typing=False)
        if imported.startswith("pulumi")
    ] == []


def test_the_files_of_the_model_defer_no_annotations() -> None:
    files = [
        *(ROOT / "training_platform/config/model").glob("*.py"),
        ROOT / "training_platform/parts/jobs/job_model.py",
    ]

    assert len(files) > 10
    assert [path.name for path in files if "__future__" in path.read_text()] == []


def test_only_resources_know_the_provider_s_types() -> None:
    knowing = {
        name
        for package in PLAIN
        for name, path in _sources(package)
        if any(imported.startswith("pulumi") for imported in _imports(path))
    }

    assert knowing
    assert all(_within(name, "training_platform.resources") for name in knowing)


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
def _imports(path: Path, *, typing: bool = True) -> tuple[str, ...]:
    """Return what a file imports, at its top or inside functions; relative imports are refused by the linter.

    Without ``typing``, what only the type checker imports is left out.
    """
    tree = ast.parse(path.read_text())
    imported_names: list[str] = []
    nodes = ast.walk(tree) if typing else _nodes(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            imported_names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported_names += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(imported_names)


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a node, without those under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING"):
            yield child
            yield from _nodes(child)


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
