"""What the pods of a job ask of a topology: annotations that exclude or need one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from training_platform.rules.kubernetes.objects import Json, Wrong, block, object_rule
from training_platform.rules.kubernetes.pods import WORKLOADS, jobs

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
