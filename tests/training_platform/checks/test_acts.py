"""What a change does by one decision is one finding with one acknowledgement, which excuses nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.training_platform.checks.losses import BUCKET, CAPACITY, SPOT, TEAM_HEAD, committed, losses
from tests.training_platform.checks.repository import TODAY, Repository
from training_platform.checks.report import Report, folded
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.finding import Finding

CLUSTER = """\
      d:
        location: us-west4-a
        subnet: {nodes: 10.2.0.0/20, pods: 10.65.0.0/16, services: 10.3.0.0/20}
        node_pools:
          gpu: {machine_type: a2-highgpu-1g, max_nodes: 8}
"""
SHARE = "        a100-40: {nominal_quota: 8}\n"
SHARE_OF_CLUSTER = "      d:\n        a100-40: {nominal_quota: 8}\n"
INSTANCE = "      scratch: {location: us-central1-a, capacity_gib: 1024}\n"
FILESTORE = "    filestore:\n"
DIRECTORIES = "    directories: {scratch: {filestore: scratch, size_gib: 10}}\n"


def edit(repository: Repository, *edits: tuple[str, str, str]) -> None:
    for stack, old, new in edits:
        repository.edit(stack, old, new)


@pytest.fixture
def clusters(repository: Repository) -> Repository:
    """Return a repository with a second cluster, in which the team has a share."""
    repository.edit("small-vision", SHARE, SHARE + SHARE_OF_CLUSTER)
    committed(repository, "small", "    clusters:\n", f"    clusters:\n{CLUSTER}")
    return repository


def without_cluster(repository: Repository) -> list[Finding]:
    """Remove the second cluster with the team's share of it, and return the losses."""
    edit(repository, ("small", CLUSTER, ""), ("small-vision", SHARE_OF_CLUSTER, ""))
    return losses(repository.compare(base="HEAD"))


def test_a_removed_cluster_is_one_act_with_the_shares_of_it(clusters: Repository) -> None:
    (finding,) = without_cluster(clusters)

    assert (finding.rule, finding.stack, finding.path) == ("stops-jobs", "small", "clusters.d")
    assert finding.takes == (("small", ("jobs",)), ("small-vision", ("jobs", "promises")))
    assert "takes promised capacity: ClusterQueue in d of small-vision" in finding.message
    assert "no longer has a share" not in finding.message  # said of a share that is removed by itself
    comparison = clusters.compare(base="HEAD").comparison
    assert comparison is not None
    (act,) = [act for act in comparison.acts if act.is_loss]
    assert act.verb == "removed"
    assert [place.rpartition(":")[0] for place in act.also] == ["stacks/Pulumi.small-vision.yaml"]


def test_a_share_of_a_cluster_that_stays_is_an_act_of_its_own(clusters: Repository) -> None:
    clusters.edit("small-vision", SHARE_OF_CLUSTER, "")

    (finding,) = losses(clusters.compare(base="HEAD"))

    assert (finding.stack, finding.path) == ("small-vision", "shares.d")
    assert finding.takes == (("small-vision", ("jobs", "promises")),)


def test_a_removed_pool_has_the_shares_of_its_flavor(clusters: Repository) -> None:
    pool = "          gpu: {machine_type: a2-highgpu-1g, max_nodes: 8}\n"
    other = "          tpu: {machine_type: ct5lp-hightpu-4t, topology: 2x2, slices: 1}\n"
    share = "        tpu-v5e-2x2: {nominal_quota: 4}\n"
    edit(clusters, ("small", pool, pool + other), ("small-vision", SHARE_OF_CLUSTER, SHARE_OF_CLUSTER + share))
    clusters.commit()
    edit(clusters, ("small", other, ""), ("small-vision", share, ""))

    (finding,) = losses(clusters.compare(base="HEAD"))

    assert (finding.stack, finding.path) == ("small", "clusters.d.node_pools.tpu")
    assert finding.takes == (("small", ("jobs",)), ("small-vision", ("promises",)))


def test_a_removed_instance_has_the_directories_on_it(repository: Repository) -> None:
    repository.edit("small-vision", TEAM_HEAD, TEAM_HEAD + DIRECTORIES)
    committed(repository, "small", FILESTORE, FILESTORE + INSTANCE)
    edit(repository, ("small", INSTANCE, ""), ("small-vision", DIRECTORIES, ""))

    (finding,) = losses(repository.compare(base="HEAD"))

    assert (finding.rule, finding.stack, finding.path) == ("loses-data", "small", "filestore.scratch")
    assert finding.takes == (("small", ("data",)), ("small-vision", ("jobs",)))
    assert "the files stay" not in finding.message


def test_fields_that_together_replace_a_pool_are_one_act(repository: Repository) -> None:
    edit(repository, ("small", "a2-highgpu-8g", "a2-highgpu-4g"), ("small", CAPACITY, SPOT))

    (finding,) = losses(repository.compare(selected=("small",)))

    assert "capacity from on-demand to spot" in finding.message
    assert "machine_type from a2-highgpu-8g to a2-highgpu-4g" in finding.message
    assert set((finding.becomes or "").split(", ")) == {"capacity: spot", "machine_type: a2-highgpu-4g"}


REGIONAL = """\
      d:
        location: us-west4
        subnet: {nodes: 10.2.0.0/20, pods: 10.65.0.0/16, services: 10.3.0.0/20}
        node_pools:
          gpu: {machine_type: g2-standard-8, zone: us-west4-a, max_nodes: 1}
          more: {machine_type: g2-standard-24, zone: us-west4-a, max_nodes: 1}
"""


def test_equal_changes_of_one_act_are_told_once(repository: Repository) -> None:
    committed(repository, "small", "    clusters:\n", f"    clusters:\n{REGIONAL}")
    repository.edit("small", REGIONAL, REGIONAL.replace("us-west4", "us-east5"))

    (finding,) = losses(repository.compare(base="HEAD"))

    assert "location from us-west4 to us-east5 and zone from us-west4-a to us-east5-a;" in finding.message


def test_a_field_that_had_its_default_is_set(repository: Repository) -> None:
    repository.edit("small", "    production: false\n", "    production: false\n    open_egress: true\n")

    (finding,) = losses(repository.compare(base="HEAD"))

    assert "open_egress is set to true" in finding.message


RETIRED = '    retired: {since: "2026-12-01", keeps: [buckets.data], paid_by: ml@example.com}\n'


@pytest.mark.parametrize(
    ("old", "new", "path", "kind"),
    [
        ("data: {location: us-central1", "data: {location: us-west4", "buckets.data.location", "data"),
        ("delete_after_days: 90", "delete_after_days: 1", "buckets.data.delete_after_days", "data"),
        (TEAM_HEAD, f"{TEAM_HEAD}    host_network: true\n", "host_network", "opens"),
        ("nominal_quota: 8", "nominal_quota: 0", "shares.c.a100-40.nominal_quota", "promises"),
    ],
    ids=["moved bucket", "shorter life", "opened", "lower share"],
)
def test_the_change_that_retires_a_stack_hides_no_other(
    repository: Repository, old: str, new: str, path: str, kind: str
) -> None:
    committed(repository, "small-vision", TEAM_HEAD, f"{TEAM_HEAD}{BUCKET}")
    edit(repository, ("small-vision", old, new), ("small-vision", TEAM_HEAD, f"{TEAM_HEAD}{RETIRED}"))

    takes = {finding.path: finding.takes for finding in losses(repository.compare(base="HEAD"))}

    assert takes.keys() == {"retired", path}
    assert takes[path] == (("small-vision", (kind,)),)


def test_another_name_of_a_team_takes_no_promise_and_opens_nothing(repository: Repository) -> None:
    repository.rename("small-vision", "small-sight")
    repository.edit("small-sight", "name: vision", "name: sight")

    (finding,) = losses(repository.compare())

    assert finding.path == "name"
    assert finding.takes == (("small-sight", ("data", "jobs")),)
    assert "no longer has a share" not in finding.message
    assert ",," not in str(finding)


def test_a_change_that_is_refused_comes_first_and_its_losses_follow(repository: Repository) -> None:
    large = "capacity_gib: 10240, tier: ZONAL"
    homes = "    directories: {data: {filestore: homes, size_gib: 9990}}\n"
    repository.edit("small-vision", TEAM_HEAD, TEAM_HEAD + homes)
    committed(repository, "small", "capacity_gib: 1024", large)
    edit(repository, ("small", large, "capacity_gib: 9984, tier: ZONAL"), ("small", CAPACITY, SPOT))

    (refused, more), *later = folded(repository.compare(base="HEAD").all_findings())

    assert (refused.rule, refused.follows) == ("filestore-growth", None)
    assert refused.allowed is not None
    assert {row.rule for row in more} == {"takes-promise", "file-capacity-exceeded"}
    assert [row.rule for row, _ in later][:1] == ["stops-jobs"]


def test_a_smaller_instance_is_told_before_the_directories_that_no_longer_fit(repository: Repository) -> None:
    homes = "    directories: {data: {filestore: homes, size_gib: 1200}}\n"
    repository.edit("small-vision", TEAM_HEAD, TEAM_HEAD + homes)
    committed(repository, "small", "capacity_gib: 1024", "capacity_gib: 1280")
    repository.edit("small", "capacity_gib: 1280", "capacity_gib: 1024")

    groups = {
        row.rule: [other.rule for other in more] for row, more in folded(repository.compare(base="HEAD").all_findings())
    }

    assert groups["takes-promise"] == ["file-capacity-exceeded"]


# Attempts to excuse something else.

ENTRY = {
    "stack": "small",
    "path": "clusters.d",
    "becomes": "removed",
    "takes": ["jobs"],
    "from_others": {"small-vision": ["jobs", "promises"]},
    "reason": "agreed",
    "owner": "ml@example.com",
    "expires": "2026-12-31",
}


def acknowledge(repository: Repository, *entries: Mapping[str, Any]) -> None:
    text = yaml.safe_dump({"acknowledged": [dict(entry) for entry in entries]})
    (repository.root / "stacks" / "exemptions.yaml").write_text(text, encoding="utf-8")


def test_an_acknowledgement_lists_what_an_act_takes_from_each_stack(clusters: Repository) -> None:
    acknowledge(clusters, ENTRY)

    assert without_cluster(clusters) == []


@pytest.mark.parametrize(
    "other",
    [
        {"takes": ["data"]},
        {"takes": ["promises", "protection"]},
        {"from_others": {}},
        {"from_others": {"small-vision": ["jobs"]}},
        {"from_others": {"small-vision": ["promises"]}},
        {"from_others": {"small-nlp": ["jobs", "promises"]}},
        {"takes": ["jobs", "promises"], "from_others": {}},
        {"path": "clusters"},
        {"path": "clusters.c"},
        {"path": "clusters.d.node_pools"},
        {"path": "."},
        {"path": "clusters.*"},
        {"becomes": "us-west4-b"},
        {"becomes": ""},
        {"stack": "small-vision"},
        {"stack": "*"},
        {"expires": "2026-11-20"},
    ],
    ids=str,
)
def test_an_acknowledgement_of_something_else_excuses_no_removed_cluster(
    clusters: Repository, other: Mapping[str, Any]
) -> None:
    acknowledge(clusters, {**ENTRY, **other})

    (finding,) = without_cluster(clusters)

    assert finding.path == "clusters.d"


def test_what_an_acknowledgement_does_not_list_is_named(clusters: Repository) -> None:
    acknowledge(clusters, {**ENTRY, "from_others": {"small-vision": ["jobs"]}})

    (finding,) = without_cluster(clusters)

    assert (finding.allowed or "").endswith("also lists promises of small-vision")
    assert finding.takes[1] == ("small-vision", ("jobs", "promises"))  # what the entry is to have


@pytest.mark.parametrize(
    "becomes", ["spot", "capacity: spot", "machine_type: a2-highgpu-4g", "capacity: spot, machine_type: a2-highgpu-2g"]
)
def test_an_acknowledgement_of_one_field_excuses_no_second(repository: Repository, becomes: str) -> None:
    edit(repository, ("small", "a2-highgpu-8g", "a2-highgpu-4g"), ("small", CAPACITY, SPOT))
    for path in ("capacity", "machine_type"):
        field = f"clusters.c.node_pools.gpu.{path}"
        acknowledge(repository, {**ENTRY, "path": field, "becomes": becomes, "from_others": {}})

        assert len(losses(repository.compare(selected=("small",)))) == 1


def test_an_environment_that_names_a_removed_team_is_checked_as_without_a_base(repository: Repository) -> None:
    hub = """\
        notebooks:
          filestore: homes
          host: notebooks.example.com
          oauth_client_id: a.apps.example.com
          allowed_domain: example.com
          teams: {vision: {users: [ada@example.com], pools: [gpu]}}
"""
    cluster = "        location: us-central1-a\n        subnet"
    committed(repository, "small", cluster, cluster.replace("        subnet", f"{hub}        subnet"))
    repository.path("small-vision").unlink()

    def of_teams(report: Report) -> list[str]:
        return [str(row) for row in report.all_findings() if "notebooks.teams" in row.path]

    plain = of_teams(run_check(repository.root, CheckOptions(today=TODAY)))
    assert len(plain) == 1
    assert of_teams(repository.compare(base="HEAD")) == plain


def test_what_follows_from_one_of_two_findings_at_a_place_is_within_that_one() -> None:
    first, second = (
        Finding(rule="opens-access", severity="error", message="opens", stack="a", resource=f"type {name}")
        for name in ("one", "two")
    )
    follower = Finding(
        rule="public-access", severity="error", message="is open", stack="a", path="b",
        follows=second.place, root=second.mark,
    )  # fmt: skip

    assert first.place == second.place
    assert folded([first, second, follower]) == [(first, ()), (second, (follower,))]
