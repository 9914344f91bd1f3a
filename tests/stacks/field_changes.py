"""Every field of the model with another value that Google Cloud takes, in rounds that one ``up`` each can apply.

Fields and most values are those of the reach test, which fails for a field of the model that it lacks. A value that
Google refuses stands here at another place of the same field, or the field has a reason.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tests.stacks import every_field as reach
from tests.support.plans import planned_stack
from tests.support.stack_files import text_of
from training_platform.checks.comparison.changes import resource_changes
from training_platform.checks.outcome import FlatResource, flat_resource
from training_platform.checks.stacks import CheckOptions, check_stacks
from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.stack_resource import StackResource

Path_ = tuple[str | int, ...]
Json = dict[str, Any]
CLUSTER = reach.CLUSTER
POOLS = reach.POOLS
DEEP = reach.DEEP
NO_SNAPSHOT = "quota-no-snapshot"  # limits are another matter


def _sound(environment: Json) -> Json:
    """Return the reach test's environment without what Google refuses in it, and without protection."""
    sound = copy.deepcopy(environment)
    cluster = sound["clusters"]["c"]
    sound |= {"production": False, "deletion_protection": False}
    sound["quota_requests"]["gpus"]["value"] = 64
    limits = cluster["auto_provisioning"]
    limits |= {"cpu": 4000, "memory_gb": 40000}
    limits["accelerators"] |= {"tpu-v5-lite-podslice": 64, "nvidia-h100-mega-80gb": 64}
    pools = cluster["node_pools"]
    del pools["deep"]["partition"]
    pools["deep"]["accelerator_count"] = 2
    pools["sliced"] = {"machine_type": "a2-highgpu-1g", "partition": "1g.5gb"}
    sound["filestore"]["tiered"] = {"location": "us-central1", "tier": "REGIONAL", "capacity_gib": 1024}
    plain = {"machine_type": "a3-highgpu-8g", "capacity": "on-demand"}
    cluster["compute_classes"]["best"]["priorities"].append(plain)
    return sound


ENVIRONMENT = _sound(reach.ENVIRONMENT)
TEAM: Json = copy.deepcopy(reach.TEAM)
for _field in ("vms", "worker_command"):  # of the reach test's server: the share holds no replica of several VMs
    del TEAM["serving"]["c"]["s"][_field]
_SEVERAL = "wants the operator and a larger share: tests/kube/test_servers_of_several_vms.py has such servers"
ELSEWHERE: Mapping[Path_, tuple[Path_, Any]] = {
    ("filestore", "a", "tier"): (("filestore", "tiered", "tier"), "ENTERPRISE"),
    ("filestore", "a", "connection"): (("filestore", "e", "connection"), "private-service-access"),
    ("image_sources",): (("image_sources",), ["us-docker.pkg.dev/example-reach/images/", "example.com/"]),
    ("filestore", "e", "team"): (("filestore", "tiered", "team"), "team"),
    (*DEEP, "accelerator_count"): ((*DEEP, "accelerator_count"), 4),
    (*DEEP, "partition"): ((*POOLS, "sliced", "partition"), "2g.10gb"),
    (*reach.SECOND, "capacity"): ((*reach.BEST, "priorities", 2, "capacity"), "spot"),
    (*reach.NAP, "cpu"): ((*reach.NAP, "cpu"), 5000),
    (*reach.NAP, "memory_gb"): ((*reach.NAP, "memory_gb"), 50000),
    (*reach.NAP, "accelerators"): (
        (*reach.NAP, "accelerators"),
        {**ENVIRONMENT["clusters"]["c"]["auto_provisioning"]["accelerators"], "nvidia-h100-80gb": 72},
    ),
}
_MOVED = "another limit is another request: check --base refuses it, since Google changes only the amount"
REASONS: Mapping[Path_, str] = {
    (*reach.REQUEST, "service"): _MOVED,
    (*reach.REQUEST, "quota_id"): _MOVED,
    (*reach.REQUEST, "dimensions"): _MOVED,
    (*DEEP, "upgrades", "auto_upgrade"): "check refuses it: every cluster is in a release channel",
    ("environment",): "a team of another environment is another team: its clusters hold nothing of this one",
    (*reach.SERVER, "vms"): _SEVERAL,
    (*reach.SERVER, "worker_command"): _SEVERAL,
    (*reach.RESOURCE, "network_attachment"): "check refuses it: the agent of the team's project has no grant",
    (*reach.RESOURCE, "deletion_protection"): "is Pulumi's own protection, in its state: nothing is sent",
}
PROTECTION = "deletion_protection"


def _comes_last(path: Path_) -> bool:
    """Whether a change goes into the last round: no other can follow it, or come with it.

    What is protected is not replaced; a request that is taken back stays there; and of a disk the provider sends other
    changes beside these in a form that the API does not document (docs/development/surprises.md).
    """
    return path[-1] in (PROTECTION, "throughput_mibps", "filled") or path == ("quota_requests",)


def _only_grows(path: Path_, later: Round) -> bool:
    """Whether a change stays in a later round: a disk that shrinks ends the provider in a panic."""
    gone = any(path[: len(other)] == other for other in later.changes)
    return path[0] == "data_sets" and path[-1] == "size_gib" and not gone


@dataclass
class Round:
    """Changes of one section that one ``up`` applies, each to resources, or to parts of them, of its own."""

    changes: dict[Path_, Any] = field(default_factory=dict)

    def applied(self, section: Json) -> Json:
        """Return a section with all changes; the outer ones first."""
        for path in sorted(self.changes, key=len):
            section = reach.changed(section, path, self.changes[path])
        return section


@dataclass(frozen=True)
class Kind:
    """A kind of stack: its name in the sandbox, its section before the changes, and all of them."""

    stack: str
    key: str
    section: Json
    table: Mapping[Path_, Any]
    model: type[BaseModel]

    def changes(self) -> dict[Path_, Any]:
        """Return every change that is applied, by its path; it represents a field of the same name."""
        changes = dict(ELSEWHERE.get(path, (path, new)) for path, new in self.table.items() if path not in REASONS)
        for path in changes:
            if path[-1] == PROTECTION:
                changes[path] = len(path) == 1
        return changes

    def rounds(self, folder: Path) -> list[Round]:
        """Return all changes in as few rounds as they fit into, side by side."""
        last = Round({path: new for path, new in self.changes().items() if _comes_last(path)})
        first: list[Round] = []
        effects = {path: self.effects(path, new) for path, new in self.changes().items()}
        for path in sorted(effects, key=lambda path: (len(effects[path][0]), -len(path))):
            if path in last.changes:
                continue
            fitting = (round_ for round_ in first if self._fits(path, round_, effects, folder))
            round_ = next(fitting, None)
            if round_ is None:
                first.append(round_ := Round())
            round_.changes[path] = self.changes()[path]
        # A quota request stays in a project that is left; the way back would make it again; the last round has none.
        first.sort(key=lambda planned_round: ("project",) in planned_round.changes)
        rounds = [*first, last] if last.changes else first
        for earlier, later in pairwise(rounds):
            later.changes |= {path: new for path, new in earlier.changes.items() if _only_grows(path, later)}
        return rounds

    def effects(self, path: Path_, new: Any) -> tuple[set[str], set[str]]:
        """Return the resources that one change replaces or adds, and those that it changes in place."""
        before = self.planned(self.section)
        after = self.planned(reach.changed(self.section, path, new))
        anew: set[str] = set()
        changed: set[str] = set()
        for change in resource_changes(before, after):
            (changed if change.kind == "changed" else anew).add(f"{change.type} {change.name}")
        return anew, changed

    def _fits(self, path: Path_, round_: Round, effects: Mapping[Path_, Any], folder: Path) -> bool:
        """Whether a change fits into a round: no path in another, and no change in place of a replaced resource."""
        anew, changed = effects[path]
        for other in round_.changes:
            short = min(len(path), len(other))
            if path[:short] == other[:short] or anew & effects[other][1] or changed & effects[other][0]:
                return False
        tried = Round({**round_.changes, path: self.changes()[path]})
        return not errors(folder, self, tried.applied(self.section))

    def planned(self, section: Json) -> list[FlatResource]:
        """Return the resources that a section is planned to be."""
        resources = []
        for resource in self._resources(section):
            before, flat = self._before.get(resource.key, (None, None))
            resources.append(flat if flat and resource == before else flat_resource(resource))
        return resources

    @cached_property
    def _before(self) -> dict[tuple[str, str], tuple[StackResource, FlatResource]]:
        """What the section is planned to be before the changes: most of it is the same after each of them."""
        return {resource.key: (resource, flat_resource(resource)) for resource in self._resources(self.section)}

    def _resources(self, section: Json) -> list[StackResource]:
        workspace = _workspace(self, section)
        return [
            resource for resource in planned_stack(workspace.stacks[self.stack], workspace).resources if resource.custom
        ]


ENV = Kind("env", "environment", ENVIRONMENT, reach.ENVIRONMENT_CHANGES, Environment)
MATES = Kind("team", "team", TEAM, reach.TEAM_CHANGES, Team)
KINDS = (ENV, MATES)


def named(key: str) -> Iterator[Any]:
    """Yield the values of a key anywhere in a section, before its changes and after each of them."""
    for kind in KINDS:
        for section in (kind.section, *(reach.changed(kind.section, *change) for change in kind.changes().items())):
            yield from _under(section, key)


def _under(value: Any, key: str) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from [part] if name == key else _under(part, key)


def files(kind: Kind, section: Json) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of both stack files, with one section as given."""
    for other in KINDS:
        if other is kind or other is ENV:
            yield f"Pulumi.{other.stack}.yaml", text_of({other.key: section if other is kind else other.section})


def _workspace(kind: Kind, section: Json) -> Workspace:
    stacks = {
        other.stack: reach.parsed(other.stack, {other.key: section if other is kind else other.section})
        for other in KINDS
        if other is kind or other is ENV
    }
    return cross_check(Workspace(Path(), stacks))


def errors(folder: Path, kind: Kind, section: Json) -> list[str]:
    """Return what ``check`` refuses of a section, without its quotas, which no snapshot limits here."""
    (folder / "stacks").mkdir(parents=True, exist_ok=True)
    for name, text in files(kind, section):
        (folder / "stacks" / name).write_text(text, encoding="utf-8")
    report = check_stacks(folder, [kind.stack], CheckOptions(today=date(2026, 11, 22))).report
    errors = [finding for stack in report.stacks for finding in stack.findings if finding.severity == "error"]
    return [str(finding) for finding in errors if finding.rule != NO_SNAPSHOT]
