"""A new version of a chart or cluster is reported with its effects; a request for another limit is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.checks.repository import Repository
from training_platform.checks.change_report import Comparison, InputChange, ResourceChange, StackChange
from training_platform.checks.comparison.upgrades import upgrades
from training_platform.checks.effect_kinds import EFFECT_OF_RULE
from training_platform.checks.report import Report
from training_platform.config.reading.declaration import located
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.resources.resource_types import ALERT_POLICY, CLUSTER, CLUSTER_QUEUE, RELEASE

HEAD = "    project: example-small\n"
REQUESTS = "    quota_requests:\n" + "".join(
    f"""\
      {name}:
        service: compute.googleapis.com
        quota_id: {quota}
        dimensions: {{region: {region}}}
        value: 4000
        justification: More pools.
        contact: ml-platform@example.com
"""
    for name, quota, region in (
        ("dimension", "SSD-TOTAL-GB-per-project-region", "us-central1"),
        ("quota-id", "DISKS-TOTAL-GB-per-project-region", "us-central1"),
        ("amount", "SSD-TOTAL-GB-per-project-region", "us-east1"),
        ("name", "SSD-TOTAL-GB-per-project-region", "us-east4"),
    )
)


def test_a_request_for_another_limit_under_the_same_name_is_an_error_at_the_request(repository: Any) -> None:
    """Another amount is no error, nor is the same request under another name."""
    repository.git("switch", "--quiet", "main")
    repository.edit("small", HEAD, HEAD + REQUESTS)
    repository.commit()
    repository.git("switch", "--quiet", "--create", "next")
    text = repository.path("small").read_text(encoding="utf-8")
    dimension, quota, amount, name = text.split("        service: compute")[1:]
    for old, new in (
        (dimension, dimension.replace("us-central1", "us-west4")),
        (quota, quota.replace("DISKS-TOTAL-GB-per", "SSD-TOTAL-GB-per")),
        (amount, amount.replace("value: 4000", "value: 5000").replace("      name:", "      more:")),
    ):
        assert old != new
        repository.edit("small", old, new)

    report = repository.compare(selected=("small",))
    moved = {finding.path: finding for finding in report.all_findings() if finding.rule == "quota-request-moved"}

    lines = repository.path("small").read_text(encoding="utf-8").splitlines()
    assert set(moved) == {"quota_requests.dimension", "quota_requests.quota-id"}
    for name, words in (
        ("dimension", 'dimensions.region from "us-central1" to "us-west4"'),
        ("quota-id", "quotaId from "),
    ):
        finding = moved[f"quota_requests.{name}"]
        assert (finding.rule, finding.severity) == ("quota-request-moved", "error")
        assert finding.position == (lines.index(f"      {name}:") + 1, 7)
        assert words in finding.message


POOLS = """\
        node_pools:
          gpu:
            machine_type: a2-highgpu-8g
            capacity: on-demand
            max_nodes: 2
          tpu:
            machine_type: ct5lp-hightpu-4t
            topology: 4x4
            slices: 2
"""
OLD = "      c:\n        location: us-central1-a\n"
SECOND = f"""\
      d:
        location: us-central1-a
        subnet: {{nodes: 10.16.0.0/20, pods: 10.80.0.0/16, services: 10.17.0.0/20}}
{POOLS}"""


def of_upgrades(report: Report) -> list[Finding]:
    return [finding for stack in report.stacks for finding in stack.findings if finding.rule == "upgrade"]


def resources(report: Report, stack: str) -> dict[tuple[str, str], str]:
    """Return what happens to each resource of a stack, by type and name."""
    assert report.comparison is not None
    (change,) = [stack_change for stack_change in report.comparison.stacks if stack_change.name == stack]
    assert change.unknown is None
    return {(resource.type, resource.name): resource.kind for resource in change.resources}


def test_another_version_of_kueue_says_what_it_touches_and_whose_queues(repository: Repository) -> None:
    repository.edit("small", HEAD, f'{HEAD}    charts:\n      kueue: {{version: "0.19.1"}}\n')

    report = repository.compare()
    (finding,) = of_upgrades(report)

    assert (finding.severity, finding.path, finding.stack) == ("warning", "charts.kueue.version", "small")
    assert "upgrades kueue from 0.19.2 to 0.19.1 in c: CRDs and webhooks go with the release" in finding.message
    assert finding.message.endswith("ClusterQueues that exist: 1, of vision")
    assert finding.allowed == "the steps of docs/upgrade.md"
    assert resources(report, "small") == {(RELEASE, "c-kueue-release"): "changed"}
    assert "small-vision" not in {
        stack.name for stack in report.stacks if resources(report, stack.name) and stack.name != "small"
    }


def test_a_new_version_of_a_cluster_says_what_stops_and_what_stays(repository: Repository) -> None:
    repository.edit("small", OLD, f'{OLD}        version: "1.34"\n')
    repository.commit()
    repository.edit("small", '"1.34"', '"1.35"')

    (finding,) = of_upgrades(repository.compare(base="HEAD", selected=("small",)))

    assert finding.path == "clusters.c.version"
    assert "from 1.34 to 1.35, which cannot be undone: its API is unavailable for minutes" in finding.message
    assert finding.message.endswith("nodes keep their version until its support ends")


def workspace(repository: Repository) -> Workspace:
    return read_workspace(repository.root)


def change(files: Workspace, *versions: tuple[str, str, str]) -> Comparison:
    changed = tuple(
        ResourceChange(
            kind="changed", type=kind, name=name,
            inputs=(InputChange("version" if kind == RELEASE else "minMasterVersion", "1", to, False),),
        )
        for kind, name, to in versions
    )  # fmt: skip
    stack = StackChange(name="small", kind="changed", resources=changed, head=files.stacks["small"])
    return Comparison(ref="main", commit="0", stacks=(stack,))


def test_clusters_that_take_one_version_are_one_finding_each_chart_its_own(repository: Repository) -> None:
    files = workspace(repository)
    releases = ("c-jobset-release", "d-jobset-release", "c-kueue-release")
    findings = located(upgrades(change(files, *((RELEASE, name, "2") for name in releases)), files))

    assert [finding.message.split(":")[0] for finding in findings] == [
        "upgrades jobset from 1 to 2 in c, d", "upgrades kueue from 1 to 2 in c",
    ]  # fmt: skip
    assert "Helm never touches its CRD" in findings[0].message
    assert "ClusterQueues" not in findings[0].message


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (OLD, OLD.replace("us-central1-a", "us-central1"), "its API stays available"),
        (
            OLD,
            f"{OLD}        maintenance: {{upgrade_freeze: false}}\n",
            "GKE then upgrades the nodes one VM after another",
        ),
    ],
)
def test_what_a_clusters_upgrade_stops_depends_on_the_cluster(
    repository: Repository, old: str, new: str, sentence: str
) -> None:
    repository.edit("small", old, new)

    files = workspace(repository)
    (finding,) = located(upgrades(change(files, (CLUSTER, "c-cluster", "2")), files))

    assert sentence in finding.message


SHARE = "      c:\n        a100-40: {nominal_quota: 8}\n"
UNPROTECTED = "deletion_protection: false\n"
LIFTED = f"{OLD}        {UNPROTECTED}"


def test_one_cluster_takes_anothers_place_and_no_queue_is_lost(repository: Repository) -> None:
    """Takes the steps of docs/upgrade.md, each compared with the one before."""

    def step(stack: str) -> dict[tuple[str, str], str]:
        report = repository.compare(base="HEAD")
        repository.commit()
        rules = {
            finding.rule
            for stack_report in report.stacks
            for finding in stack_report.findings
            if finding.severity == "error"
        }
        assert not rules - {"quota-no-snapshot", *EFFECT_OF_RULE}
        assert not [
            finding for finding in report.all_findings() if "the Pulumi engine refuses" in (finding.first or "")
        ]
        return resources(report, stack)

    repository.edit("small", "    clusters:\n", f"    clusters:\n{SECOND}")
    added = step("small")
    assert added[CLUSTER, "d-cluster"] == "added"
    watched = {"dashboard-platform"} | {name for token, name in added if token == ALERT_POLICY}
    assert {name for (_, name), kind in added.items() if kind != "added"} <= watched  # which look at both from now on

    repository.edit("small-vision", SHARE, SHARE + SHARE.replace("c:", "d:"))
    assert step("small-vision")[CLUSTER_QUEUE, "share-d-queues-cluster-queue"] == "added"

    repository.edit("small-vision", "    shares:\n", "    hold: {c: HoldAndDrain}\n    shares:\n")
    assert step("small-vision") == {(CLUSTER_QUEUE, "share-c-queues-cluster-queue"): "changed"}

    text = repository.path("small").read_text(encoding="utf-8")
    second, first = text.split(OLD)
    for pool in ("gpu:\n", "tpu:\n"):
        first = first.replace(pool, f"{pool}            {UNPROTECTED}")
    repository.path("small").write_text(second + LIFTED + first, encoding="utf-8")
    step("small")

    repository.edit("small-vision", SHARE, "")
    repository.edit("small-vision", "    hold: {c: HoldAndDrain}\n", "")
    changes = step("small-vision")
    assert changes[CLUSTER_QUEUE, "share-c-queues-cluster-queue"] == "removed"
    assert {name for (_, name), kind in changes.items() if kind != "removed"} == {"dashboard-team"}
    assert not [name for _, name in changes if "share-d" in name]

    repository.path("small").write_text(second, encoding="utf-8")
    last = step("small")
    assert last[CLUSTER, "c-cluster"] == "removed"
    assert not [name for _, name in last if name.startswith("d-")]
