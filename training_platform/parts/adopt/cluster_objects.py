"""Finds planned Kubernetes objects and Helm releases in a project's clusters, with access from a kubeconfig."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import (
    SECRETS,
    ApiKind,
    ClusterApi,
    ClusterError,
    connect,
)
from training_platform.resources.gke import context_name
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, UNKNOWN, StackResource


class Standing(NamedTuple):
    """An existing object in a cluster, with the provider's import id, ``namespace/name`` or ``name``."""

    id: str
    body: Json


@dataclass(frozen=True)
class ClusterObjects:
    """Reachable clusters, keyed by path. ``unread`` contains the reason for each kind that a cluster does not list."""

    apis: Mapping[str, ClusterApi] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    _kinds: dict[tuple[str, str], dict[str, tuple[ApiKind, bool]]] = field(default_factory=dict)

    def find(self, cluster: str, manifest: Json) -> Standing | None:
        """Return the object that a planned manifest describes. A volume with an unknown name is found by its claim."""
        api = self.apis[cluster]
        about = manifest["metadata"]
        try:
            version = (cluster, manifest["apiVersion"])
            if version not in self._kinds:
                self._kinds[version] = api.kinds(manifest["apiVersion"])
            kind, namespaced = self._kinds[version].get(manifest["kind"], (None, False))
            namespace = (about.get("namespace") or "default") if namespaced else ""
            if kind is None or namespace is UNKNOWN:
                return None
            if about["name"] is UNKNOWN:
                claim = manifest.get("spec", {}).get("claimRef") or {}
                names = {(key, claim[key]) for key in ("namespace", "name") if claim}
                objects = api.objects(kind, namespace) if claim else ()
                body = next(
                    (row for row in objects if names <= (row.get("spec", {}).get("claimRef") or {}).items()), None
                )
            else:
                body = api.get(kind, namespace, about["name"])
        except ClusterError as error:
            self.unread.setdefault(f"{cluster} {manifest['kind']}", str(error))
            return None
        if body is None:
            return None
        told = {key: manifest[key] for key in ("apiVersion", "kind")}  # which entries of lists omit
        return Standing(f"{namespace}/{body['metadata']['name']}".lstrip("/"), {**body, **told})

    def find_release(self, cluster: str, release: Json) -> Standing | None:
        """Return a Helm release with its chart's version and its values, read from Helm's Secret."""
        namespace = release["namespace"]
        name = release["name"]
        selector = f"owner=helm,name={name},status=deployed"
        try:
            secrets = list(self.apis[cluster].objects(SECRETS, namespace, selector))
        except ClusterError as error:
            self.unread.setdefault(f"{cluster} Helm release", str(error))
            return None
        return Standing(f"{namespace}/{name}", _release(secrets[-1])) if secrets else None


def planned_clusters(resources: Iterable[StackResource]) -> set[str]:
    """Return the paths of the clusters that contain planned objects."""
    providers = (resource for resource in resources if resource.type == KUBERNETES_PROVIDER)
    return {str(provider.inputs["clusterIdentifier"]) for provider in providers}


def reach_clusters(paths: Iterable[str], kubeconfig: str) -> dict[str, ClusterApi]:
    """Return the API of each cluster, keyed by path. Raises ClusterError if a cluster is not in the kubeconfig."""
    apis = {}
    for path in paths:
        _, project, _, location, _, name = path.split("/")
        log_in = f"gcloud container clusters get-credentials {name} --location {location} --project {project}"
        contexts = (context_name(project, location, name), name)
        apis[path] = connect(name, contexts=contexts, kubeconfig=kubeconfig, log_in=f"{log_in} --dns-endpoint")
    return apis


def _release(secret: Json) -> Json:
    """Decode Helm's record of a release: JSON, gzipped, in base64, which the Secret encodes in base64 again."""
    release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    return {"version": release["chart"]["metadata"]["version"], "values": release.get("config") or {}}
