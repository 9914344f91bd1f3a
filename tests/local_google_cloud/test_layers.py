"""Which file of the local cloud may import which; imports for the type checker count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLOUD = (
    "files",
    "requests",
    "state",
    "resources",
    "services",
    "faults",
    "local_cloud",
    "http",
)  # each knows those before it
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in (ROOT / "local_google_cloud").rglob("*.py")
    if path.name != "__init__.py"
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from (name if name in FILES else node.module for name in names)


def test_no_file_knows_another_that_knows_it() -> None:
    graph = {name: {imported for imported in imports(path) if imported in FILES} for name, path in FILES.items()}

    assert len([*TopologicalSorter(graph).static_order()]) == len(FILES) > 20


@pytest.mark.parametrize("part", CLOUD)
def test_a_part_of_the_cloud_knows_only_those_before_it(part: str) -> None:
    prefix = "local_google_cloud."
    allowed = CLOUD[: CLOUD.index(part) + 1]
    inside = [name for name in FILES if name.startswith(prefix) and name.removeprefix(prefix).split(".")[0] == part]

    assert inside
    assert [
        f"{name} imports {imported}"
        for name in inside
        for imported in imports(FILES[name])
        if imported.startswith(prefix) and imported.removeprefix(prefix).split(".")[0] not in allowed
    ] == []


def test_the_kubernetes_plugin_and_the_cloud_do_not_know_each_other() -> None:
    plugin = "local_google_cloud.kubernetes."
    common = "local_google_cloud.files"

    assert [
        f"{name} imports {imported}"
        for name, path in FILES.items()
        for imported in imports(path)
        if imported.startswith("local_google_cloud.")
        and not imported.startswith(common)
        and name != common
        and name.startswith(plugin) is not imported.startswith(plugin)
    ] == []
