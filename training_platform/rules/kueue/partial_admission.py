"""Annotations by which a Job tells Kueue that fewer pods than its parallelism will do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from training_platform.rules.kubernetes.objects import Json, Wrong, block, is_unknown, object_rule, text, whole
from training_platform.rules.kubernetes.pods import JOB

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
