"""Planned Kubernetes objects and Helm releases in a project's clusters, and Kueue's objects, by a kubeconfig."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import (
    CLUSTER_QUEUES,
    COHORTS,
    PRIORITIES,
    SECRETS,
    ApiKind,
    ClusterApi,
    ClusterError,
    connect,
)
from training_platform.clients.project_contents import Contents
from training_platform.config.model.queues import ROOT_COHORT
from training_platform.parts.adopt.sections.values import at, is_ours, key_of
from training_platform.resources.gke import context_name
from training_platform.resources.resource_types import CLUSTER
from training_platform.resources.stack_resource import UNKNOWN

_QUEUE_KINDS = (CLUSTER_QUEUES, COHORTS, PRIORITIES)


class Standing(NamedTuple):
    """An object in a cluster, with the provider's import id, ``namespace/name`` or ``name``."""

    id: str
    body: Json


@dataclass(frozen=True)
class ClusterObjects:
    """Reachable clusters by path; ``unread`` has the reasons of unreadable kinds, by cluster and kind."""

    apis: Mapping[str, ClusterApi] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    _kinds: dict[tuple[str, str], dict[str, tuple[ApiKind, bool]]] = field(default_factory=dict)

    def find(self, cluster: str, manifest: Json) -> Standing | None:
        """Return the object of a planned manifest; a volume without a known name is found by its claim."""
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
        """Return a Helm release with its chart's version and values, from Helm's Secret."""
        namespace = release["namespace"]
        name = release["name"]
        selector = f"owner=helm,name={name},status=deployed"
        try:
            secrets = list(self.apis[cluster].objects(SECRETS, namespace, selector))
        except ClusterError as error:
            self.unread.setdefault(f"{cluster} Helm release", str(error))
            return None
        return Standing(f"{namespace}/{name}", _release(secrets[-1])) if secrets else None


def reach_clusters(stack: str, contents: Contents, kubeconfig: str) -> dict[str, ClusterApi]:
    """Return the API of each cluster of a stack by path. Raises ClusterError if the kubeconfig lacks one."""
    apis = {}
    for path in contents.of(CLUSTER):
        if not is_ours(stack, path):
            continue
        _, project, _, location, _, name = path.split("/")
        log_in = f"gcloud container clusters get-credentials {name} --location {location} --project {project}"
        contexts = (context_name(project, location, name), name)
        apis[path] = connect(name, contexts=contexts, kubeconfig=kubeconfig, log_in=f"{log_in} --dns-endpoint")
    return apis


def read_queues(stack: str, apis: Mapping[str, ClusterApi]) -> Queues:
    """Read Kueue's objects from each cluster of a stack, by path. Raises ClusterError if one does not answer.

    A cluster without Kueue, which knows none of the kinds, has none.
    """
    by_key = {key_of(stack, path.rpartition("/")[2]): api for path, api in apis.items()}
    return Queues({key: {kind.plural: _objects(api, kind) for kind in _QUEUE_KINDS} for key, api in by_key.items()})


def _objects(api: ClusterApi, kind: ApiKind) -> list[Json]:
    try:
        return list(api.objects(kind, ""))
    except ClusterError as error:
        if error.status == 404:
            return []
        raise


def _release(secret: Json) -> Json:
    """Return Helm's record of a release: gzipped JSON in base64, encoded again by the Secret."""
    release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    return {"version": release["chart"]["metadata"]["version"], "values": release.get("config") or {}}


@dataclass(frozen=True)
class Queues:
    """Kueue's objects by the cluster's key in the stack file and by plural; ``order`` has each cluster's flavors."""

    objects: Mapping[str, Mapping[str, list[Json]]] = field(default_factory=dict)
    order: Mapping[str, list[str]] = field(default_factory=dict)

    def of(self, plural: str, name: str) -> Iterator[tuple[str, Json]]:
        """Yield the cluster and spec of the objects of a kind with a name."""
        for cluster, kinds in self.objects.items():
            yield from ((cluster, item["spec"]) for item in kinds.get(plural, ()) if item["metadata"]["name"] == name)

    def names(self, plural: str) -> set[str]:
        """Return the names of a kind's objects in all clusters."""
        return {item["metadata"]["name"] for kinds in self.objects.values() for item in kinds.get(plural, ())}

    def teams(self) -> set[str]:
        """Return the teams with queues, which have the team's name."""
        return self.names(CLUSTER_QUEUES.plural)


def queue_fields(team: str, queues: Queues) -> dict[str, Any]:
    """Return the fields of a team's section from its ClusterQueues; fields for all clusters are from the first."""
    specs = dict(queues.of(CLUSTER_QUEUES.plural, team))
    if not specs:
        return {}
    spec = next(iter(specs.values()))
    cohort = spec.get("cohortName")
    return {
        "shares": {cluster: _shares(queue) for cluster, queue in specs.items()},
        "cohort": None if cohort == ROOT_COHORT else cohort,
        "weight": int(float(at(spec, "fairSharing.weight") or 1)),
        "preemption": {
            "within_queue": at(spec, "preemption.withinClusterQueue"),
            "reclaim": at(spec, "preemption.reclaimWithinCohort"),
            "borrow_within_cohort": at(spec, "preemption.borrowWithinCohort.policy"),
        },
        "fallback": {
            "when_can_borrow": at(spec, "flavorFungibility.whenCanBorrow"),
            "when_can_preempt": at(spec, "flavorFungibility.whenCanPreempt"),
            "order": dict(_orders(specs, queues)),
        },
        "hold": {c: queue["stopPolicy"] for c, queue in specs.items() if queue.get("stopPolicy") not in (None, "None")},
    }


def environment_fields(queues: Queues) -> dict[str, Any]:
    """Return an environment's fields for queues: priorities, and cohorts with their quota."""
    if not queues.objects:
        return {}
    every = [priority for kinds in queues.objects.values() for priority in kinds.get(PRIORITIES.plural, ())]
    cohorts = {name: _cohort(dict(queues.of(COHORTS.plural, name))) for name in sorted(queues.names(COHORTS.plural))}
    return {"priorities": {priority["metadata"]["name"]: priority["value"] for priority in every}, "cohorts": cohorts}


def _cohort(specs: Mapping[str, Json]) -> dict[str, Any]:
    spec = next(iter(specs.values()))
    parent = spec.get("parentName")
    section = {
        "parent": None if parent == ROOT_COHORT else parent,
        "weight": int(float(at(spec, "fairSharing.weight") or 1)),
        "shares": {cluster: _shares(cohort) for cluster, cohort in specs.items() if _shares(cohort)},
    }
    return {key: value for key, value in section.items() if value not in (None, {}, 1)}


def _shares(spec: Json) -> dict[str, dict[str, int]]:
    limits = {"nominalQuota": "nominal_quota", "borrowingLimit": "borrowing_limit", "lendingLimit": "lending_limit"}
    shares: dict[str, dict[str, int]] = {}
    for group in spec.get("resourceGroups") or ():
        for flavor in group["flavors"]:
            quota = next(iter(flavor["resources"]), None)
            if quota:
                quotas = {ours: quota.get(theirs) for theirs, ours in limits.items()}
                shares[flavor["name"]] = {name: int(amount) for name, amount in quotas.items() if amount is not None}
    return shares


def _orders(specs: Mapping[str, Json], queues: Queues) -> Iterator[tuple[str, list[str]]]:
    """Yield the order of a team's flavors if it differs from its environment's."""
    for cluster, spec in specs.items():
        names = list(_shares(spec))
        ordered = [name for name in queues.order.get(cluster, names) if name in names]
        if ordered != names and set(ordered) == set(names):
            yield cluster, names
