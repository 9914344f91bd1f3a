"""Stacks that stand in a local cloud, and what adopting them gives."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.parts.adopt.seeding import Seeded, served
from tests.places import ROOT
from tests.plans import planned_stacks
from training_platform.clients.project_contents import Contents, read_contents
from training_platform.config.workspace import read_workspace
from training_platform.parts.adopt.adoption import AdoptedStack, adopt_environment
from training_platform.parts.adopt.cli import planner
from training_platform.resources.planned import Planned
from training_platform.resources.stack_plan import plannable

PROJECT = "example-lab"
STACK = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    filestore:
      homes: {location: us-central1-a, capacity_gib: 1024, reserved_range: 10.12.32.0/24}
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        node_pools:
          a100: {machine_type: a2-highgpu-8g, max_nodes: 4}
"""

Repository = Callable[[dict[str, str]], Path]


@pytest.fixture(scope="session", name="repository")
def _repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Make a repository with these stacks, by name."""

    def make(stacks: dict[str, str]) -> Path:
        root = tmp_path_factory.mktemp("repository")
        (root / "stacks").mkdir()
        shutil.copy(ROOT / "Pulumi.yaml", root)
        for name, text in stacks.items():
            (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
        return root

    return make


_SMALL: list[Sequence[Planned]] = []


def small_plan(repository: Repository) -> Sequence[Planned]:
    """Return what the small stack plans, planned once."""
    if not _SMALL:
        _SMALL.append(planned(repository({"lab": STACK}), "lab"))
    return _SMALL[0]


def planned(root: Path, name: str) -> Sequence[Planned]:
    """Return what a stack of a repository plans."""
    return plans_of(root, name)[name]


def plans_of(root: Path, *names: str) -> dict[str, Sequence[Planned]]:
    """Return what stacks of a repository plan, each planned once."""
    workspace = read_workspace(root)
    plans = {each.name: plan.resources for each, plan in planned_stacks(workspace, plannable(workspace, list(names)))}
    return {name: plans[name] for name in names}


def standing(resources: Sequence[Planned], project: str = PROJECT) -> Seeded:
    """Return a local cloud that holds what is planned."""
    seeded = Seeded(project)
    seeded.put(resources)
    return seeded


def contents_of(seeded: Seeded, project: str = PROJECT) -> Contents:
    """Read a project of a local cloud."""
    with served(seeded) as address:
        return read_contents(project, (), address)


def adopted(
    seeded: Seeded, root: Path, name: str, project: str = PROJECT, *, keep_replaced: bool = False
) -> AdoptedStack:
    """Adopt a project into a repository."""
    contents = contents_of(seeded, project)
    return adopt_environment(name, contents, planner(root), production=False, keep_replaced=keep_replaced)
