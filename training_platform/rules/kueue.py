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
from training_platform.config.pools import ARCHITECTURE_LABEL, FLAVOR_LABEL, QUEUED_LABEL
from training_platform.config.reading.section import enumeration
from training_platform.resources.kueue import QUEUE_LABEL
from training_platform.resources.resource_types import NOTIFICATION_CHANNEL
from training_platform.rules.gke.accelerators import illegal
from training_platform.rules.kubernetes.objects import (
    SUBDOMAIN,
    Flaw,
    block,
    entries,
    is_unknown,
    object_rule,
    text,
    texts,
    twice,
    whole,
)
from training_platform.rules.kubernetes.pods import JOB, JOB_SET, LWS, WORKLOADS, jobs, quantity
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
def kueue_resource_groups(inputs: Json) -> Iterator[Flaw]:
    """Find flavors whose resources are not those of their group in its order, and names that are in two groups."""
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
                yield Flaw(f"{here}.flavors[{place}].resources", message, allowed, ", ".join(names))
    for what, names_of in (("resource", covered), ("flavor", flavors)):
        for _, name in twice(names_of):
            message = f"{what} {name} is in two groups, or twice in one"
            yield Flaw("spec.resourceGroups", message, f"each {what} once in all groups")


@object_rule("kueue-amounts", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_amounts(inputs: Json) -> Iterator[Flaw]:
    """Find quantities below 0, more lent than there is, and limits without a cohort above, of whatever resource."""
    spec = block(inputs, "spec")
    above = next((name for name in ("cohortName", "cohort", "parentName") if spec.get(name) not in (None, "")), None)
    own = "parentName" if "parentName" in spec else "cohortName"  # a Cohort may lend more than its own
    for index, group in entries(spec, "resourceGroups"):
        for place, flavor in entries(group, "flavors"):
            for number, row in entries(flavor, "resources"):
                if own == "cohortName" and text(row, "name") in _COUNTED:
                    continue
                here = f"spec.resourceGroups[{index}].flavors[{place}].resources[{number}]"
                yield from _amounts(here, row, above, own)


def _amounts(here: str, row: Json, above: str | None, own: str) -> Iterator[Flaw]:
    amounts = {name: quantity(row.get(name)) for name in _AMOUNTS}
    for name, amount in amounts.items():
        if amount is not None and amount < 0:
            yield Flaw(f"{here}.{name}", f"{name} is {row[name]}", "at least 0", "0")
        elif amount is not None and name != "nominalQuota" and above is None:
            yield Flaw(f"{here}.{name}", f"there is no {own}, so nothing is borrowed or lent", f"none without {own}")
    lent, nominal = amounts["lendingLimit"], amounts["nominalQuota"]
    if own == "cohortName" and lent is not None and nominal is not None and lent > nominal:
        yield Flaw(f"{here}.lendingLimit", f"lends {lent}", f"at most nominalQuota, {nominal}", str(nominal))


@object_rule("kueue-preemption", QUEUE, COHORT, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_preemption(inputs: Json) -> Iterator[Flaw]:
    """Find preemption by borrowing in a queue that reclaims nothing, and a share in fair sharing below 0."""
    preemption = block(inputs, "spec", "preemption")
    policy = block(preemption, "borrowWithinCohort").get("policy")
    if policy not in (None, "Never") and preemption.get("reclaimWithinCohort") in (None, "Never"):
        path = "spec.preemption.reclaimWithinCohort"
        yield Flaw(path, f"is Never beside borrowWithinCohort {policy}", "LowerPriority, Any", "LowerPriority")
    weight = quantity(block(inputs, "spec", "fairSharing").get("weight"))
    if weight is not None and weight < 0:
        yield Flaw("spec.fairSharing.weight", f"is {weight}", "at least 0", "0")
    fungibility = block(inputs, "spec", "flavorFungibility")
    usual = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
    others = [name for name, value in usual.items() if fungibility.get(name, value) != "TryNextFlavor"]
    if fungibility.get("preference") is not None and others:
        message = f"a preference needs {' and '.join(others)} TryNextFlavor"
        yield Flaw("spec.flavorFungibility.preference", message, f"TryNextFlavor in {', '.join(others)}")


@object_rule("kueue-checks", QUEUE, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_checks(inputs: Json) -> Iterator[Flaw]:
    """Find admission checks that are there twice, or on flavors that the queue does not have."""
    spec = block(inputs, "spec")
    flavors = [
        text(flavor, "name") for _, group in entries(spec, "resourceGroups") for _, flavor in entries(group, "flavors")
    ]
    checks = entries(block(spec, "admissionChecksStrategy"), "admissionChecks")
    path = "spec.admissionChecksStrategy.admissionChecks"
    for place, name in twice([text(row, "name") for _, row in checks]):
        yield Flaw(f"{path}[{place}].name", f"check {name} is there twice", "each check once")
    for index, check in checks:
        for name in texts(check, "onFlavors"):
            if name not in flavors:
                allowed = ", ".join(filter(None, flavors)) or "a flavor of the queue"
                yield Flaw(f"{path}[{index}].onFlavors", f"the queue has no flavor {name}", allowed)


@object_rule("kueue-selector", QUEUE, ruleset="kueue", owner="kueue", source=_ASKED)
def kueue_selector(inputs: Json) -> Iterator[Flaw]:
    """Find expressions of a namespace selector whose values do not go with their operator."""
    for index, row in entries(block(inputs, "spec", "namespaceSelector"), "matchExpressions"):
        here, operator = f"spec.namespaceSelector.matchExpressions[{index}]", row.get("operator")
        if operator in ("In", "NotIn") and not row.get("values"):
            yield Flaw(f"{here}.values", f"operator {operator} has no values", "at least one")
        elif operator in ("Exists", "DoesNotExist") and row.get("values"):
            yield Flaw(f"{here}.values", f"operator {operator} has values", "none")


@object_rule(
    "kueue-flavor-form", "kueue.x-k8s.io:ResourceFlavor", ruleset="kueue", owner="kueue",
    source="Kueue 0.19.2, CRD and webhook of ResourceFlavor, asked 2026-11-22",
)  # fmt: skip
def kueue_flavor_form(inputs: Json) -> Iterator[Flaw]:
    """Find a flavor of a topology without labels of its nodes, and two taints of one key and effect."""
    spec = block(inputs, "spec")
    if spec.get("topologyName") is not None and not spec.get("nodeLabels"):
        yield Flaw("spec.nodeLabels", "a flavor with a topology has no labels of its nodes", "at least one label")
    taints = [f"{text(row, 'key')} {text(row, 'effect')}" for _, row in entries(spec, "nodeTaints")]
    for index, name in twice([*taints]):
        yield Flaw(f"spec.nodeTaints[{index}]", f"there are two taints {name}", "a key and an effect once")


@object_rule(
    "kueue-topology-levels", "kueue.x-k8s.io:Topology", ruleset="kueue", owner="kueue",
    source="Kueue 0.19.2, CRD of Topology, asked 2026-11-22",
)  # fmt: skip
def kueue_topology_levels(inputs: Json) -> Iterator[Flaw]:
    """Find levels that are there twice, or below the host."""
    levels = [text(row, "nodeLabel") for _, row in entries(block(inputs, "spec"), "levels")]
    for index, name in twice(levels):
        yield Flaw(f"spec.levels[{index}].nodeLabel", f"level {name} is there twice", "each level once")
    if "kubernetes.io/hostname" in levels[:-1]:
        yield Flaw("spec.levels", "there is a level below kubernetes.io/hostname", "kubernetes.io/hostname last")


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
    """Find a pool with another slice topology than its ResourceFlavor selects: its jobs would never start."""
    machine = pool.machine
    if machine is None or machine.kind != "tpu":
        return
    actual = pool.tpu_topology or machine.single_host
    # Names say the shape, so that the flavors of a name in several clusters agree on it.
    selecting = program.once(_flavors).get(pool.node_labels.get(FLAVOR_LABEL))
    wanted = selecting.node_labels.get(TOPOLOGY_LABEL) if selecting else None
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
    """Find a pool that grows by waiting pods, in a flavor whose jobs Kueue places on the VMs that are there alone."""
    flavor = pool.node_labels.get(FLAVOR_LABEL)
    placing = any(row.topology and row.flavor == flavor for row in program.all(FlavorView, "topology"))
    if placing and not pool.queued and pool.least_vms < pool.most_vms:
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


def _flavors(program: Program) -> dict[str | None, FlavorView]:
    """Return the first flavor of each name that is known."""
    return {row.flavor: row for row in reversed(program.all(FlavorView)) if row.known("flavor")}


_LEAST: Final = "kueue.x-k8s.io/job-min-parallelism"
_EQUAL: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
_FLAGS: Final = {"1", "t", "T", "TRUE", "true", "True"}


@object_rule("partial-admission", JOB, ruleset="kueue", owner="kueue", source=(
    "Kueue 0.19.2, pkg/controller/jobs/job/job_webhook.go, and its webhook, asked 2026-11-22"))  # fmt: skip
def partial_admission(inputs: Json) -> Iterator[Flaw]:
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
            yield Flaw(here, f"{_LEAST} is {least}, for {most + 1} pods", allowed, str(most) if most else None)
    if text(written, _EQUAL) in _FLAGS:
        if spec.get("completionMode") in (None, "NonIndexed"):
            yield Flaw(here, f"{_EQUAL} is only for Indexed jobs", "completionMode Indexed")
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
    """Find a pool of flex-start that lets jobs of other pools hold reserved machines for a day, unseen.

    VMs of plain flex-start come after a job's admission, whenever Google Cloud finds them, so Kueue has to wait; those
    of queued provisioning come before it. Who gets the alerts is told of slices that are not ready for an hour.
    """
    told = (view for view in program.all(LabelledView) if view.type == NOTIFICATION_CHANNEL)
    if not pool.flex_start or pool.queued or any(told):
        return
    cluster = cluster_of(pool, program)
    reserved = [other for other in pools_of(cluster, program) if other.reservation] if cluster else []
    if reserved:
        names = enumeration({str(other.origin[-1]) if other.origin else other.name for other in reserved})
        message = f"with it, a job whose pods never get ready holds reserved machines of {names} for 24 hours, unseen"
        allowed = "queued-provisioning, a cluster of its own, or alerts.emails that say who is told"
        yield finding(pool, "flex_start", message, allowed=allowed, nearest="queued-provisioning")


_PREFIX: Final = "kueue.x-k8s.io/podset-"
_TOPOLOGIES: Final = tuple(f"{_PREFIX}{how}-topology" for how in ("required", "preferred", "unconstrained"))
_SLICE, _SIZE, _GROUP = f"{_PREFIX}slice-required-topology", f"{_PREFIX}slice-size", f"{_PREFIX}group-name"


_QUEUED: Final = (JOB, JOB_SET, LWS)
_JOB_WEBHOOKS: Final = "Kueue 0.19.2, pkg/controller/jobframework and jobs, their webhooks, asked 2026-11-23"
_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
_GATE: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/.+\Z")
_LONGEST_GATE: Final = 63
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}\Z")
_LOGICAL: Final = {*_FLAGS, "0", "f", "F", "FALSE", "false", "False"}
_PREBUILT, _RUN = "kueue.x-k8s.io/prebuilt-workload-name", "kueue.x-k8s.io/max-exec-time-seconds"
_ELASTIC, _GATES = "kueue.x-k8s.io/elastic-job", "kueue.x-k8s.io/admission-gated-by"


@object_rule("queued-metadata", *_QUEUED, ruleset="kueue", owner="kueue", source=_JOB_WEBHOOKS)
def queued_metadata(inputs: Json) -> Iterator[Flaw]:
    """Find labels and annotations of a job that are not in the form in which Kueue reads them."""
    labels, notes = block(inputs, "metadata", "labels"), block(inputs, "metadata", "annotations")
    at_labels, at_notes = "metadata.labels", "metadata.annotations"
    is_group = "leaderWorkerTemplate" in block(inputs, "spec")
    names = [(at_labels, QUEUE_LABEL, text(labels, QUEUE_LABEL))]
    if not is_group:
        prebuilt = text(notes, _PREBUILT)
        names.append((at_notes, _PREBUILT, prebuilt) if prebuilt else (at_labels, _PREBUILT, text(labels, _PREBUILT)))
        seconds = text(labels, _RUN)
        if seconds is not None and not (_NUMBER.match(seconds) and int(seconds) > 0):
            yield Flaw(at_labels, f"{_RUN} is {seconds!r}", "seconds, at least 1")
    for at, key, name in names:
        if name is not None and not SUBDOMAIN.match(name):
            yield Flaw(at, f"{key} is {name!r}", "a name in lower case, with digits, hyphens and dots")
    same = text(notes, _EQUAL)
    if same and "template" in block(inputs, "spec") and same not in _LOGICAL:
        yield Flaw(at_notes, f"{_EQUAL} is {same!r}", "true, false")
    gates = [gate.strip() for gate in written.split(",")] if (written := text(notes, _GATES)) else []
    for gate in gates:
        if not _GATE.match(gate) or len(gate) > _LONGEST_GATE or gates.count(gate) > 1:
            allowed = f"each gate once, with its domain as in example.com/gate, at most {_LONGEST_GATE} letters"
            yield Flaw(at_notes, f"{_GATES} has {gate!r}", allowed)
            return


@object_rule("elastic-job", *_QUEUED, ruleset="kueue", owner="kueue", source=_JOB_WEBHOOKS)
def elastic_job(inputs: Json) -> Iterator[Flaw]:
    """Find jobs that shall grow and shrink of a kind that cannot, or that ask for few pods or one place as well."""
    notes, spec, here = block(inputs, "metadata", "annotations"), block(inputs, "spec"), "metadata.annotations"
    if text(notes, _ELASTIC) != "true":
        return
    if {"leaderWorkerTemplate", "replicatedJobs"} & spec.keys():
        yield Flaw(here, f"{_ELASTIC} is only for Jobs and Ray", f"no {_ELASTIC}")
        return
    if text(notes, _LEAST) is not None:
        yield Flaw(here, f"{_LEAST} and {_ELASTIC} exclude each other", "one of them")
    template = block(spec, "template", "metadata", "annotations")
    for name in (name for name in _TOPOLOGIES[:2] if name in template):
        message = f"{name} and {_ELASTIC} exclude each other"
        yield Flaw("spec.template.metadata.annotations", message, _TOPOLOGIES[2], _TOPOLOGIES[2])


class _PodSet(NamedTuple):
    """The metadata of a template whose pods Kueue places together, and how many there are; None if not known."""

    at: str
    annotations: Json
    pods: int | None


def _pod_sets(inputs: Json) -> Iterator[_PodSet]:
    spec = block(inputs, "spec")
    group = block(spec, "leaderWorkerTemplate")
    if group:
        leader, size = block(group, "leaderTemplate"), 1 if "size" not in group else whole(group, "size")
        here = "spec.leaderWorkerTemplate"
        if leader:
            yield _PodSet(f"{here}.leaderTemplate", block(leader, "metadata", "annotations"), 1)
        workers = None if size is None else size - bool(leader)
        yield _PodSet(f"{here}.workerTemplate", block(group, "workerTemplate", "metadata", "annotations"), workers)
        return
    replicas = {
        f"spec.replicatedJobs[{at}].template.spec": whole(job, "replicas") if "replicas" in job else 1
        for at, job in entries(spec, "replicatedJobs")
    }
    for at, job in jobs(inputs):
        wide = whole(job, "parallelism") if job.get("parallelism") is not None else 1
        most, times = whole(job, "completions"), replicas.get(at, 1)
        pods = None if wide is None or times is None or is_unknown(job, "completions") else times * min(
            wide, wide if most is None else most
        )  # fmt: skip
        yield _PodSet(f"{at}.template", block(job, "template", "metadata", "annotations"), pods)


@object_rule("topology-request", *WORKLOADS, LWS, ruleset="kueue", owner="kueue", source=_JOB_WEBHOOKS)
def topology_request(inputs: Json) -> Iterator[Flaw]:
    """Find pods that ask for two topologies at once, or for slices without a size or larger than they are."""
    sets = list(_pod_sets(inputs))
    if "containers" in block(inputs, "spec"):
        sets = [_PodSet("", block(inputs, "metadata", "annotations"), None)]
    for at, written, pods in sets:
        here = f"{at}.metadata.annotations".removeprefix(".")
        topologies = [name for name in _TOPOLOGIES if name in written]
        if len(topologies) > 1:
            yield Flaw(here, f"{' and '.join(topologies)} exclude each other", "one of them")
        for name in (*_TOPOLOGIES[:2], _SLICE):
            value = text(written, name)
            if value is not None and not _KEY.match(value):
                yield Flaw(here, f"{name} is {value!r}", "the label of a level, such as kubernetes.io/hostname")
        free = text(written, _TOPOLOGIES[2])
        if free is not None and free not in _LOGICAL:
            yield Flaw(here, f"{_TOPOLOGIES[2]} is {free!r}", "true, false")
        yield from _slices(here, written, pods)
        yield from _layers(here, written, pods)


def _slices(here: str, written: Json, pods: int | None) -> Iterator[Flaw]:
    if (_SLICE in written) != (_SIZE in written):
        yield Flaw(here, "a slice needs both its topology and its size", f"both {_SLICE} and {_SIZE}")
    size = text(written, _SIZE)
    if size is not None and not (_NUMBER.match(size) and 1 <= int(size) <= (_WIDEST if pods is None else pods)):
        yield Flaw(here, f"{_SIZE} is {size!r}", f"1 to {pods}" if pods else "a number of pods, at least 1")


@object_rule("topology-group", *WORKLOADS, LWS, ruleset="kueue", owner="kueue", source=_JOB_WEBHOOKS)
def topology_group(inputs: Json) -> Iterator[Flaw]:
    """Find groups of pods in one place that have no topology, or that are not two sets of pods with the same one."""
    groups: dict[str, list[_PodSet]] = defaultdict(list)
    for pod_set in _pod_sets(inputs):
        written = pod_set.annotations
        group = text(written, _GROUP)
        if group is None:
            continue
        groups[group].append(pod_set)
        others = {_SLICE, _SIZE, _LAYERS} & {*written}
        if others or not {*_TOPOLOGIES[:2]} & {*written} or re.fullmatch("[0-9]+", group):
            message = f"pod group {group!r} needs a topology, without slices, and a name that is no number"
            yield Flaw(f"{pod_set.at}.metadata.annotations", message, f"{_TOPOLOGIES[0]} or {_TOPOLOGIES[1]}")
    if not {"leaderWorkerTemplate", "replicatedJobs"} & block(inputs, "spec").keys():
        return
    for name, members in groups.items():
        asked = {tuple(text(member.annotations, key) for key in _TOPOLOGIES[:2]) for member in members}
        many = all(member.pods not in (1, None) for member in members)
        if len(members) != len(("leader", "workers")) or len(asked) > 1 or many:
            message = f"pod group {name!r} has {len(members)} sets of pods"
            allowed = "two with the same topology, one of which has 1 pod"
            yield Flaw(f"{members[-1].at}.metadata.annotations", message, allowed)


_WIDEST: Final = 2**31 - 1
_LAYERS: Final = f"{_PREFIX}slice-required-topology-constraints"
_MOST_LAYERS: Final = 3


def _layers(here: str, written: Json, pods: int | None) -> Iterator[Flaw]:
    """Find constraints of slices in several layers that are no such list, or go with no others."""
    value = text(written, _LAYERS)
    if value is None:
        return
    allowed = '1 to 3 layers as in [{"topology": "example.com/rack", "size": 4}], each size a divisor of the one before'
    try:
        rows = json.loads(value)
    except ValueError:
        rows = None
    fine = isinstance(rows, list) and 0 < len(rows) <= _MOST_LAYERS and all(isinstance(row, dict) for row in rows)
    if fine:
        sizes = [whole(row, "size") or 0 for row in rows]
        labels = [text(row, "topology") or "" for row in rows]
        fine = (
            all(map(_KEY.match, labels)) and len({*labels}) == len(labels) and min(sizes) > 0
            and not any(larger % smaller for larger, smaller in pairwise(sizes)) and (pods is None or sizes[0] <= pods)
        )  # fmt: skip
    if not fine or {_SLICE, _SIZE} & {*written}:
        yield Flaw(here, f"{_LAYERS} is {value!r}", f"{allowed}, without {_SLICE}")
