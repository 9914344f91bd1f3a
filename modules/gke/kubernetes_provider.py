"""How a program reaches a private cluster: by its DNS-based control-plane endpoint, guarded by IAM."""

from __future__ import annotations

import json

import pulumi
import pulumi_kubernetes as kubernetes

from training_platform.config.spec.stack import PROJECT

RENDER_TO = "renderTo"
KUBECONFIGS = "kubeconfigs"


def cluster_provider(
    name: str,
    *,
    endpoint: pulumi.Input[str],
    project: str,
    location: str,
    cluster_name: str,
    opts: pulumi.ResourceOptions | None = None,
) -> kubernetes.Provider:
    """Return the provider of a cluster's Kubernetes objects; no other place makes one.

    With ``training-platform:renderTo`` in the configuration, the objects are written as YAML to that folder, each
    cluster's to one of its own in it, and no cluster is reached; the provider refuses a kubeconfig beside it. With
    ``training-platform:kubeconfigs``, they go to the API server of ``{that folder}/{identifier}/kubeconfig``. In both,
    ``modules.helm`` leaves releases out.
    """
    config = pulumi.Config(PROJECT)
    render_to, kubeconfigs = config.get(RENDER_TO), config.get(KUBECONFIGS)
    identifier = cluster_identifier(project, location, cluster_name)
    reached = f"{kubeconfigs}/{identifier}/kubeconfig" if kubeconfigs else None
    return kubernetes.Provider(
        name,
        # What the objects belong to. While it stays, a changed kubeconfig replaces nothing.
        cluster_identifier=identifier,
        enable_server_side_apply=True,
        kubeconfig=None if render_to else reached or pulumi.Output.from_input(endpoint).apply(kubeconfig),
        render_yaml_to_directory=f"{render_to}/{cluster_name}" if render_to else None,
        opts=opts,
    )


def cluster_identifier(project: str, location: str, cluster_name: str) -> str:
    """Return what objects belong to: the cluster's name in the GKE API."""
    return f"projects/{project}/locations/{location}/clusters/{cluster_name}"


def leaves_out_releases() -> bool:
    """Whether objects go where no Helm release can: the provider renders none, and an API server has no nodes."""
    config = pulumi.Config(PROJECT)
    return bool(config.get(RENDER_TO) or config.get(KUBECONFIGS))


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
