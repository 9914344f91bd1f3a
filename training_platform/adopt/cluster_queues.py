"""Kueue's objects of clusters, of which shares, cohorts and priorities are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training_platform.adopt.sections.environment import key_of
from training_platform.adopt.sections.queues import Queues
from training_platform.clients.kubernetes_api import (
    CLUSTER_QUEUES,
    COHORTS,
    PRIORITIES,
    ClusterApi,
    ClusterError,
    Kind,
)

_KINDS = (CLUSTER_QUEUES, COHORTS, PRIORITIES)


def read_queues(stack: str, apis: Mapping[str, ClusterApi]) -> Queues:
    """Ask each cluster of a stack, by path, for Kueue's objects. Raises ClusterError where one cannot be asked.

    A cluster without Kueue, which knows none of the kinds, has none.
    """
    by_key = {key_of(stack, path.rpartition("/")[2]): api for path, api in apis.items()}
    return Queues({key: {kind.plural: _objects(api, kind) for kind in _KINDS} for key, api in by_key.items()})


def _objects(api: ClusterApi, kind: Kind) -> list[Mapping[str, Any]]:
    try:
        return list(api.objects(kind, ""))
    except ClusterError as error:
        if error.status == 404:
            return []
        raise
