"""How a program reaches a private cluster: by its DNS-based control-plane endpoint, guarded by IAM."""

from __future__ import annotations

import json

import pulumi
import pulumi_kubernetes as kubernetes

from modules.config.stack import PROJECT

RENDER_TO = "renderTo"


def cluster_provider(
    name: str,
    *,
    endpoint: pulumi.Input[str],
    project: str,
    location: str,
    cluster_name: str,
    opts: pulumi.ResourceOptions | None = None,
    render_to: str | None = None,
) -> kubernetes.Provider:
    """Return the provider of a cluster's Kubernetes objects; no other place makes one.

    With ``render_to``, or ``training-platform:renderTo`` in the configuration, the objects are written as YAML to that
    folder and no cluster is reached; the provider refuses a kubeconfig beside it, and renders no Helm release. The
    setting names a folder for all clusters, each of which gets one of its own in it.
    """
    folder = pulumi.Config(PROJECT).get(RENDER_TO)
    if render_to is None and folder:
        render_to = f"{folder}/{cluster_name}"
    return kubernetes.Provider(
        name,
        # What the objects belong to. While it stays, a changed kubeconfig replaces nothing.
        cluster_identifier=f"projects/{project}/locations/{location}/clusters/{cluster_name}",
        enable_server_side_apply=True,
        kubeconfig=pulumi.Output.from_input(endpoint).apply(kubeconfig) if render_to is None else None,
        render_yaml_to_directory=render_to,
        opts=opts,
    )


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
