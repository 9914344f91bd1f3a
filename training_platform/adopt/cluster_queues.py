"""Kueue's objects of a project's clusters, by a kubeconfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_platform.adopt.sections.environment import key_of
from training_platform.adopt.sections.queues import Queues
from training_platform.adopt.sections.values import Inexpressible
from training_platform.clients.kubernetes_api import (
    CLUSTER_QUEUES,
    COHORTS,
    PRIORITIES,
    ClusterApi,
    ClusterError,
    Kind,
    connect,
)
from training_platform.clients.project_contents import Contents
from training_platform.resources.register import CLUSTER

_KINDS = (CLUSTER_QUEUES, COHORTS, PRIORITIES)


def read_queues(stack: str, contents: Contents, kubeconfig: str) -> Queues:
    """Ask each cluster of a stack for Kueue's objects. Raises ClusterError where one cannot be asked.

    A cluster without Kueue, which knows none of the kinds, has none.
    """
    objects: dict[str, Mapping[str, list[Mapping[str, Any]]]] = {}
    for path in contents.of(CLUSTER):
        _, project, _, location, _, name = path.split("/")
        try:
            key = key_of(stack, name)
        except Inexpressible:
            continue
        log_in = f"gcloud container clusters get-credentials {name} --location {location} --project {project}"
        contexts = (f"gke_{project}_{location}_{name}", name)
        api = connect(name, contexts=contexts, kubeconfig=kubeconfig, log_in=f"{log_in} --dns-endpoint")
        objects[key] = {kind.plural: _objects(api, kind) for kind in _KINDS}
    return Queues(objects)


def _objects(api: ClusterApi, kind: Kind) -> list[Mapping[str, Any]]:
    try:
        return list(api.objects(kind, ""))
    except ClusterError as error:
        if error.status == 404:
            return []
        raise
