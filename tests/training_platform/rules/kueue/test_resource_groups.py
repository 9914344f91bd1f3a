"""Quotas of Kueue's objects in every version that the API serves, and what they refer to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import COHORT, QUEUE, wrong

OLD = "kueue.x-k8s.io/v1beta1:ClusterQueue"
ROW = {"name": "cpu", "nominalQuota": "4"}
AT = "spec.resourceGroups[0].flavors[0].resources"


def spec(*rows: dict[str, Any], covered: list[str] | None = None, **values: Any) -> dict[str, Any]:
    names = [row["name"] for row in rows] if covered is None else covered
    group = {"coveredResources": names, "flavors": [{"name": "plain", "resources": list(rows)}]}
    return {"namespaceSelector": {}, "cohortName": "all", "resourceGroups": [group], **values}


@pytest.mark.parametrize("kind", [QUEUE, OLD, COHORT])
def test_a_flavor_has_the_resources_of_its_group_in_order(kind: str) -> None:
    rows = {"name": "cpu", "nominalQuota": "4"}, {"name": "memory", "nominalQuota": "4Gi"}

    assert wrong("kueue-resource-groups", kind, spec=spec(*rows)) == []
    assert wrong("kueue-resource-groups", kind, spec=spec(*rows, covered=["memory", "cpu"])) == [AT]
    assert wrong("kueue-resource-groups", kind, spec=spec(*rows, covered=["cpu"])) == [AT]


def test_a_resource_and_a_flavor_are_in_one_group() -> None:
    one = spec(ROW)["resourceGroups"][0]
    other = {"coveredResources": ["memory"], "flavors": [{"name": "fast", "resources": [{**ROW, "name": "memory"}]}]}
    same = {**other, "flavors": [{"name": "plain", "resources": [{**ROW, "name": "memory"}]}]}

    assert wrong("kueue-resource-groups", QUEUE, spec={"resourceGroups": [one, other]}) == []
    assert wrong("kueue-resource-groups", QUEUE, spec={"resourceGroups": [one, same]}) == ["spec.resourceGroups"]
    assert len(wrong("kueue-resource-groups", QUEUE, spec={"resourceGroups": [one, one]})) == 2


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
    found = wrong("kueue-selector", QUEUE, spec={"namespaceSelector": {"matchExpressions": [{"key": "team", **row}]}})

    assert bool(found) is wrongly


def test_a_flavor_of_a_topology_has_labels_and_no_taint_twice() -> None:
    kind, taint = "kueue.x-k8s.io/v1beta2:ResourceFlavor", {"key": "a", "effect": "NoSchedule"}

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
