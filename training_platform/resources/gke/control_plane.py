"""The control plane of a cluster: what it is called, and the kubeconfig by which its DNS-based endpoint is reached."""

from __future__ import annotations

import json


def cluster_identifier(project: str, location: str, cluster_name: str) -> str:
    """Return what objects belong to: the cluster's name in the GKE API."""
    return f"projects/{project}/locations/{location}/clusters/{cluster_name}"


def context_name(project: str, location: str, cluster_name: str) -> str:
    """Return the context that ``gcloud container clusters get-credentials`` writes into a kubeconfig."""
    return f"gke_{project}_{location}_{cluster_name}"


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
