"""How a program reaches a private cluster: by its DNS-based control-plane endpoint, guarded by IAM."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes

from training_platform.resources.gke.control_plane import cluster_identifier, kubeconfig


def cluster_provider(
    name: str,
    *,
    endpoint: pulumi.Input[str],
    project: str,
    location: str,
    cluster_name: str,
    opts: pulumi.ResourceOptions | None = None,
) -> kubernetes.Provider:
    """Return the provider of a cluster's Kubernetes objects; no other place makes one."""
    return kubernetes.Provider(
        name,
        # What the objects belong to. While it stays, a changed kubeconfig replaces nothing.
        cluster_identifier=cluster_identifier(project, location, cluster_name),
        enable_server_side_apply=True,
        kubeconfig=pulumi.Output.from_input(endpoint).apply(kubeconfig),
        opts=opts,
    )
