"""Rules about Kueue: quotas of ClusterQueues and Cohorts, flavors and their node pools, metadata of jobs."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from training_platform.catalog import ACCELERATORS, MACHINE_TYPES
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.topologies import legal_for, nearest_topology
from training_platform.catalog.types import Json, Kind
from training_platform.config.expansion import ARCHITECTURE_LABEL, FLAVOR_LABEL, QUEUED_LABEL
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.section import enumeration
from training_platform.resources.kueue import QUEUE_LABEL
from training_platform.resources.resource_types import NOTIFICATION_CHANNEL
from training_platform.rules.gke.accelerators import illegal
from training_platform.rules.kubernetes.objects import (
    SUBDOMAIN,
    block,
    duplicates,
    entries,
    integer,
    is_unknown,
    object_rule,
    string,
    strings,
)
from training_platform.rules.kubernetes.pods import JOB, JOB_SET, LWS, WORKLOADS, jobs, quantity
from training_platform.views.access import LabelledView
from training_platform.views.cluster import neighbours
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.whole_stack import ObjectView, Program

_WEBHOOK: Final = "Kueue ff69552, clusterqueue_webhook.go, read 2026-08-22"
_QUEUE_SOURCE: Final = "Kueue 0.19.2, CRDs and webhooks of ClusterQueue and Cohort, tried 2026-11-22"
_JOB_SOURCE: Final = "Kueue 0.19.2, pkg/controller/jobframework and jobs, their webhooks, tried 2026-11-23"

QUEUE: Final = "kueue.x-k8s.io:ClusterQueue"
COHORT: Final = "kueue.x-k8s.io:Cohort"
_QUOTA_FIELDS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")
_ACCELERATORS: Final = ("google.com/tpu", "nvidia.com/gpu")  # rules of views compare their amounts in ClusterQueues

TOPOLOGY_LABEL: Final = "cloud.google.com/gke-tpu-topology"
TPU_LABEL: Final = "cloud.google.com/gke-tpu-accelerator"
ACCELERATOR_LABELS: Final[Mapping[str, Kind]] = {
    TPU_LABEL: "tpu",
    "cloud.google.com/gke-accelerator": "gpu",
}
_ARM_ACCELERATORS: Final = frozenset(
    row.accelerator.gke_label for row in MACHINE_TYPES.values() if row.accelerator and row.architecture == "arm64"
)

_QUEUED_JOBS: Final = (JOB, JOB_SET, LWS)
_LABELS: Final = "metadata.labels"
_ANNOTATIONS: Final = "metadata.annotations"
_MIN_PARALLELISM: Final = "kueue.x-k8s.io/job-min-parallelism"
_EQUAL_COMPLETIONS: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
_PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
_MAX_SECONDS: Final = "kueue.x-k8s.io/max-exec-time-seconds"
_ELASTIC: Final = "kueue.x-k8s.io/elastic-job"
_GATES: Final = "kueue.x-k8s.io/admission-gated-by"
_PODSET: Final = "kueue.x-k8s.io/podset-"
_REQUIRED: Final = f"{_PODSET}required-topology"
_PREFERRED: Final = f"{_PODSET}preferred-topology"
_UNCONSTRAINED: Final = f"{_PODSET}unconstrained-topology"
_TOPOLOGIES: Final = (_REQUIRED, _PREFERRED, _UNCONSTRAINED)
_GROUP: Final = f"{_PODSET}group-name"
_SLICE: Final = f"{_PODSET}slice-required-topology"
_SLICE_SIZE: Final = f"{_PODSET}slice-size"
_LAYERS: Final = f"{_PODSET}slice-required-topology-constraints"
_MOST_LAYERS: Final = 3
_MOST_PODS: Final = 2**31 - 1
_SETS_OF_A_GROUP: Final = 2  # a leader and its workers
_LONGEST_GATE: Final = 63
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_BOOLEANS: Final = _TRUE | {"0", "f", "F", "FALSE", "false", "False"}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}\Z")
_LABEL_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
_GATE: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/.+\Z")


@rule("kueue-limits-need-cohort", ruleset="kueue", owner="kueue", source=_WEBHOOK)
def kueue_limits_need_cohort(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a borrowing or lending limit in a ClusterQueue that is in no cohort."""
    if quota.cohort:
        return
    for field in ("borrowing_limit", "lending_limit"):
        if getattr(quota, field) is not None:
            yield finding(quota, field, f"ClusterQueue {quota.queue} has no cohort", allowed="none without a cohort")


@rule("kueue-lending-limit", ruleset="kueue", owner="kueue", source=_WEBHOOK)
def kueue_lending_limit(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a lending limit above the nominal quota."""
    lent = quota.lending_limit
    nominal = quota.nominal_quota
    if lent is not None and lent > nominal:
        allowed = f"at most the nominal quota, {nominal}"
        yield finding(quota, "lending_limit", f"is {lent}", allowed=allowed, nearest=nominal)


@rule("kueue-quantities", ruleset="kueue", owner="kueue", source=_WEBHOOK)
def kueue_quantities(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a negative quantity in a ClusterQueue."""
    for field in ("nominal_quota", "borrowing_limit", "lending_limit"):
        amount = getattr(quota, field)
        if amount is not None and amount < 0:
            yield finding(quota, field, f"is {amount}", allowed="at least 0", nearest=0)


@object_rule("kueue-resource-groups", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_QUEUE_SOURCE)
def kueue_resource_groups(view: ObjectView) -> Iterator[Draft]:
    """Find flavors whose resources differ from their group's resources or are in another order.

    Also find a flavor or a resource that is in two groups.
    """
    inputs = view.inputs
    all_resources: list[str | None] = []
    all_flavors: list[str | None] = []
    for index, group in entries(block(inputs, "spec"), "resourceGroups"):
        covered = strings(group, "coveredResources")
        all_resources += covered
        for flavor_index, flavor in entries(group, "flavors"):
            name = string(flavor, "name")
            all_flavors.append(name)
            resources = [string(row, "name") for _, row in entries(flavor, "resources")]
            if resources != covered and None not in resources:
                message = f"the resources of flavor {name} are {', '.join(filter(None, resources)) or 'none'}"
                allowed = f"{', '.join(covered)}, in this order"
                path = f"spec.resourceGroups[{index}].flavors[{flavor_index}].resources"
                yield finding(view, path, message, allowed=allowed, nearest=", ".join(covered))
    for _, name in duplicates(all_resources):
        message = f"resource {name} is in two groups, or twice in one"
        yield finding(view, "spec.resourceGroups", message, allowed="each resource once in all groups")
    for _, name in duplicates(all_flavors):
        message = f"flavor {name} is in two groups, or twice in one"
        yield finding(view, "spec.resourceGroups", message, allowed="each flavor once in all groups")


@object_rule("kueue-amounts", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_QUEUE_SOURCE)
def kueue_amounts(view: ObjectView) -> Iterator[Draft]:
    """Find negative quantities, lending limits above the nominal quota, and limits without a cohort or parent."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    has_cohort = any(spec.get(name) not in (None, "") for name in ("cohortName", "cohort", "parentName"))
    cohort_field = "parentName" if "parentName" in spec else "cohortName"
    for index, group in entries(spec, "resourceGroups"):
        for flavor_index, flavor in entries(group, "flavors"):
            for row_index, row in entries(flavor, "resources"):
                if cohort_field == "cohortName" and string(row, "name") in _ACCELERATORS:
                    continue
                path = f"spec.resourceGroups[{index}].flavors[{flavor_index}].resources[{row_index}]"
                yield from _amount_findings(view, path, row, cohort_field, has_cohort=has_cohort)


def _amount_findings(view: ObjectView, path: str, row: Json, cohort_field: str, *, has_cohort: bool) -> Iterator[Draft]:
    amounts = {name: quantity(row.get(name)) for name in _QUOTA_FIELDS}
    for name, amount in amounts.items():
        if amount is not None and amount < 0:
            yield finding(view, f"{path}.{name}", f"{name} is {row[name]}", allowed="at least 0", nearest="0")
        elif amount is not None and name != "nominalQuota" and not has_cohort:
            message = f"{cohort_field} is not set, so the queue neither borrows nor lends quota"
            yield finding(view, f"{path}.{name}", message, allowed=f"none without {cohort_field}")
    if cohort_field == "parentName":
        return  # a Cohort may lend more than its own quota
    lent = amounts["lendingLimit"]
    nominal = amounts["nominalQuota"]
    if lent is not None and nominal is not None and lent > nominal:
        yield finding(
            view,
            f"{path}.lendingLimit",
            f"lends {lent}",
            allowed=f"at most nominalQuota, {nominal}",
            nearest=str(nominal),
        )


@object_rule("kueue-preemption", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_QUEUE_SOURCE)
def kueue_preemption(view: ObjectView) -> Iterator[Draft]:
    """Find a queue that borrows within its cohort but reclaims nothing, and a negative fair sharing weight."""
    inputs = view.inputs
    preemption = block(inputs, "spec", "preemption")
    policy = block(preemption, "borrowWithinCohort").get("policy")
    if policy not in (None, "Never") and preemption.get("reclaimWithinCohort") in (None, "Never"):
        path = "spec.preemption.reclaimWithinCohort"
        yield finding(
            view,
            path,
            f"is Never, but borrowWithinCohort is {policy}",
            allowed="LowerPriority, Any",
            nearest="LowerPriority",
        )
    weight = quantity(block(inputs, "spec", "fairSharing").get("weight"))
    if weight is not None and weight < 0:
        yield finding(view, "spec.fairSharing.weight", f"is {weight}", allowed="at least 0", nearest="0")
    fungibility = block(inputs, "spec", "flavorFungibility")
    defaults = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    stopping = [name for name, default in defaults.items() if fungibility.get(name, default) != "TryNextFlavor"]
    if fungibility.get("preference") is not None and stopping:
        message = f"a preference needs TryNextFlavor in {' and '.join(stopping)}"
        yield finding(
            view, "spec.flavorFungibility.preference", message, allowed=f"TryNextFlavor in {', '.join(stopping)}"
        )


@object_rule("kueue-checks", QUEUE, ruleset="kueue", owner="kueue", source=_QUEUE_SOURCE)
def kueue_checks(view: ObjectView) -> Iterator[Draft]:
    """Find repeated admission checks, and admission checks for flavors that are not in the queue."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    flavors: list[str | None] = []
    for _, group in entries(spec, "resourceGroups"):
        flavors += [string(flavor, "name") for _, flavor in entries(group, "flavors")]
    checks = entries(block(spec, "admissionChecksStrategy"), "admissionChecks")
    path = "spec.admissionChecksStrategy.admissionChecks"
    for index, name in duplicates([string(row, "name") for _, row in checks]):
        yield finding(view, f"{path}[{index}].name", f"check {name} is listed twice", allowed="each check once")
    for index, check in checks:
        for name in strings(check, "onFlavors"):
            if name not in flavors:
                allowed = ", ".join(filter(None, flavors)) or "a flavor of the queue"
                yield finding(view, f"{path}[{index}].onFlavors", f"the queue has no flavor {name}", allowed=allowed)


@object_rule("kueue-selector", QUEUE, ruleset="kueue", owner="kueue", source=_QUEUE_SOURCE)
def kueue_selector(view: ObjectView) -> Iterator[Draft]:
    """Find an expression in a namespace selector that lacks values its operator requires, or has values it forbids."""
    inputs = view.inputs
    for index, row in entries(block(inputs, "spec", "namespaceSelector"), "matchExpressions"):
        path = f"spec.namespaceSelector.matchExpressions[{index}].values"
        operator = row.get("operator")
        if operator in ("In", "NotIn") and not row.get("values"):
            yield finding(view, path, f"operator {operator} has no values", allowed="at least one")
        elif operator in ("Exists", "DoesNotExist") and row.get("values"):
            yield finding(view, path, f"operator {operator} has values", allowed="none")


@object_rule(
    "kueue-flavor-form",
    "kueue.x-k8s.io:ResourceFlavor",
    ruleset="kueue",
    owner="kueue",
    source="Kueue 0.19.2, CRD and webhook of ResourceFlavor, tried 2026-11-22",
)
def kueue_flavor_form(view: ObjectView) -> Iterator[Draft]:
    """Find a flavor that has a topology but no node labels, and two taints with the same key and effect."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    if spec.get("topologyName") is not None and not spec.get("nodeLabels"):
        yield finding(
            view, "spec.nodeLabels", "a flavor with a topology has no node labels", allowed="at least one label"
        )
    taints = [f"{string(row, 'key')} {string(row, 'effect')}" for _, row in entries(spec, "nodeTaints")]
    for index, name in duplicates([*taints]):
        yield finding(
            view, f"spec.nodeTaints[{index}]", f"taint {name} is listed twice", allowed="each key and effect once"
        )


@object_rule(
    "kueue-topology-levels",
    "kueue.x-k8s.io:Topology",
    ruleset="kueue",
    owner="kueue",
    source="Kueue 0.19.2, CRD of Topology, tried 2026-11-22",
)
def kueue_topology_levels(view: ObjectView) -> Iterator[Draft]:
    """Find topology levels that are repeated, or that are below the level of hosts."""
    inputs = view.inputs
    levels = [string(row, "nodeLabel") for _, row in entries(block(inputs, "spec"), "levels")]
    for index, name in duplicates(levels):
        yield finding(
            view, f"spec.levels[{index}].nodeLabel", f"level {name} is listed twice", allowed="each level once"
        )
    if "kubernetes.io/hostname" in levels[:-1]:
        yield finding(
            view, "spec.levels", "has a level below kubernetes.io/hostname", allowed="kubernetes.io/hostname last"
        )


@rule(
    "tpu-flavor-topology",
    ruleset="flavors",
    spoils=True,
    across=True,
    source="GKE docs, TPU concepts: labels that GKE sets; Kueue ff69552, ResourceFlavor, read 2026-08-22",
)
def tpu_flavor_topology(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool whose slice topology differs from its ResourceFlavor's. Jobs would never start there."""
    machine = pool.machine
    if machine is None or machine.kind != "tpu":
        return
    actual = pool.tpu_topology or machine.single_host
    # Names contain the shape, so flavors with the same name in several clusters agree.
    flavor = program.once(_flavors).get(pool.node_labels.get(FLAVOR_LABEL))
    selected = flavor.node_labels.get(TOPOLOGY_LABEL) if flavor else None
    if selected is None or selected == actual:
        return
    if not legal_for(machine, selected):
        yield illegal(pool, machine, selected)
        return
    message = f"the pool's slices have topology {actual}, but its flavor selects {selected}"
    yield finding(pool, "tpu_topology", message, allowed=selected, nearest=selected)


@rule(
    "flavor-accelerator",
    ruleset="flavors",
    across=True,
    source="xpk #1173; ray #53914; GKE cluster-autoscaler 7d25050, system labels",
)
def flavor_accelerator(flavor: FlavorView, program: Program) -> Iterator[Draft]:
    """Find a flavor that selects an accelerator or slice topology that no node has as a label.

    If a pool has the same topology, ``tpu-topology`` reports the pool.
    """
    for label, kind in ACCELERATOR_LABELS.items():
        value = flavor.node_labels.get(label)
        if value is None:
            continue
        names = sorted({row.gke_label for row in ACCELERATORS.values() if row.kind == kind})
        if value not in names:
            message = f"flavor {flavor.flavor} selects {label} {value}, but no node has this label"
            nearest = find_nearest(value, names)
            yield finding(flavor, "node_labels", message, allowed=enumeration(names, max_names=40), nearest=nearest)
    topology = flavor.node_labels.get(TOPOLOGY_LABEL)
    model = flavor.node_labels.get(TPU_LABEL)
    if not topology or not model:
        return
    machines = [row for row in MACHINE_TYPES.values() if row.accelerator and row.accelerator.gke_label == model]
    if not machines or any(legal_for(machine, topology) for machine in machines):
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
    """Find a pool that scales up for pending pods although Kueue places the jobs of its flavor only on existing VMs."""
    flavor = pool.node_labels.get(FLAVOR_LABEL)
    places_jobs = any(view.topology and view.flavor == flavor for view in program.all(FlavorView, "topology"))
    if places_jobs and not pool.queued and pool.least_vms < pool.most_vms:
        message = (
            f"starts with {pool.least_vms} of its {pool.most_vms} VMs, but Kueue places jobs of {flavor} only on "
            f"existing VMs, so the other VMs would never start"
        )
        allowed = "a minimum equal to the maximum, queued provisioning, or a flavor without a topology"
        nearest = pool.most_vms if pool.machine and pool.machine.kind == "gpu" else None
        yield finding(pool, "min_nodes", message, allowed=allowed, nearest=nearest)


@rule(
    "queued-flavor-check",
    ruleset="flavors",
    across=True,
    source="Kueue v0.19.2, ProvisioningRequest admission check; GKE docs, queued provisioning, read 2026-04",
)
def queued_flavor_check(quota: FlavorQuotaView, program: Program) -> Iterator[Draft]:
    """Find a queue that admits jobs to queued nodes without an admission check. Nothing would ever scale up a pool."""
    queued = any(row.flavor == quota.flavor and QUEUED_LABEL in row.node_labels for row in program.all(FlavorView))
    if queued and not quota.checks:
        message = f"queue {quota.queue} has no admission check on {quota.flavor}, whose nodes need ProvisioningRequests"
        yield finding(
            quota, "checks", message, allowed="an admission check of kueue.x-k8s.io/provisioning-request for the flavor"
        )


@rule(
    "queued-flavor-toleration",
    ruleset="flavors",
    source="GKE docs, queued provisioning: taint of queued nodes, read 2026-04; Cluster Toolkit v1.95.0",
)
def queued_flavor_toleration(flavor: FlavorView) -> Iterator[Draft]:
    """Find a flavor of queued nodes that does not tolerate the taint that GKE adds to these nodes."""
    if QUEUED_LABEL in flavor.node_labels and QUEUED_LABEL not in flavor.tolerated:
        message = f"flavor {flavor.flavor} selects queued nodes but does not tolerate their taint"
        yield finding(flavor, "tolerated", message, allowed=f"{QUEUED_LABEL}=true:NoSchedule", nearest=QUEUED_LABEL)


@rule(
    "arm-flavor-toleration",
    ruleset="flavors",
    severity="warning",
    source="GKE docs, prepare to deploy an Arm workload in a Standard cluster, read 2026-11-21",
)
def arm_flavor_toleration(flavor: FlavorView) -> Iterator[Draft]:
    """Find a flavor of Arm nodes that does not tolerate the taint that GKE adds to these nodes.

    GKE adds the toleration to pods that select the architecture.
    """
    selected = {flavor.node_labels.get(label) for label in ACCELERATOR_LABELS} & _ARM_ACCELERATORS
    if selected and ARCHITECTURE_LABEL not in {*flavor.tolerated, *flavor.node_labels}:
        message = f"flavor {flavor.flavor} selects Arm nodes but does not tolerate their taint"
        taint = f"{ARCHITECTURE_LABEL}=arm64:NoSchedule"
        yield finding(flavor, "tolerated", message, allowed=taint, nearest=ARCHITECTURE_LABEL)


def _flavors(program: Program) -> dict[str | None, FlavorView]:
    """Return the first flavor with each known name."""
    return {row.flavor: row for row in reversed(program.all(FlavorView)) if row.known("flavor")}


@object_rule(
    "partial-admission",
    JOB,
    ruleset="kueue",
    owner="kueue",
    source="Kueue 0.19.2, pkg/controller/jobs/job/job_webhook.go, and its webhook, tried 2026-11-22",
)
def partial_admission(view: ObjectView) -> Iterator[Draft]:
    """Find a minimum parallelism that is not below the parallelism, and completions that must equal it but differ."""
    inputs = view.inputs
    annotations = block(inputs, "metadata", "annotations")
    spec = block(inputs, "spec")
    if is_unknown(spec, "parallelism") or is_unknown(spec, "completions"):
        return
    parallelism = integer(spec, "parallelism") or 1
    completions = integer(spec, "completions")
    minimum = string(annotations, _MIN_PARALLELISM)
    if minimum is not None:
        maximum = min(parallelism, completions or parallelism) - 1
        if not re.fullmatch(r"[+-]?[0-9]+", minimum) or not 1 <= int(minimum) <= maximum:
            allowed = f"1 to {maximum}" if maximum else "first a parallelism of 2 or more"
            message = f"{_MIN_PARALLELISM} is {minimum}, for {maximum + 1} pods"
            yield finding(view, _ANNOTATIONS, message, allowed=allowed, nearest=str(maximum) if maximum else None)
    if string(annotations, _EQUAL_COMPLETIONS) in _TRUE:
        if spec.get("completionMode") in (None, "NonIndexed"):
            yield finding(
                view, _ANNOTATIONS, f"{_EQUAL_COMPLETIONS} is only for Indexed jobs", allowed="completionMode Indexed"
            )
        elif parallelism != (completions or 1):
            count = "not set" if completions is None else completions
            message = (
                f"completions is {count} and parallelism is {parallelism}, but {_EQUAL_COMPLETIONS} requires that "
                f"both are equal"
            )
            yield finding(view, "spec.completions", message, allowed=str(parallelism), nearest=str(parallelism))


@rule(
    "flex-start-beside-reserved",
    ruleset="kueue",
    severity="warning",
    owner="house",
    source="Kueue v0.19.2, workload_controller.go: one timeout, which starts at admission; queued jobs are admitted "
    "once they have VMs",
)
def flex_start_beside_reserved(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a flex-start pool without alerts in a cluster where stuck jobs may block reserved machines unnoticed.

    With plain flex-start, VMs are created after a job's admission, whenever Google Cloud finds them, so Kueue has to
    wait. With queued provisioning, VMs are created before admission. An alert reports slices that are not ready for an
    hour.
    """
    channels = (view for view in program.all(LabelledView) if view.type == NOTIFICATION_CHANNEL)
    if not pool.flex_start or pool.queued or any(channels):
        return
    reserved = [other for other in neighbours(pool, program) if other.reservation]
    if reserved:
        names = enumeration({str(other.origin[-1]) if other.origin else other.name for other in reserved})
        message = (
            f"because of it, a job whose pods never become ready can occupy reserved VMs of {names} for 24 hours "
            f"unnoticed"
        )
        allowed = "queued-provisioning, a separate cluster, or addresses in alerts.emails"
        yield finding(pool, "flex_start", message, allowed=allowed, nearest="queued-provisioning")


@object_rule("queued-metadata", *_QUEUED_JOBS, ruleset="kueue", owner="kueue", source=_JOB_SOURCE)
def queued_metadata(view: ObjectView) -> Iterator[Draft]:
    """Find a label or annotation of a job whose value Kueue cannot read."""
    inputs = view.inputs
    labels = block(inputs, "metadata", "labels")
    annotations = block(inputs, "metadata", "annotations")
    is_group = "leaderWorkerTemplate" in block(inputs, "spec")
    names = [(_LABELS, QUEUE_LABEL, string(labels, QUEUE_LABEL))]
    if not is_group:
        prebuilt = string(annotations, _PREBUILT)
        if prebuilt:
            names.append((_ANNOTATIONS, _PREBUILT, prebuilt))
        else:
            names.append((_LABELS, _PREBUILT, string(labels, _PREBUILT)))
        seconds = string(labels, _MAX_SECONDS)
        if seconds is not None and not (_INTEGER.match(seconds) and int(seconds) > 0):
            yield finding(view, _LABELS, f"{_MAX_SECONDS} is {seconds!r}", allowed="seconds, at least 1")
    for path, key, name in names:
        if name is not None and not SUBDOMAIN.match(name):
            yield finding(
                view, path, f"{key} is {name!r}", allowed="a name of lower-case letters, digits, hyphens and dots"
            )
    equal = string(annotations, _EQUAL_COMPLETIONS)
    if equal and "template" in block(inputs, "spec") and equal not in _BOOLEANS:
        yield finding(view, _ANNOTATIONS, f"{_EQUAL_COMPLETIONS} is {equal!r}", allowed="true, false")
    yield from _gate_findings(view, string(annotations, _GATES))


def _gate_findings(view: ObjectView, value: str | None) -> Iterator[Draft]:
    """Find the first scheduling gate in an annotation that is malformed or repeated."""
    gates = [gate.strip() for gate in value.split(",")] if value else []
    for gate in gates:
        if not _GATE.match(gate) or len(gate) > _LONGEST_GATE or gates.count(gate) > 1:
            allowed = (
                f"each gate only once, with its domain as in example.com/gate, and with at most {_LONGEST_GATE} "
                f"characters"
            )
            yield finding(view, _ANNOTATIONS, f"{_GATES} has {gate!r}", allowed=allowed)
            return


@object_rule("elastic-job", *_QUEUED_JOBS, ruleset="kueue", owner="kueue", source=_JOB_SOURCE)
def elastic_job(view: ObjectView) -> Iterator[Draft]:
    """Find an elastic job of a kind that cannot be resized, or one with partial admission or a topology."""
    inputs = view.inputs
    annotations = block(inputs, "metadata", "annotations")
    spec = block(inputs, "spec")
    if string(annotations, _ELASTIC) != "true":
        return
    if {"leaderWorkerTemplate", "replicatedJobs"} & spec.keys():
        yield finding(view, _ANNOTATIONS, f"{_ELASTIC} is only for Jobs and Ray", allowed=f"no {_ELASTIC}")
        return
    if string(annotations, _MIN_PARALLELISM) is not None:
        yield finding(
            view, _ANNOTATIONS, f"{_MIN_PARALLELISM} and {_ELASTIC} exclude each other", allowed="one of them"
        )
    pod_annotations = block(spec, "template", "metadata", "annotations")
    for name in (_REQUIRED, _PREFERRED):
        if name in pod_annotations:
            message = f"{name} and {_ELASTIC} exclude each other"
            yield finding(
                view, "spec.template.metadata.annotations", message, allowed=_UNCONSTRAINED, nearest=_UNCONSTRAINED
            )


class _PodSet(NamedTuple):
    """A pod template whose pods Kueue places together: its path, its annotations, and its number of pods if known."""

    path: str
    annotations: Json
    pods: int | None


def _pod_sets(inputs: Json) -> Iterator[_PodSet]:
    spec = block(inputs, "spec")
    group = block(spec, "leaderWorkerTemplate")
    if group:
        leader = block(group, "leaderTemplate")
        size = integer(group, "size") if "size" in group else 1
        path = "spec.leaderWorkerTemplate"
        if leader:
            yield _PodSet(f"{path}.leaderTemplate", block(leader, "metadata", "annotations"), pods=1)
        workers = None if size is None else size - bool(leader)
        yield _PodSet(f"{path}.workerTemplate", block(group, "workerTemplate", "metadata", "annotations"), pods=workers)
        return
    replicas: dict[str, int | None] = {}
    for index, replicated_job in entries(spec, "replicatedJobs"):
        count = integer(replicated_job, "replicas") if "replicas" in replicated_job else 1
        replicas[f"spec.replicatedJobs[{index}].template.spec"] = count
    for job_path, job in jobs(inputs):
        parallelism = integer(job, "parallelism") if job.get("parallelism") is not None else 1
        completions = integer(job, "completions")
        copies = replicas.get(job_path, 1)
        pods = None
        if parallelism is not None and copies is not None and not is_unknown(job, "completions"):
            pods = copies * (parallelism if completions is None else min(parallelism, completions))
        yield _PodSet(f"{job_path}.template", block(job, "template", "metadata", "annotations"), pods=pods)


@object_rule("topology-request", *WORKLOADS, LWS, ruleset="kueue", owner="kueue", source=_JOB_SOURCE)
def topology_request(view: ObjectView) -> Iterator[Draft]:
    """Find pods that request two topologies, or slices that have no size or need more pods than the job has."""
    inputs = view.inputs
    pod_sets = list(_pod_sets(inputs))
    if "containers" in block(inputs, "spec"):
        pod_sets = [_PodSet("", block(inputs, "metadata", "annotations"), pods=None)]
    for pod_set in pod_sets:
        annotations = pod_set.annotations
        path = f"{pod_set.path}.metadata.annotations".removeprefix(".")
        topologies = [name for name in _TOPOLOGIES if name in annotations]
        if len(topologies) > 1:
            yield finding(view, path, f"{' and '.join(topologies)} exclude each other", allowed="one of them")
        for name in (_REQUIRED, _PREFERRED, _SLICE):
            level = string(annotations, name)
            if level is not None and not _LABEL_KEY.match(level):
                yield finding(
                    view, path, f"{name} is {level!r}", allowed="the label of a level, such as kubernetes.io/hostname"
                )
        unconstrained = string(annotations, _UNCONSTRAINED)
        if unconstrained is not None and unconstrained not in _BOOLEANS:
            yield finding(view, path, f"{_UNCONSTRAINED} is {unconstrained!r}", allowed="true, false")
        yield from _slice_findings(view, path, annotations, pod_set.pods)
        yield from _layer_findings(view, path, annotations, pod_set.pods)


def _slice_findings(view: ObjectView, path: str, annotations: Json, pods: int | None) -> Iterator[Draft]:
    if (_SLICE in annotations) != (_SLICE_SIZE in annotations):
        yield finding(
            view, path, "a slice needs both its topology and its size", allowed=f"both {_SLICE} and {_SLICE_SIZE}"
        )
    size = string(annotations, _SLICE_SIZE)
    max_pods = _MOST_PODS if pods is None else pods
    if size is not None and not (_INTEGER.match(size) and 1 <= int(size) <= max_pods):
        yield finding(
            view, path, f"{_SLICE_SIZE} is {size!r}", allowed=f"1 to {pods}" if pods else "a number of pods, at least 1"
        )


@object_rule("topology-group", *WORKLOADS, LWS, ruleset="kueue", owner="kueue", source=_JOB_SOURCE)
def topology_group(view: ObjectView) -> Iterator[Draft]:
    """Find pod groups that request no topology, and groups other than two sets of pods with the same topology."""
    inputs = view.inputs
    groups: dict[str, list[_PodSet]] = defaultdict(list)
    for pod_set in _pod_sets(inputs):
        annotations = pod_set.annotations
        group = string(annotations, _GROUP)
        if group is None:
            continue
        groups[group].append(pod_set)
        has_topology = _REQUIRED in annotations or _PREFERRED in annotations
        has_slices = any(name in annotations for name in (_SLICE, _SLICE_SIZE, _LAYERS))
        if has_slices or not has_topology or re.fullmatch("[0-9]+", group):
            message = f"pod group {group!r} needs a topology, no slices, and a name that is not a number"
            yield finding(view, f"{pod_set.path}.metadata.annotations", message, allowed=f"{_REQUIRED} or {_PREFERRED}")
    if not {"leaderWorkerTemplate", "replicatedJobs"} & block(inputs, "spec").keys():
        return
    for group, members in groups.items():
        topologies = {
            (string(member.annotations, _REQUIRED), string(member.annotations, _PREFERRED)) for member in members
        }
        may_have_leader = any(member.pods in (1, None) for member in members)
        if len(members) != _SETS_OF_A_GROUP or len(topologies) > 1 or not may_have_leader:
            message = f"pod group {group!r} has {len(members)} sets of pods"
            allowed = "two sets with the same topology, one of them with 1 pod"
            yield finding(view, f"{members[-1].path}.metadata.annotations", message, allowed=allowed)


def _layer_findings(view: ObjectView, path: str, annotations: Json, pods: int | None) -> Iterator[Draft]:
    """Find slice layers that are malformed, or that are combined with the annotations for a single layer."""
    value = string(annotations, _LAYERS)
    if value is None:
        return
    allowed = '1 to 3 layers as in [{"topology": "example.com/rack", "size": 4}], each size dividing the size before it'
    if not _are_layers(value, pods) or _SLICE in annotations or _SLICE_SIZE in annotations:
        yield finding(view, path, f"{_LAYERS} is {value!r}", allowed=f"{allowed}, without {_SLICE}")


def _are_layers(value: str, pods: int | None) -> bool:
    """Return True if an annotation contains valid slice layers for this number of pods, which is None if unknown."""
    try:
        rows = json.loads(value)
    except ValueError:
        return False
    if not isinstance(rows, list) or not 0 < len(rows) <= _MOST_LAYERS:
        return False
    if not all(isinstance(row, dict) for row in rows):
        return False
    labels = [string(row, "topology") or "" for row in rows]
    sizes = [integer(row, "size") or 0 for row in rows]
    if not all(map(_LABEL_KEY.match, labels)) or len({*labels}) != len(labels):
        return False
    if min(sizes) <= 0 or any(larger % smaller for larger, smaller in pairwise(sizes)):
        return False
    return pods is None or sizes[0] <= pods
