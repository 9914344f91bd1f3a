"""Stacks deployed to a local cloud, and the result of adopting them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.parts.adopt.seeding import Seeded, served
from tests.support.places import ROOT
from tests.support.plans import planned_stacks
from training_platform.clients.project_contents import Contents, read_contents
from training_platform.config.workspace import read_workspace
from training_platform.parts.adopt.adoption import AdoptedStack, Unplanned, compared, unplanned
from training_platform.resources.stack_plan import plannable
from training_platform.resources.stack_resource import StackResource

PROJECT = "example-lab"
STACK = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    filestore:
      homes: {location: us-central1-a, capacity_gib: 1024, reserved_range: 10.12.32.0/26}
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        node_pools:
          a100: {machine_type: a2-highgpu-8g, max_nodes: 4}
"""
Repository = Callable[[dict[str, str]], Path]


class Adopted(NamedTuple):
    """The adopted stacks by name, and the resources of the project that none of them plans."""

    stacks: Mapping[str, AdoptedStack]
    unplanned: list[Unplanned]


def write_stacks(root: Path, stacks: dict[str, str]) -> Path:
    """Turn a folder into a repository with these stacks, by name."""
    (root / "stacks").mkdir()
    shutil.copy(ROOT / "Pulumi.yaml", root)
    for name, text in stacks.items():
        (root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")
    return root


_SMALL: list[Sequence[StackResource]] = []


def small_plan(repository: Repository) -> Sequence[StackResource]:
    """Return the plan of the small stack, made once."""
    if not _SMALL:
        _SMALL.append(planned(repository({"lab": STACK}), "lab"))
    return _SMALL[0]


def planned(root: Path, name: str) -> Sequence[StackResource]:
    """Return the plan of a repository's stack."""
    return plans_of(root, name)[name]


def plans_of(root: Path, *names: str) -> dict[str, Sequence[StackResource]]:
    """Return the plans of a repository's stacks, each made once."""
    workspace = read_workspace(root)
    plans = {stack.name: plan.resources for stack, plan in planned_stacks(workspace, plannable(workspace, list(names)))}
    return {name: plans[name] for name in names}


def standing(resources: Sequence[StackResource]) -> Seeded:
    """Return a local cloud that holds the planned resources."""
    seeded = Seeded(PROJECT)
    seeded.put(resources)
    return seeded


def contents_of(seeded: Seeded) -> Contents:
    """Read the project of a local cloud."""
    with served(seeded) as address:
        return read_contents(PROJECT, (), address)


def adopted(seeded: Seeded, plans: Mapping[str, Sequence[StackResource]]) -> Adopted:
    """Adopt the project into planned stacks."""
    contents = contents_of(seeded)
    stacks = {name: compared(name, resources, contents) for name, resources in plans.items()}
    return Adopted(stacks, unplanned(list(stacks.values()), contents))
