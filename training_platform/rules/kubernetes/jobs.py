"""Jobs, alone and in what makes some: what the API server compares in the spec of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from training_platform.rules.kubernetes.objects import Json, Wrong, block, entries, object_rule, text, whole
from training_platform.rules.kubernetes.pods import JOBS, SERVER, containers, jobs

_WIDEST: Final = 100_000  # pods of an Indexed job at a time: pkg/apis/batch/validation of Kubernetes 1.36.3


@object_rule("job-completion", *JOBS, ruleset="pods", facts=("JBS-05",), source=SERVER)
def job_completion(inputs: Json) -> Iterator[Wrong]:
    """Find Indexed jobs without completions, and policies that ask for another completion mode or restart policy."""
    for at, job in jobs(inputs):
        indexed = job.get("completionMode") == "Indexed"
        policy = block(job, "template", "spec").get("restartPolicy")
        width = whole(job, "parallelism")
        if indexed and job.get("completions") is None and width is not None:  # where neither is, both are 1
            yield Wrong(f"{at}.completions", "an Indexed job has no completions", "a number of pods", str(width or 1))
        if indexed and width is not None and width > _WIDEST:
            message = f"parallelism is {width}, and completionMode is Indexed"
            yield Wrong(f"{at}.parallelism", message, f"at most {_WIDEST:,}", str(_WIDEST))
        if job.get("backoffLimitPerIndex") is not None and job.get("completionMode") in (None, "NonIndexed"):
            yield Wrong(f"{at}.backoffLimitPerIndex", "is only for Indexed jobs", "completionMode Indexed")
        if job.get("podFailurePolicy") is not None and policy == "OnFailure":
            yield Wrong(f"{at}.template.spec.restartPolicy", "podFailurePolicy needs Never", "Never", "Never")


@object_rule("job-policy", *JOBS, ruleset="pods", source=SERVER)
def job_policy(inputs: Json) -> Iterator[Wrong]:
    """Find exit codes of a failure policy out of order, and indexes of a success policy that the job does not have."""
    for at, job in jobs(inputs):
        for index, row in entries(block(job, "podFailurePolicy"), "rules"):
            place = f"{at}.podFailurePolicy.rules[{index}]"
            codes, here = block(row, "onExitCodes"), f"{place}.onExitCodes.values"
            if row.get("action") == "FailIndex" and job.get("backoffLimitPerIndex") is None:
                message = "FailIndex goes with backoffLimitPerIndex alone"
                yield Wrong(f"{place}.action", message, "Count, FailJob, Ignore")
            names, name = _containers(job), text(codes, "containerName")
            if name is not None and names and name not in names:
                yield Wrong(f"{place}.onExitCodes.containerName", f"the pod has no container {name}", ", ".join(names))
            values = [each for each in codes.get("values") or () if isinstance(each, (int, float))]
            if values != sorted(set(values)):
                yield Wrong(here, "exit codes are not in ascending order without duplicates", str(sorted(set(values))))
            if 0 in values and codes.get("operator") == "In":
                yield Wrong(here, "exit code 0 is not a failure", "codes of at least 1, or operator NotIn")
        rules, most = entries(block(job, "successPolicy"), "rules"), whole(job, "completions")
        if rules and job.get("completionMode") in (None, "NonIndexed"):
            yield Wrong(f"{at}.successPolicy", "is only for Indexed jobs", "completionMode Indexed")
        for index, row in rules:
            last = max((int(each) for each in re.findall(r"[0-9]+", text(row, "succeededIndexes") or "")), default=-1)
            if most is not None and last >= most:
                here = f"{at}.successPolicy.rules[{index}].succeededIndexes"
                yield Wrong(here, f"index {last} is beyond the {most} completions", f"0 to {most - 1}")


def _containers(job: Json) -> list[str]:
    """Return the names of the containers of a job's pod; none where one is not known."""
    names = [text(container, "name") for _, container in containers("", block(job, "template", "spec"))]
    return [] if None in names else [name for name in names if name is not None]
