"""Kueue's objects: quotas of ClusterQueues and Cohorts, flavors beside node pools, annotations of jobs, time-outs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.topologies import legal_for, nearest_topology
from training_platform.catalog.types import Kind, MachineType
from training_platform.config.pools import ARCHITECTURE_LABEL, FLAVOR_LABEL, QUEUED_LABEL
from training_platform.config.reading.section import enumeration
from training_platform.resources.register import NOTIFICATION_CHANNEL
from training_platform.rules.gke.accelerators import illegal
from training_platform.rules.kubernetes.objects import (
    Json,
    Wrong,
    block,
    entries,
    is_unknown,
    object_rule,
    text,
    texts,
    twice,
    whole,
)
from training_platform.rules.kubernetes.pods import JOB, WORKLOADS, jobs, quantity
from training_platform.rules.registry import Draft, finding, rule
from training_platform.views.access import LabelledView
from training_platform.views.cluster import cluster_of, pools_of
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.program import Program

_WEBHOOK = "Kueue ff69552, clusterqueue_webhook.go, read 2026-08-22"


@rule("kueue-limits-need-cohort", ruleset="kueue", owner="kueue", source=_WEBHOOK)
def kueue_limits_need_cohort(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a borrowing or lending limit of a ClusterQueue without a cohort."""
    if quota.cohort:
        return
    for field in ("borrowing_limit", "lending_limit"):
        if getattr(quota, field) is not None:
            yield finding(quota, field, f"ClusterQueue {quota.queue} has no cohort", allowed="none without a cohort")


@rule("kueue-lending-limit", ruleset="kueue", owner="kueue", source=_WEBHOOK)
def kueue_lending_limit(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a team that would lend more than it has."""
    lent, own = quota.lending_limit, quota.nominal_quota
    if lent is not None and lent > own:
        yield finding(quota, "lending_limit", f"is {lent}", allowed=f"at most the nominal quota, {own}", nearest=own)


@rule("kueue-quantities", ruleset="kueue", owner="kueue", source=_WEBHOOK)
def kueue_quantities(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a quantity below 0."""
    for field in ("nominal_quota", "borrowing_limit", "lending_limit"):
        amount = getattr(quota, field)
        if amount is not None and amount < 0:
            yield finding(quota, field, f"is {amount}", allowed="at least 0", nearest=0)


QUEUE, COHORT = "kueue.x-k8s.io:ClusterQueue", "kueue.x-k8s.io:Cohort"
_ASKED: Final = "Kueue 0.19.2, CRDs and webhooks of ClusterQueue and Cohort, asked 2026-11-22"
_AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")
_COUNTED: Final = ("google.com/tpu", "nvidia.com/gpu")  # of a ClusterQueue: rules of their own compare these


@object_rule("kueue-resource-groups", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_ASKED)
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


@object_rule("kueue-amounts", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_ASKED)
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


@object_rule("kueue-preemption", QUEUE, ruleset="kueue", owner="kueue", source=_ASKED)
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


@object_rule("kueue-checks", QUEUE, ruleset="kueue", owner="kueue", source=_ASKED)
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


@object_rule("kueue-selector", QUEUE, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_selector(inputs: Json) -> Iterator[Wrong]:
    """Find expressions of a namespace selector whose values do not go with their operator."""
    for index, row in entries(block(inputs, "spec", "namespaceSelector"), "matchExpressions"):
        here, operator = f"spec.namespaceSelector.matchExpressions[{index}]", row.get("operator")
        if operator in ("In", "NotIn") and not row.get("values"):
            yield Wrong(f"{here}.values", f"operator {operator} has no values", "at least one")
        elif operator in ("Exists", "DoesNotExist") and row.get("values"):
            yield Wrong(f"{here}.values", f"operator {operator} has values", "none")


@object_rule(
    "kueue-flavor-form", "kueue.x-k8s.io:ResourceFlavor", ruleset="kueue", owner="kueue",
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
    "kueue-topology-levels", "kueue.x-k8s.io:Topology", ruleset="kueue", owner="kueue",
    source="Kueue 0.19.2, CRD of Topology, asked 2026-11-22",
)  # fmt: skip
def kueue_topology_levels(inputs: Json) -> Iterator[Wrong]:
    """Find levels that are there twice, or below the host."""
    levels = [text(row, "nodeLabel") for _, row in entries(block(inputs, "spec"), "levels")]
    for index, name in twice(levels):
        yield Wrong(f"spec.levels[{index}].nodeLabel", f"level {name} is there twice", "each level once")
    if "kubernetes.io/hostname" in levels[:-1]:
        yield Wrong("spec.levels", "there is a level below kubernetes.io/hostname", "kubernetes.io/hostname last")


TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
TPU_LABEL = "cloud.google.com/gke-tpu-accelerator"
ACCELERATOR_LABELS: Mapping[str, Kind] = {
    TPU_LABEL: "tpu",
    "cloud.google.com/gke-accelerator": "gpu",
}
_ARM = {
    each.accelerator.gke_label for each in MACHINE_TYPES.values() if each.accelerator and each.architecture == "arm64"
}


@rule(
    "tpu-flavor-topology",
    ruleset="flavors",
    across=True,
    source="GKE docs, TPU concepts: labels that GKE sets; Kueue ff69552, ResourceFlavor, read 2026-08-22",
)
def tpu_flavor_topology(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool with another slice topology than its ResourceFlavor selects: its jobs would never start."""
    machine = pool.machine
    if machine is None or machine.kind != "tpu":
        return
    actual = pool.tpu_topology or machine.single_host
    wanted = _selected(pool.node_labels.get(FLAVOR_LABEL), program)
    if wanted is not None and wanted != actual:
        if not legal_for(machine, wanted):
            yield illegal(pool, machine, wanted)
        else:
            message = f"the pool's slices have topology {actual}, but its flavor selects {wanted}"
            yield finding(pool, "tpu_topology", message, allowed=wanted, nearest=wanted)


@rule(
    "flavor-accelerator",
    ruleset="flavors",
    across=True,
    source="xpk #1173; ray #53914; GKE cluster-autoscaler 7d25050, system labels",
)
def flavor_accelerator(flavor: FlavorView, program: Program) -> Iterator[Draft]:
    """Find a flavor that selects an accelerator or slice topology that no node has as a label.

    A pool of the same shape is found by a rule of its own.
    """
    for label, kind in ACCELERATOR_LABELS.items():
        value = flavor.node_labels.get(label)
        names = _labels_of(kind) if value is not None else ()
        if value is not None and value not in names:
            message = f"flavor {flavor.flavor} selects {label} {value}, which no node carries"
            nearest = find_nearest(value, names)
            yield finding(flavor, "node_labels", message, allowed=enumeration(names, most=40), nearest=nearest)
    topology = flavor.node_labels.get(TOPOLOGY_LABEL)
    model = flavor.node_labels.get(TPU_LABEL)
    machines = _machines_of(model) if topology and model else ()
    if not topology or not machines or any(legal_for(machine, topology) for machine in machines):
        return
    if not any(pool.known("tpu_topology") and pool.tpu_topology == topology for pool in program.all(NodePoolView)):
        message = f"flavor {flavor.flavor} selects topology {topology}, which {model} does not support"
        nearest = nearest_topology(max(machines, key=lambda machine: machine.multi_host), topology)
        yield finding(flavor, "node_labels", message, allowed="a topology that it supports", nearest=nearest)


@rule(
    "topology-autoscaled",
    ruleset="flavors",
    severity="warning",
    owner="kueue",
    across=True,
    source="Kueue v0.19.2, tas_flavor_snapshot.go and its page on topology-aware scheduling, read 2026-11-22; tried",
)
def topology_autoscaled(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool that grows by waiting pods, in a flavor whose jobs Kueue places on the VMs that are there alone."""
    flavor = pool.node_labels.get(FLAVOR_LABEL)
    placed = any(each.topology and each.flavor == flavor for each in program.once(_placing))
    if placed and not pool.queued and pool.least_vms < pool.most_vms:
        message = f"has {pool.least_vms} of its {pool.most_vms} VMs at first; Kueue places jobs of {flavor} on VMs that"
        yield finding(
            pool, "min_nodes", f"{message} are there, so that nothing would ever start more",
            allowed="as many as at most, queued provisioning, or a flavor without topology",
            nearest=pool.most_vms if pool.machine and pool.machine.kind == "gpu" else None,
        )  # fmt: skip


@rule(
    "queued-flavor-check",
    ruleset="flavors",
    across=True,
    source="Kueue v0.19.2, ProvisioningRequest admission check; GKE docs, queued provisioning, read 2026-04",
)
def queued_flavor_check(quota: FlavorQuotaView, program: Program) -> Iterator[Draft]:
    """Find a queue that admits jobs to queued nodes without an admission check: nothing would ever scale the pool."""
    queued = any(each.flavor == quota.flavor and QUEUED_LABEL in each.node_labels for each in program.all(FlavorView))
    if queued and not quota.checks:
        message = f"queue {quota.queue} has no admission check on {quota.flavor}, whose nodes need ProvisioningRequests"
        yield finding(quota, "checks", message, allowed="a check of kueue.x-k8s.io/provisioning-request on the flavor")


@rule(
    "queued-flavor-toleration",
    ruleset="flavors",
    source="GKE docs, queued provisioning: taint of queued nodes, read 2026-04; Cluster Toolkit v1.95.0",
)
def queued_flavor_toleration(flavor: FlavorView) -> Iterator[Draft]:
    """Find a flavor of queued nodes whose pods do not tolerate the taint that GKE puts on them."""
    if QUEUED_LABEL in flavor.node_labels and QUEUED_LABEL not in flavor.tolerated:
        message = f"flavor {flavor.flavor} selects queued nodes and does not tolerate their taint"
        yield finding(flavor, "tolerated", message, allowed=f"{QUEUED_LABEL}=true:NoSchedule", nearest=QUEUED_LABEL)


@rule(
    "arm-flavor-toleration",
    ruleset="flavors",
    severity="warning",
    source="GKE docs, prepare to deploy an Arm workload in a Standard cluster, read 2026-11-21",
)
def arm_flavor_toleration(flavor: FlavorView) -> Iterator[Draft]:
    """Find a flavor of Arm nodes whose pods do not tolerate the taint that GKE puts on them.

    Pods that select the architecture are given the toleration by GKE.
    """
    selected = {flavor.node_labels.get(label) for label in ACCELERATOR_LABELS} & _ARM
    if selected and ARCHITECTURE_LABEL not in {*flavor.tolerated, *flavor.node_labels}:
        message = f"flavor {flavor.flavor} selects Arm nodes and does not tolerate their taint"
        taint = f"{ARCHITECTURE_LABEL}=arm64:NoSchedule"
        yield finding(flavor, "tolerated", message, allowed=taint, nearest=ARCHITECTURE_LABEL)


@cache
def _labels_of(kind: Kind) -> tuple[str, ...]:
    return tuple(sorted({each.gke_label for each in ACCELERATORS.values() if each.kind == kind}))


@cache
def _machines_of(model: str) -> tuple[MachineType, ...]:
    rows = MACHINE_TYPES.values()
    return tuple(each for each in rows if each.accelerator and each.accelerator.gke_label == model)


def _selected(flavor: str | None, program: Program) -> str | None:
    """Return the topology that the flavor of this name selects; names say the shape, so clusters agree on it."""
    selecting = program.once(_by_name).get(flavor)
    return selecting.node_labels.get(TOPOLOGY_LABEL) if selecting else None


def _by_name(program: Program) -> dict[str | None, FlavorView]:
    """Return the first flavor of each name that is known."""
    found: dict[str | None, FlavorView] = {}
    for each in program.all(FlavorView):
        if each.known("flavor"):
            found.setdefault(each.flavor, each)
    return found


def _placing(program: Program) -> list[FlavorView]:
    """Return the flavors with a topology, and those of which it is not known."""
    return [each for each in program.all(FlavorView) if not each.known("topology") or each.topology]


_LEAST: Final = "kueue.x-k8s.io/job-min-parallelism"
_EQUAL: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
_FLAGS: Final = {"1", "t", "T", "TRUE", "true", "True"}


@object_rule("partial-admission", JOB, ruleset="kueue", owner="kueue", source=(
    "Kueue 0.19.2, pkg/controller/jobs/job/job_webhook.go, and its webhook, asked 2026-11-22"))  # fmt: skip
def partial_admission(inputs: Json) -> Iterator[Wrong]:
    """Find a minimum parallelism that is not below the job's own, and completions that have to equal it and do not."""
    written, spec = block(inputs, "metadata", "annotations"), block(inputs, "spec")
    if is_unknown(spec, "parallelism") or is_unknown(spec, "completions"):
        return
    here, parallelism, completions = "metadata.annotations", whole(spec, "parallelism") or 1, whole(spec, "completions")
    least = text(written, _LEAST)
    if least is not None:
        most = min(parallelism, completions or parallelism) - 1
        if not re.fullmatch(r"[+-]?[0-9]+", least) or not 1 <= int(least) <= most:
            allowed = f"1 to {most}" if most else "a parallelism of 2 or more first"
            yield Wrong(here, f"{_LEAST} is {least}, for {most + 1} pods", allowed, str(most) if most else None)
    if text(written, _EQUAL) in _FLAGS:
        if spec.get("completionMode") in (None, "NonIndexed"):
            yield Wrong(here, f"{_EQUAL} is only for Indexed jobs", "completionMode Indexed")
        elif parallelism != (completions or 1):
            count = "not written" if completions is None else completions
            message = f"completions is {count} and parallelism {parallelism}; {_EQUAL} needs both to be equal"
            yield Wrong("spec.completions", message, str(parallelism), str(parallelism))


@rule(
    "flex-start-beside-reserved",
    ruleset="kueue",
    severity="warning",
    owner="house",
    source="Kueue v0.19.2, workload_controller.go: one time, from admission, which queued jobs get with their VMs",
)
def flex_start_beside_reserved(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool of flex-start that lets jobs of other pools hold reserved machines for a day, unseen.

    VMs of plain flex-start come after a job's admission, whenever Google Cloud finds them, so Kueue has to wait; those
    of queued provisioning come before it. Who gets the alerts is told of slices that are not ready for an hour.
    """
    if not pool.flex_start or pool.queued or program.once(_somebody_is_told):
        return
    cluster = cluster_of(pool, program)
    others = [each for each in pools_of(cluster, program) if each.reservation] if cluster else []
    if others:
        held = enumeration(sorted({".".join(str(part) for part in each.origin[-1:]) or each.name for each in others}))
        message = f"with it, a job whose pods never get ready holds reserved machines of {held} for 24 hours, unseen"
        allowed = "queued-provisioning, a cluster of its own, or alerts.emails that say who is told"
        yield finding(pool, "flex_start", message, allowed=allowed, nearest="queued-provisioning")


def _somebody_is_told(program: Program) -> bool:
    return any(view.type == NOTIFICATION_CHANNEL for view in program.all(LabelledView))


_PREFIX: Final = "kueue.x-k8s.io/podset-"
_TOPOLOGIES: Final = tuple(f"{_PREFIX}{each}-topology" for each in ("required", "preferred", "unconstrained"))
_SLICE, _SIZE, _GROUP = f"{_PREFIX}slice-required-topology", f"{_PREFIX}slice-size", f"{_PREFIX}group-name"


@object_rule("topology-request", *WORKLOADS, ruleset="kueue", owner="kueue", source=(
    "Kueue 0.19.2, pkg/controller/jobframework/tas_validation.go, and its webhook, asked 2026-11-22"))  # fmt: skip
def topology_request(inputs: Json) -> Iterator[Wrong]:
    """Find pods that ask for two topologies at once, or for slices without a size."""
    templates = [(f"{at}.template.metadata", block(job, "template", "metadata")) for at, job in jobs(inputs)]
    for at, metadata in [*templates, ("metadata", block(inputs, "metadata"))]:
        written, here = block(metadata, "annotations"), f"{at}.annotations"
        topologies = [each for each in _TOPOLOGIES if each in written]
        if len(topologies) > 1:
            yield Wrong(here, f"{' and '.join(topologies)} exclude each other", "one of them")
        if (_SLICE in written) != (_SIZE in written):
            yield Wrong(here, "a slice needs both its topology and its size", f"both {_SLICE} and {_SIZE}")
        if _GROUP in written and (_SLICE in written or not {*_TOPOLOGIES[:2]} & {*written}):
            yield Wrong(here, "a pod group needs a topology, without slices", f"{_TOPOLOGIES[0]} or {_TOPOLOGIES[1]}")
