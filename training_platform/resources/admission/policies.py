"""All admission policies of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training_platform.resources.admission.jobs import JobKind, accelerator_pods, queued_jobs, queued_operator_jobs
from training_platform.resources.admission.pods import daemon_exec, pod_baseline, pod_images, pod_volumes
from training_platform.resources.admission.policy import Policy


def policies(
    images: Mapping[str, str], sources: Sequence[str] = (), kinds: Sequence[JobKind] = ()
) -> tuple[Policy, ...]:
    """Return every policy; ``images`` are those of the daemons, by their names in the catalogue.

    ``sources`` are what pods' images begin with; with none, images come from anywhere. ``kinds`` are operators' jobs.
    """
    held = (*queued_operator_jobs(kinds), *([pod_images(sources, images)] if sources else []))
    return (queued_jobs(), accelerator_pods(), pod_volumes(), pod_baseline(images), daemon_exec(), *held)
