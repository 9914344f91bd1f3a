"""Jobs, JobSets and groups of LeaderWorkerSet, as their webhooks compare the parts; TPU jobs beside the pools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Json, chips_in
from training_platform.rules.kubernetes.objects import (
    SERVER,
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
from training_platform.rules.kubernetes.pods import JOB, JOB_SET, JOBS, LWS, containers, jobs, quantity
from training_platform.views.inputs import rows

_WIDEST: Final = 100_000  # pods of an Indexed job at a time: pkg/apis/batch/validation of Kubernetes 1.36.3


@object_rule("job-completion", *JOBS, ruleset="pods", source=SERVER)
def job_completion(inputs: Json) -> Iterator[Flaw]:
    """Find Indexed jobs without completions, and policies that ask for another completion mode or restart policy."""
    for at, job in jobs(inputs):
        indexed = job.get("completionMode") == "Indexed"
        policy = block(job, "template", "spec").get("restartPolicy")
        width = whole(job, "parallelism")
        if indexed and job.get("completions") is None and width is not None:  # where neither is, both are 1
            yield Flaw(f"{at}.completions", "an Indexed job has no completions", "a number of pods", str(width or 1))
        if indexed and width is not None and width > _WIDEST:
            message = f"parallelism is {width}, and completionMode is Indexed"
            yield Flaw(f"{at}.parallelism", message, f"at most {_WIDEST:,}", str(_WIDEST))
        if job.get("backoffLimitPerIndex") is not None and job.get("completionMode") in (None, "NonIndexed"):
            yield Flaw(f"{at}.backoffLimitPerIndex", "is only for Indexed jobs", "completionMode Indexed")
        if job.get("podFailurePolicy") is not None and policy == "OnFailure":
            yield Flaw(f"{at}.template.spec.restartPolicy", "podFailurePolicy needs Never", "Never", "Never")


@object_rule("job-policy", *JOBS, ruleset="pods", source=SERVER)
def job_policy(inputs: Json) -> Iterator[Flaw]:
    """Find exit codes of a failure policy out of order, and indexes of a success policy that the job does not have."""
    for at, job in jobs(inputs):
        for index, row in entries(block(job, "podFailurePolicy"), "rules"):
            place = f"{at}.podFailurePolicy.rules[{index}]"
            codes, here = block(row, "onExitCodes"), f"{place}.onExitCodes.values"
            if row.get("action") == "FailIndex" and job.get("backoffLimitPerIndex") is None:
                message = "FailIndex goes with backoffLimitPerIndex alone"
                yield Flaw(f"{place}.action", message, "Count, FailJob, Ignore")
            names = [text(container, "name") for _, container in containers("", block(job, "template", "spec"))]
            name = text(codes, "containerName")
            if name is not None and names and not {name, None} & {*names}:
                allowed = ", ".join(filter(None, names))
                yield Flaw(f"{place}.onExitCodes.containerName", f"the pod has no container {name}", allowed)
            values = [code for code in rows(codes.get("values")) if isinstance(code, (int, float))]
            if values != sorted(set(values)):
                yield Flaw(here, "exit codes are not in ascending order without duplicates", str(sorted(set(values))))
            if 0 in values and codes.get("operator") == "In":
                yield Flaw(here, "exit code 0 is not a failure", "codes of at least 1, or operator NotIn")
        rules, most = entries(block(job, "successPolicy"), "rules"), whole(job, "completions")
        if rules and job.get("completionMode") in (None, "NonIndexed"):
            yield Flaw(f"{at}.successPolicy", "is only for Indexed jobs", "completionMode Indexed")
        for index, row in rules:
            last = max(map(int, re.findall(r"[0-9]{1,18}", text(row, "succeededIndexes") or "")), default=-1)
            if most is not None and last >= most:
                here = f"{at}.successPolicy.rules[{index}].succeededIndexes"
                yield Flaw(here, f"index {last} is beyond the {most} completions", f"0 to {most - 1}")


_ASKED: Final = "JobSet 0.12.0, webhook, asked 2026-11-22; JobSet 08dfbdfd, jobset_webhook.go"
_LONGEST: Final = 63
_MOST_PODS: Final = 2**31 - 1
_IN_PLACE, _GATED = "InPlaceRestart", ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_REASONS: Final = (
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy",
)  # fmt: skip


@object_rule("jobset-names", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_names(inputs: Json) -> Iterator[Flaw]:
    """Find names of a JobSet and its jobs that together are too long for its pods: they may have 63 letters."""
    name = text(block(inputs, "metadata"), "name")
    for index, row in entries(block(inputs, "spec"), "replicatedJobs"):
        job = text(row, "name")
        if name is None or job is None or is_unknown(row, "replicas"):
            continue
        spec = block(row, "template", "spec")
        pods = whole(spec, "completions") or whole(spec, "parallelism")
        length = len(name) + len(job) + len(str(max((whole(row, "replicas") or 1) - 1, 0)))
        length += len(str(max((pods or 1) - 1, 0))) + 9
        if length > _LONGEST:
            message = f"pods of job {job} of JobSet {name} would have names of {length} letters"
            allowed = f"{_LONGEST - length + len(name) + len(job)} letters in both names"
            longer = f"spec.replicatedJobs[{index}].name" if len(job) > len(name) else "metadata.name"
            yield Flaw(longer, message, allowed)


@object_rule("jobset-size", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_size(inputs: Json) -> Iterator[Flaw]:
    """Find a replicated job with more pods than JobSet can count."""
    for index, row in entries(block(inputs, "spec"), "replicatedJobs"):
        parallelism, replicas = whole(block(row, "template", "spec"), "parallelism") or 1, whole(row, "replicas") or 1
        if parallelism * replicas > _MOST_PODS:
            message = f"{replicas} replicas of {parallelism} pods at a time are too many"
            path = f"spec.replicatedJobs[{index}].replicas"
            yield Flaw(path, message, f"at most {_MOST_PODS // parallelism}", str(_MOST_PODS // parallelism))


@object_rule("jobset-references", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_references(inputs: Json) -> Iterator[Flaw]:
    """Find jobs that policies, dependencies or the coordinator name and that the JobSet does not have."""
    spec = block(inputs, "spec")
    jobs = {text(row, "name"): row for _, row in entries(spec, "replicatedJobs")}
    allowed = ", ".join(filter(None, jobs)) or "a name in replicatedJobs"
    policies = [("successPolicy", block(spec, "successPolicy"))]
    policies += [(f"failurePolicy.rules[{at}]", row) for at, row in entries(block(spec, "failurePolicy"), "rules")]
    references = [
        (f"{at}.targetReplicatedJobs", name)
        for at, policy in policies
        for name in texts(policy, "targetReplicatedJobs")
    ]
    coordinator = block(spec, "coordinator")
    leader = text(coordinator, "replicatedJob")
    for path, name in [*references, *([("coordinator.replicatedJob", leader)] if leader is not None else [])]:
        if name not in jobs:
            yield Flaw(f"spec.{path}", f"the JobSet has no job {name}", allowed)
    for index, row in entries(spec, "replicatedJobs"):
        for place, other in entries(row, "dependsOn"):
            path = f"spec.replicatedJobs[{index}].dependsOn[{place}].name"
            before = [text(earlier, "name") for _, earlier in entries(spec, "replicatedJobs")[:index]]
            if text(other, "name") not in before:
                known = ", ".join(filter(None, before)) or "none for the first job"
                yield Flaw(path, f"no job {text(other, 'name')} stands before this one", known)


@object_rule("jobset-coordinator", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_coordinator(inputs: Json) -> Iterator[Flaw]:
    """Find a coordinator that is no pod of its job, or whose name is too long for a label."""
    spec, name = block(inputs, "spec"), text(block(inputs, "metadata"), "name")
    coordinator = block(spec, "coordinator")
    leader = text(coordinator, "replicatedJob")
    job = next((row for _, row in entries(spec, "replicatedJobs") if text(row, "name") == leader), None)
    if job is None:
        return
    inner = block(job, "template", "spec")
    pods = whole(inner, "completions") or whole(inner, "parallelism")
    where = f"{leader}-{whole(coordinator, 'jobIndex') or 0}-{whole(coordinator, 'podIndex') or 0}"
    label = f"{name}-{where}.{text(block(spec, 'network'), 'subdomain') or name}"
    if name is not None and len(label) > _LONGEST:
        yield Flaw("spec.coordinator", f"its label {label} has {len(label)} letters", f"at most {_LONGEST}")
    if inner.get("completionMode") == "NonIndexed":
        message = f"job {leader} is not Indexed"
        yield Flaw("spec.coordinator.replicatedJob", message, "completionMode Indexed", "Indexed")
    for field, size in (("jobIndex", whole(job, "replicas") or 1), ("podIndex", pods or 1)):
        number = whole(coordinator, field)
        if number is not None and not 0 <= number < size:
            yield Flaw(f"spec.coordinator.{field}", f"there is none of index {number}", f"0 to {size - 1}", "0")


@object_rule("jobset-policies", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_policies(inputs: Json) -> Iterator[Flaw]:
    """Find failure policies with rules called alike, reasons that no Job has, or behind gates that are off."""
    policy = block(inputs, "spec", "failurePolicy")
    rules = entries(policy, "rules")
    if policy.get("restartStrategy") == _IN_PLACE:
        allowed = "Recreate, BlockingRecreate"
        message = f"{_IN_PLACE} is refused where the feature gate InPlaceRestart is off, as it is by default"
        yield Flaw("spec.failurePolicy.restartStrategy", message, allowed, "Recreate", "warning")
    for index, row in rules:
        if row.get("action") in _GATED:
            path, allowed = f"spec.failurePolicy.rules[{index}].action", "FailJobSet, RestartJobSet"
            message = f"{row['action']} is refused where the feature gate RestartJob is off, as it is by default"
            yield Flaw(path, message, allowed, "RestartJobSet", "warning")
    for index, name in twice([text(row, "name") for _, row in rules]):
        yield Flaw(f"spec.failurePolicy.rules[{index}].name", f"there are two rules {name}", "a name for each")
    for index, row in rules:
        for reason in texts(row, "onJobFailureReasons"):
            if reason not in _REASONS:
                path = f"spec.failurePolicy.rules[{index}].onJobFailureReasons"
                yield Flaw(path, f"no Job fails for reason {reason}", ", ".join(_REASONS))


@object_rule("jobset-claims", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_claims(inputs: Json) -> Iterator[Flaw]:
    """Find claims of a JobSet that are there twice, have too long names, or are mounted nowhere."""
    spec, name = block(inputs, "spec"), text(block(inputs, "metadata"), "name") or ""
    pods = [block(row, "template", "spec", "template", "spec") for _, row in entries(spec, "replicatedJobs")]
    mounts = {
        text(mount, "name") for pod in pods for _, container in containers("", pod)
        for _, mount in entries(container, "volumeMounts")
    }  # fmt: skip
    volumes = {text(volume, "name") for pod in pods for _, volume in entries(pod, "volumes")}
    seen: set[str] = set()
    for at, policy in entries(spec, "volumeClaimPolicies"):
        for place, template in entries(policy, "templates"):
            here = f"spec.volumeClaimPolicies[{at}].templates[{place}].metadata.name"
            claim = text(block(template, "metadata"), "name") or ""
            if claim in seen:
                yield Flaw(here, f"there are two claims {claim}", "a name for each")
            elif not SUBDOMAIN.match(claim):
                yield Flaw(here, f"claim {claim!r} is no name", "lower case, digits, hyphens and dots")
            elif len(claim) + 1 + len(name) > _LONGEST:
                yield Flaw(here, f"claim {claim}-{name} has more than {_LONGEST} letters", "a shorter name")
            elif claim in volumes:
                yield Flaw(here, f"a pod has a volume {claim}, too", "another name")
            elif claim not in mounts and pods:
                yield Flaw(here, f"no container mounts claim {claim}", f"a volumeMount {claim}")
            seen.add(claim)


_ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_CONTAINERS: Final = {
    "dataset-initializer": "dataset-initializer", "model-initializer": "model-initializer", "trainer": "node",
}  # fmt: skip


@object_rule(
    "runtime-steps", "trainer.kubeflow.org:TrainingRuntime", "trainer.kubeflow.org:ClusterTrainingRuntime",
    ruleset="jobsets", source="Kubeflow Trainer 2.3.0, trainingruntime_webhook.go, read 2026-11-24",
)  # fmt: skip
def runtime_steps(inputs: Json) -> Iterator[Flaw]:
    """Find a step of a TrainingRuntime that is there several times, or without the container that it runs in."""
    for index, row in entries(block(inputs, "spec", "template", "spec"), "replicatedJobs"):
        step = text(block(row, "template", "metadata", "labels"), _ANCESTOR)
        wanted = _CONTAINERS.get(step or "")
        if step is None or wanted is None:
            continue
        here = f"spec.template.spec.replicatedJobs[{index}]"
        replicas = whole(row, "replicas")
        if replicas is not None and replicas != 1:
            yield Flaw(f"{here}.replicas", f"step {step} has {replicas} replicas", "1", "1")
        pod = block(row, "template", "spec", "template", "spec")
        names = {text(container, "name") for _, container in entries(pod, "containers")}
        if names and wanted not in names and not is_unknown(pod, "containers"):
            message = f"step {step} has no container {wanted}"
            path = f"{here}.template.spec.template.spec.containers"
            yield Flaw(path, message, f"a container {wanted}", wanted)


_SOURCE = "LeaderWorkerSet 0.10.0, pkg/webhooks/leaderworkerset_webhook.go, read 2026-11-22"


@object_rule("lws-subgroup-size", LWS, ruleset="objects", source=_SOURCE)
def lws_subgroup_size(inputs: Json) -> Iterator[Flaw]:
    """Find subgroups of a LeaderWorkerSet into which the pods of a group cannot be divided.

    Where LeaderExcluded is their type, only the workers are divided; otherwise the leader is of the first one, or
    beside all. A group is 1 pod unless it says another size.
    """
    group = block(inputs, "spec", "leaderWorkerTemplate")
    policy, size = block(group, "subGroupPolicy"), whole(group, "size")
    part = whole(policy, "subGroupSize")
    size = 1 if "size" not in group else size
    if part is None or size is None or size < 1:  # a group of no pods is refused by its document
        return
    divided = (size - 1,) if text(policy, "subGroupPolicyType") == "LeaderExcluded" else (size, size - 1)
    if part < 1 or part > size or all(pods % part for pods in divided):
        fitting = [count for count in range(1, size + 1) if not all(pods % count for pods in divided)]
        path = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
        nearest = min(fitting, key=lambda count: abs(count - part))
        yield Flaw(path, f"{size} pods cannot be divided by {part}", ", ".join(map(str, fitting)), str(nearest))


_EXCLUSIVE: Final = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"


@object_rule("lws-rollout", LWS, ruleset="objects", source=_SOURCE)
def lws_rollout(inputs: Json) -> Iterator[Flaw]:
    """Find limits of a rollout by which no group is replaced, too many pods, and a topology of missing subgroups."""
    spec = block(inputs, "spec")
    group = block(spec, "leaderWorkerTemplate")
    replicas, size = (
        whole(where, name) if name in where else 1 for where, name in ((spec, "replicas"), (group, "size"))
    )
    if replicas is None or size is None:
        return
    if replicas * size > _MOST_PODS:
        yield Flaw("spec.replicas", f"{replicas} groups of {size} pods are too many", f"at most {_MOST_PODS // size}")
    rollout = block(spec, "rolloutStrategy", "rollingUpdateConfiguration")
    surge, missing = rollout.get("maxSurge", 0), rollout.get("maxUnavailable", 1)
    none_missing = missing in (0, "0%") or (
        isinstance(missing, str) and bool(re.fullmatch("[0-9]+%", missing)) and replicas * int(missing[:-1]) < 100
    )
    if replicas and surge in (0, "0%") and none_missing:
        path = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"
        yield Flaw(path, f"is {missing} of {replicas} beside maxSurge {surge}", "at least 1 in one of both", "1")
    if _EXCLUSIVE in block(inputs, "metadata", "annotations") and "subGroupPolicy" not in group:
        yield Flaw("metadata.annotations", f"{_EXCLUSIVE} needs subgroups", "spec.leaderWorkerTemplate.subGroupPolicy")


_TPU: Final = "google.com/tpu"
_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
_DOCS: Final = "GKE docs, TPUs in GKE, and Cloud TPU docs, machine types, copies of 2026"


@object_rule("tpu-job-chips", JOB, JOB_SET, ruleset="pods", owner="catalogue", source=_DOCS)
def tpu_job_chips(inputs: Json) -> Iterator[Flaw]:
    """Find pods that ask for more chips than a VM of their topology has, or too few pods for a slice of several hosts.

    Pods that share a VM ask for fewer; a topology that several machine types offer may be met by any of them.
    """
    for at, job in jobs(inputs):
        pod = block(job, "template", "spec")
        selector = block(pod, "nodeSelector")
        topology, kind = text(selector, _TOPOLOGY), text(selector, _ACCELERATOR)
        resources = [block(container, "resources") for _, container in entries(pod, "containers")]
        requests = [(block(row, "limits").get(_TPU), block(row, "requests").get(_TPU)) for row in resources]
        asked = [int(next((chips for chips in map(quantity, row) if chips is not None), 0)) for row in requests]
        size = chips_in(topology) if topology else None
        if not (size and kind and any(asked)):
            continue
        # VMs of these machine types make slices of so many chips: alone, or several together.
        machines = [row for row in MACHINE_TYPES.values() if row.kind == "tpu" and row.accelerator]
        machines = [row for row in machines if row.accelerator and row.accelerator.gke_label == kind]
        sizes = sorted({row.chips for row in machines if row.chips == size or (row.multi_host and row.chips < size)})
        if sizes and sum(asked) > sizes[-1]:
            allowed = ", ".join(map(str, sizes))
            message = f"a pod asks for {sum(asked)} chips, and a VM of {kind} with topology {topology} has fewer"
            yield Flaw(f"{at}.template.spec.containers", message, allowed, str(sizes[-1]))
        elif sizes and sum(asked) in sizes and size > sizes[-1]:
            hosts = size // sum(asked)
            for name in ("parallelism", "completions"):
                if (pods := whole(job, name)) is not None and pods % hosts:
                    message = f"{pods} pods do not fill slices of {hosts} hosts: the others wait for ever"
                    yield Flaw(f"{at}.{name}", message, f"{hosts} for one slice", str(hosts))
