"""Kueue's objects: quotas of ClusterQueues and Cohorts, flavors beside node pools, annotations of jobs, time-outs."""

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
from training_platform.config.reading.section import enumeration
from training_platform.resources.kueue import QUEUE_LABEL
from training_platform.resources.resource_types import NOTIFICATION_CHANNEL
from training_platform.rules.declaration import Draft, finding, rule
from training_platform.rules.gke.accelerators import illegal
from training_platform.rules.kubernetes.objects import (
    SUBDOMAIN,
    Flaw,
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
from training_platform.views.cluster import cluster_of, pools_of
from training_platform.views.kueue import FlavorQuotaView, FlavorView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.whole_stack import Program

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
    """Find a lending limit above the nominal quota."""
    lent = quota.lending_limit
    nominal = quota.nominal_quota
    if lent is not None and lent > nominal:
        allowed = f"at most the nominal quota, {nominal}"
        yield finding(quota, "lending_limit", f"is {lent}", allowed=allowed, nearest=nominal)


@rule("kueue-quantities", ruleset="kueue", owner="kueue", source=_WEBHOOK)
def kueue_quantities(quota: FlavorQuotaView) -> Iterator[Draft]:
    """Find a quantity below 0."""
    for field in ("nominal_quota", "borrowing_limit", "lending_limit"):
        amount = getattr(quota, field)
        if amount is not None and amount < 0:
            yield finding(quota, field, f"is {amount}", allowed="at least 0", nearest=0)


QUEUE = "kueue.x-k8s.io:ClusterQueue"
COHORT = "kueue.x-k8s.io:Cohort"
_ASKED: Final = "Kueue 0.19.2, CRDs and webhooks of ClusterQueue and Cohort, asked 2026-11-22"
_AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")
_COUNTED: Final = ("google.com/tpu", "nvidia.com/gpu")  # of a ClusterQueue: rules of their own compare these


@object_rule("kueue-resource-groups", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_resource_groups(inputs: Json) -> Iterator[Flaw]:
    """Find flavors whose resources differ from their group's, in its order, and names that are in two groups."""
    groups = entries(block(inputs, "spec"), "resourceGroups")
    covered: list[str | None] = []
    flavors: list[str | None] = []
    for index, group in groups:
        names = strings(group, "coveredResources")
        covered += names
        for flavor_index, flavor in entries(group, "flavors"):
            flavors.append(string(flavor, "name"))
            resources = [string(row, "name") for _, row in entries(flavor, "resources")]
            if resources != names and None not in resources:
                message = f"the resources of flavor {flavors[-1]} are {', '.join(filter(None, resources)) or 'none'}"
                allowed = f"{', '.join(names)}, in this order"
                path = f"spec.resourceGroups[{index}].flavors[{flavor_index}].resources"
                yield Flaw(path, message, allowed, ", ".join(names))
    for kind, all_names in (("resource", covered), ("flavor", flavors)):
        for _, name in duplicates(all_names):
            message = f"{kind} {name} is in two groups, or twice in one"
            yield Flaw("spec.resourceGroups", message, f"each {kind} once in all groups")


@object_rule("kueue-amounts", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_amounts(inputs: Json) -> Iterator[Flaw]:
    """Find quantities below 0, lending limits above the nominal quota, and limits without a cohort or parent."""
    spec = block(inputs, "spec")
    has_cohort = any(spec.get(name) not in (None, "") for name in ("cohortName", "cohort", "parentName"))
    cohort_field = "parentName" if "parentName" in spec else "cohortName"  # a Cohort may lend more than its own quota
    for index, group in entries(spec, "resourceGroups"):
        for flavor_index, flavor in entries(group, "flavors"):
            for row_index, row in entries(flavor, "resources"):
                if cohort_field == "cohortName" and string(row, "name") in _COUNTED:
                    continue
                path = f"spec.resourceGroups[{index}].flavors[{flavor_index}].resources[{row_index}]"
                yield from _amount_flaws(path, row, cohort_field, has_cohort=has_cohort)


def _amount_flaws(path: str, row: Json, cohort_field: str, *, has_cohort: bool) -> Iterator[Flaw]:
    amounts = {name: quantity(row.get(name)) for name in _AMOUNTS}
    for name, amount in amounts.items():
        if amount is not None and amount < 0:
            yield Flaw(f"{path}.{name}", f"{name} is {row[name]}", "at least 0", "0")
        elif amount is not None and name != "nominalQuota" and not has_cohort:
            message = f"{cohort_field} is not written, so nothing is borrowed or lent"
            yield Flaw(f"{path}.{name}", message, f"none without {cohort_field}")
    lent = amounts["lendingLimit"]
    nominal = amounts["nominalQuota"]
    if cohort_field == "cohortName" and lent is not None and nominal is not None and lent > nominal:
        yield Flaw(f"{path}.lendingLimit", f"lends {lent}", f"at most nominalQuota, {nominal}", str(nominal))


@object_rule("kueue-preemption", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_preemption(inputs: Json) -> Iterator[Flaw]:
    """Find borrowing within a cohort in a queue that reclaims nothing, and a fair sharing weight below 0."""
    preemption = block(inputs, "spec", "preemption")
    policy = block(preemption, "borrowWithinCohort").get("policy")
    if policy not in (None, "Never") and preemption.get("reclaimWithinCohort") in (None, "Never"):
        path = "spec.preemption.reclaimWithinCohort"
        yield Flaw(path, f"is Never beside borrowWithinCohort {policy}", "LowerPriority, Any", "LowerPriority")
    weight = quantity(block(inputs, "spec", "fairSharing").get("weight"))
    if weight is not None and weight < 0:
        yield Flaw("spec.fairSharing.weight", f"is {weight}", "at least 0", "0")
    fungibility = block(inputs, "spec", "flavorFungibility")
    defaults = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    others = [name for name, value in defaults.items() if fungibility.get(name, value) != "TryNextFlavor"]
    if fungibility.get("preference") is not None and others:
        message = f"a preference needs TryNextFlavor in {' and '.join(others)}"
        yield Flaw("spec.flavorFungibility.preference", message, f"TryNextFlavor in {', '.join(others)}")


@object_rule("kueue-checks", QUEUE, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_checks(inputs: Json) -> Iterator[Flaw]:
    """Find admission checks that are repeated, or on flavors that the queue does not have."""
    spec = block(inputs, "spec")
    flavors: list[str | None] = []
    for _, group in entries(spec, "resourceGroups"):
        flavors += [string(flavor, "name") for _, flavor in entries(group, "flavors")]
    checks = entries(block(spec, "admissionChecksStrategy"), "admissionChecks")
    path = "spec.admissionChecksStrategy.admissionChecks"
    for index, name in duplicates([string(row, "name") for _, row in checks]):
        yield Flaw(f"{path}[{index}].name", f"check {name} is listed twice", "each check once")
    for index, check in checks:
        for name in strings(check, "onFlavors"):
            if name not in flavors:
                allowed = ", ".join(filter(None, flavors)) or "a flavor of the queue"
                yield Flaw(f"{path}[{index}].onFlavors", f"the queue has no flavor {name}", allowed)


@object_rule("kueue-selector", QUEUE, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_selector(inputs: Json) -> Iterator[Flaw]:
    """Find expressions of a namespace selector whose operator needs values, or takes none."""
    for index, row in entries(block(inputs, "spec", "namespaceSelector"), "matchExpressions"):
        path = f"spec.namespaceSelector.matchExpressions[{index}].values"
        operator = row.get("operator")
        if operator in ("In", "NotIn") and not row.get("values"):
            yield Flaw(path, f"operator {operator} has no values", "at least one")
        elif operator in ("Exists", "DoesNotExist") and row.get("values"):
            yield Flaw(path, f"operator {operator} has values", "none")


@object_rule(
    "kueue-flavor-form", "kueue.x-k8s.io:ResourceFlavor", ruleset="kueue", owner="kueue",
    source="Kueue 0.19.2, CRD and webhook of ResourceFlavor, asked 2026-11-22",
)  # fmt: skip
def kueue_flavor_form(inputs: Json) -> Iterator[Flaw]:
    """Find a flavor with a topology but without node labels, and two taints with the same key and effect."""
    spec = block(inputs, "spec")
    if spec.get("topologyName") is not None and not spec.get("nodeLabels"):
        yield Flaw("spec.nodeLabels", "a flavor with a topology has no node labels", "at least one label")
    taints = [f"{string(row, 'key')} {string(row, 'effect')}" for _, row in entries(spec, "nodeTaints")]
    for index, name in duplicates([*taints]):
        yield Flaw(f"spec.nodeTaints[{index}]", f"taint {name} is listed twice", "each key and effect once")


@object_rule(
    "kueue-topology-levels", "kueue.x-k8s.io:Topology", ruleset="kueue", owner="kueue",
    source="Kueue 0.19.2, CRD of Topology, asked 2026-11-22",
)  # fmt: skip
def kueue_topology_levels(inputs: Json) -> Iterator[Flaw]:
    """Find levels of a topology that are repeated, or below the host."""
    levels = [string(row, "nodeLabel") for _, row in entries(block(inputs, "spec"), "levels")]
    for index, name in duplicates(levels):
        yield Flaw(f"spec.levels[{index}].nodeLabel", f"level {name} is listed twice", "each level once")
    if "kubernetes.io/hostname" in levels[:-1]:
        yield Flaw("spec.levels", "has a level below kubernetes.io/hostname", "kubernetes.io/hostname last")


TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
TPU_LABEL = "cloud.google.com/gke-tpu-accelerator"
ACCELERATOR_LABELS: Mapping[str, Kind] = {
    TPU_LABEL: "tpu",
    "cloud.google.com/gke-accelerator": "gpu",
}
_ARM = {row.accelerator.gke_label for row in MACHINE_TYPES.values() if row.accelerator and row.architecture == "arm64"}


@rule(
    "tpu-flavor-topology",
    ruleset="flavors",
    spoils=True,
    across=True,
    source="GKE docs, TPU concepts: labels that GKE sets; Kueue ff69552, ResourceFlavor, read 2026-08-22",
)
def tpu_flavor_topology(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a pool whose slice topology is not the one that its ResourceFlavor selects: its jobs would never start."""
    machine = pool.machine
    if machine is None or machine.kind != "tpu":
        return
    actual = pool.tpu_topology or machine.single_host
    # Names contain the shape, so flavors of one name in several clusters agree on it.
    flavor = program.once(_flavors).get(pool.node_labels.get(FLAVOR_LABEL))
    selected = flavor.node_labels.get(TOPOLOGY_LABEL) if flavor else None
    if selected is not None and selected != actual:
        if not legal_for(machine, selected):
            yield illegal(pool, machine, selected)
        else:
            message = f"the pool's slices have topology {actual}, but its flavor selects {selected}"
            yield finding(pool, "tpu_topology", message, allowed=selected, nearest=selected)


@rule(
    "flavor-accelerator",
    ruleset="flavors",
    across=True,
    source="xpk #1173; ray #53914; GKE cluster-autoscaler 7d25050, system labels",
)
def flavor_accelerator(flavor: FlavorView, program: Program) -> Iterator[Draft]:
    """Find a flavor that selects an accelerator or slice topology that no node can have as a label.

    If a pool has the same topology, ``tpu-topology`` reports the pool.
    """
    for label, kind in ACCELERATOR_LABELS.items():
        if (value := flavor.node_labels.get(label)) is None:
            continue
        names = sorted({row.gke_label for row in ACCELERATORS.values() if row.kind == kind})
        if value not in names:
            message = f"flavor {flavor.flavor} selects {label} {value}, which no node carries"
            nearest = find_nearest(value, names)
            yield finding(flavor, "node_labels", message, allowed=enumeration(names, most=40), nearest=nearest)
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
    """Find a pool that grows with pending pods, in a flavor whose jobs Kueue places only on existing VMs."""
    flavor = pool.node_labels.get(FLAVOR_LABEL)
    placing = any(row.topology and row.flavor == flavor for row in program.all(FlavorView, "topology"))
    if placing and not pool.queued and pool.least_vms < pool.most_vms:
        message = (
            f"has {pool.least_vms} of its {pool.most_vms} VMs at first, and Kueue places jobs of {flavor} only on "
            "existing VMs, so nothing would ever start more"
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
    """Find a queue that admits jobs to queued nodes without an admission check: nothing would ever scale the pool."""
    queued = any(row.flavor == quota.flavor and QUEUED_LABEL in row.node_labels for row in program.all(FlavorView))
    if queued and not quota.checks:
        message = f"queue {quota.queue} has no admission check on {quota.flavor}, whose nodes need ProvisioningRequests"
        yield finding(quota, "checks", message, allowed="a check of kueue.x-k8s.io/provisioning-request on the flavor")


@rule(
    "queued-flavor-toleration",
    ruleset="flavors",
    source="GKE docs, queued provisioning: taint of queued nodes, read 2026-04; Cluster Toolkit v1.95.0",
)
def queued_flavor_toleration(flavor: FlavorView) -> Iterator[Draft]:
    """Find a flavor of queued nodes that does not add a toleration for the taint that GKE puts on them."""
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
    """Find a flavor of Arm nodes that does not add a toleration for the taint that GKE puts on them.

    GKE gives the toleration to pods that select the architecture.
    """
    selected = {flavor.node_labels.get(label) for label in ACCELERATOR_LABELS} & _ARM
    if selected and ARCHITECTURE_LABEL not in {*flavor.tolerated, *flavor.node_labels}:
        message = f"flavor {flavor.flavor} selects Arm nodes and does not tolerate their taint"
        taint = f"{ARCHITECTURE_LABEL}=arm64:NoSchedule"
        yield finding(flavor, "tolerated", message, allowed=taint, nearest=ARCHITECTURE_LABEL)


def _flavors(program: Program) -> dict[str | None, FlavorView]:
    """Return the first flavor of each known name."""
    return {row.flavor: row for row in reversed(program.all(FlavorView)) if row.known("flavor")}


_LEAST: Final = "kueue.x-k8s.io/job-min-parallelism"
_EQUAL: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
_FLAGS: Final = {"1", "t", "T", "TRUE", "true", "True"}


@object_rule("partial-admission", JOB, ruleset="kueue", owner="kueue", source=(
    "Kueue 0.19.2, pkg/controller/jobs/job/job_webhook.go, and its webhook, asked 2026-11-22"))  # fmt: skip
def partial_admission(inputs: Json) -> Iterator[Flaw]:
    """Find a minimum parallelism that is not below the job's own, and completions that must equal it but do not."""
    written = block(inputs, "metadata", "annotations")
    spec = block(inputs, "spec")
    if is_unknown(spec, "parallelism") or is_unknown(spec, "completions"):
        return
    parallelism = integer(spec, "parallelism") or 1
    completions = integer(spec, "completions")
    least = string(written, _LEAST)
    if least is not None:
        most = min(parallelism, completions or parallelism) - 1
        if not re.fullmatch(r"[+-]?[0-9]+", least) or not 1 <= int(least) <= most:
            allowed = f"1 to {most}" if most else "a parallelism of 2 or more first"
            message = f"{_LEAST} is {least}, for {most + 1} pods"
            yield Flaw("metadata.annotations", message, allowed, str(most) if most else None)
    if string(written, _EQUAL) in _FLAGS:
        if spec.get("completionMode") in (None, "NonIndexed"):
            yield Flaw("metadata.annotations", f"{_EQUAL} is only for Indexed jobs", "completionMode Indexed")
        elif parallelism != (completions or 1):
            count = "not written" if completions is None else completions
            message = f"completions is {count} and parallelism {parallelism}; {_EQUAL} needs both to be equal"
            yield Flaw("spec.completions", message, str(parallelism), str(parallelism))


@rule(
    "flex-start-beside-reserved",
    ruleset="kueue",
    severity="warning",
    owner="house",
    source="Kueue v0.19.2, workload_controller.go: one time, from admission, which queued jobs get with their VMs",
)
def flex_start_beside_reserved(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find a flex-start pool without alerts: beside it, stuck jobs may hold reserved machines for a day, unnoticed.

    VMs of plain flex-start are created after a job's admission, whenever Google Cloud finds them, so Kueue has to wait;
    those of queued provisioning are created before it. An alert reports slices that are not ready for an hour.
    """
    channels = (view for view in program.all(LabelledView) if view.type == NOTIFICATION_CHANNEL)
    if not pool.flex_start or pool.queued or any(channels):
        return
    cluster = cluster_of(pool, program)
    reserved = [other for other in pools_of(cluster, program) if other.reservation] if cluster else []
    if reserved:
        names = enumeration({str(other.origin[-1]) if other.origin else other.name for other in reserved})
        message = f"with it, a job whose pods never get ready holds reserved VMs of {names} for 24 hours, unnoticed"
        allowed = "queued-provisioning, a cluster of its own, or addresses in alerts.emails"
        yield finding(pool, "flex_start", message, allowed=allowed, nearest="queued-provisioning")


_PREFIX: Final = "kueue.x-k8s.io/podset-"
_TOPOLOGIES: Final = tuple(f"{_PREFIX}{how}-topology" for how in ("required", "preferred", "unconstrained"))
_SLICE: Final = f"{_PREFIX}slice-required-topology"
_SIZE: Final = f"{_PREFIX}slice-size"
_GROUP: Final = f"{_PREFIX}group-name"


_QUEUED: Final = (JOB, JOB_SET, LWS)
_JOB_WEBHOOKS: Final = "Kueue 0.19.2, pkg/controller/jobframework and jobs, their webhooks, asked 2026-11-23"
_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
_GATE: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/.+\Z")
_LONGEST_GATE: Final = 63
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}\Z")
_LOGICAL: Final = {*_FLAGS, "0", "f", "F", "FALSE", "false", "False"}
_PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
_RUN: Final = "kueue.x-k8s.io/max-exec-time-seconds"
_ELASTIC: Final = "kueue.x-k8s.io/elastic-job"
_GATES: Final = "kueue.x-k8s.io/admission-gated-by"
_LABELS: Final = "metadata.labels"
_ANNOTATIONS: Final = "metadata.annotations"


@object_rule("queued-metadata", *_QUEUED, ruleset="kueue", owner="kueue", source=_JOB_WEBHOOKS)
def queued_metadata(inputs: Json) -> Iterator[Flaw]:
    """Find labels and annotations of a job whose values Kueue cannot read."""
    labels = block(inputs, "metadata", "labels")
    annotations = block(inputs, "metadata", "annotations")
    is_group = "leaderWorkerTemplate" in block(inputs, "spec")
    names = [(_LABELS, QUEUE_LABEL, string(labels, QUEUE_LABEL))]
    if not is_group:
        if prebuilt := string(annotations, _PREBUILT):
            names.append((_ANNOTATIONS, _PREBUILT, prebuilt))
        else:
            names.append((_LABELS, _PREBUILT, string(labels, _PREBUILT)))
        seconds = string(labels, _RUN)
        if seconds is not None and not (_NUMBER.match(seconds) and int(seconds) > 0):
            yield Flaw(_LABELS, f"{_RUN} is {seconds!r}", "seconds, at least 1")
    for path, key, name in names:
        if name is not None and not SUBDOMAIN.match(name):
            yield Flaw(path, f"{key} is {name!r}", "a name in lower case, with digits, hyphens and dots")
    equal = string(annotations, _EQUAL)
    if equal and "template" in block(inputs, "spec") and equal not in _LOGICAL:
        yield Flaw(_ANNOTATIONS, f"{_EQUAL} is {equal!r}", "true, false")
    written_gates = string(annotations, _GATES)
    gates = [gate.strip() for gate in written_gates.split(",")] if written_gates else []
    for gate in gates:
        if not _GATE.match(gate) or len(gate) > _LONGEST_GATE or gates.count(gate) > 1:
            allowed = f"each gate once, with its domain as in example.com/gate, at most {_LONGEST_GATE} characters"
            yield Flaw(_ANNOTATIONS, f"{_GATES} has {gate!r}", allowed)
            return


@object_rule("elastic-job", *_QUEUED, ruleset="kueue", owner="kueue", source=_JOB_WEBHOOKS)
def elastic_job(inputs: Json) -> Iterator[Flaw]:
    """Find elastic jobs of a kind that cannot be resized, or with partial admission or a topology as well."""
    annotations = block(inputs, "metadata", "annotations")
    spec = block(inputs, "spec")
    if string(annotations, _ELASTIC) != "true":
        return
    if {"leaderWorkerTemplate", "replicatedJobs"} & spec.keys():
        yield Flaw(_ANNOTATIONS, f"{_ELASTIC} is only for Jobs and Ray", f"no {_ELASTIC}")
        return
    if string(annotations, _LEAST) is not None:
        yield Flaw(_ANNOTATIONS, f"{_LEAST} and {_ELASTIC} exclude each other", "one of them")
    template = block(spec, "template", "metadata", "annotations")
    for name in _TOPOLOGIES[:2]:
        if name in template:
            message = f"{name} and {_ELASTIC} exclude each other"
            yield Flaw("spec.template.metadata.annotations", message, _TOPOLOGIES[2], _TOPOLOGIES[2])


class _PodSet(NamedTuple):
    """A pod template that Kueue places as one: its path, its annotations, and its number of pods if known."""

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
            yield _PodSet(f"{path}.leaderTemplate", block(leader, "metadata", "annotations"), 1)
        workers = None if size is None else size - bool(leader)
        yield _PodSet(f"{path}.workerTemplate", block(group, "workerTemplate", "metadata", "annotations"), workers)
        return
    replicas = {
        f"spec.replicatedJobs[{index}].template.spec": integer(job, "replicas") if "replicas" in job else 1
        for index, job in entries(spec, "replicatedJobs")
    }
    for job_path, job in jobs(inputs):
        parallelism = integer(job, "parallelism") if job.get("parallelism") is not None else 1
        completions = integer(job, "completions")
        copies = replicas.get(job_path, 1)
        pods = None
        if parallelism is not None and copies is not None and not is_unknown(job, "completions"):
            pods = copies * (parallelism if completions is None else min(parallelism, completions))
        yield _PodSet(f"{job_path}.template", block(job, "template", "metadata", "annotations"), pods)


@object_rule("topology-request", *WORKLOADS, LWS, ruleset="kueue", owner="kueue", source=_JOB_WEBHOOKS)
def topology_request(inputs: Json) -> Iterator[Flaw]:
    """Find pods that request two topologies, or slices without a size or with more pods than exist."""
    pod_sets = list(_pod_sets(inputs))
    if "containers" in block(inputs, "spec"):
        pod_sets = [_PodSet("", block(inputs, "metadata", "annotations"), None)]
    for template_path, written, pods in pod_sets:
        path = f"{template_path}.metadata.annotations".removeprefix(".")
        topologies = [name for name in _TOPOLOGIES if name in written]
        if len(topologies) > 1:
            yield Flaw(path, f"{' and '.join(topologies)} exclude each other", "one of them")
        for name in (*_TOPOLOGIES[:2], _SLICE):
            value = string(written, name)
            if value is not None and not _KEY.match(value):
                yield Flaw(path, f"{name} is {value!r}", "the label of a level, such as kubernetes.io/hostname")
        unconstrained = string(written, _TOPOLOGIES[2])
        if unconstrained is not None and unconstrained not in _LOGICAL:
            yield Flaw(path, f"{_TOPOLOGIES[2]} is {unconstrained!r}", "true, false")
        yield from _slice_flaws(path, written, pods)
        yield from _layer_flaws(path, written, pods)


def _slice_flaws(path: str, written: Json, pods: int | None) -> Iterator[Flaw]:
    if (_SLICE in written) != (_SIZE in written):
        yield Flaw(path, "a slice needs both its topology and its size", f"both {_SLICE} and {_SIZE}")
    size = string(written, _SIZE)
    most = _MOST_PODS if pods is None else pods
    if size is not None and not (_NUMBER.match(size) and 1 <= int(size) <= most):
        yield Flaw(path, f"{_SIZE} is {size!r}", f"1 to {pods}" if pods else "a number of pods, at least 1")


@object_rule("topology-group", *WORKLOADS, LWS, ruleset="kueue", owner="kueue", source=_JOB_WEBHOOKS)
def topology_group(inputs: Json) -> Iterator[Flaw]:
    """Find pod groups without a topology, and those that are not two sets of pods with the same topology."""
    groups: dict[str, list[_PodSet]] = defaultdict(list)
    for pod_set in _pod_sets(inputs):
        written = pod_set.annotations
        group = string(written, _GROUP)
        if group is None:
            continue
        groups[group].append(pod_set)
        others = {_SLICE, _SIZE, _LAYERS} & {*written}
        if others or not {*_TOPOLOGIES[:2]} & {*written} or re.fullmatch("[0-9]+", group):
            message = f"pod group {group!r} needs a topology, no slices, and a name that is not a number"
            yield Flaw(f"{pod_set.path}.metadata.annotations", message, f"{_TOPOLOGIES[0]} or {_TOPOLOGIES[1]}")
    if not {"leaderWorkerTemplate", "replicatedJobs"} & block(inputs, "spec").keys():
        return
    for name, members in groups.items():
        topologies = {tuple(string(member.annotations, key) for key in _TOPOLOGIES[:2]) for member in members}
        none_single = all(member.pods not in (1, None) for member in members)
        if len(members) != len(("leader", "workers")) or len(topologies) > 1 or none_single:
            message = f"pod group {name!r} has {len(members)} sets of pods"
            allowed = "two with the same topology, one of them with 1 pod"
            yield Flaw(f"{members[-1].path}.metadata.annotations", message, allowed)


_MOST_PODS: Final = 2**31 - 1
_LAYERS: Final = f"{_PREFIX}slice-required-topology-constraints"
_MOST_LAYERS: Final = 3


def _layer_flaws(path: str, written: Json, pods: int | None) -> Iterator[Flaw]:
    """Find layers of slices that are malformed, or beside a single layer's annotations."""
    value = string(written, _LAYERS)
    if value is None:
        return
    allowed = '1 to 3 layers as in [{"topology": "example.com/rack", "size": 4}], each size a divisor of the one before'
    if not _are_layers(value, pods) or {_SLICE, _SIZE} & {*written}:
        yield Flaw(path, f"{_LAYERS} is {value!r}", f"{allowed}, without {_SLICE}")


def _are_layers(value: str, pods: int | None) -> bool:
    """Whether an annotation has layers of slices for some number of pods, None if it is unknown."""
    try:
        rows = json.loads(value)
    except ValueError:
        return False
    if (
        not isinstance(rows, list)
        or not 0 < len(rows) <= _MOST_LAYERS
        or not all(isinstance(row, dict) for row in rows)
    ):
        return False
    labels = [string(row, "topology") or "" for row in rows]
    sizes = [integer(row, "size") or 0 for row in rows]
    if not all(map(_KEY.match, labels)) or len({*labels}) != len(labels):
        return False
    if min(sizes) <= 0 or any(larger % smaller for larger, smaller in pairwise(sizes)):
        return False
    return pods is None or sizes[0] <= pods
