"""A WorkloadPriorityClass: the order of jobs in a queue, apart from the priority of their pods."""

from __future__ import annotations

import pulumi
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from training_platform.resources.kueue.objects import API_VERSION


class WorkloadPriorityClass(pulumi.CustomResource):
    """A priority that jobs name by the label ``kueue.x-k8s.io/priority-class``; without one, a job has priority 0.

    A class of ours, since its ``value`` stands beside ``metadata``, and in Python the provider's own resource for
    custom kinds takes ``spec`` alone (pulumi-kubernetes 4.34).
    """

    def __init__(
        self, name: str, *, metadata: ObjectMetaArgs, value: int, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        kind = "WorkloadPriorityClass"
        inputs = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "value": value}
        super().__init__(f"kubernetes:{API_VERSION}:{kind}", name, inputs, opts)
