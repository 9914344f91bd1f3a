"""Probes of a project in a local cloud: proven if all is as planned, and each refuted by its planted fault."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.parts.adopt.seeding import served
from tests.parts.verify.lab import PROJECT, Lab, answers_of, change, let_in, verdicts
from training_platform.clients.project_contents import Contents
from training_platform.parts.verify.probe_run import run_probes, with_lustre
from training_platform.parts.verify.probe_table import PROBES
from training_platform.resources.resource_types import LUSTRE

pytestmark = pytest.mark.timeout(300)
TEST_MEMBER = {"group": "vision@example.com", "account": "tester@example-admin.iam.gserviceaccount.com"}
READING = [name for name, probe in PROBES.items() if not probe.needs and not probe.makes]
MAIN = f"container/projects/{PROJECT}/locations/us-central1-a/clusters/lab-main"


@pytest.mark.parametrize("name", [*READING, "monitoring-page"])
def test_a_project_as_planned_refutes_nothing_and_keeps_nothing(lab: Lab, tmp_path: Path, name: str) -> None:
    def there() -> set[str]:
        return {record.name for record in lab.cloud.store.all() if "/operations/" not in record.name}

    before = there()
    with lab.platform(tmp_path, confirm=code_of(lab)) as platform:
        answers = verdicts(answers_of(name, platform))
        assert bool(PROBES[name].makes) == bool(platform.maker.object_record.last_number)
        platform.maker.remove()
    assert there() == before

    assert answers["refuted"] == []
    assert answers["undecided"] == []
    assert answers["proven"]


@pytest.mark.parametrize(("status", "exists", "unread"), [(200, True, False), (404, False, False), (403, False, True)])
def test_planned_lustre_instances_are_read_by_their_path(lab: Lab, status: int, exists: bool, unread: bool) -> None:
    path = f"projects/{PROJECT}/locations/us-central1-a/instances/scratch"
    inputs = {"project": PROJECT, "location": "us-central1-a", "instanceId": "scratch"}
    planned = dataclasses.replace(lab.resources[0], type=LUSTRE, inputs=inputs)
    body = {"name": path} if exists else {"error": {"message": "no"}}
    answers = {f"GET .*{path}$": lambda _: (status, body)}
    with lab.spoiled(lambda lab: setattr(lab.cloud, "answers", answers)), served(lab.seeded) as address:
        contents = with_lustre([planned], Contents(PROJECT), address)

    assert contents.of(LUSTRE) == ({path: body} if exists else {})
    assert (LUSTRE in contents.unread) is unread


def code_of(lab: Lab) -> Callable[[str], str]:
    """Return a stand-in for a person who reads the code in the message of the alert that always fires."""

    def read(_: str) -> str:
        policies = (record.body for record in lab.cloud.store.all() if "alertPolicies/" in record.name)
        texts = [body["documentation"]["content"] for body in policies if "vector(1)" in str(body["conditions"])]
        return re.findall(r"code is (\d{6})", texts[0])[0] if len(texts) == 1 else ""

    return read


@pytest.mark.parametrize(
    ("confirm", "verdict", "says"),
    [
        (lambda _: "", "refuted", "its code was not read"),
        (lambda _: "none", "refuted", "its code was not read"),
        (None, "undecided", "nobody was asked"),
    ],
    ids=["no code", "another code", "no terminal"],
)
def test_an_alert_whose_code_nobody_read_did_not_reach_them(
    lab: Lab, tmp_path: Path, confirm: Callable[[str], str] | None, verdict: str, says: str
) -> None:
    with lab.platform(tmp_path, confirm=confirm) as platform:
        answers = verdicts(answers_of("monitoring-page", platform))
        platform.maker.remove()

    assert len(answers["proven"]) == 1
    assert [says in sentence for sentence in answers[verdict]] == [True]


def test_a_page_says_nothing_secret_and_has_the_channels_of_the_environment(lab: Lab, tmp_path: Path) -> None:
    with lab.platform(tmp_path, confirm=code_of(lab)) as platform:
        answers = answers_of("monitoring-page", platform)
        (policy,) = (
            record.body for record in lab.cloud.store.all() if "vector(1)" in str(record.body.get("conditions"))
        )
        platform.maker.remove()

    (channel,) = (record.body for record in lab.cloud.store.all() if "/notificationChannels/" in record.name)
    assert policy["notificationChannels"] == [channel["name"]]
    assert policy["userLabels"]["verify-run"] == platform.maker.object_record.run
    code = re.findall(r"\d{6}", policy["documentation"]["content"])[0]
    assert not any(code in part for answer in answers for part in answer)


@pytest.mark.parametrize(("name", "minimum"), [("vertex-refusals", 20), ("monitoring-refusals", 4)])
def test_all_requests_are_refused_as_the_table_has_it(lab: Lab, tmp_path: Path, name: str, minimum: int) -> None:
    with lab.platform(tmp_path) as platform:
        (answer,) = answers_of(name, platform)

    count, _, of = answer.says.split()[:3]
    assert count == of
    assert int(count) >= minimum


def test_a_dry_run_without_the_right_to_create_decides_nothing(lab: Lab, tmp_path: Path) -> None:
    denied = answer("POST .*/dashboards$", 403, error={"message": "you lack monitoring.dashboards.create"})
    with lab.spoiled(denied), lab.platform(tmp_path) as platform:
        answers = verdicts(answers_of("monitoring-refusals", platform))

    assert (answers["refuted"], answers["proven"], len(answers["undecided"])) == ([], [], 4)


def delete(end: str) -> Callable[[Lab], None]:
    """Delete the resource whose name ends with ``end``."""
    return lambda lab: lab.cloud.store.delete(lab.record(end).name)


def halve_quota(lab: Lab) -> None:
    limits = lab.limits["compute.googleapis.com"]["NVIDIA-A100-GPUS-per-project-region"]
    limits[0]["limit"] //= 2
    lab.set_limits()


def forget_quota(lab: Lab) -> None:
    del lab.limits["compute.googleapis.com"]["NETWORKS-per-project"]
    lab.set_limits()


def forget(end: str) -> Callable[[Lab], None]:
    """Remove all grants on the resource whose name ends with ``end``."""
    return lambda lab: lab.record(end).meta.pop("policy")


def silence(source: str) -> Callable[[Lab], None]:
    return lambda lab: setattr(lab.cloud, "silent", source)


def answer(pattern: str, code: int, **body: Any) -> Callable[[Lab], None]:
    """Make the cloud give another answer to some requests."""
    return lambda lab: setattr(lab.cloud, "answers", {pattern: lambda _: (code, body)})


FAULTS: Mapping[str, tuple[str, Callable[[Lab], object], str]] = {
    "a right is missing": (
        "project-rights",
        answer("POST .*projects/[^/]*:testIamPermissions", 200, permissions=["monitoring.timeSeries.list"]),
        "you do not have ",
    ),
    "a limit is too small": ("project-quotas", halve_quota, "the stacks need 32"),
    "a quota has another id": ("project-quotas", forget_quota, "has no quota NETWORKS-per-project"),
    "a cluster that is gone": ("cluster-running", delete(f"{MAIN}"), "does not exist"),
    "a cluster that is broken": ("cluster-running", change(f"{MAIN}$", status="ERROR"), "is ERROR, not RUNNING"),
    "a pool that is broken": ("pools-running", change(f"{MAIN}/nodePools/a100", status="ERROR"), "is ERROR"),
    "an instance that is broken": (
        "storage-ready",
        change("instances/lab-homes", state="ERROR"),
        "is ERROR, not READY",
    ),
    "a persistent resource that is broken": (
        "vertex-running",
        change("persistentResources/[^/]*tuning", state="ERROR"),
        "is ERROR, not RUNNING",
    ),
    "an alert without a series": ("monitoring-series", silence("kube_jobset"), "no series of jobset"),
    "an alert that does not fire": ("monitoring-page", silence("alerts"), "no alert opened"),
    "a request that is let in": (
        "vertex-refusals",
        answer("POST .*/global/networks$", 200),
        "an unknown field of a network: accepted",
    ),
    "a dashboard that is taken": (
        "monitoring-refusals",
        answer("POST .*/dashboards$", 200),
        "a tile beyond the columns of its dashboard: accepted",
    ),
    "a refusal of another kind": ("vertex-refusals", answer("GET .*/networks/verify-", 409), "409, expected 404"),
    "a role on a bucket is gone": (
        "tenancy-grants",
        forget("b/example-lab-lab-vision-checkpoints"),
        "jobs of vision cannot write",
    ),
    "members read no logs": ("tenancy-members", forget("views/.*"), "members of vision cannot read logs of ended runs"),
    "members cannot pull": (
        "tenancy-members",
        forget("repositories/lab-images"),
        "members of vision cannot look up images",
    ),
    "somebody may act as jobs": ("tenancy-accounts", let_in("user:eve@example.com"), "which no stack file grants"),
}


def test_a_member_has_what_the_file_of_its_team_promises(lab: Lab, tmp_path: Path) -> None:
    with lab.platform(tmp_path, options=TEST_MEMBER) as platform:
        answers = verdicts(answers_of("tenancy-members", platform))

    assert (answers["refuted"], answers["undecided"]) == ([], [])
    promises = lab.promises_to("group:vision@example.com")
    assert len(promises) > 5
    assert answers["proven"] == [f"{len(promises)} promised rights of members are granted"]


def test_an_account_outside_the_group_has_nothing_of_it(lab: Lab, tmp_path: Path) -> None:
    stranger = {**TEST_MEMBER, "account": "eve@example-admin.iam.gserviceaccount.com"}
    with lab.platform(tmp_path, options=stranger) as platform:
        answers = verdicts(answers_of("tenancy-members", platform))

    assert (answers["proven"], len(answers["refuted"])) == ([], len(lab.promises_to("group:vision@example.com")))


def test_what_policy_troubleshooter_may_not_show_decides_nothing(lab: Lab, tmp_path: Path) -> None:
    hidden = answer("POST v3/iam:troubleshoot", 200, overallAccessState="UNKNOWN_INFO")
    with lab.spoiled(hidden), lab.platform(tmp_path) as platform:
        answers = verdicts(answers_of("tenancy-grants", platform))

    assert (answers["proven"], answers["refuted"]) == ([], [])
    assert "jobs of vision: unknown whether they can write logs" in answers["undecided"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refuted_by_its_probe(lab: Lab, tmp_path: Path, fault: str) -> None:
    name, spoil, says = FAULTS[fault]
    with lab.spoiled(spoil), lab.platform(tmp_path, options=TEST_MEMBER) as platform:
        answers = verdicts(answers_of(name, platform))

    assert any(says in sentence for sentence in answers["refuted"]), answers


def test_a_stockout_refutes_nothing(lab: Lab, tmp_path: Path) -> None:
    pool = change(f"{MAIN}/nodePools/a100", status="ERROR", statusMessage="GCE_STOCKOUT: try another zone")
    with lab.spoiled(pool), lab.platform(tmp_path) as platform:
        answers = verdicts(answers_of("pools-running", platform))

    assert answers["refuted"] == []
    assert len(answers["undecided"]) == 1


def test_probes_after_a_refuted_one_are_not_decided(lab: Lab, tmp_path: Path) -> None:
    chosen = [probe for probe in PROBES.values() if probe.name in READING]
    with lab.spoiled(change(f"{MAIN}$", status="ERROR")), lab.platform(tmp_path) as platform:
        outcomes = run_probes(chosen, platform, platform.maker.object_record, lambda *_: None)

    refuted = [name for name, outcome in outcomes.items() if outcome.verdict == "refuted"]
    because = {name: outcome.answers[0].says for name, outcome in outcomes.items() if outcome.verdict == "undecided"}
    assert refuted == ["cluster-running"]
    assert because == {
        "pools-running": "not decided, because of cluster-running",
        "monitoring-series": "not decided, because of cluster-running",
    }
