"""An acknowledgement excuses one effect on what it names, and nothing that comes later beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from tests.places import ROOT
from tests.training_platform.checks.repository import Repository
from tests.training_platform.checks.test_losses import losses
from training_platform.config.reading.finding import Finding
from training_platform.rules.descriptions import acknowledgement

READER = {"bucket": "shared", "role": "roles/storage.objectViewer", "member": "allUsers"}
ON_BUCKET = "gcp:storage/bucketIAMMember:BucketIAMMember"
ON_PROJECT = "gcp:projects/iAMMember:IAMMember"
VOLUME = "kubernetes:core/v1:PersistentVolume"
KIND = "gcp:storage/bucket:Bucket"


def acknowledge(repository: Repository, *findings: Finding) -> None:
    """Write what a check prints as the acknowledgements of losses."""
    head = "acknowledged:\n"
    entries = [acknowledgement(finding).removeprefix(head) for finding in findings]
    text = head + "\n".join(entries).replace("YYYY-MM-DD", "2026-12-31") + "\n"
    (repository.root / "stacks" / "exemptions.yaml").write_text(text, encoding="utf-8")


def acknowledge_by_old_entry(repository: Repository, effect: str, path: str, becomes: str) -> None:
    """Write an acknowledgement that a check printed before entries named resources."""
    old = Finding(rule=effect, severity="error", message="", stack="small-vision", path=path, becomes=becomes)
    acknowledge(repository, old)


def told(findings: list[Finding]) -> set[tuple[str, str]]:
    """Return the effects of losses, each with its resource, or its path if it has one."""
    return {(finding.rule, finding.resource or finding.path) for finding in findings}


# Resources without a section.


def with_own_resources(repository: Repository, *resources: str) -> None:
    """Write a program of an organisation's own that adds resources to the stack small-vision."""
    program = f"""\
from training_platform.resources.plan import Resource


def add_resources(own):
    if own.plan.name == "small-vision":
        provider = next(resource.provider for resource in own.plan.resources() if resource.provider)
        for resource in [{", ".join(resources)}]:
            own.plan.add(resource)
"""
    (repository.root / "own_resources.py").write_text(program, encoding="utf-8")


def grant_of_own(name: str, role: str) -> str:
    inputs = {"project": "example-small", "role": role, "member": "allUsers"}
    return f"Resource(type={ON_PROJECT!r}, name={name!r}, inputs={inputs})"


def volume_of_own(name: str, path: str) -> str:
    claim = {"namespace": "vision", "name": "data"}
    inputs = {"spec": {"claimRef": claim, "nfs": {"server": "10.0.0.2", "path": path}}}
    return f"Resource(type={VOLUME!r}, name={name!r}, inputs={inputs}, own_provider=provider)"


@pytest.fixture
def own(repository: Repository) -> Repository:
    """Return a repository whose base plans resources of its own, none yet."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "training_platform", repository.root / "training_platform", ignore=ignored)
    with_own_resources(repository)
    repository.commit()
    return repository


def test_an_acknowledged_resource_of_an_own_program_excuses_no_later_one(own: Repository) -> None:
    nlp = own.path("small-vision").read_text(encoding="utf-8").split("    vertex:")[0].replace("vision", "nlp")
    directory = "    directories: {data: {filestore: homes, size_gib: 10}}\n"
    own.path("small-nlp").write_text(nlp.replace("nominal_quota: 8", "nominal_quota: 0") + directory)
    own.commit()
    first = (grant_of_own("readers", "roles/viewer"), volume_of_own("theirs", "/share/nlp"))
    with_own_resources(own, *first)
    signed = losses(own.compare(base="HEAD"))
    acknowledge(own, *signed)
    assert told(signed) == {
        ("opens-access", f"{ON_PROJECT} readers"),
        ("opens-access", f"{VOLUME} theirs"),
    }
    assert losses(own.compare(base="HEAD")) == []

    later = Repository(own.root.with_name("later"))  # a process loads the program of a folder once
    shutil.copytree(own.root, later.root)
    with_own_resources(later, *first, grant_of_own("owners", "roles/owner"), volume_of_own("whole", "/share"))

    assert told(losses(later.compare(base="HEAD"))) == {
        ("opens-access", f"{ON_PROJECT} owners"),
        ("opens-access", f"{VOLUME} whole"),
    }


def step(op: str, kind: str, name: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a step of a preview; the options of a resource are beside its ``inputs``."""
    urn = f"urn:pulumi:small-vision::training-platform::{kind}::{name}"
    states = {
        side: None if state is None else {"type": kind, "urn": urn, "custom": True, **state}
        for side, state in (("oldState", old), ("newState", new))
    }
    return {"op": op, "urn": urn, **states}


def added(kind: str, name: str, **inputs: str) -> dict[str, Any]:
    return step("create", kind, name, None, {"inputs": inputs})


def previewed(repository: Repository, *steps: dict[str, Any]) -> list[Finding]:
    """Return the losses in a preview that are not acknowledged."""
    file = repository.root.parent / "preview.json"
    file.write_text(json.dumps({"steps": steps}))
    return losses(repository.compare(base="HEAD", previews=(file,)))


SIGNED = added(ON_BUCKET, "readers", **READER)


@pytest.mark.parametrize(
    ("later", "subject"),
    [
        (added(ON_BUCKET, "writers", **READER), f"{ON_BUCKET} writers"),
        (added(ON_PROJECT, "readers", role="roles/owner", member="allUsers"), f"{ON_PROJECT} readers"),
        (added(ON_BUCKET, "readers", **{**READER, "role": "roles/storage.objectAdmin"}), f"{ON_BUCKET} readers"),
        (added(ON_BUCKET, "readers", **{**READER, "bucket": "checkpoints"}), f"{ON_BUCKET} readers"),
        (added(ON_BUCKET, "vertex-tuning-readers", **READER), f"{ON_BUCKET} vertex-tuning-readers"),
    ],
    ids=["another name", "another type", "another role", "another bucket", "a name like a section's"],
)
def test_an_acknowledged_grant_excuses_no_other(repository: Repository, later: dict[str, Any], subject: str) -> None:
    acknowledge(repository, *previewed(repository, SIGNED))
    assert previewed(repository, SIGNED) == []

    assert told(previewed(repository, later)) == {("opens-access", subject)}


def test_a_resource_whose_name_begins_like_a_section_is_acknowledged_by_itself(repository: Repository) -> None:
    first = added(ON_BUCKET, "vertex-tuning-readers", **READER)
    acknowledge(repository, *previewed(repository, first))
    assert previewed(repository, first) == []

    later = added(ON_BUCKET, "vertex-tuning-writers", **READER)

    assert told(previewed(repository, first, later)) == {("opens-access", f"{ON_BUCKET} vertex-tuning-writers")}


def test_an_acknowledged_effect_of_a_resource_excuses_no_other_effect_of_it(repository: Repository) -> None:
    bucket = {"inputs": {"location": "US"}}
    shorter = {"inputs": {"location": "US", "softDeletePolicy": {"retentionDurationSeconds": 0}}}
    longer = {"inputs": {"location": "US", "softDeletePolicy": {"retentionDurationSeconds": 604800}}}
    acknowledge(repository, *previewed(repository, step("update", KIND, "archive", longer, shorter)))
    assert previewed(repository, step("update", KIND, "archive", longer, shorter)) == []

    lost = previewed(repository, step("delete", KIND, "archive", bucket, None))

    assert told(lost) == {("loses-data", f"{KIND} archive")}


def test_an_old_entry_for_a_resource_excuses_nothing_and_a_warning_has_what_to_write(repository: Repository) -> None:
    acknowledge_by_old_entry(repository, "opens-access", "", "added")

    (loss,) = previewed(repository, SIGNED)
    report = repository.compare(base="HEAD")

    assert loss.resource == f"{ON_BUCKET} readers"
    assert f'resource: "{ON_BUCKET} readers"' in (loss.allowed or "")
    assert f"becomes: {json.dumps(loss.becomes)}" in (loss.allowed or "")
    (warning,) = [finding for finding in report.all_findings() if finding.rule == "exemption-unused"]
    assert (warning.file, warning.position and warning.position.line) == ("stacks/exemptions.yaml", 2)
    assert "opens-access of `.`: excuses nothing" in warning.message
    assert (warning.allowed or "").startswith("`resource: TYPE NAME` in place of `path`")
