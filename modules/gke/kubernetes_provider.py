"""How a program reaches a private cluster: by its DNS-based control-plane endpoint, guarded by IAM."""

from __future__ import annotations

import json

import pulumi
import pulumi_kubernetes as kubernetes


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


def cluster_identifier(project: str, location: str, cluster_name: str) -> str:
    """Return what objects belong to: the cluster's name in the GKE API."""
    return f"projects/{project}/locations/{location}/clusters/{cluster_name}"


def kubeconfig(endpoint: str) -> str:
    """Return a kubeconfig for the host name of a DNS-based endpoint, as JSON.

    It holds no secret: gke-gcloud-auth-plugin gets a token as whoever runs Pulumi. It holds no certificate authority
    either, since the endpoint shows a certificate that every machine trusts (unverified).
    """
    login = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
        "installHint": "Install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin",
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"server": f"https://{endpoint}"}}],
        "users": [{"name": "caller", "user": {"exec": login}}],
        "contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "caller"}}],
        "current-context": "cluster",
    }
    return json.dumps(config, sort_keys=True)
