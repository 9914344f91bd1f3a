"""Quotas of ClusterQueues and Cohorts in every version that the API serves, and what their flavors refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from training_platform.rules.kubernetes.objects import Json, Wrong, block, entries, object_rule, text, texts, twice
from training_platform.rules.kubernetes.pods import quantity

QUEUE, COHORT = "kueue.x-k8s.io:ClusterQueue", "kueue.x-k8s.io:Cohort"
_ASKED: Final = "Kueue 0.19.2, CRDs and webhooks of ClusterQueue and Cohort, asked 2026-11-22"
_AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")
_COUNTED: Final = ("google.com/tpu", "nvidia.com/gpu")  # of a ClusterQueue: rules of their own compare these


@object_rule("kueue-resource-groups", QUEUE, COHORT, ruleset="kueue", owner="kueue", facts=("KUE-03",), source=_ASKED)
def kueue_resource_groups(inputs: Json) -> Iterator[Wrong]:
    """Find flavors whose resources are not those of their group in its order, and what stands in two groups."""
    groups = entries(block(inputs, "spec"), "resourceGroups")
    covered: list[str | None] = []
    flavors: list[str | None] = []
    for index, group in groups:
        here, names = f"spec.resourceGroups[{index}]", texts(group, "coveredResources")
        covered += names
        for place, flavor in entries(group, "flavors"):
            flavors.append(text(flavor, "name"))
            own = [text(row, "name") for _, row in entries(flavor, "resources")]
            if own != names and None not in own:
                message = f"the resources of flavor {flavors[-1]} are {', '.join(filter(None, own)) or 'none'}"
                allowed = f"{', '.join(names)}, in this order"
                yield Wrong(f"{here}.flavors[{place}].resources", message, allowed, ", ".join(names))
    for what, names_of in (("resource", covered), ("flavor", flavors)):
        for _, name in twice(names_of):
            message = f"{what} {name} is in two groups, or twice in one"
            yield Wrong("spec.resourceGroups", message, f"each {what} once in all groups")


@object_rule("kueue-amounts", QUEUE, COHORT, ruleset="kueue", owner="kueue", facts=("KUE-02",), source=_ASKED)
def kueue_amounts(inputs: Json) -> Iterator[Wrong]:
    """Find quantities below 0, more lent than there is, and limits without a cohort above, of whatever resource."""
    spec = block(inputs, "spec")
    above = next((name for name in ("cohortName", "cohort", "parentName") if spec.get(name) not in (None, "")), None)
    own = "parentName" if "controllerName" not in spec and "namespaceSelector" not in spec else "cohortName"
    for index, group in entries(spec, "resourceGroups"):
        for place, flavor in entries(group, "flavors"):
            for number, row in entries(flavor, "resources"):
                if own == "cohortName" and text(row, "name") in _COUNTED:
                    continue
                here = f"spec.resourceGroups[{index}].flavors[{place}].resources[{number}]"
                yield from _amounts(here, row, above, own)


def _amounts(here: str, row: Json, above: str | None, own: str) -> Iterator[Wrong]:
    found = {name: quantity(row.get(name)) for name in _AMOUNTS}
    for name, amount in found.items():
        if amount is not None and amount < 0:
            yield Wrong(f"{here}.{name}", f"{name} is {row[name]}", "at least 0", "0")
        elif amount is not None and name != "nominalQuota" and above is None:
            yield Wrong(f"{here}.{name}", f"there is no {own}, so nothing is borrowed or lent", f"none without {own}")
    lent, nominal = found["lendingLimit"], found["nominalQuota"]
    if own == "cohortName" and lent is not None and nominal is not None and lent > nominal:
        yield Wrong(f"{here}.lendingLimit", f"lends {lent}", f"at most nominalQuota, {nominal}", str(nominal))


@object_rule("kueue-preemption", QUEUE, ruleset="kueue", owner="kueue", facts=("KUE-02",), source=_ASKED)
def kueue_preemption(inputs: Json) -> Iterator[Wrong]:
    """Find preemption by borrowing in a queue that reclaims nothing, and a share in fair sharing below 0."""
    preemption = block(inputs, "spec", "preemption")
    policy = block(preemption, "borrowWithinCohort").get("policy")
    if policy not in (None, "Never") and preemption.get("reclaimWithinCohort") in (None, "Never"):
        path = "spec.preemption.reclaimWithinCohort"
        yield Wrong(path, f"is Never beside borrowWithinCohort {policy}", "LowerPriority, Any", "LowerPriority")
    weight = quantity(block(inputs, "spec", "fairSharing").get("weight"))
    if weight is not None and weight < 0:
        yield Wrong("spec.fairSharing.weight", f"is {weight}", "at least 0", "0")


@object_rule("kueue-checks", QUEUE, ruleset="kueue", owner="kueue", facts=("KUE-05", "KUE-09"), source=_ASKED)
def kueue_checks(inputs: Json) -> Iterator[Wrong]:
    """Find admission checks that are there twice, or on flavors that the queue does not have."""
    spec = block(inputs, "spec")
    flavors = [
        text(flavor, "name") for _, group in entries(spec, "resourceGroups") for _, flavor in entries(group, "flavors")
    ]
    checks = entries(block(spec, "admissionChecksStrategy"), "admissionChecks")
    path = "spec.admissionChecksStrategy.admissionChecks"
    for place, name in twice([text(row, "name") for _, row in checks]):
        yield Wrong(f"{path}[{place}].name", f"check {name} is there twice", "each check once")
    for index, check in checks:
        for name in texts(check, "onFlavors"):
            if name not in flavors:
                allowed = ", ".join(filter(None, flavors)) or "a flavor of the queue"
                yield Wrong(f"{path}[{index}].onFlavors", f"the queue has no flavor {name}", allowed)


@object_rule("kueue-selector", QUEUE, ruleset="kueue", owner="kueue", facts=("KUE-05",), source=_ASKED)
def kueue_selector(inputs: Json) -> Iterator[Wrong]:
    """Find expressions of a namespace selector whose values do not go with their operator."""
    for index, row in entries(block(inputs, "spec", "namespaceSelector"), "matchExpressions"):
        here, operator = f"spec.namespaceSelector.matchExpressions[{index}]", row.get("operator")
        if operator in ("In", "NotIn") and not row.get("values"):
            yield Wrong(f"{here}.values", f"operator {operator} has no values", "at least one")
        elif operator in ("Exists", "DoesNotExist") and row.get("values"):
            yield Wrong(f"{here}.values", f"operator {operator} has values", "none")


@object_rule(
    "kueue-flavor-form", "kueue.x-k8s.io:ResourceFlavor", ruleset="kueue", owner="kueue", facts=("KUE-08",),
    source="Kueue 0.19.2, CRD and webhook of ResourceFlavor, asked 2026-11-22",
)  # fmt: skip
def kueue_flavor_form(inputs: Json) -> Iterator[Wrong]:
    """Find a flavor of a topology without labels of its nodes, and two taints of one key and effect."""
    spec = block(inputs, "spec")
    if spec.get("topologyName") is not None and not spec.get("nodeLabels"):
        yield Wrong("spec.nodeLabels", "a flavor with a topology has no labels of its nodes", "at least one label")
    taints = [f"{text(row, 'key')} {text(row, 'effect')}" for _, row in entries(spec, "nodeTaints")]
    for index, name in twice([*taints]):
        yield Wrong(f"spec.nodeTaints[{index}]", f"there are two taints {name}", "a key and an effect once")


@object_rule(
    "kueue-topology-levels", "kueue.x-k8s.io:Topology", ruleset="kueue", owner="kueue", facts=("KUE-08",),
    source="Kueue 0.19.2, CRD of Topology, asked 2026-11-22",
)  # fmt: skip
def kueue_topology_levels(inputs: Json) -> Iterator[Wrong]:
    """Find levels that are there twice, or below the host."""
    levels = [text(row, "nodeLabel") for _, row in entries(block(inputs, "spec"), "levels")]
    for index, name in twice(levels):
        yield Wrong(f"spec.levels[{index}].nodeLabel", f"level {name} is there twice", "each level once")
    if "kubernetes.io/hostname" in levels[:-1]:
        yield Wrong("spec.levels", "there is a level below kubernetes.io/hostname", "kubernetes.io/hostname last")
