"""Kubernetes objects and Helm releases of a project's clusters, as a plan has them, and Kueue's; by a kubeconfig."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from training_platform.adopt.sections.environment import is_ours, key_of
from training_platform.adopt.sections.queues import Queues
from training_platform.clients.kubernetes_api import (
    CLUSTER_QUEUES,
    COHORTS,
    PRIORITIES,
    SECRETS,
    ClusterApi,
    ClusterError,
    Kind,
    connect,
)
from training_platform.clients.project_contents import Contents
from training_platform.resources.gke import context_name
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.register import CLUSTER

Json = Mapping[str, Any]
_QUEUE_KINDS = (CLUSTER_QUEUES, COHORTS, PRIORITIES)


class Standing(NamedTuple):
    """An object in a cluster: the id by which the provider imports it, ``namespace/name`` or ``name``, and itself."""

    id: str
    body: Json


@dataclass(frozen=True)
class ClusterObjects:
    """Clusters that can be asked, by path; ``unread`` says why kinds could not be read, by cluster and kind."""

    apis: Mapping[str, ClusterApi] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    _kinds: dict[tuple[str, str], dict[str, tuple[Kind, bool]]] = field(default_factory=dict)

    def find(self, cluster: str, wanted: Json) -> Standing | None:
        """Return the object that a plan means; one whose name only a deployment tells, by the claim that it is for."""
        api, about = self.apis[cluster], wanted["metadata"]
        try:
            kind, namespaced = self._kind(cluster, wanted["apiVersion"], wanted["kind"])
            namespace = (about.get("namespace") or "default") if namespaced else ""
            if kind is None or namespace is UNKNOWN:
                return None
            if about["name"] is UNKNOWN:
                there = (each for each in api.objects(kind, namespace) if _same_claim(wanted, each))
                body = next(there, None)
            else:
                body = api.get(kind, namespace, about["name"])
        except ClusterError as error:
            self.unread.setdefault(f"{cluster} {wanted['kind']}", str(error))
            return None
        if body is None:
            return None
        told = {key: wanted[key] for key in ("apiVersion", "kind")}  # which entries of lists leave out
        return Standing(f"{namespace}/{body['metadata']['name']}".lstrip("/"), {**body, **told})

    def find_release(self, cluster: str, wanted: Json) -> Standing | None:
        """Return a Helm release with its chart's version and its values, from the Secret in which Helm keeps it."""
        namespace, name = wanted["namespace"], wanted["name"]
        selector = f"owner=helm,name={name},status=deployed"
        try:
            kept = list(self.apis[cluster].objects(SECRETS, namespace, selector))
        except ClusterError as error:
            self.unread.setdefault(f"{cluster} Helm release", str(error))
            return None
        return Standing(f"{namespace}/{name}", _release(kept[-1])) if kept else None

    def _kind(self, cluster: str, api_version: str, name: str) -> tuple[Kind | None, bool]:
        key = (cluster, api_version)
        if key not in self._kinds:
            self._kinds[key] = self.apis[cluster].kinds(api_version)
        return self._kinds[key].get(name, (None, False))


def reach_clusters(stack: str, contents: Contents, kubeconfig: str) -> dict[str, ClusterApi]:
    """Return the API of each cluster of a stack, by path. Raises ClusterError where a kubeconfig has none."""
    found = {}
    for path in contents.of(CLUSTER):
        if not is_ours(stack, path):
            continue
        _, project, _, location, _, name = path.split("/")
        log_in = f"gcloud container clusters get-credentials {name} --location {location} --project {project}"
        contexts = (context_name(project, location, name), name)
        found[path] = connect(name, contexts=contexts, kubeconfig=kubeconfig, log_in=f"{log_in} --dns-endpoint")
    return found


def read_queues(stack: str, apis: Mapping[str, ClusterApi]) -> Queues:
    """Ask each cluster of a stack, by path, for Kueue's objects. Raises ClusterError where one cannot be asked.

    A cluster without Kueue, which knows none of the kinds, has none.
    """
    by_key = {key_of(stack, path.rpartition("/")[2]): api for path, api in apis.items()}
    return Queues({key: {kind.plural: _objects(api, kind) for kind in _QUEUE_KINDS} for key, api in by_key.items()})


def _objects(api: ClusterApi, kind: Kind) -> list[Json]:
    try:
        return list(api.objects(kind, ""))
    except ClusterError as error:
        if error.status == 404:
            return []
        raise


def _same_claim(wanted: Json, body: Json) -> bool:
    ours, theirs = (each.get("spec", {}).get("claimRef") or {} for each in (wanted, body))
    return bool(ours) and all(ours[key] == theirs.get(key) for key in ("namespace", "name"))


def _release(secret: Json) -> Json:
    """Return what Helm keeps of a release: JSON, packed, and in base64 twice, of which one is the Secret's own."""
    kept = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    return {"version": kept["chart"]["metadata"]["version"], "values": kept.get("config") or {}}
