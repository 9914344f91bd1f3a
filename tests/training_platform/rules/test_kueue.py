"""Rules of Kueue's objects: quotas, flavors, partial admission, time-outs, topology requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support import stack_files
from tests.support.stack_files import environment, workspace_of
from tests.training_platform.rules.builders import check, flavor, flavor_quota, slice_pool
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from tests.training_platform.rules.objects import COHORT, JOB, JOB_SET, QUEUE, wrong
from training_platform.config.reading.finding import Finding
from training_platform.resources.kueue import PODS_READY_MINUTES, configuration
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import RULES, View, evaluate, program, views_of_model
from training_platform.views.adapters import views_of_plan
from training_platform.views.kueue import FlavorQuotaView


def test_a_check_without_flavors_holds_all_of_a_queue() -> None:
    rows = [{"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]} for name in ("a", "b")]
    checks = [{"name": "all"}, {"name": "of-b", "onFlavors": ["b"]}]
    inputs = {
        "metadata": {"name": "vision"},
        "spec": {
            "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": rows}],
            "admissionChecksStrategy": {"admissionChecks": checks},
        },
    }
    kind = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"
    views = views_of_plan([StackResource(stack="dev", type=kind, name="vision", inputs=inputs)])

    assert {view.flavor: view.checks for view in views if isinstance(view, FlavorQuotaView)} == {
        "a": ("all",),
        "b": ("all", "of-b"),
    }


QUEUED = "cloud.google.com/gke-queued"
ARCHITECTURE = "kubernetes.io/arch"
GB200 = {"cloud.google.com/gke-accelerator": "nvidia-gb200"}
SELECTOR = "cloud.google.com/gke-tpu-accelerator"
TRILLIUM = {SELECTOR: "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "8x16"}
TABLE = [
    Rule(
        "kueue-limits-need-cohort",
        flavor_quota,
        passes=[{"cohort": None, "borrowing_limit": None, "lending_limit": None}],
        finds=[
            Found({"cohort": None}, times=2),
            Found({"cohort": None, "lending_limit": None}, path="tpu-v5e-4x8.borrowing_limit"),
            {"cohort": None, "borrowing_limit": 0, "lending_limit": None},
        ],
    ),
    Rule(
        "kueue-lending-limit",
        flavor_quota,
        passes=[{"lending_limit": None}, {"lending_limit": 0}],
        finds=[Found({"lending_limit": 65}, "64")],
    ),
    Rule(
        "kueue-quantities",
        flavor_quota,
        passes=[{"nominal_quota": 0, "borrowing_limit": 0, "lending_limit": 0}],
        finds=[{"nominal_quota": -1}, {"borrowing_limit": -1}, {"lending_limit": -1}],
    ),
    Rule(
        "flavor-accelerator",
        flavor,
        passes=[
            {"node_labels": {SELECTOR: "tpu-v5-lite-podslice"}},
            {"node_labels": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}},
            {"node_labels": TRILLIUM},
        ],
        finds=[
            Found({"node_labels": {SELECTOR: "tpu-v5p-slicee"}}, "tpu-v5p-slice"),
            {"node_labels": {SELECTOR: "nvidia-h100-80gb"}},
            Found({"node_labels": {**TRILLIUM, "cloud.google.com/gke-tpu-topology": "16x8"}}, "8x16"),
            Found({"node_labels": {"cloud.google.com/gke-accelerator": "nvidia-h100-80g"}}, "nvidia-h100-80gb"),
        ],
    ),
    Rule(
        "queued-flavor-toleration",
        flavor,
        passes=[{"node_labels": {QUEUED: "true"}, "tolerated": (QUEUED,)}],
        finds=[{"node_labels": {QUEUED: "true"}}],
    ),
    Rule(
        "arm-flavor-toleration",
        flavor,
        passes=[
            {"node_labels": GB200, "tolerated": (ARCHITECTURE,)},
            {"node_labels": {**GB200, ARCHITECTURE: "arm64"}},
            {"node_labels": {"cloud.google.com/gke-accelerator": "nvidia-b200"}},
        ],
        finds=[{"node_labels": GB200}],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


OLD = "kueue.x-k8s.io/v1beta1:ClusterQueue"
ROW = {"name": "cpu", "nominalQuota": "4"}
AT = "spec.resourceGroups[0].flavors[0].resources"


def spec(*rows: dict[str, Any], covered: list[str] | None = None, **values: Any) -> dict[str, Any]:
    names = [row["name"] for row in rows] if covered is None else covered
    group = {"coveredResources": names, "flavors": [{"name": "plain", "resources": list(rows)}]}
    return {"namespaceSelector": {}, "cohortName": "all", "resourceGroups": [group], **values}


def test_a_resource_and_a_flavor_are_in_one_group() -> None:
    plain = spec(ROW)["resourceGroups"][0]
    other = {"coveredResources": ["memory"], "flavors": [{"name": "fast", "resources": [{**ROW, "name": "memory"}]}]}
    same = {**other, "flavors": [{"name": "plain", "resources": [{**ROW, "name": "memory"}]}]}

    assert wrong("kueue-resource-groups", QUEUE, spec={"resourceGroups": [plain, other]}) == []
    assert wrong("kueue-resource-groups", QUEUE, spec={"resourceGroups": [plain, same]}) == ["spec.resourceGroups"]
    assert len(wrong("kueue-resource-groups", QUEUE, spec={"resourceGroups": [plain, plain]})) == 2


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"nominalQuota": "0"}, None),
        ({"nominalQuota": "-1"}, "nominalQuota"),
        ({"borrowingLimit": "-1"}, "borrowingLimit"),
        ({"lendingLimit": "4"}, None),
        ({"lendingLimit": "5"}, "lendingLimit"),
    ],
)
def test_amounts_are_not_below_0_and_no_more_is_lent_than_there_is(row: dict[str, str], field: str | None) -> None:
    assert wrong("kueue-amounts", QUEUE, spec=spec({**ROW, **row})) == [f"{AT}[0].{field}"] * bool(field)


def test_a_queue_without_a_namespace_selector_is_still_a_queue() -> None:
    """A Cohort has no selector either, and may lend more than it has."""
    unselective = spec({**ROW, "lendingLimit": "5"})
    del unselective["namespaceSelector"]

    assert wrong("kueue-amounts", QUEUE, spec=unselective) == [f"{AT}[0].lendingLimit"]


def test_a_cohort_may_lend_more_than_it_has_of_its_own() -> None:
    cohort = {"parentName": "all", "resourceGroups": spec({**ROW, "lendingLimit": "5"})["resourceGroups"]}

    assert wrong("kueue-amounts", COHORT, spec=cohort) == []


def test_limits_need_a_cohort_above() -> None:
    limited = spec({**ROW, "borrowingLimit": "1"})
    alone = {key: value for key, value in limited.items() if key != "cohortName"}
    cohort = {"resourceGroups": limited["resourceGroups"]}

    assert wrong("kueue-amounts", QUEUE, spec=limited) == []
    assert wrong("kueue-amounts", QUEUE, spec=alone) == [f"{AT}[0].borrowingLimit"]
    assert wrong("kueue-amounts", OLD, spec={**alone, "cohort": "all"}) == []
    assert wrong("kueue-amounts", COHORT, spec=cohort) == [f"{AT}[0].borrowingLimit"]
    assert wrong("kueue-amounts", COHORT, spec={**cohort, "parentName": "everyone"}) == []


@pytest.mark.parametrize(
    ("preemption", "paths"),
    [
        ({"borrowWithinCohort": {"policy": "LowerPriority"}, "reclaimWithinCohort": "Any"}, 0),
        ({"borrowWithinCohort": {"policy": "LowerPriority"}, "reclaimWithinCohort": "Never"}, 1),
        ({"borrowWithinCohort": {"policy": "LowerPriority"}}, 1),
        ({"borrowWithinCohort": {"policy": "Never"}}, 0),
    ],
)
def test_who_preempts_by_borrowing_reclaims(preemption: dict[str, Any], paths: int) -> None:
    assert len(wrong("kueue-preemption", QUEUE, spec={"preemption": preemption})) == paths


def test_a_weight_is_not_below_0() -> None:
    assert wrong("kueue-preemption", QUEUE, spec={"fairSharing": {"weight": "0"}}) == []
    assert wrong("kueue-preemption", QUEUE, spec={"fairSharing": {"weight": "-1"}}) == ["spec.fairSharing.weight"]


def test_a_check_is_there_once_and_on_flavors_of_the_queue() -> None:
    def found(*checks: dict[str, Any]) -> list[str]:
        return wrong("kueue-checks", QUEUE, spec=spec(ROW, admissionChecksStrategy={"admissionChecks": list(checks)}))

    path = "spec.admissionChecksStrategy.admissionChecks"
    assert found({"name": "dws", "onFlavors": ["plain"]}) == []
    assert found({"name": "dws", "onFlavors": ["other"]}) == [f"{path}[0].onFlavors"]
    assert found({"name": "dws"}, {"name": "dws"}) == [f"{path}[1].name"]


@pytest.mark.parametrize(
    ("row", "wrongly"),
    [
        ({"operator": "In", "values": ["a"]}, False), ({"operator": "In"}, True), ({"operator": "Exists"}, False),
        ({"operator": "Exists", "values": ["a"]}, True),
    ],
)  # fmt: skip
def test_a_selector_has_values_where_its_operator_compares(row: dict[str, Any], wrongly: bool) -> None:
    paths = wrong("kueue-selector", QUEUE, spec={"namespaceSelector": {"matchExpressions": [{"key": "team", **row}]}})

    assert bool(paths) is wrongly


def test_a_flavor_of_a_topology_has_labels_and_no_taint_twice() -> None:
    kind = "kueue.x-k8s.io/v1beta2:ResourceFlavor"
    taint = {"key": "a", "effect": "NoSchedule"}

    assert wrong("kueue-flavor-form", kind, spec={"topologyName": "racks", "nodeLabels": {"a": "b"}}) == []
    assert wrong("kueue-flavor-form", kind, spec={"topologyName": "racks"}) == ["spec.nodeLabels"]
    assert wrong("kueue-flavor-form", kind, spec={"nodeTaints": [taint, {**taint, "effect": "NoExecute"}]}) == []
    assert wrong("kueue-flavor-form", kind, spec={"nodeTaints": [taint, taint]}) == ["spec.nodeTaints[1]"]


@pytest.mark.parametrize(
    ("levels", "paths"),
    [
        (["own/rack", "kubernetes.io/hostname"], []),
        (["kubernetes.io/hostname", "own/rack"], ["spec.levels"]),
        (["own/rack", "own/rack"], ["spec.levels[1].nodeLabel"]),
    ],
)
def test_levels_of_a_topology_end_with_the_host(levels: list[str], paths: list[str]) -> None:
    spec = {"levels": [{"nodeLabel": level} for level in levels]}

    assert wrong("kueue-topology-levels", "kueue.x-k8s.io/v1beta2:Topology", spec=spec) == paths


def labelled(**changes: object) -> View:
    return slice_pool(node_labels={"training-platform/flavor": "tpu-v5e-4x8"}, **changes)


@pytest.mark.parametrize(
    ("topology", "flavor_topology", "nearest"), [("4x8", "4x8", None), ("8x8", "4x8", "4x8"), (None, "3x3", "4x4")]
)
def test_a_pool_has_the_shape_of_its_flavor(topology: str | None, flavor_topology: str, nearest: str | None) -> None:
    selector = flavor(node_labels={"cloud.google.com/gke-tpu-topology": flavor_topology})
    other = flavor(flavor="other", node_labels={"cloud.google.com/gke-tpu-topology": "2x4"})
    findings = check("tpu-flavor-topology", labelled(tpu_topology=topology), selector, other)

    assert [(finding.path, finding.nearest) for finding in findings] == [("section.topology", nearest)] * bool(nearest)


def test_a_shape_that_a_pool_has_too_is_found_at_the_pool_alone() -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": "4x5",
    }  # fmt: skip

    assert len(check("flavor-accelerator", flavor(node_labels=labels), slice_pool())) == 1
    assert check("flavor-accelerator", flavor(node_labels=labels), slice_pool(tpu_topology="4x5")) == []


@pytest.mark.parametrize(
    ("labels", "checks", "findings"), [({QUEUED: "true"}, (), 1), ({QUEUED: "true"}, ("dws",), 0), ({}, (), 0)]
)
def test_a_queue_of_queued_nodes_makes_requests(
    *, labels: dict[str, str], checks: tuple[str, ...], findings: int
) -> None:
    check_findings = check("queued-flavor-check", flavor(node_labels=labels), flavor_quota(checks=checks))

    assert len(check_findings) == findings


LEAST = "job-min-parallelism"
EQUAL = "job-completions-equal-parallelism"
INDEXED = {"completionMode": "Indexed", "parallelism": 4.0, "completions": 4.0}


@pytest.mark.parametrize(
    ("name", "value", "spec", "path"),
    [
        (LEAST, "3", {"parallelism": 4.0}, None),
        (LEAST, "4", {"parallelism": 4.0}, "metadata.annotations"),
        (LEAST, "0", {"parallelism": 4.0}, "metadata.annotations"),
        (LEAST, "some", {"parallelism": 4.0}, "metadata.annotations"),
        (LEAST, "2", {"parallelism": 4.0, "completions": 2.0}, "metadata.annotations"),
        (LEAST, "1", {}, "metadata.annotations"),
        (LEAST, "9", {"parallelism": UNKNOWN}, None),
        (LEAST, UNKNOWN, {"parallelism": 4.0}, None),
        (EQUAL, "true", INDEXED, None),
        (EQUAL, "true", {**INDEXED, "completions": 8.0}, "spec.completions"),
        (EQUAL, "true", {"completionMode": "Indexed", "parallelism": 4.0}, "spec.completions"),
        (EQUAL, "true", {"completionMode": "Indexed", "completions": 4.0}, "spec.completions"),
        (EQUAL, "true", {**INDEXED, "completionMode": "NonIndexed"}, "metadata.annotations"),
        (EQUAL, "false", {**INDEXED, "completions": 8.0}, None),
    ],
)
def test_fewer_pods_are_fewer_and_completions_follow(
    name: str, value: object, spec: dict[str, Any], path: str | None
) -> None:
    metadata = {"annotations": {f"kueue.x-k8s.io/{name}": value}}

    assert wrong("partial-admission", JOB, metadata=metadata, spec=spec) == [path] * bool(path)


RULE = "flex-start-beside-reserved"


def pool(capacity: str) -> dict[str, Any]:
    run = {"max_run_hours": 10} if capacity in ("flex-start", "queued-provisioning") else {}
    reserved = {"reservation": "h100"} if capacity == "reservation" else {}
    return {"machine_type": "a3-highgpu-8g", "capacity": capacity, **run, **reserved}


def found(capacities: list[str], **more: Any) -> list[Finding]:
    pools = {capacity: pool(capacity) for capacity in capacities}
    section = environment({"c": stack_files.cluster(node_pools=pools)}, production=True, **more)
    workspace = workspace_of({"env": {"environment": section}})
    stack = workspace.stacks["env"]
    views = views_of_model(stack, workspace)
    whole = program(views, stack="env", environment="env", team=None, production=True)
    return evaluate(whole, [RULES[RULE]], stack)


def test_flex_start_beside_a_reserved_pool_is_found_at_its_line() -> None:
    (finding,) = found(["flex-start", "reservation"])

    assert (finding.severity, finding.nearest) == ("warning", "queued-provisioning")
    assert finding.path == "clusters.c.node_pools.flex-start.capacity"
    assert finding.position is not None
    assert "reserved VMs of reservation for 24 hours" in finding.message


@pytest.mark.parametrize(
    "capacities", [["flex-start", "spot"], ["queued-provisioning", "reservation"], ["reservation", "on-demand"]]
)
def test_without_reserved_machines_or_with_queued_provisioning_there_is_nothing_to_find(capacities: list[str]) -> None:
    assert found(capacities) == []


def test_where_somebody_gets_the_alerts_it_is_theirs() -> None:
    assert found(["flex-start", "reservation"], alerts={"emails": ["ml-platform@example.com"]}) == []


@pytest.mark.parametrize("capacity", PODS_READY_MINUTES)
def test_only_flex_start_makes_kueue_wait_for_a_day(capacity: Any) -> None:
    minutes = int(configuration([capacity, "reservation"])["waitForPodsReady"]["timeout"].removesuffix("m"))

    assert (minutes == 24 * 60) is (capacity == "flex-start")
    assert minutes >= 30


@pytest.mark.parametrize(
    ("names", "refused"),
    [
        ([], False),
        (["required-topology"], False),
        (["required-topology", "preferred-topology"], True),
        (["unconstrained-topology", "preferred-topology"], True),
        (["required-topology", "slice-required-topology", "slice-size"], False),
        (["required-topology", "slice-required-topology"], True),
        (["slice-size"], True),
        (["preferred-topology", "group-name"], False),
        (["group-name"], True),
    ],
)
def test_pods_ask_for_one_topology_and_for_slices_with_a_size(names: list[str], refused: bool) -> None:
    values = {"slice-size": "2", "unconstrained-topology": "true"}
    annotations = {f"kueue.x-k8s.io/podset-{name}": values.get(name, "own/rack") for name in names}
    spec = {"parallelism": 4, "template": {"metadata": {"annotations": annotations}, "spec": {}}}
    rule = "topology-group" if "group-name" in names else "topology-request"

    assert wrong(rule, JOB, spec=spec) == ["spec.template.metadata.annotations"] * refused


@pytest.mark.parametrize(("size", "refused"), [("0", True), ("1", False), ("8", False), ("9", True), ("some", True)])
def test_a_slice_has_one_pod_at_least_and_all_at_most(size: str, refused: bool) -> None:
    annotations = {"kueue.x-k8s.io/podset-slice-required-topology": "rack", "kueue.x-k8s.io/podset-slice-size": size}
    spec = {"parallelism": 8, "template": {"metadata": {"annotations": annotations}, "spec": {}}}

    assert wrong("topology-request", JOB, spec=spec) == ["spec.template.metadata.annotations"] * refused


@pytest.mark.parametrize(
    ("layers", "refused"),
    [
        ([("rack", 8)], False),
        ([("rack", 9)], True),  # of 8 pods
        ([("rack", 4), ("host", 2)], False),
        ([("rack", 4), ("host", 3)], True),
        ([("rack", 4), ("rack", 2)], True),
        ([("rack", None)], True),
        ([("block", 1), ("rack", 1), ("host", 1)], False),
        ([("zone", 1), ("block", 1), ("rack", 1), ("host", 1)], True),
        ([], True),
    ],
)
def test_layers_of_slices_are_three_at_most_each_a_divisor_of_the_one_before(
    layers: list[tuple[str, int | None]], refused: bool
) -> None:
    constraints: list[dict[str, object]] = []
    for name, size in layers:
        constraints.append({"topology": name, "size": size} if size else {"topology": name})
    annotations = {
        "kueue.x-k8s.io/podset-required-topology": "zone",
        "kueue.x-k8s.io/podset-slice-required-topology-constraints": json.dumps(constraints),
    }
    spec = {"parallelism": 8, "template": {"metadata": {"annotations": annotations}, "spec": {}}}

    assert wrong("topology-request", JOB, spec=spec) == ["spec.template.metadata.annotations"] * refused


@pytest.mark.parametrize(
    ("sets", "refused"),
    [
        ([("rack", 1), ("rack", 8)], False),
        ([("rack", 8), ("rack", 8)], True),
        ([("rack", 1), ("host", 8)], True),
        ([("rack", 1)], True),
    ],
)
def test_a_group_is_a_leader_and_its_workers_in_one_topology(sets: list[tuple[str, int]], refused: bool) -> None:
    replicated = []
    for number, (topology, pods) in enumerate(sets):
        annotations = {
            "kueue.x-k8s.io/podset-group-name": "all", "kueue.x-k8s.io/podset-required-topology": topology,
        }  # fmt: skip
        spec = {"parallelism": pods, "template": {"metadata": {"annotations": annotations}, "spec": {}}}
        replicated.append({"name": f"set-{number}", "replicas": 1, "template": {"spec": spec}})
    annotations_path = f"spec.replicatedJobs[{len(sets) - 1}].template.spec.template.metadata.annotations"

    assert wrong("topology-group", JOB_SET, spec={"replicatedJobs": replicated}) == [annotations_path] * refused


@pytest.mark.parametrize(
    ("where", "key", "value", "refused"),
    [
        ("labels", "queue-name", "vision.all", False),
        ("labels", "queue-name", "Vision", True),
        ("labels", "max-exec-time-seconds", "1", False),
        ("labels", "max-exec-time-seconds", "0", True),
        ("annotations", "admission-gated-by", "example.com/a,example.com/b", False),
        ("annotations", "admission-gated-by", "example.com/a,example.com/a", True),
        ("annotations", "job-completions-equal-parallelism", "yes", True),
    ],
)
def test_labels_and_annotations_of_a_job_are_as_kueue_reads_them(
    where: str, key: str, value: str, *, refused: bool
) -> None:
    metadata = {where: {f"kueue.x-k8s.io/{key}": value}}

    paths = wrong("queued-metadata", JOB, metadata=metadata, spec={"template": {}})

    assert paths == [f"metadata.{where}"] * refused


@pytest.mark.parametrize(("also", "refused"), [({}, 0), ({"kueue.x-k8s.io/job-min-parallelism": "1"}, 1)])
def test_an_elastic_job_is_not_admitted_in_part(also: dict[str, str], refused: int) -> None:
    metadata = {"annotations": {"kueue.x-k8s.io/elastic-job": "true", **also}}

    assert wrong("elastic-job", JOB, metadata=metadata, spec={}) == ["metadata.annotations"] * refused
