"""An acknowledgement excuses one effect on what it names, and nothing that comes later beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.places import ROOT
from tests.training_platform.checks.losses import BUCKET, TEAM_HEAD, committed, losses
from tests.training_platform.checks.repository import Repository, signed
from training_platform.cli.main import app
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
    text = head + signed("\n".join(entries)) + "\n"
    (repository.root / "stacks" / "exemptions.yaml").write_text(text, encoding="utf-8")


def acknowledge_by_old_entry(repository: Repository, effect: str, path: str, becomes: str) -> None:
    """Write an acknowledgement that a check of version 0.1 printed."""
    acknowledge_by_old_entries(repository, (effect, path, becomes))


def acknowledge_by_old_entries(repository: Repository, *entries: tuple[str, str, str]) -> None:
    """Write acknowledgements of version 0.1, each of one effect at one path with one value."""
    text = "acknowledged:\n"
    for effect, path, becomes in entries:
        text += f"  - effect: {effect}\n    stack: small-vision\n    path: {path or '.'}\n"
        text += f"    becomes: {json.dumps(becomes)}\n    reason: agreed\n    owner: ml@example.com\n"
        text += '    expires: "2026-12-31"\n'
    (repository.root / "stacks" / "exemptions.yaml").write_text(text, encoding="utf-8")


def told(findings: list[Finding]) -> set[tuple[str, str]]:
    """Return the effects of losses, each with its resource, or its path if it has one."""
    return {(finding.rule, finding.resource or finding.path) for finding in findings}


def test_explain_prints_an_acknowledgement_that_can_be_pasted(repository: Repository) -> None:
    line = repository.edit("small", "{location: us-central1-a, capacity", "{location: us-central1-b, capacity")
    place = f"{repository.path('small')}:{line}"

    done = CliRunner().invoke(app, ["explain", place, "--base", "HEAD", "--root", str(repository.root)])

    assert done.exit_code == 0, done.output
    printed = done.stdout.partition("into stacks/exemptions.yaml:\n")[2]
    entry = dedent("".join(row for row in printed.splitlines(keepends=True) if row.startswith("    ")))
    (repository.root / "stacks" / "exemptions.yaml").write_text(signed(entry), encoding="utf-8")
    assert losses(repository.compare(base="HEAD")) == []


# Resources without a section.


def with_own_resources(repository: Repository, *resources: str) -> None:
    """Write a program of an organisation's own that adds resources to the stack small-vision."""
    program = f"""\
from training_platform.resources.plan import Options, Resource


def add_resources(own):
    if own.plan.name == "small-vision":
        provider = next(resource.provider for resource in own.plan.resources() if resource.provider)
        for resource in [{", ".join(resources)}]:
            own.plan.add(resource)
"""
    (repository.root / "own_resources.py").write_text(program, encoding="utf-8")


def grant_of_own(name: str, role: str, member: str = "allUsers") -> str:
    inputs = {"project": "example-small", "role": role, "member": member}
    return f"Resource(type={ON_PROJECT!r}, name={name!r}, inputs={inputs})"


def volume_of_own(name: str, path: str) -> str:
    claim = {"namespace": "vision", "name": "data"}
    inputs = {"spec": {"claimRef": claim, "nfs": {"server": "10.0.0.2", "path": path}}}
    return f"Resource(type={VOLUME!r}, name={name!r}, inputs={inputs}, own_provider=provider)"


def bucket_of_own(options: str) -> str:
    inputs = {"location": "US"}
    return f"Resource(type={KIND!r}, name='archive', inputs={inputs}, options=Options({options}))"


@pytest.fixture
def extended(repository: Repository) -> Repository:
    """Return a repository whose base plans resources of its extended, none yet."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "training_platform", repository.root / "training_platform", ignore=ignored)
    with_own_resources(repository)
    repository.commit()
    return repository


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("roles/viewer", "group:a@example.com"), ("roles/viewer", "allUsers")),
        (("roles/viewer", "allUsers"), ("roles/owner", "allUsers")),
    ],
    ids=["member", "role"],
)
def test_a_grant_that_is_replaced_by_one_to_everybody_opens(
    extended: Repository, before: tuple[str, str], after: tuple[str, str]
) -> None:
    with_own_resources(extended, grant_of_own("readers", *before))
    extended.commit()
    later = Repository(extended.root.with_name("later"))  # a process loads the program of a folder once
    shutil.copytree(extended.root, later.root)
    with_own_resources(later, grant_of_own("readers", *after))

    assert ("opens-access", f"{ON_PROJECT} readers") in told(losses(later.compare(base="HEAD")))


def test_an_acknowledged_resource_of_an_own_program_excuses_no_later_one(extended: Repository) -> None:
    nlp = extended.path("small-vision").read_text(encoding="utf-8").split("    vertex:")[0].replace("vision", "nlp")
    directory = "    directories: {data: {filestore: homes, size_gib: 10}}\n"
    extended.path("small-nlp").write_text(nlp.replace("nominal_quota: 8", "nominal_quota: 0") + directory)
    extended.commit()
    first = (grant_of_own("readers", "roles/viewer"), volume_of_own("theirs", "/share/nlp"))
    with_own_resources(extended, *first)
    signed = losses(extended.compare(base="HEAD"))
    acknowledge(extended, *signed)
    assert told(signed) == {
        ("opens-access", f"{ON_PROJECT} readers"),
        ("opens-access", f"{VOLUME} theirs"),
    }
    assert losses(extended.compare(base="HEAD")) == []

    later = Repository(extended.root.with_name("later"))  # a process loads the program of a folder once
    shutil.copytree(extended.root, later.root)
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
    assert "opens-access of `.`: permits nothing" in warning.message
    assert (warning.allowed or "").startswith("`resource: TYPE NAME` in place of `path`")


# A stack that is retired.

KEEPS = "buckets.data, buckets.logs"
PAID = "paid_by: ml@example.com"
TWO_BUCKETS = f"{BUCKET}      logs: {{location: us-central1}}\n"


def retired(since: str, keeps: str) -> str:
    kept = f", keeps: [{keeps}], {PAID}" if keeps else ""
    return f'    retired: {{since: "{since}"{kept}}}\n'


@pytest.fixture
def ending(repository: Repository) -> Repository:
    """Return a repository whose team is retired, and keeps two buckets."""
    text = f"{TEAM_HEAD}{TWO_BUCKETS}{retired('2026-12-01', KEEPS)}"
    committed(repository, "small-vision", TEAM_HEAD, text)
    return repository


def end(repository: Repository, since: str = "2026-12-01", keeps: str = KEEPS) -> list[Finding]:
    """Write another end of the team, and return the losses of this change that are not acknowledged."""
    path = repository.path("small-vision")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(retired(since, keeps) if line.startswith("    retired") else line for line in lines))
    return losses(repository.compare(base="HEAD"))


@pytest.mark.parametrize(
    ("keeps", "subjects", "becomes"),
    [
        ("buckets.logs", "bucket data of small-vision", "buckets.logs"),
        ("", "bucket data of small-vision, bucket logs of small-vision", "removed"),
    ],
    ids=["one of two", "both"],
)
def test_a_retired_stack_that_keeps_less_loses_it_at_that_line(
    ending: Repository, keeps: str, subjects: str, becomes: str
) -> None:
    (finding,) = end(ending, keeps=keeps)

    assert (finding.rule, finding.severity, finding.path, finding.becomes) == (
        "loses-data",
        "error",
        "retired.keeps",
        becomes,
    )
    assert finding.message.startswith(f"loses data: {subjects}: keeps")
    assert finding.position is not None
    lines = ending.path("small-vision").read_text(encoding="utf-8").splitlines()
    assert "retired:" in lines[finding.position.line - 1]


def test_a_retired_stack_that_ends_earlier_takes_a_promise_and_a_later_end_nothing(ending: Repository) -> None:
    (finding,) = end(ending, since="2026-11-30")

    assert (finding.rule, finding.severity, finding.path, finding.becomes) == (
        "takes-promise",
        "error",
        "retired.since",
        "2026-11-30",
    )
    assert "vision: since from 2026-12-01 to 2026-11-30; the stack is destroyed earlier than agreed" in finding.message
    assert end(ending, since="2027-01-01") == []


@pytest.mark.parametrize(
    ("signed", "later", "rules"),
    [
        ({"keeps": "buckets.logs"}, {"keeps": ""}, {("loses-data", "retired.keeps")}),
        ({"keeps": "buckets.logs"}, {"keeps": "buckets.data"}, {("loses-data", "retired.keeps")}),
        ({"keeps": "buckets.logs"}, {"since": "2026-11-30"}, {("takes-promise", "retired.since")}),
        ({"since": "2026-11-30"}, {"keeps": "buckets.logs"}, {("loses-data", "retired.keeps")}),
        ({"since": "2026-11-30"}, {"since": "2026-11-22"}, {("takes-promise", "retired.since")}),
    ],
    ids=["keeps nothing", "keeps the other", "ends earlier", "ends earlier, then keeps less", "ends even earlier"],
)
def test_an_acknowledged_end_excuses_no_other(
    ending: Repository, signed: dict[str, str], later: dict[str, str], rules: set[tuple[str, str]]
) -> None:
    acknowledge(ending, *end(ending, **signed))
    assert end(ending, **signed) == []

    assert told(end(ending, **later)) == rules


def test_an_acknowledged_retirement_is_stale_once_it_keeps_less(ending: Repository) -> None:
    ending.edit("small-vision", retired("2026-12-01", KEEPS), "")
    ending.commit()
    ending.edit("small-vision", TWO_BUCKETS, TWO_BUCKETS + retired("2026-12-01", KEEPS))
    signed = losses(ending.compare(base="HEAD"))
    acknowledge(ending, *signed)
    assert {finding.becomes for finding in signed} == {f"2026-12-01, keeps {KEEPS}"}
    assert end(ending) == []

    everything = end(ending, keeps="")

    assert {finding.becomes for finding in everything} == {"2026-12-01, keeps nothing"}
    assert {
        f'stacks/exemptions.yaml:2 has becomes: "2026-12-01, keeps {KEEPS}"' in (row.allowed or "")
        for row in everything
    } == {True}
    assert [kinds for finding in everything for _, kinds in finding.takes] == [
        ("data", "jobs", "promises", "protection")
    ]
    acknowledge_by_old_entry(ending, "loses-data", "retired", "2026-12-01")
    assert "loses-data" in {finding.rule for finding in end(ending, keeps="")}


def test_entries_of_the_last_version_hold_with_a_warning_each(ending: Repository) -> None:
    ending.edit("small-vision", retired("2026-12-01", KEEPS), "")
    ending.commit()
    ending.edit("small-vision", TWO_BUCKETS, TWO_BUCKETS + retired("2026-12-01", KEEPS))
    becomes = f"2026-12-01, keeps {KEEPS}"
    rules = ("loses-data", "stops-jobs", "takes-promise", "lifts-protection")

    acknowledge_by_old_entries(ending, *((rule, "retired", becomes) for rule in rules))
    report = ending.compare(base="HEAD")
    assert losses(report) == []
    warnings = [finding for finding in report.all_findings() if finding.rule == "exemption-untyped"]
    assert [finding.severity for finding in warnings] == ["warning"] * len(rules)
    assert "loses-data of retired: lists no losses" in warnings[0].message

    acknowledge_by_old_entries(ending, *((rule, "retired", becomes) for rule in rules[:-1]))
    (finding,) = losses(ending.compare(base="HEAD"))
    assert finding.rule == "loses-data"
    assert (finding.allowed or "").endswith("also lists protection of small-vision")


# Options.


def test_an_own_bucket_that_loses_its_options_lifts_protection(extended: Repository) -> None:
    with_own_resources(extended, bucket_of_own("protect=True, retain_on_delete=True"))
    extended.commit()
    with_own_resources(extended, bucket_of_own(""))

    (finding,) = losses(extended.compare(base="HEAD"))

    assert (finding.rule, finding.severity, finding.resource) == ("lifts-protection", "error", f"{KIND} archive")
    assert "protect from true to nothing, retainOnDelete from true to nothing" in finding.message
    assert "the engine may delete it from now on" in finding.message


PROTECTED = {"inputs": {"location": "US"}, "protect": True, "retainOnDelete": True}
UNPROTECTED = {"inputs": {"location": "US"}}
RETAINED = {"inputs": {"location": "US"}, "retainOnDelete": True}
CONNECTION = "gcp:servicenetworking/connection:Connection"
LIFTED = step("same", KIND, "archive", PROTECTED, UNPROTECTED)


@pytest.mark.parametrize(
    ("signed", "later", "expected"),
    [
        (LIFTED, step("same", KIND, "ledger", PROTECTED, UNPROTECTED), ("lifts-protection", f"{KIND} ledger")),
        (
            step("same", KIND, "archive", PROTECTED, RETAINED),
            LIFTED,
            ("lifts-protection", f"{KIND} archive"),
        ),
        (LIFTED, step("delete", KIND, "archive", PROTECTED, None), ("loses-data", f"{KIND} archive")),
        (
            LIFTED,
            step(
                "update",
                CONNECTION,
                "archive",
                {"inputs": {"deletionPolicy": "ABANDON"}},
                {"inputs": {"deletionPolicy": "DELETE"}},
            ),
            ("lifts-protection", f"{CONNECTION} archive"),
        ),
        (
            LIFTED,
            step(
                "update",
                "gcp:sql/databaseInstance:DatabaseInstance",
                "archive",
                {"inputs": {"deletionProtection": True}},
                {"inputs": {"deletionProtection": False}},
            ),
            ("lifts-protection", "gcp:sql/databaseInstance:DatabaseInstance archive"),
        ),
    ],
    ids=["another bucket", "another option", "its deletion", "a deletion policy", "protection of the cloud"],
)
def test_an_acknowledged_option_excuses_no_other(
    repository: Repository, signed: dict[str, Any], later: dict[str, Any], expected: tuple[str, str]
) -> None:
    acknowledge(repository, *previewed(repository, signed))
    assert previewed(repository, signed) == []

    assert told(previewed(repository, later)) == {expected}


def test_an_old_entry_excuses_no_lifted_option(repository: Repository) -> None:
    acknowledge_by_old_entry(repository, "lifts-protection", "", "{protect: , retainOnDelete: }")

    assert told(previewed(repository, LIFTED)) == {("lifts-protection", f"{KIND} archive")}


def test_a_state_has_the_options_that_a_plan_lacks(extended: Repository, tmp_path: Path) -> None:
    with_own_resources(extended, bucket_of_own(""))
    extended.commit()
    urn = f"urn:pulumi:small-vision::training-platform::{KIND}::archive"
    row = {"urn": urn, "type": KIND, "custom": True, **PROTECTED}
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"version": 3, "deployment": {"resources": [row]}}))

    lifted = [finding for finding in losses(extended.compare(base="HEAD", states=(file,))) if finding.resource]

    assert told(lifted) == {("lifts-protection", f"{KIND} archive")}
