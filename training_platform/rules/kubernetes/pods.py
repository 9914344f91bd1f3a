"""Pods within Jobs, JobSets and DaemonSets: what the API server compares, and whether TPU pods fit their machines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from training_platform.rules.kubernetes.objects import (
    Json,
    Wrong,
    block,
    entries,
    is_unknown,
    object_rule,
    text,
    twice,
    whole,
)

JOB, JOB_SET, DAEMON_SET = "batch:Job", "jobset.x-k8s.io:JobSet", "apps:DaemonSet"
SERVER: Final = "Kubernetes API server 1.36.3, asked 2026-11-22"
_QUANTITY: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?\Z")
_POWERS: Final = {
    "": Decimal(1), "m": Decimal("0.001"),
    **{"kMGTPE"[power - 1]: Decimal(1000**power) for power in range(1, 7)},
    **{f"{letter}i": Decimal(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}  # fmt: skip
Pod = tuple[str, Json]


def pods(inputs: Json) -> Iterator[Pod]:
    """Yield the pod specs of an object with their paths: a Job and a DaemonSet have one, a JobSet one a job."""
    for at, job in jobs(inputs):
        yield f"{at}.template.spec", block(job, "template", "spec")


def jobs(inputs: Json) -> Iterator[tuple[str, Json]]:
    """Yield the specs of a JobSet's jobs with their paths; of any other object its own spec."""
    spec = block(inputs, "spec")
    if "replicatedJobs" not in spec:
        yield "spec", spec
    for index, job in entries(spec, "replicatedJobs"):
        yield f"spec.replicatedJobs[{index}].template.spec", block(job, "template", "spec")


def quantity(value: Any) -> Decimal | None:
    """Return a Kubernetes quantity as a number; None where it is none, or not known."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Decimal(str(value))
    match = _QUANTITY.match(value) if isinstance(value, str) else None
    return Decimal(match[1]) * _POWERS[match[2] or ""] if match else None


@object_rule("pod-resources", JOB, JOB_SET, DAEMON_SET, ruleset="pods", source=SERVER)
def pod_resources(inputs: Json) -> Iterator[Wrong]:
    """Find requests above their limits, and devices without a whole limit that is equal to the request."""
    for at, pod in pods(inputs):
        for index, container in entries(pod, "containers"):
            resources = block(container, "resources")
            here = f"{at}.containers[{index}].resources"
            if not (is_unknown(resources, "limits") or is_unknown(resources, "requests")):
                yield from _compared(here, block(resources, "requests"), block(resources, "limits"))


def _compared(here: str, requests: Json, limits: Json) -> Iterator[Wrong]:
    for name in dict.fromkeys((*requests, *limits)):
        asked, most = quantity(requests.get(name)), quantity(limits.get(name))
        device = "/" in name
        if any(each is not None and each < 0 for each in (asked, most)):
            yield Wrong(f"{here}.requests", f"{name} is below 0", "at least 0", "0")
        elif device and name in requests and name not in limits:
            yield Wrong(f"{here}.limits", f"{name} has a request and no limit", f"{asked}, as its request", str(asked))
        elif device and most is not None and most != most.to_integral_value():
            yield Wrong(f"{here}.limits", f"{name} is {limits[name]}: devices are not divided", "a whole number")
        elif asked is not None and most is not None and device and asked != most:
            message = f"{name} asks for {requests[name]} and is limited to {limits[name]}"
            yield Wrong(here, message, "one number in both", str(limits[name]))
        elif asked is not None and most is not None and asked > most:
            message = f"{name} asks for {requests[name]}"
            yield Wrong(f"{here}.requests", message, f"at most {limits[name]}, its limit", str(limits[name]))


@object_rule("pod-parts", JOB, JOB_SET, DAEMON_SET, ruleset="pods", source=SERVER)
def pod_parts(inputs: Json) -> Iterator[Wrong]:
    """Find parts of a pod called alike, mounts of volumes that it does not have, and variables with two values.

    A JobSet gives its pods volumes for the claims of its ``volumeClaimPolicies``. Source: JobSet f22e565,
    volume_claim_policy.go, and its example, which the API server and the webhook take.
    """
    spec = block(inputs, "spec")
    policies = entries(spec, "volumeClaimPolicies")
    claimed = [text(row.get("metadata"), "name") for _, each in policies for _, row in entries(each, "templates")]
    for at, pod in pods(inputs):
        for part in ("containers", "volumes"):
            for index, name in twice([text(row, "name") for _, row in entries(pod, part)]):
                yield Wrong(f"{at}.{part}[{index}].name", f"there are two {part} {name}", "a name for each")
        volumes = [*(text(row, "name") for _, row in entries(pod, "volumes")), *claimed]
        for index, container in entries(pod, "containers"):
            here = f"{at}.containers[{index}]"
            if not (is_unknown(pod, "volumes") or is_unknown(spec, "volumeClaimPolicies")):
                yield from _mounts(here, container, volumes)
            for place, variable in entries(container, "env"):
                if variable.get("value") and variable.get("valueFrom"):
                    yield Wrong(f"{here}.env[{place}].valueFrom", "the variable has a value, too", "one of both")


def _mounts(here: str, container: Json, volumes: list[str | None]) -> Iterator[Wrong]:
    mounts = entries(container, "volumeMounts")
    for place, mount in mounts:
        name = text(mount, "name")
        if name is not None and name not in volumes:
            allowed = ", ".join(filter(None, volumes)) or "a name in volumes"
            yield Wrong(f"{here}.volumeMounts[{place}].name", f"the pod has no volume {name}", allowed)
    for place, path in twice([text(mount, "mountPath") for _, mount in mounts]):
        yield Wrong(f"{here}.volumeMounts[{place}].mountPath", f"two volumes are mounted at {path}", "a path for each")


@object_rule(
    "toleration-form", JOB, JOB_SET, DAEMON_SET, "kueue.x-k8s.io:ResourceFlavor", ruleset="pods", facts=("KUE-08",),
    source=f"{SERVER}, and the CRD of Kueue 0.19.2",
)  # fmt: skip
def toleration_form(inputs: Json) -> Iterator[Wrong]:
    """Find tolerations whose operator does not go with their key or value, or whose seconds have no NoExecute."""
    own = ("spec", block(inputs, "spec"))  # a flavor's; most have labels, and none has pods
    for at, owner in [own] if "nodeLabels" in own[1] else [*pods(inputs), own]:
        for index, row in entries(owner, "tolerations"):
            here = f"{at}.tolerations[{index}]"
            if row.get("operator") == "Exists" and row.get("value"):
                yield Wrong(f"{here}.value", "operator Exists takes no value", "no value, or operator Equal")
            if not row.get("key") and row.get("operator") != "Exists":
                yield Wrong(f"{here}.operator", "a toleration without a key tolerates all", "Exists", "Exists")
            if row.get("tolerationSeconds") is not None and row.get("effect") != "NoExecute":
                yield Wrong(f"{here}.effect", "tolerationSeconds goes with NoExecute alone", "NoExecute", "NoExecute")


@object_rule("job-completion", JOB, JOB_SET, ruleset="pods", facts=("JBS-05",), source=SERVER)
def job_completion(inputs: Json) -> Iterator[Wrong]:
    """Find Indexed jobs without completions, and policies that ask for another completion mode or restart policy."""
    for at, job in jobs(inputs):
        indexed = job.get("completionMode") == "Indexed"
        policy = block(job, "template", "spec").get("restartPolicy")
        if indexed and job.get("completions") is None:
            most = whole(job, "parallelism") or 1
            yield Wrong(f"{at}.completions", "an Indexed job has no completions", "a number of pods", str(most))
        if job.get("backoffLimitPerIndex") is not None and job.get("completionMode") in (None, "NonIndexed"):
            yield Wrong(f"{at}.backoffLimitPerIndex", "is for Indexed jobs alone", "completionMode Indexed")
        if job.get("podFailurePolicy") is not None and policy == "OnFailure":
            yield Wrong(f"{at}.template.spec.restartPolicy", "podFailurePolicy needs Never", "Never", "Never")


@object_rule("pod-selector", DAEMON_SET, ruleset="pods", source=SERVER)
def pod_selector(inputs: Json) -> Iterator[Wrong]:
    """Find a selector that its own pods do not match."""
    wanted = block(inputs, "spec", "selector", "matchLabels")
    labels = block(inputs, "spec", "template", "metadata", "labels")
    for key, value in wanted.items():
        if isinstance(value, str) and isinstance(labels.get(key, ""), str) and labels.get(key) != value:
            found = labels.get(key, "not there")
            yield Wrong(
                "spec.selector.matchLabels", f"{key} is {value}, and of the pods {found}", "a label of the pods"
            )
