"""Every change that a stack file can ask for, under the real engine: done as ``check --base`` announces it, and kept.

A second preview of each round finds nothing to do: what the local cloud took, it kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.api import Store
from tests.parts.sandbox.run.repositories import without_stacks
from tests.stacks.field_changes import ENV, KINDS, MATES, Kind, Round, files, named
from training_platform.checks.comparison.changes import resource_changes
from training_platform.checks.outcome import FlatResource
from training_platform.checks.stacks import CheckOptions, check_stacks
from training_platform.parts.sandbox.google_rules import judged_cloud

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

UNKNOWN_INPUT = "Invalid or unknown key"  # a provider's own words
OPS = {"changed": "update", "replaced": "replace", "added": "create", "removed": "delete"}


@dataclass(frozen=True)
class Stage:
    """A deployed round: announced and executed operations by type and name, and the changes of a second preview."""

    round: Round
    announced: dict[str, str]
    done: dict[str, str]
    again: dict[str, str]
    failure: str


class Place:
    """A repository of both stacks, with a sandbox of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sandbox = without_stacks(root)

    def write(self, kind: Kind, section: dict[str, Any]) -> tuple[FlatResource, ...]:
        """Write the files that a kind needs, and return what ``check`` plans for the one stack."""
        for old_file in (self.root / "stacks").glob("Pulumi.*.yaml"):
            old_file.unlink()  # the team as its own last round left it fits no other environment
        for name, text in files(kind, section):
            (self.root / "stacks" / name).write_text(text, encoding="utf-8")
        checked = check_stacks(self.root, [kind.stack], CheckOptions(today=date(2026, 11, 22), inputs=True))
        outcome = checked.plans.outcomes.get(kind.stack)
        assert outcome is not None, [str(finding) for finding in checked.report.all_findings()]
        assert outcome.inputs is not None
        return outcome.inputs

    def make_parts_of_others(self) -> None:
        """Create what a section names and no stack creates: buckets, a backup, subnets of notebook VMs."""
        project, other_project = (kind.section["project"] for kind in (ENV, MATES))
        cloud = judged_cloud([project, other_project], store=Store(self.sandbox.folder.cloud))

        def ask(service: str, path: str, body: dict[str, Any], **query: str) -> None:
            code, answer = cloud.handle(service, "POST", path, list(query.items()), body)
            assert code == 200, answer

        for bucket in sorted({bucket_part["name"] for bucket_part in named("bucket")}):
            ask("storage", "v1/b", {"name": bucket, "location": "US-CENTRAL1"}, project=project)
        for backup in sorted(set(named("restore_from"))):
            path, _, name = backup.rpartition("/")
            source = f"projects/{project}/locations/us-central1-a/instances/env-a"
            ask("file", f"v1/{path}", {"sourceInstance": source, "sourceFileShare": "one"}, backupId=name)
        ask("serviceusage", f"v1/projects/{other_project}/services/compute.googleapis.com:enable", {})
        networks = f"projects/{other_project}/global/networks"
        ask("compute", f"v1/{networks}", {"name": "others", "autoCreateSubnetworks": False})
        for number, subnet in enumerate(
            sorted({subnet_name for subnet_name in named("subnet") if isinstance(subnet_name, str)})
        ):
            path, _, name = subnet.rpartition("/")
            body = {"name": name, "network": f"{networks}/others", "ipCidrRange": f"10.8.{number}.0/24"}
            ask("compute", f"v1/{path}", body)
        cloud.store.flush()

    def run(self, command: str, stack: str) -> tuple[dict[str, str], str]:
        """Run a command; return its operations by resource, and its errors."""
        ran = self.sandbox(command, stack)
        if ran.returncode:
            return {}, ran.stdout + ran.stderr
        done: dict[str, set[str]] = {}
        for step in json.loads(self.sandbox.folder.summary(stack).read_text())["steps"]:
            if step["op"] != "same":
                done.setdefault(f"{step['type']} {step['name']}", set()).add(step["op"])
        return {key: _what(ops) for key, ops in done.items()}, ""


def _what(ops: set[str]) -> str:
    """Return what was done by all steps of a resource; one that goes with what is replaced has no new one."""
    if ops <= {"delete", "delete-replaced"}:
        return "delete"
    return "replace" if any("replace" in op for op in ops) else "+".join(sorted(ops))


def walk(place: Place, kind: Kind, scratch: Path) -> Iterator[Stage]:
    """Bring a stack up, then each round of its changes, and from the last one nothing more."""
    before = place.write(kind, kind.section)
    _, failure = place.run("up", kind.stack)
    assert not failure, failure
    for round_ in kind.rounds(scratch):
        after = place.write(kind, round_.applied(kind.section))
        announced = {f"{change.type} {change.name}": OPS[change.kind] for change in resource_changes(before, after)}
        done, failure = place.run("up", kind.stack)
        again, second = place.run("preview", kind.stack) if not failure else ({}, "")
        yield Stage(round_, announced, done, again, failure or second)
        before = after


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Stage]]:
    """All rounds of both stacks, the team's first, since the environment's end with another environment."""
    place = Place(tmp_path_factory.mktemp("fields") / "repository")
    place.write(ENV, ENV.section)
    _, failure = place.run("up", ENV.stack)
    if UNKNOWN_INPUT in failure:
        pytest.skip(f"the gcp plugin on PATH is older than its SDK: {failure.strip().splitlines()[-1]}")
    assert failure == ""
    place.make_parts_of_others()
    return {kind.stack: list(walk(place, kind, tmp_path_factory.mktemp("scratch"))) for kind in (MATES, ENV)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.stack)
def test_every_change_is_taken(kind: Kind, stages: dict[str, list[Stage]]) -> None:
    assert [stage.failure for stage in stages[kind.stack] if stage.failure] == []
    assert {path for stage in stages[kind.stack] for path in stage.round.changes} == set(kind.changes())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.stack)
def test_every_change_is_done_as_it_was_announced(kind: Kind, stages: dict[str, list[Stage]]) -> None:
    for stage in stages[kind.stack]:
        assert {key: op for key, op in stage.done.items() if key in stage.announced} == stage.announced


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.stack)
def test_what_was_taken_was_kept(kind: Kind, stages: dict[str, list[Stage]]) -> None:
    assert [stage.again for stage in stages[kind.stack]] == [{}] * len(stages[kind.stack])
