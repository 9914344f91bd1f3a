"""Finds the clusters of a deployed stack in its state, warnings in them, and Kueue objects that belong to no stack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from training_platform.catalog import CHARTS
from training_platform.clients.kubernetes_api import EVENTS, ClusterApi, connect
from training_platform.resources.resource_types import KUBERNETES
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER

_KUEUE: Final = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
_WARNINGS: Final = 10  # of a namespace
_LOG_IN: Final = "log in to Google Cloud, and install gke-gcloud-auth-plugin on PATH"


def deployed_clusters(resources: Iterable[Mapping[str, Any]]) -> Iterator[ClusterApi]:
    """Yield the API of each cluster that the Kubernetes providers in a state use. Raises ClusterError."""
    for resource in resources:
        if resource["type"] == KUBERNETES_PROVIDER:
            kubeconfig = resource["inputs"]["kubeconfig"]
            context = json.loads(kubeconfig)["current-context"]
            name = str(resource["inputs"].get("clusterIdentifier") or context).rpartition("/")[2]
            with TemporaryDirectory() as folder:
                file = Path(folder) / "kubeconfig"
                file.touch(mode=0o600)
                file.write_text(kubeconfig, encoding="utf-8")
                api = connect(name, contexts=[context], kubeconfig=str(file), log_in=_LOG_IN)
            yield api


def objects_without_stack(api: ClusterApi, resources: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the kind and id of each Kueue object in a cluster that is not in the state of any stack.

    ``resources`` are the resources in the states of all stacks.

    When Kueue is uninstalled, its controller is deleted first. The uninstallation would then wait forever for an object
    with a finalizer. Raises ClusterError.
    """
    owned = {
        (resource["type"].rpartition(":")[2], resource.get("id"))
        for resource in resources
        if resource["type"].startswith(f"{KUBERNETES}kueue.x-k8s.io/")
    }
    kinds = next(filter(None, map(api.kinds, _KUEUE)), {})
    for kind, (api_kind, _) in sorted(kinds.items()):
        for obj in api.objects(api_kind, ""):
            metadata = obj["metadata"]
            identity = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
            if (kind, identity) not in owned:
                yield f"{kind} {identity}"


def chart_warnings(api: ClusterApi) -> Iterator[str]:
    """Yield the newest warnings in the namespaces of charts, oldest first. A cluster keeps events for an hour.

    Raises ClusterError.
    """
    for namespace in sorted({chart.namespace for chart in CHARTS.values()}):
        events = sorted(api.objects(EVENTS, namespace, fields="type=Warning"), key=_last_seen)
        for event in events[-_WARNINGS:]:
            about = event["involvedObject"]
            yield f"{namespace}: {about['kind']} {about['name']}: {event['reason']}: {event['message']}"


def _last_seen(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
