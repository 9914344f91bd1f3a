"""JobSets by themselves, as JobSet's webhook compares their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

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
from training_platform.rules.kubernetes.pods import JOB_SET

_ASKED: Final = "JobSet 0.12.0, webhook, asked 2026-11-22; JobSet 08dfbdfd, jobset_webhook.go"
_LONGEST: Final = 63
_MOST_PODS: Final = 2**31 - 1
_IN_PLACE, _GATED = "InPlaceRestart", ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_REASONS: Final = (
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy",
)  # fmt: skip


@object_rule("jobset-names", JOB_SET, ruleset="jobsets", facts=("JBS-01",), source=_ASKED)
def jobset_names(inputs: Json) -> Iterator[Wrong]:
    """Find names of a JobSet and its jobs that together are too long for its pods: they may have 63 letters."""
    name = text(block(inputs, "metadata"), "name")
    for index, row in entries(block(inputs, "spec"), "replicatedJobs"):
        job = text(row, "name")
        if name is None or job is None or is_unknown(row, "replicas"):
            continue
        pods = whole(block(row, "template", "spec"), "completions") or whole(
            block(row, "template", "spec"), "parallelism"
        )
        length = len(name) + len(job) + len(str(max((whole(row, "replicas") or 1) - 1, 0)))
        length += len(str(max((pods or 1) - 1, 0))) + 9
        if length > _LONGEST:
            message = f"pods of job {job} of JobSet {name} would have names of {length} letters"
            allowed = f"{_LONGEST - length + len(name) + len(job)} letters in both names"
            longer = f"spec.replicatedJobs[{index}].name" if len(job) > len(name) else "metadata.name"
            yield Wrong(longer, message, allowed)


@object_rule("jobset-size", JOB_SET, ruleset="jobsets", source=_ASKED)
def jobset_size(inputs: Json) -> Iterator[Wrong]:
    """Find a replicated job with more pods than JobSet can count."""
    for index, row in entries(block(inputs, "spec"), "replicatedJobs"):
        parallelism, replicas = whole(block(row, "template", "spec"), "parallelism") or 1, whole(row, "replicas") or 1
        if parallelism * replicas > _MOST_PODS:
            message = f"{replicas} replicas of {parallelism} pods at a time are too many"
            path = f"spec.replicatedJobs[{index}].replicas"
            yield Wrong(path, message, f"at most {_MOST_PODS // parallelism}", str(_MOST_PODS // parallelism))


@object_rule("jobset-references", JOB_SET, ruleset="jobsets", facts=("JBS-01",), source=_ASKED)
def jobset_references(inputs: Json) -> Iterator[Wrong]:
    """Find jobs that policies, dependencies or the coordinator name and that the JobSet does not have."""
    spec = block(inputs, "spec")
    jobs = {text(row, "name"): row for _, row in entries(spec, "replicatedJobs")}
    allowed = ", ".join(filter(None, jobs)) or "a name in replicatedJobs"
    for path, name in _references(spec):
        if name not in jobs:
            yield Wrong(path, f"the JobSet has no job {name}", allowed)
    for index, row in entries(spec, "replicatedJobs"):
        for place, other in entries(row, "dependsOn"):
            path = f"spec.replicatedJobs[{index}].dependsOn[{place}].name"
            before = [text(each, "name") for _, each in entries(spec, "replicatedJobs")[:index]]
            if text(other, "name") not in before:
                known = ", ".join(filter(None, before)) or "none for the first job"
                yield Wrong(path, f"no job {text(other, 'name')} stands before this one", known)
    yield from _coordinator(block(spec, "coordinator"), jobs)


def _references(spec: Json) -> Iterator[tuple[str, str]]:
    for name in texts(block(spec, "successPolicy"), "targetReplicatedJobs"):
        yield "spec.successPolicy.targetReplicatedJobs", name
    for index, row in entries(block(spec, "failurePolicy"), "rules"):
        for name in texts(row, "targetReplicatedJobs"):
            yield f"spec.failurePolicy.rules[{index}].targetReplicatedJobs", name
    if (leader := text(block(spec, "coordinator"), "replicatedJob")) is not None:
        yield "spec.coordinator.replicatedJob", leader


def _coordinator(coordinator: Json, jobs: Mapping[str | None, Json]) -> Iterator[Wrong]:
    job = jobs.get(text(coordinator, "replicatedJob"))
    if job is None:
        return
    inner = block(job, "template", "spec")
    sizes = {"jobIndex": whole(job, "replicas"), "podIndex": whole(inner, "completions") or whole(inner, "parallelism")}
    for name, size in sizes.items():
        index = whole(coordinator, name)
        if index is not None and not 0 <= index < (size or 1):
            yield Wrong(f"spec.coordinator.{name}", f"there is none of index {index}", f"0 to {(size or 1) - 1}", "0")


@object_rule("jobset-policies", JOB_SET, ruleset="jobsets", facts=("JBS-03",), source=_ASKED)
def jobset_policies(inputs: Json) -> Iterator[Wrong]:
    """Find failure policies with rules called alike, reasons that no Job has, or behind gates that are off."""
    policy = block(inputs, "spec", "failurePolicy")
    rules = entries(policy, "rules")
    if policy.get("restartStrategy") == _IN_PLACE:
        allowed = "Recreate, BlockingRecreate"
        yield Wrong("spec.failurePolicy.restartStrategy", f"{_IN_PLACE} is behind a gate", allowed, "Recreate")
    for index, row in rules:
        if row.get("action") in _GATED:
            path, allowed = f"spec.failurePolicy.rules[{index}].action", "FailJobSet, RestartJobSet"
            yield Wrong(path, f"{row['action']} is behind a gate that is off by default", allowed, "RestartJobSet")
    for index, name in twice([text(row, "name") for _, row in rules]):
        yield Wrong(f"spec.failurePolicy.rules[{index}].name", f"there are two rules {name}", "a name for each")
    for index, row in rules:
        for reason in texts(row, "onJobFailureReasons"):
            if reason not in _REASONS:
                path = f"spec.failurePolicy.rules[{index}].onJobFailureReasons"
                yield Wrong(path, f"no Job fails for reason {reason}", ", ".join(_REASONS))
