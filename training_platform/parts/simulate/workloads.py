"""Reads the workloads of a cluster from the output of ``kubectl get workloads -A -o json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from kueue_model import MOST_SECONDS, Manifests, amount, units
from kueue_model.imports import MALFORMED, workload_items
from training_platform.config.reading.finding import UserError


class Workload(NamedTuple):
    """A workload that has not ended. ``admitted`` is None if it waits. ``why`` is the reason if it can never start."""

    namespace: str
    job: str
    queue: str
    needs: str
    priority: int
    created: float
    admitted: float | None
    most_seconds: float
    why: str = ""


class Workloads(NamedTuple):
    """The workloads in a file. ``lengths`` has run times of ended jobs, keyed by queue, with "" for all queues."""

    running: list[Workload]
    waiting: list[Workload]
    lengths: Mapping[str, list[float]]
    left_out: tuple[str, ...]


class _NoFlavorError(Exception):
    """Raised if no flavor of a queue has the labels that pods select."""


def read_workloads(path: Path, manifests: Manifests) -> Workloads:
    """Return the workloads in a file. Raises UserError if it is unreadable."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    running: list[Workload] = []
    waiting: list[Workload] = []
    lengths: dict[str, list[float]] = {}
    left_out: list[str] = []
    for item, _ in workload_items(path, text):
        try:
            conditions = _true_conditions(item)
            queue = _queue_of(item, manifests)
            if "Finished" in conditions:
                if "Admitted" in conditions:
                    seconds = max(1.0, conditions["Finished"] - conditions["Admitted"])
                    lengths.setdefault(str(queue), []).append(seconds)
                    lengths.setdefault("", []).append(seconds)
                continue
            if queue is None or queue not in manifests.cluster.queues or item["spec"].get("active") is False:
                left_out.append(_name_of(item))
                continue
            workload = _workload(item, queue, conditions, manifests)
        except MALFORMED:
            left_out.append(_name_of(item))
            continue
        if workload.admitted is None:
            waiting.append(workload)
        else:
            running.append(workload)
    waiting.sort(key=lambda workload: workload.created)
    return Workloads(running, waiting, lengths=lengths, left_out=tuple(left_out))


def _name_of(item: Any) -> str:
    """Return the ``namespace/name`` of a workload, also if its fields are missing."""
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return f"{metadata.get('namespace', 'default')}/{metadata.get('name', '?')}"


def _true_conditions(item: Any) -> dict[str, float]:
    """Return the time of each condition of a workload that is true, keyed by its type."""
    moments: dict[str, float] = {}
    for condition in (item.get("status") or {}).get("conditions") or ():
        if condition["status"] == "True":
            moments[condition["type"]] = _seconds(condition["lastTransitionTime"])
    return moments


def _queue_of(item: Any, manifests: Manifests) -> str | None:
    """Return the ClusterQueue of a workload, or None if its LocalQueue is unknown."""
    admission = (item.get("status") or {}).get("admission") or {}
    queue: str | None = admission.get("clusterQueue")
    counting = manifests.cluster.counting
    if queue or counting is None:
        return queue
    namespace = item["metadata"].get("namespace", "default")
    return counting.local_queues.get(f"{namespace}/{item['spec'].get('queueName')}")


def _workload(item: Any, queue: str, conditions: Mapping[str, float], manifests: Manifests) -> Workload:
    """Return a workload that has not ended."""
    metadata = item["metadata"]
    spec = item["spec"]
    status = item.get("status") or {}
    admission = status.get("admission") or {}
    needs: list[str] = []
    why = ""
    try:
        if admission:
            needs.extend(_held(admission))
        else:
            needs.extend(_requested(spec, status, manifests, queue))
    except _NoFlavorError:
        needs.clear()
        why = f"no flavor of {queue} has the labels that its pods select"
    controllers = [owner["name"] for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    return Workload(
        namespace=metadata.get("namespace", "default"),
        job=str(controllers[0] if controllers else metadata["name"]),
        queue=queue,
        needs=" + ".join(needs),
        priority=int(spec.get("priority") or 0),
        created=_seconds(metadata["creationTimestamp"]),
        admitted=conditions.get("QuotaReserved") if admission else None,
        most_seconds=float(spec.get("maximumExecutionTimeSeconds") or MOST_SECONDS),
        why=why,
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def _held(admission: Any) -> Iterator[str]:
    """Yield the amounts and flavors of each pod set of an admitted job."""
    for row in admission["podSetAssignments"]:
        usage = row.get("resourceUsage") or {}
        flavors = set((row.get("flavors") or {}).values())
        if usage and flavors:
            yield f"{_words(usage)} on {' or '.join(sorted(flavors))}"


def _requested(spec: Any, status: Any, manifests: Manifests, queue: str) -> Iterator[str]:
    """Yield the requests of each pod set of a waiting job, and the flavors that its node selector allows."""
    requests = {row["name"]: row.get("resources") or {} for row in status.get("resourceRequests") or ()}
    for pods in spec["podSets"]:
        template = pods["template"]["spec"]
        amounts = requests.get(pods.get("name", "main"))
        if amounts is None:  # Kueue has not seen the workload yet
            count = pods.get("count", 1)
            amounts = {name: _quantity(name, number * count) for name, number in _pod_requests(template).items()}
        flavors = _flavors(manifests, queue, template.get("nodeSelector") or {}, amounts)
        if amounts and flavors:
            yield f"{_words(amounts)} on {' or '.join(flavors)}"
        elif amounts:
            yield _words(amounts)


def _pod_requests(spec: Any) -> Counter[str]:
    """Return the requests of a pod, keyed by resource, in Kueue's units.

    Containers run together with sidecars, which are init containers that restart. Other init containers run earlier,
    one by one, each together with the sidecars that have started. The larger of both sums counts, plus the pod's
    overhead. Requests of the pod as a whole replace those of its containers. Source: kubernetes-sigs/kueue v0.19.2,
    pkg/workload/resources.go, and PodRequests of k8s.io/component-helpers, which it calls, read 2026-11-28.
    """
    together: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            together += _requests(container)
        else:
            before |= together + _requests(container)
    for container in spec["containers"]:
        together += _requests(container)
    requests = Counter({**(together | before), **_requests(spec)})
    overhead = {name: amount(name, quantity) for name, quantity in (spec.get("overhead") or {}).items()}
    return requests + Counter(overhead)


def _requests(spec: Any) -> Counter[str]:
    """Return the requests of a container, or of a pod as a whole. A limit without a request counts as a request."""
    resources = spec.get("resources") or {}
    quantities = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Counter({name: amount(name, quantity) for name, quantity in quantities.items()})


def _quantity(resource: str, number: int) -> str:
    """Return an amount in Kueue's units as a Kubernetes quantity."""
    whole, thousandths = divmod(number, units(resource))
    return f"{number}m" if thousandths else str(whole)


def _words(resources: Mapping[str, object]) -> str:
    return " ".join(f"{quantity} {name}" for name, quantity in resources.items())


def _flavors(manifests: Manifests, queue: str, selector: Mapping[str, str], resources: Collection[str]) -> list[str]:
    """Return the flavors of resources whose labels match a selector, or an empty list if all match.

    Kueue compares only the label keys that the flavor has. Raises _NoFlavorError if no flavor matches.
    """
    fitting: list[str] = []
    excluded = False
    for group in manifests.cluster.queues[queue].get("resourceGroups", ()):
        if not set(group["coveredResources"]) & set(resources):
            continue
        labels = {flavor["name"]: manifests.labels.get(flavor["name"], {}) for flavor in group["flavors"]}
        matching = [
            name
            for name, flavor_labels in labels.items()
            if all(selector.get(key, value) == value for key, value in flavor_labels.items())
        ]
        if not matching:
            raise _NoFlavorError
        fitting += matching
        excluded = excluded or len(matching) < len(labels)
    return fitting if excluded else []
