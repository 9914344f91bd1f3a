"""Pods, and the pods of whatever makes some; ports and amounts that the API server compares in one object."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.resources.planned import UNKNOWN
from training_platform.rules.kubernetes.objects import (
    SERVER,
    Flaw,
    block,
    entries,
    is_block,
    is_unknown,
    object_rule,
    text,
    texts,
    twice,
    whole,
)

JOB, JOB_SET = "batch:Job", "jobset.x-k8s.io:JobSet"
LWS = "leaderworkerset.x-k8s.io:LeaderWorkerSet"
JOBS: Final = (JOB, JOB_SET, "batch:CronJob")
SELECTING: Final = ("apps:DaemonSet", "apps:Deployment", "apps:ReplicaSet", "apps:StatefulSet")
WORKLOADS: Final = (
    *JOBS,
    *SELECTING,
    "core:Pod",
    "core:PodTemplate",
    "core:ReplicationController",
    "leaderworkerset.x-k8s.io:LeaderWorkerSet",
    "ray.io:RayCluster",
    "ray.io:RayCronJob",
    "ray.io:RayJob",
    "ray.io:RayService",
)
_QUANTITY: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?\Z")
_OF_RAY: Final = (
    "gcs-storage",
    "ray-logs",
    "ray-tls",
    "ray-token",
    "shared-mem",
)  # volumes that KubeRay 1.7.0 gives its pods
_PAGES: Final = "hugepages-"  # and the size of a page
# Source: Kubernetes API reference of Quantity, v1.34: none is greater than 2^63-1 in magnitude, larger ones are capped.
_LARGEST: Final = Decimal(2**63 - 1)
_POWERS: Final = {
    "": Decimal(1), "m": Decimal("0.001"),
    **{"kMGTPE"[power - 1]: Decimal(1000**power) for power in range(1, 7)},
    **{f"{letter}i": Decimal(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}  # fmt: skip
Pod = tuple[str, Json]


def pods(inputs: Json, at: str = "") -> Iterator[Pod]:
    """Yield the pod specs within an object with their paths: what has containers, however deep a kind keeps it."""
    for key, value in inputs.items() if is_block(inputs) else ():
        rows = [(f"{key}[{index}]", row) for index, row in entries(inputs, key)]
        for place, row in [(key, value)] if is_block(value) else rows:
            here = f"{at}.{place}" if at else place
            if "containers" in row:
                yield here, row
            else:
                yield from pods(row, here)


def jobs(inputs: Json) -> Iterator[tuple[str, Json]]:
    """Yield the specs of a JobSet's jobs with their paths, and of a CronJob's; of any other object its own spec.

    Those of a JobSet are Indexed where nothing is written. Source: JobSet 0.12.0, jobset_webhook.go.
    """
    spec = block(inputs, "spec")
    if "jobTemplate" in spec:
        yield "spec.jobTemplate.spec", block(spec, "jobTemplate", "spec")
    elif "replicatedJobs" not in spec:
        yield "spec", spec
    for index, job in entries(spec, "replicatedJobs"):
        own = block(job, "template", "spec")
        mode = {"completionMode": "Indexed", **own} if own.get("completionMode") is None else own
        yield f"spec.replicatedJobs[{index}].template.spec", mode


def quantity(value: Any) -> Decimal | None:
    """Return a Kubernetes quantity as a number; None where it is none, or not known.

    A larger one counts as the largest that there is, as for the API server.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        amount = Decimal(str(value))
    else:
        match = _QUANTITY.match(value) if isinstance(value, str) else None
        amount = Decimal(match[1]) * _POWERS[match[2] or ""] if match else Decimal("nan")
    return None if amount.is_nan() else max(-_LARGEST, min(amount, _LARGEST))


def containers(at: str, pod: Json) -> Iterator[Pod]:
    """Yield the containers of a pod with their paths, those that run first among them."""
    for part in ("initContainers", "containers"):
        for index, container in entries(pod, part):
            yield f"{at}.{part}[{index}]", container


@object_rule("pod-resources", *WORKLOADS, ruleset="pods", source=SERVER)
def pod_resources(inputs: Json) -> Iterator[Flaw]:
    """Find requests above their limits, and devices or large pages without a whole limit equal to the request."""
    for at, pod in pods(inputs):
        for place, container in containers(at, pod):
            resources, here = block(container, "resources"), f"{place}.resources"
            if not (is_unknown(resources, "limits") or is_unknown(resources, "requests")):
                requests, limits = block(resources, "requests"), block(resources, "limits")
                yield from _compared(here, requests, limits)
                names = {*requests, *limits}
                if any(name.startswith(_PAGES) for name in names) and not names & {"cpu", "memory"}:
                    message = "large pages are asked for without CPU or memory"
                    yield Flaw(f"{here}.requests", message, "an amount of cpu or of memory beside them")


def _compared(here: str, requests: Json, limits: Json) -> Iterator[Flaw]:
    for name in dict.fromkeys((*requests, *limits)):
        asked, most = quantity(requests.get(name)), quantity(limits.get(name))
        device = ("/" in name and "kubernetes.io/" not in name) or name.startswith(_PAGES)
        if any(amount is not None and amount < 0 for amount in (asked, most)):
            part = "requests" if asked is not None and asked < 0 else "limits"
            yield Flaw(f"{here}.{part}", f"{name} is below 0", "at least 0", "0")
        elif device and name in requests and name not in limits:
            yield Flaw(f"{here}.limits", f"{name} has a request and no limit", f"{asked}, as its request", str(asked))
        elif device and most is not None and most % (size := quantity(name.removeprefix(_PAGES)) or 1):
            why = "devices are not divided" if size == 1 else "pages are not divided"
            yield Flaw(f"{here}.limits", f"{name} is {limits[name]}: {why}", f"a multiple of {size:,}")
        elif asked is not None and most is not None and device and asked != most:
            message = f"{name} asks for {requests[name]} and is limited to {limits[name]}"
            yield Flaw(here, message, "one number in both", str(limits[name]))
        elif asked is not None and most is not None and asked > most:
            message = f"{name} asks for {requests[name]}"
            yield Flaw(f"{here}.requests", message, f"at most {limits[name]}, its limit", str(limits[name]))


@object_rule("pod-parts", *WORKLOADS, ruleset="pods", source=SERVER)
def pod_parts(inputs: Json) -> Iterator[Flaw]:
    """Find parts of a pod called alike, mounts of volumes that it does not have, and variables with two values.

    A JobSet gives its pods volumes for the claims of its ``volumeClaimPolicies``, a StatefulSet and a LeaderWorkerSet
    for those of its ``volumeClaimTemplates``. Source: JobSet f22e565, volume_claim_policy.go, and its example, which
    the API server and the webhook take.
    """
    spec = block(inputs, "spec")
    templates = [row for _, policy in entries(spec, "volumeClaimPolicies") for row in entries(policy, "templates")]
    groups = block(spec, "leaderWorkerTemplate")
    templates += [*entries(spec, "volumeClaimTemplates"), *entries(groups, "volumeClaimTemplates")]
    claimed = [text(row.get("metadata"), "name") for _, row in templates]
    open_end = any(is_unknown(spec, name) for name in ("volumeClaimPolicies", "volumeClaimTemplates"))
    open_end = open_end or is_unknown(groups, "volumeClaimTemplates")
    for at, pod in pods(inputs):
        parts = {f"{at}.volumes": "volumes", f"{at}.containers": "containers", f"{at}.initContainers": "containers"}
        rows = [(f"{here}[{index}]", what, text(row, "name")) for here, what in parts.items()
                for index, row in entries(pod, here.rpartition(".")[2])]  # fmt: skip
        for what in ("volumes", "containers"):
            own = [(here, name) for here, kind, name in rows if kind == what]
            for index, name in twice([name for _, name in own]):
                yield Flaw(f"{own[index][0]}.name", f"there are two {what} {name}", "a name for each")
        volumes = [*(text(row, "name") for _, row in entries(pod, "volumes")), *claimed]
        volumes += _OF_RAY if "GroupSpec" in at else ()
        for here, container in containers(at, pod):
            if not (is_unknown(pod, "volumes") or open_end):
                yield from _mounts(here, container, volumes)
            claims = [text(row, "name") for _, row in entries(pod, "resourceClaims")]
            for place, row in entries(block(container, "resources"), "claims"):
                if text(row, "name") not in (None, *claims):
                    allowed = ", ".join(filter(None, claims)) or "a name in resourceClaims"
                    message = f"the pod has no claim {row['name']}"
                    yield Flaw(f"{here}.resources.claims[{place}].name", message, allowed)
            for place, variable in entries(container, "env"):
                if variable.get("value") and variable.get("valueFrom"):
                    yield Flaw(f"{here}.env[{place}].valueFrom", "the variable has a value, too", "one of both")


def _mounts(here: str, container: Json, volumes: list[str | None]) -> Iterator[Flaw]:
    mounts = entries(container, "volumeMounts")
    privileged = block(container, "securityContext").get("privileged")
    for place, mount in mounts:
        name = text(mount, "name")
        if mount.get("mountPropagation") == "Bidirectional" and privileged is not UNKNOWN and not privileged:
            message = "only a privileged container passes its own mounts on"
            yield Flaw(f"{here}.volumeMounts[{place}].mountPropagation", message, "HostToContainer")
        if name is not None and name not in volumes:
            allowed = ", ".join(filter(None, volumes)) or "a name in volumes"
            yield Flaw(f"{here}.volumeMounts[{place}].name", f"the pod has no volume {name}", allowed)
    for place, device in entries(container, "volumeDevices"):
        if text(device, "name") not in (None, *volumes):
            allowed = ", ".join(filter(None, volumes)) or "a name in volumes"
            yield Flaw(f"{here}.volumeDevices[{place}].name", f"the pod has no volume {device['name']}", allowed)
    for place, path in twice([text(mount, "mountPath") for _, mount in mounts]):
        yield Flaw(f"{here}.volumeMounts[{place}].mountPath", f"two volumes are mounted at {path}", "a path for each")


@object_rule(
    "toleration-form", *WORKLOADS, "kueue.x-k8s.io:ResourceFlavor", ruleset="pods",
    source=f"{SERVER}, and the CRD of Kueue 0.19.2",
)  # fmt: skip
def toleration_form(inputs: Json) -> Iterator[Flaw]:
    """Find tolerations whose operator does not go with their key or value, or whose seconds have no NoExecute."""
    own = ("spec", block(inputs, "spec"))  # a flavor's; most have labels, and none has pods
    for at, owner in [own] if "nodeLabels" in own[1] else [*pods(inputs), own]:
        for index, row in entries(owner, "tolerations"):
            here = f"{at}.tolerations[{index}]"
            if row.get("operator") == "Exists" and row.get("value"):
                yield Flaw(f"{here}.value", "operator Exists takes no value", "no value, or operator Equal")
            if not row.get("key") and row.get("operator") != "Exists":
                yield Flaw(f"{here}.operator", "a toleration without a key tolerates all", "Exists", "Exists")
            if row.get("tolerationSeconds") is not None and row.get("effect") != "NoExecute":
                yield Flaw(f"{here}.effect", "tolerationSeconds goes with NoExecute alone", "NoExecute", "NoExecute")


@object_rule("pod-selector", JOB, *SELECTING, ruleset="pods", source=SERVER)
def pod_selector(inputs: Json) -> Iterator[Flaw]:
    """Find a selector that its own pods do not match."""
    wanted = block(inputs, "spec", "selector", "matchLabels")
    labels = block(inputs, "spec", "template", "metadata", "labels")
    for key, value in wanted.items():
        if isinstance(value, str) and isinstance(labels.get(key, ""), str) and labels.get(key) != value:
            message = f"{key} is {value}, and of the pods {labels.get(key, 'not there')}"
            yield Flaw("spec.selector.matchLabels", message, "a label of the pods")
    for index, row in entries(block(inputs, "spec", "selector"), "matchExpressions"):
        if not _matches(row, labels):
            message = f"{row.get('key')} of the pods is {labels.get(str(row.get('key')), 'not there')}"
            yield Flaw(f"spec.selector.matchExpressions[{index}]", message, "an expression that the pods match")


def _matches(row: Json, labels: Json) -> bool:
    """Whether labels match an expression of a selector; one that is not known, or wrong by itself, is not judged."""
    key, values = text(row, "key"), texts(row, "values")
    label = labels.get(key) if key else UNKNOWN
    if label is UNKNOWN or len(values) != len(row.get("values") or ()):
        return True
    by_operator = {
        "In": not values or label in values, "NotIn": label not in values,
        "Exists": label is not None, "DoesNotExist": label is None,
    }  # fmt: skip
    return by_operator.get(str(row.get("operator")), True)


_AT = {"core:PersistentVolumeClaim": "spec.resources.requests", "core:PersistentVolume": "spec.capacity"}
_OF_PODS = ("cpu", "limits.cpu", "limits.memory", "memory", "pods", "requests.cpu", "requests.memory")
_COUNTED = {"BestEffort": ("pods",), "VolumeAttributesClass": ("persistentvolumeclaims", "requests.storage")}
_OPPOSITE = {"NotBestEffort": "BestEffort", "NotTerminating": "Terminating"}
_MEASURED = re.compile(r"(^|\.)(cpu|memory|(ephemeral-)?storage|hugepages-.+)$")  # other quotas count things


@object_rule("volume-amount", *_AT, ruleset="objects", source=SERVER)
def volume_amount(inputs: Json) -> Iterator[Flaw]:
    """Find a volume or a claim of no size."""
    for path in _AT.values():
        amount = block(inputs, *path.split(".")).get("storage")
        size = quantity(amount)
        if size is not None and size <= 0:
            yield Flaw(f"{path}.storage", f"is {amount}", "more than 0", "1Gi")


@object_rule("quota-amount", "core:ResourceQuota", ruleset="objects", source=SERVER)
def quota_amount(inputs: Json) -> Iterator[Flaw]:
    """Find a quota of a namespace below 0, and a part of a thing that is counted."""
    for name, amount in block(inputs, "spec", "hard").items():
        size = quantity(amount)
        if size is not None and size < 0:
            yield Flaw("spec.hard", f"{name} is {amount}", "at least 0", "0")
        elif size is not None and size % 1 and not _MEASURED.search(name):
            yield Flaw("spec.hard", f"{name} is {amount}, but they are counted", "a whole number")


@object_rule("quota-scope", "core:ResourceQuota", ruleset="objects", source=SERVER)
def quota_scope(inputs: Json) -> Iterator[Flaw]:
    """Find a quota whose scope does not count what it limits, or excludes another of its scopes."""
    spec = block(inputs, "spec")
    selected = entries(block(spec, "scopeSelector"), "matchExpressions")
    scopes = [("spec.scopes", scope) for scope in texts(spec, "scopes")]
    scopes += [
        (f"spec.scopeSelector.matchExpressions[{n}].scopeName", text(row, "scopeName") or "") for n, row in selected
    ]
    for path, scope in scopes:
        counted = _COUNTED.get(scope, _OF_PODS)
        for name in block(spec, "hard"):
            if "/" not in name and name not in counted:
                yield Flaw(path, f"{scope} does not count {name}, which spec.hard limits", ", ".join(counted))
        if (path, _OPPOSITE.get(scope)) in scopes:
            yield Flaw(path, f"there are both {_OPPOSITE[scope]} and {scope}", "one of them")


@object_rule("limit-range", "core:LimitRange", ruleset="objects", source=SERVER)
def limit_range(inputs: Json) -> Iterator[Flaw]:
    """Find limits of a namespace that are out of order, and two for one kind of thing."""
    rows = entries(block(inputs, "spec"), "limits")
    for index, kind in twice([text(row, "type") for _, row in rows]):
        yield Flaw(f"spec.limits[{index}].type", f"there are two limits of type {kind}", "one for each type")
    order = ("min", "defaultRequest", "default", "max")
    for index, row in rows:
        for low, high in pairwise(order):
            for name, amount in block(row, low).items():
                least, most = quantity(amount), quantity(block(row, high).get(name))
                if least is not None and most is not None and least > most:
                    message = f"{low} of {name}, {amount}, is above {high}"
                    yield Flaw(f"spec.limits[{index}].{low}", message, f"at most {block(row, high)[name]}")


@object_rule("container-ports", *WORKLOADS, ruleset="pods", source=SERVER)
def container_ports(inputs: Json) -> Iterator[Flaw]:
    """Find ports of one container called alike, ports of a node taken twice, and others in the network of the node."""
    for at, pod in pods(inputs):
        taken: list[str | None] = []
        places: list[str] = []
        for here, container in containers(at, pod):
            rows = entries(container, "ports")
            for index, name in twice([text(row, "name") for _, row in rows]):
                yield Flaw(f"{here}.ports[{index}].name", f"there are two ports {name}", "a name for each")
            for index, row in rows:
                port, of_node = whole(row, "containerPort"), whole(row, "hostPort")
                places.append(f"{here}.ports[{index}].hostPort")
                own = f"{row.get('protocol') or 'TCP'} {row.get('hostIP') or ''}:{of_node}"
                taken.append(own if of_node and "initContainers" not in here else None)
                if pod.get("hostNetwork") is True and of_node and port and of_node != port:
                    message = f"hostPort is {of_node}, and in the network of the node port {port} is that port"
                    yield Flaw(places[-1], message, str(port), str(port))
        for index, port_of_node in twice(taken):
            yield Flaw(places[index], f"{port_of_node} of the node is taken twice", "a port for each")


@object_rule("service-ports", "core:Service", ruleset="pods", source=SERVER)
def service_ports(inputs: Json) -> Iterator[Flaw]:
    """Find ports of a service without a name beside others, called alike or the same, or of nodes in a ClusterIP's."""
    spec = block(inputs, "spec")
    rows = entries(spec, "ports")
    names = [text(row, "name") for _, row in rows]
    for index, row in rows:
        if len(rows) > 1 and not row.get("name"):
            yield Flaw(f"spec.ports[{index}].name", "one of several ports has no name", "a name for each")
        if row.get("nodePort") and spec.get("type") in (None, "ClusterIP"):
            message = "a service of type ClusterIP has no port of nodes"
            yield Flaw(f"spec.ports[{index}].nodePort", message, "no nodePort, or type NodePort or LoadBalancer")
    for index, name in twice(names):
        yield Flaw(f"spec.ports[{index}].name", f"there are two ports {name}", "a name for each")
    own = [f"{row.get('protocol') or 'TCP'} {port}" if (port := whole(row, "port")) else None for _, row in rows]
    for index, name in twice(own):
        yield Flaw(f"spec.ports[{index}].port", f"port {name} is there twice", "another port or protocol")
