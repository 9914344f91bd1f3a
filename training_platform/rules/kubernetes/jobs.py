"""Rules about Jobs, JobSets and LeaderWorkerSets: what their webhooks refuse, and whether TPU jobs fit topologies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.types import Json, chips_in
from training_platform.config.reading.declaration import Draft, finding
from training_platform.rules.kubernetes.objects import (
    SERVER,
    block,
    duplicates,
    entries,
    integer,
    is_unknown,
    object_rule,
    string,
    strings,
)
from training_platform.rules.kubernetes.pods import JOB, JOB_SET, JOBS, LWS, containers, jobs, quantity
from training_platform.views.inputs import rows
from training_platform.views.whole_stack import ObjectView

_MOST_PARALLEL: Final = 100_000  # pods of an Indexed job at a time: pkg/apis/batch/validation of Kubernetes 1.36.3


@object_rule("job-completion", *JOBS, ruleset="pods", source=SERVER)
def job_completion(view: ObjectView) -> Iterator[Draft]:
    """Find Indexed jobs without completions, and policies that require another completion mode or restart policy."""
    inputs = view.inputs
    for job_path, job in jobs(inputs):
        indexed = job.get("completionMode") == "Indexed"
        policy = block(job, "template", "spec").get("restartPolicy")
        width = integer(job, "parallelism")
        if indexed and job.get("completions") is None and width is not None:  # without parallelism too, both are 1
            path = f"{job_path}.completions"
            yield finding(
                view, path, "an Indexed job has no completions", allowed="a number of pods", nearest=str(width or 1)
            )
        if indexed and width is not None and width > _MOST_PARALLEL:
            message = f"parallelism is {width}, but completionMode is Indexed"
            yield finding(
                view,
                f"{job_path}.parallelism",
                message,
                allowed=f"at most {_MOST_PARALLEL:,}",
                nearest=str(_MOST_PARALLEL),
            )
        if job.get("backoffLimitPerIndex") is not None and job.get("completionMode") in (None, "NonIndexed"):
            yield finding(
                view, f"{job_path}.backoffLimitPerIndex", "is only for Indexed jobs", allowed="completionMode Indexed"
            )
        if job.get("podFailurePolicy") is not None and policy == "OnFailure":
            message = "podFailurePolicy needs restartPolicy Never"
            yield finding(view, f"{job_path}.template.spec.restartPolicy", message, allowed="Never", nearest="Never")


@object_rule("job-policy", *JOBS, ruleset="pods", source=SERVER)
def job_policy(view: ObjectView) -> Iterator[Draft]:
    """Find unsorted exit codes in a failure policy, and indexes in a success policy that do not exist in the job."""
    inputs = view.inputs
    for job_path, job in jobs(inputs):
        for index, row in entries(block(job, "podFailurePolicy"), "rules"):
            path = f"{job_path}.podFailurePolicy.rules[{index}]"
            codes = block(row, "onExitCodes")
            if row.get("action") == "FailIndex" and job.get("backoffLimitPerIndex") is None:
                message = "FailIndex needs backoffLimitPerIndex"
                yield finding(view, f"{path}.action", message, allowed="Count, FailJob, Ignore")
            names = [string(container, "name") for _, container in containers("", block(job, "template", "spec"))]
            name = string(codes, "containerName")
            if name is not None and names and not {name, None} & {*names}:
                allowed = ", ".join(filter(None, names))
                yield finding(
                    view, f"{path}.onExitCodes.containerName", f"the pod has no container {name}", allowed=allowed
                )
            values = [code for code in rows(codes.get("values")) if isinstance(code, (int, float))]
            values_path = f"{path}.onExitCodes.values"
            if values != sorted(set(values)):
                message = "exit codes are not in ascending order without duplicates"
                yield finding(view, values_path, message, allowed=str(sorted(set(values))))
            if 0 in values and codes.get("operator") == "In":
                yield finding(
                    view, values_path, "exit code 0 is not a failure", allowed="codes of at least 1, or operator NotIn"
                )
        rules = entries(block(job, "successPolicy"), "rules")
        completions = integer(job, "completions")
        if rules and job.get("completionMode") in (None, "NonIndexed"):
            yield finding(
                view, f"{job_path}.successPolicy", "is only for Indexed jobs", allowed="completionMode Indexed"
            )
        for index, row in rules:
            last = max(map(int, re.findall(r"[0-9]{1,18}", string(row, "succeededIndexes") or "")), default=-1)
            if completions is not None and last >= completions:
                path = f"{job_path}.successPolicy.rules[{index}].succeededIndexes"
                yield finding(
                    view,
                    path,
                    f"index {last} is beyond the {completions} completions",
                    allowed=f"0 to {completions - 1}",
                )


_ASKED: Final = "JobSet 0.12.0, webhook, tried 2026-11-22; JobSet 08dfbdfd, jobset_webhook.go"
_LONGEST: Final = 63
_MOST_PODS: Final = 2**31 - 1
_IN_PLACE: Final = "InPlaceRestart"
_GATED: Final = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_REASONS: Final = (
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy",
)  # fmt: skip


@object_rule("jobset-names", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_names(view: ObjectView) -> Iterator[Draft]:
    """Find a JobSet whose name and job names together are too long for pod names, which have at most 63 characters."""
    inputs = view.inputs
    name = string(block(inputs, "metadata"), "name")
    for index, row in entries(block(inputs, "spec"), "replicatedJobs"):
        job = string(row, "name")
        if name is None or job is None or is_unknown(row, "replicas"):
            continue
        spec = block(row, "template", "spec")
        pods = integer(spec, "completions") or integer(spec, "parallelism")
        length = len(name) + len(job) + len(str(max((integer(row, "replicas") or 1) - 1, 0)))
        length += len(str(max((pods or 1) - 1, 0))) + 9
        if length > _LONGEST:
            message = f"pods of job {job} of JobSet {name} would have names of {length} characters"
            allowed = f"at most {_LONGEST - length + len(name) + len(job)} characters in the two names together"
            longer = f"spec.replicatedJobs[{index}].name" if len(job) > len(name) else "metadata.name"
            yield finding(view, longer, message, allowed=allowed)


@object_rule("jobset-size", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_size(view: ObjectView) -> Iterator[Draft]:
    """Find a replicated job with more pods than JobSet can count."""
    inputs = view.inputs
    for index, row in entries(block(inputs, "spec"), "replicatedJobs"):
        parallelism = integer(block(row, "template", "spec"), "parallelism") or 1
        replicas = integer(row, "replicas") or 1
        if parallelism * replicas > _MOST_PODS:
            message = f"{replicas} replicas of {parallelism} pods are too many"
            path = f"spec.replicatedJobs[{index}].replicas"
            yield finding(
                view,
                path,
                message,
                allowed=f"at most {_MOST_PODS // parallelism}",
                nearest=str(_MOST_PODS // parallelism),
            )


@object_rule("jobset-references", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_references(view: ObjectView) -> Iterator[Draft]:
    """Find a policy, dependency or coordinator that refers to a job that is not in the JobSet."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    jobs = {string(row, "name"): row for _, row in entries(spec, "replicatedJobs")}
    allowed = ", ".join(filter(None, jobs)) or "a name in replicatedJobs"
    policies = {"successPolicy": block(spec, "successPolicy")}
    for index, row in entries(block(spec, "failurePolicy"), "rules"):
        policies[f"failurePolicy.rules[{index}]"] = row
    references = [
        (f"{path}.targetReplicatedJobs", name)
        for path, policy in policies.items()
        for name in strings(policy, "targetReplicatedJobs")
    ]
    leader = string(block(spec, "coordinator"), "replicatedJob")
    if leader is not None:
        references.append(("coordinator.replicatedJob", leader))
    for path, name in references:
        if name not in jobs:
            yield finding(view, f"spec.{path}", f"the JobSet has no job {name}", allowed=allowed)
    for index, row in entries(spec, "replicatedJobs"):
        for dependency_index, dependency in entries(row, "dependsOn"):
            path = f"spec.replicatedJobs[{index}].dependsOn[{dependency_index}].name"
            earlier_jobs = [string(earlier, "name") for _, earlier in entries(spec, "replicatedJobs")[:index]]
            if string(dependency, "name") not in earlier_jobs:
                allowed = ", ".join(filter(None, earlier_jobs)) or "none for the first job"
                yield finding(view, path, f"no job {string(dependency, 'name')} precedes this job", allowed=allowed)


@object_rule("jobset-coordinator", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_coordinator(view: ObjectView) -> Iterator[Draft]:
    """Find a coordinator that is not a pod of its job, or whose name is too long for a label."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    name = string(block(inputs, "metadata"), "name")
    coordinator = block(spec, "coordinator")
    leader = string(coordinator, "replicatedJob")
    job = next((row for _, row in entries(spec, "replicatedJobs") if string(row, "name") == leader), None)
    if job is None:
        return
    inner = block(job, "template", "spec")
    pods = integer(inner, "completions") or integer(inner, "parallelism")
    pod = f"{leader}-{integer(coordinator, 'jobIndex') or 0}-{integer(coordinator, 'podIndex') or 0}"
    label = f"{name}-{pod}.{string(block(spec, 'network'), 'subdomain') or name}"
    if name is not None and len(label) > _LONGEST:
        yield finding(
            view, "spec.coordinator", f"its label {label} has {len(label)} characters", allowed=f"at most {_LONGEST}"
        )
    if inner.get("completionMode") == "NonIndexed":
        message = f"job {leader} is not Indexed"
        yield finding(
            view, "spec.coordinator.replicatedJob", message, allowed="completionMode Indexed", nearest="Indexed"
        )
    for field, size in (("jobIndex", integer(job, "replicas") or 1), ("podIndex", pods or 1)):
        number = integer(coordinator, field)
        if number is not None and not 0 <= number < size:
            yield finding(
                view, f"spec.coordinator.{field}", f"no pod has index {number}", allowed=f"0 to {size - 1}", nearest="0"
            )


@object_rule("jobset-policies", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_policies(view: ObjectView) -> Iterator[Draft]:
    """Find failure policies with a repeated rule name, an impossible reason, or a disabled feature gate."""
    inputs = view.inputs
    policy = block(inputs, "spec", "failurePolicy")
    rules = entries(policy, "rules")
    if policy.get("restartStrategy") == _IN_PLACE:
        allowed = "Recreate, BlockingRecreate"
        message = f"{_IN_PLACE} is refused unless the feature gate InPlaceRestart is on; it is off by default"
        yield finding(
            view, "spec.failurePolicy.restartStrategy", message, allowed=allowed, nearest="Recreate", severity="warning"
        )
    for index, row in rules:
        if row.get("action") in _GATED:
            path = f"spec.failurePolicy.rules[{index}].action"
            allowed = "FailJobSet, RestartJobSet"
            message = f"{row['action']} is refused unless the feature gate RestartJob is on; it is off by default"
            yield finding(view, path, message, allowed=allowed, nearest="RestartJobSet", severity="warning")
    for index, name in duplicates([string(row, "name") for _, row in rules]):
        yield finding(
            view, f"spec.failurePolicy.rules[{index}].name", f"two rules are named {name}", allowed="a name for each"
        )
    for index, row in rules:
        for reason in strings(row, "onJobFailureReasons"):
            if reason not in _REASONS:
                path = f"spec.failurePolicy.rules[{index}].onJobFailureReasons"
                yield finding(view, path, f"no Job fails for reason {reason}", allowed=", ".join(_REASONS))


_SOURCE: Final = "LeaderWorkerSet 0.10.0, pkg/webhooks/leaderworkerset_webhook.go, read 2026-11-22"


@object_rule("lws-rollout", LWS, ruleset="objects", source=_SOURCE)
def lws_rollout(view: ObjectView) -> Iterator[Draft]:
    """Find rollout limits that prevent replacing any LeaderWorkerSet group, and more pods than it can count."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    group = block(spec, "leaderWorkerTemplate")
    replicas = integer(spec, "replicas") if "replicas" in spec else 1
    size = integer(group, "size") if "size" in group else 1
    if replicas is None or size is None:
        return
    if replicas * size > _MOST_PODS:
        yield finding(
            view,
            "spec.replicas",
            f"{replicas} groups of {size} pods are too many",
            allowed=f"at most {_MOST_PODS // size}",
        )
    rollout = block(spec, "rolloutStrategy", "rollingUpdateConfiguration")
    surge = rollout.get("maxSurge", 0)
    unavailable = rollout.get("maxUnavailable", 1)
    share = re.fullmatch("([0-9]+)%", unavailable) if isinstance(unavailable, str) else None
    none_unavailable = unavailable == 0 or (share is not None and replicas * int(share[1]) < 100)
    if replicas and surge in (0, "0%") and none_unavailable:
        path = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"
        message = f"is {unavailable} of {replicas} with maxSurge {surge}"
        yield finding(view, path, message, allowed="at least 1 for one of the two", nearest="1")


_TPU: Final = "google.com/tpu"
_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"
_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"
_DOCS: Final = "GKE docs, TPUs in GKE, and Cloud TPU docs, machine types, copies of 2026"


@object_rule("tpu-job-chips", JOB, JOB_SET, ruleset="pods", owner="catalogue", source=_DOCS)
def tpu_job_chips(view: ObjectView) -> Iterator[Draft]:
    """Find pods that request more chips than a VM of their topology has, or too few pods for a multi-host slice.

    Pods that share a VM may request fewer chips. If several machine types offer a topology, the pods may run on any of
    them.
    """
    inputs = view.inputs
    for job_path, job in jobs(inputs):
        pod = block(job, "template", "spec")
        selector = block(pod, "nodeSelector")
        topology = string(selector, _TOPOLOGY)
        kind = string(selector, _ACCELERATOR)
        requested = sum(_chips(container) for _, container in entries(pod, "containers"))
        size = chips_in(topology) if topology else None
        if not (size and kind and requested):
            continue
        # VMs of these machine types form slices of this size, one by itself or several together.
        machines = [row for row in MACHINE_TYPES.values() if row.kind == "tpu" and row.accelerator]
        machines = [row for row in machines if row.accelerator and row.accelerator.gke_label == kind]
        sizes = sorted({row.chips for row in machines if row.chips == size or (row.multi_host and row.chips < size)})
        if not sizes:
            continue
        if requested > sizes[-1]:
            allowed = ", ".join(map(str, sizes))
            message = f"a pod requests {requested} chips, but VMs of {kind} with topology {topology} have fewer"
            yield finding(
                view, f"{job_path}.template.spec.containers", message, allowed=allowed, nearest=str(sizes[-1])
            )
        elif requested in sizes and size > sizes[-1]:
            hosts = size // requested
            for name in ("parallelism", "completions"):
                pods = integer(job, name)
                if pods is not None and pods % hosts:
                    message = f"{pods} pods do not fill whole slices of {hosts} hosts, so pods would wait forever"
                    yield finding(
                        view, f"{job_path}.{name}", message, allowed=f"{hosts} for one slice", nearest=str(hosts)
                    )


def _chips(container: Json) -> int:
    """Return the number of TPU chips that a container requests, taken from its limit, or else from its request."""
    resources = block(container, "resources")
    for part in ("limits", "requests"):
        chips = quantity(block(resources, part).get(_TPU))
        if chips is not None:
            return int(chips)
    return 0
