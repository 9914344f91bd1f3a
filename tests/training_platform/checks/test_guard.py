"""What a change replaces or removes against its protection is said at its line, unless lifted by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.checks.conftest import Repository
from training_platform.checks.comparison.comparison import Comparison, InputChange, ResourceChange, StackChange
from training_platform.checks.comparison.guard import upgrades
from training_platform.checks.report import Report
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.resources.resource_types import ALERT_POLICY, CLUSTER, CLUSTER_QUEUE, RELEASE
from training_platform.rules.descriptions import describe

CAPACITY = "            capacity: on-demand\n"
SPOT = "            capacity: spot\n"
LIFT = "            deletion_protection: false\n"
CHANGES = (
    "replacement",
    "protected-removal",
    "protection-left-off",
    "quota-request-moved",
    "recreated-nodes",
)


def found(repository: Any, stack: str = "small") -> list[Finding]:
    report = repository.compare(selected=(stack,))
    assert report.failures == ()
    return [each for each in report.all_findings() if each.rule in CHANGES]


@pytest.mark.parametrize(
    ("stack", "edit", "field", "forced"),
    [
        ("small", (CAPACITY, SPOT), "clusters.c.node_pools.gpu.capacity", "nodeConfig.spot"),
        ("small", ("gy: 4x4", "gy: 4x8"), "clusters.c.node_pools.tpu.topology", "placementPolicy.tpuTopology"),
        ("small", ("gib: 1024", "gib: 1024, tier: BASIC_HDD"), "filestore.homes.tier", "tier"),
        (
            "small-vision",
            ("a2-highgpu-1g", "a2-highgpu-2g"),
            "vertex.persistent_resources.tuning.machine_type",
            "resourcePools[0].machineSpec.machineType",
        ),
    ],
    ids=["pool", "topology", "filestore", "persistent-resource"],
)
def test_a_replacement_is_an_error_at_the_field_that_forces_it(
    repository: Any, stack: str, edit: tuple[str, str], field: str, forced: str
) -> None:
    line = repository.edit(stack, *edit)

    (finding,) = found(repository, stack)

    assert (finding.rule, finding.severity, finding.path) == ("replacement", "error", field)
    assert finding.position is not None
    assert finding.position.line == line
    assert f"{forced} from " in finding.message
    assert "deletion_protection: false" in (finding.allowed or "")


def test_another_machine_type_replaces_a_pool_of_which_the_provider_would_make_the_vms_anew(repository: Any) -> None:
    repository.git("switch", "--quiet", "main")
    repository.edit("small", "topology: 4x4", "topology: 2x2")  # of one host, so that the pool keeps its name
    repository.commit()
    repository.git("switch", "--quiet", "--create", "next")
    repository.edit("small", "topology: 2x2", "topology: 2x4")
    line = repository.edit("small", "ct5lp-hightpu-4t", "ct5lp-hightpu-8t")

    (finding,) = found(repository)

    assert (finding.rule, finding.severity) == ("replacement", "error")
    assert finding.path == "clusters.c.node_pools.tpu.machine_type"
    assert finding.message.startswith("replaces the node pool c-tpu-pool: nodeConfig.machineType from ")
    assert finding.position is not None
    assert finding.position.line == line


def test_another_topology_replaces_slices_whose_placement_is_not_sent(repository: Any) -> None:
    repository.git("switch", "--quiet", "main")
    repository.edit(
        "small", "ct5lp-hightpu-4t\n            topology: 4x4", "tpu7x-standard-4t\n            topology: 2x2x2"
    )
    repository.commit()
    repository.git("switch", "--quiet", "--create", "next")
    line = repository.edit("small", "topology: 2x2x2", "topology: 2x2x4")

    (finding,) = found(repository)

    assert (finding.rule, finding.path) == ("replacement", "clusters.c.node_pools.tpu.topology")
    assert 'replaces 2 node pools: replacementTrigger from "2x2x2" to "2x2x4"' in finding.message
    assert finding.position is not None
    assert finding.position.line == line


def test_a_larger_boot_disk_warns_that_vms_are_made_anew(repository: Any) -> None:
    repository.edit("small", CAPACITY, "            boot_disk: {size_gb: 300}\n" + CAPACITY)

    (finding,) = found(repository)

    assert (finding.rule, finding.severity) == ("recreated-nodes", "warning")
    assert describe(finding.rule).group == "changes"
    assert finding.path == "clusters.c.node_pools.gpu.boot_disk.size_gb"
    assert "nodeConfig.bootDisk.sizeGb from 100 to 300" in finding.message
    assert finding.position is not None
    lines = repository.path("small").read_text().splitlines()
    assert lines[finding.position.line - 1].strip() == "boot_disk: {size_gb: 300}"


def test_a_cluster_that_moves_is_said_with_all_that_goes_with_it(repository: Any) -> None:
    repository.edit("small", "location: us-central1-a\n        subnet", "location: us-central1-b\n        subnet")

    findings = {each.path: each.message for each in found(repository)}

    assert "replaces the cluster c-cluster: location from " in findings["clusters.c.location"]
    assert {"clusters.c.node_pools.gpu", "clusters.c.node_pools.tpu"} <= set(findings)


def test_what_stands_on_something_that_is_replaced_is_said_to_be_replaced_too(repository: Any) -> None:
    repository.edit("small", "nodes: 10.0.0.0/20", "nodes: 10.2.0.0/20")

    findings = {each.path: each for each in found(repository)}

    assert {"clusters.c.subnet.nodes", "clusters.c.node_pools.gpu", "clusters.c.node_pools.tpu"} <= set(findings)
    assert findings["clusters.c.subnet.nodes"].severity == "error"
    assert 'subnetwork from "c-subnet" to "its replacement"' in findings["clusters.c.subnet.nodes"].message
    assert 'cluster from "c-cluster" to "its replacement"' in findings["clusters.c.node_pools.gpu"].message


def test_an_environment_under_another_name_replaces_all_that_has_its_name(repository: Any) -> None:
    repository.rename("small", "tiny")
    repository.edit("small-vision", "environment: small", "environment: tiny")

    findings = {each.path: each for each in found(repository, "tiny")}

    homes = findings["filestore.homes"]
    assert (homes.severity, homes.file) == ("error", "stacks/Pulumi.tiny.yaml")
    assert homes.message == (
        'replaces the Filestore instance filestore-homes-instance: name from "small-homes" to "tiny-homes"; '
        "all of its data is lost"
    )
    assert 'name from "small-c" to "tiny-c"' in findings["clusters.c"].message


def test_a_finding_names_three_of_many_inputs_that_force_it(repository: Any) -> None:
    repository.rename("small", "tiny")
    repository.edit("small-vision", "environment: small", "environment: tiny")
    repository.edit("tiny", "a2-highgpu-8g", "a2-highgpu-4g")
    repository.edit("tiny", CAPACITY, SPOT)

    (pool,) = (each for each in found(repository, "tiny") if each.path.startswith("clusters.c.node_pools.gpu"))

    assert pool.message.count(" from ") == 3
    assert " more; its jobs end" in pool.message


def test_the_slices_of_a_pool_are_one_finding(repository: Any) -> None:
    repository.edit("small", "topology: 4x4", "topology: 4x8")

    (finding,) = found(repository)

    assert finding.message.startswith('replaces 2 node pools: placementPolicy.tpuTopology from "4x4" to "4x8"')


def test_a_change_that_replaces_nothing_is_no_finding(repository: Any) -> None:
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")
    repository.edit("small", "capacity_gib: 1024", "capacity_gib: 1280")

    report = repository.compare(selected=("small",))

    assert report.failures == ()
    assert [each for each in report.all_findings() if each.rule in (*CHANGES, "upgrade")] == []


def test_a_guard_that_is_lifted_by_name_lets_its_section_be_replaced_and_no_other(repository: Any) -> None:
    repository.edit("small", CAPACITY, SPOT + LIFT)
    assert found(repository) == []

    repository.edit("small", "topology: 4x4", "topology: 4x8")
    assert [each.path for each in found(repository)] == ["clusters.c.node_pools.tpu.topology"]


def test_in_an_environment_without_protection_a_replacement_is_a_warning(repository: Any) -> None:
    repository.edit("small", "project: example-small\n", "project: example-small\n    deletion_protection: false\n")
    repository.edit("small", CAPACITY, SPOT)

    (finding,) = found(repository)

    assert (finding.rule, finding.severity) == ("replacement", "warning")


def test_a_lifted_guard_that_is_needed_no_more_warns_at_its_line(repository: Any) -> None:
    line = repository.edit("small", CAPACITY, SPOT + LIFT)
    assert found(repository) == []  # the change that needs it
    repository.commit()
    repository.git("branch", "--force", "main", "HEAD")
    repository.edit("small", "max_nodes: 2", "max_nodes: 3")

    (finding,) = found(repository)

    assert (finding.rule, finding.severity) == ("protection-left-off", "warning")
    assert finding.path == "clusters.c.node_pools.gpu.deletion_protection"
    assert finding.position is not None
    assert finding.position.line == line


def test_a_guard_lifted_in_a_change_of_its_own_does_not_warn(repository: Any) -> None:
    repository.edit("small", CAPACITY, CAPACITY + LIFT)

    assert found(repository) == []


def test_removing_what_is_protected_warns_that_the_engine_refuses_it(repository: Any) -> None:
    repository.edit("small", "slices: 2", "slices: 1")

    (finding,) = found(repository)

    assert (finding.rule, finding.severity, finding.path) == (
        "protected-removal",
        "warning",
        "clusters.c.node_pools.tpu",
    )
    assert "c-tpu-1-pool" in finding.message


def test_a_removal_that_was_lifted_before_does_not_warn(repository: Any) -> None:
    repository.git("switch", "--quiet", "main")
    repository.edit("small", "            slices: 2\n", "            slices: 2\n" + LIFT)
    repository.commit()
    repository.git("switch", "--quiet", "--create", "next")
    repository.edit("small", "slices: 2", "slices: 1")

    assert found(repository) == []


def test_only_new_findings_count_and_a_moved_line_makes_none_new(repository: Any) -> None:
    repository.git("switch", "--quiet", "main")
    repository.edit("small", CAPACITY, CAPACITY + "            boot_disk: {size_gb: 9}\n")
    repository.commit()
    repository.git("switch", "--quiet", "--create", "next")
    repository.edit("small", "config:\n", "# a line more\nconfig:\n")
    before = repository.compare(selected=("small",))
    report = repository.compare(selected=("small",), new=True)

    assert "boot-disk-size" in {each.rule for each in before.all_findings()}
    assert [each for each in report.all_findings() if each.severity == "error"] == []
    assert "boot-disk-size" in {each.finding.rule for each in report.all_known()}
    assert (before.exit_code(), report.exit_code()) == (1, 0)

    repository.edit("small", "capacity_gib: 1024", "capacity_gib: 1025")
    worse = repository.compare(selected=("small",), new=True)
    assert {each.rule for each in worse.all_findings() if each.severity == "error"} == {"filestore-capacity"}
    assert worse.exit_code() == 1


def test_findings_of_a_renamed_stack_are_not_new(repository: Any) -> None:
    repository.rename("small-vision", "small-sight")

    report = repository.compare(new=True)

    assert report.all_findings() == []
    assert {each.finding.rule for each in report.all_known()} == {"quota-no-snapshot"}


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
    """Another amount is none, nor is the same request under another name."""
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

    moved = {each.path: each for each in found(repository)}

    lines = repository.path("small").read_text(encoding="utf-8").splitlines()
    assert set(moved) == {"quota_requests.dimension", "quota_requests.quota-id"}
    for name, said in (
        ("dimension", 'dimensions.region from "us-central1" to "us-west4"'),
        ("quota-id", "quotaId from "),
    ):
        each = moved[f"quota_requests.{name}"]
        assert (each.rule, each.severity) == ("quota-request-moved", "error")
        assert each.position == (lines.index(f"      {name}:") + 1, 7)
        assert said in each.message


HEAD = "    project: example-small\n"
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
    return [each for stack in report.stacks for each in stack.findings if each.rule == "upgrade"]


def resources(report: Report, stack: str) -> dict[tuple[str, str], str]:
    """Return what happens to each resource of a stack, by type and name."""
    assert report.comparison is not None
    (change,) = [each for each in report.comparison.stacks if each.name == stack]
    assert change.unknown is None
    return {(each.type, each.name): each.kind for each in change.resources}


def test_another_version_of_kueue_says_what_it_touches_and_whose_queues(repository: Repository) -> None:
    repository.edit("small", HEAD, f'{HEAD}    charts:\n      kueue: {{version: "0.19.1"}}\n')

    report = repository.compare()
    (found,) = of_upgrades(report)

    assert (found.severity, found.path, found.stack) == ("warning", "charts.kueue.version", "small")
    assert "takes kueue from 0.19.2 to 0.19.1 in c: CRDs and webhooks go with the release" in found.message
    assert found.message.endswith("1 ClusterQueues are there, of vision")
    assert found.allowed == "the steps of docs/upgrade.md"
    assert resources(report, "small") == {(RELEASE, "c-kueue-release"): "changed"}
    assert "small-vision" not in {
        each.name for each in report.stacks if resources(report, each.name) and each.name != "small"
    }


def test_a_new_version_of_a_cluster_says_what_stops_and_what_stays(repository: Repository) -> None:
    repository.edit("small", OLD, f'{OLD}        version: "1.34"\n')
    repository.commit()
    repository.edit("small", '"1.34"', '"1.35"')

    (found,) = of_upgrades(repository.compare(base="HEAD", selected=("small",)))

    assert found.path == "clusters.c.version"
    assert "from 1.34 to 1.35, never back: its API does not answer for minutes" in found.message
    assert found.message.endswith("nodes stay until their support ends")


def workspace(repository: Repository) -> Workspace:
    return read_workspace(repository.root)


def change(*versions: tuple[str, str, str]) -> Comparison:
    changed = tuple(
        ResourceChange(
            kind="changed", type=kind, name=name,
            inputs=(InputChange("version" if kind == RELEASE else "minMasterVersion", "1", to, False),),
        )
        for kind, name, to in versions
    )  # fmt: skip
    return Comparison(ref="main", commit="0", stacks=(StackChange(name="small", kind="changed", resources=changed),))


def test_clusters_that_take_one_version_are_one_finding_each_chart_its_own(repository: Repository) -> None:
    both = change(
        (RELEASE, "c-jobset-release", "2"), (RELEASE, "d-jobset-release", "2"), (RELEASE, "c-kueue-release", "2")
    )
    found = list(upgrades(both, workspace(repository)))

    assert [each.message.split(":")[0] for each in found] == [
        "takes jobset from 1 to 2 in c, d", "takes kueue from 1 to 2 in c",
    ]  # fmt: skip
    assert "Helm never touches its CRD" in found[0].message
    assert "ClusterQueues" not in found[0].message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (OLD, OLD.replace("us-central1-a", "us-central1"), "its API answers all the time"),
        (OLD, f"{OLD}        maintenance: {{upgrade_freeze: false}}\n", "nodes follow, VM by VM"),
    ],
)
def test_what_a_clusters_upgrade_stops_depends_on_the_cluster(
    repository: Repository, old: str, new: str, said: str
) -> None:
    repository.edit("small", old, new)

    (found,) = upgrades(change((CLUSTER, "c-cluster", "2")), workspace(repository))

    assert said in found.message


SHARE = "      c:\n        a100-40: {nominal_quota: 8}\n"
UNPROTECTED = "deletion_protection: false\n"
LIFTED = f"{OLD}        {UNPROTECTED}"


def test_one_cluster_takes_anothers_place_and_no_queue_is_lost(repository: Repository) -> None:
    """The steps of docs/upgrade.md, each compared with the one before."""

    def step(stack: str) -> dict[tuple[str, str], str]:
        report = repository.compare(base="HEAD")
        repository.commit()
        rules = {each.rule for one in report.stacks for each in one.findings if each.severity == "error"}
        assert not rules - {"quota-no-snapshot"}
        assert "protected-removal" not in {each.rule for one in report.stacks for each in one.findings}
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
    left = step("small-vision")
    assert left[CLUSTER_QUEUE, "share-c-queues-cluster-queue"] == "removed"
    assert {name for (_, name), kind in left.items() if kind != "removed"} == {"dashboard-team"}
    assert not [name for _, name in left if "share-d" in name]

    repository.path("small").write_text(second, encoding="utf-8")
    last = step("small")
    assert last[CLUSTER, "c-cluster"] == "removed"
    assert not [name for _, name in last if name.startswith("d-")]


def test_a_cluster_that_goes_before_its_protection_is_lifted_is_refused(repository: Repository) -> None:
    repository.edit("small", "    clusters:\n", f"    clusters:\n{SECOND}")
    repository.edit("small-vision", SHARE, SHARE.replace("c:", "d:"))
    repository.commit()
    text = repository.path("small").read_text(encoding="utf-8")
    repository.path("small").write_text(text.split(OLD)[0], encoding="utf-8")

    report = repository.compare(base="HEAD")

    (found,) = [each for each in report.stacks[0].findings if each.rule == "protected-removal"]
    assert "c-cluster" in found.message
