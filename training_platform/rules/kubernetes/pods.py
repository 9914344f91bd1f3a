"""Rules about pods and pod templates: fields such as ports and quantities that the API server compares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from training_platform.catalog.types import Json
from training_platform.config.reading.declaration import Draft, finding
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules.kubernetes.objects import (
    SERVER,
    block,
    duplicates,
    entries,
    integer,
    is_block,
    is_unknown,
    object_rule,
    string,
    strings,
)
from training_platform.views.whole_stack import ObjectView

JOB = "batch:Job"
JOB_SET = "jobset.x-k8s.io:JobSet"
LWS = "leaderworkerset.x-k8s.io:LeaderWorkerSet"
JOBS: Final = (JOB, JOB_SET)
SELECTING: Final = ("apps:DaemonSet", "apps:Deployment")
WORKLOADS: Final = (*JOBS, *SELECTING, "core:Pod", LWS)
_QUANTITY: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?\Z")
_PAGES: Final = "hugepages-"  # and the size of a page
# Source: Kubernetes API reference of Quantity, v1.34: larger magnitudes than 2^63-1 are capped.
_LARGEST: Final = Decimal(2**63 - 1)
_POWERS: Final = {
    "": Decimal(1), "m": Decimal("0.001"),
    **{"kMGTPE"[power - 1]: Decimal(1000**power) for power in range(1, 7)},
    **{f"{letter}i": Decimal(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}  # fmt: skip
Pod = tuple[str, Json]


def pods(inputs: Json, path: str = "") -> Iterator[Pod]:
    """Yield the pod specs at any depth in an object, with their paths. A block with containers is a pod spec."""
    if not is_block(inputs):
        return
    for key, value in inputs.items():
        if is_block(value):
            blocks = [(key, value)]
        else:
            blocks = [(f"{key}[{index}]", row) for index, row in entries(inputs, key)]
        for step, inner in blocks:
            inner_path = f"{path}.{step}" if path else step
            if "containers" in inner:
                yield inner_path, inner
            else:
                yield from pods(inner, inner_path)


def jobs(inputs: Json) -> Iterator[tuple[str, Json]]:
    """Yield the job specs of a JobSet, each with its path. For any other object, yield its own spec.

    By default, jobs of a JobSet are Indexed. Source: JobSet 0.12.0, jobset_webhook.go.
    """
    spec = block(inputs, "spec")
    if "replicatedJobs" not in spec:
        yield "spec", spec
    for index, job in entries(spec, "replicatedJobs"):
        job_spec = block(job, "template", "spec")
        if job_spec.get("completionMode") is None:
            job_spec = {"completionMode": "Indexed", **job_spec}
        yield f"spec.replicatedJobs[{index}].template.spec", job_spec


def quantity(value: Any) -> Decimal | None:
    """Return a Kubernetes quantity as a number; None if it is unknown or not a quantity.

    Very large quantities are capped, as in the API server.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        amount = Decimal(str(value))
    else:
        match = _QUANTITY.match(value) if isinstance(value, str) else None
        amount = Decimal(match[1]) * _POWERS[match[2] or ""] if match else Decimal("nan")
    return None if amount.is_nan() else max(-_LARGEST, min(amount, _LARGEST))


def containers(pod_path: str, pod: Json) -> Iterator[Pod]:
    """Yield the containers of a pod with their paths, init containers first."""
    for part in ("initContainers", "containers"):
        for index, container in entries(pod, part):
            yield f"{pod_path}.{part}[{index}]", container


@object_rule("pod-resources", *WORKLOADS, ruleset="pods", source=SERVER)
def pod_resources(view: ObjectView) -> Iterator[Draft]:
    """Find requests that exceed their limits, and requests of devices or huge pages that differ from their limits.

    A device cannot be divided, and huge pages must be a multiple of their size.
    """
    inputs = view.inputs
    for pod_path, pod in pods(inputs):
        for container_path, container in containers(pod_path, pod):
            resources = block(container, "resources")
            path = f"{container_path}.resources"
            if is_unknown(resources, "limits") or is_unknown(resources, "requests"):
                continue
            requests = block(resources, "requests")
            limits = block(resources, "limits")
            yield from _amount_findings(view, path, requests, limits)
            names = {*requests, *limits}
            if any(name.startswith(_PAGES) for name in names) and not names & {"cpu", "memory"}:
                message = "huge pages are requested without CPU or memory"
                yield finding(
                    view, f"{path}.requests", message, allowed="an amount of cpu or memory in addition to them"
                )


def _amount_findings(view: ObjectView, path: str, requests: Json, limits: Json) -> Iterator[Draft]:
    for name in dict.fromkeys((*requests, *limits)):
        request = quantity(requests.get(name))
        limit = quantity(limits.get(name))
        device = ("/" in name and "kubernetes.io/" not in name) or name.startswith(_PAGES)
        size = quantity(name.removeprefix(_PAGES)) or 1
        if any(amount is not None and amount < 0 for amount in (request, limit)):
            part = "requests" if request is not None and request < 0 else "limits"
            yield finding(view, f"{path}.{part}", f"{name} is below 0", allowed="at least 0", nearest="0")
        elif device and name in requests and name not in limits:
            message = f"{name} has a request but no limit"
            yield finding(
                view, f"{path}.limits", message, allowed=f"{request}, equal to its request", nearest=str(request)
            )
        elif device and limit is not None and limit % size:
            why = "devices are not divided" if size == 1 else "pages are not divided"
            yield finding(view, f"{path}.limits", f"{name} is {limits[name]}: {why}", allowed=f"a multiple of {size:,}")
        elif request is None or limit is None:
            continue
        elif device and request != limit:
            message = f"{name} has request {requests[name]} and limit {limits[name]}"
            yield finding(view, path, message, allowed="the same number for both", nearest=str(limits[name]))
        elif request > limit:
            message = f"{name} has request {requests[name]}"
            yield finding(
                view,
                f"{path}.requests",
                message,
                allowed=f"at most {limits[name]}, its limit",
                nearest=str(limits[name]),
            )


@object_rule("pod-parts", *WORKLOADS, ruleset="pods", source=SERVER)
def pod_parts(view: ObjectView) -> Iterator[Draft]:
    """Find duplicate names in a pod, mounts of missing volumes, and variables with two values.

    A JobSet adds volumes to its pods for the claims in its ``volumeClaimPolicies``, and a LeaderWorkerSet for the
    claims in its ``volumeClaimTemplates``. Source: JobSet f22e565, volume_claim_policy.go, and its example, which the
    API server and the webhook accept.
    """
    inputs = view.inputs
    spec = block(inputs, "spec")
    groups = block(spec, "leaderWorkerTemplate")
    templates = entries(groups, "volumeClaimTemplates")
    for _, policy in entries(spec, "volumeClaimPolicies"):
        templates += entries(policy, "templates")
    claimed = [string(row.get("metadata"), "name") for _, row in templates]
    claims_unknown = is_unknown(spec, "volumeClaimPolicies") or is_unknown(groups, "volumeClaimTemplates")
    for pod_path, pod in pods(inputs):
        yield from _same_names(view, pod_path, pod, "volumes", ("volumes",))
        yield from _same_names(view, pod_path, pod, "containers", ("containers", "initContainers"))
        volumes = [*(string(row, "name") for _, row in entries(pod, "volumes")), *claimed]
        claims = [string(row, "name") for _, row in entries(pod, "resourceClaims")]
        for path, container in containers(pod_path, pod):
            if not (is_unknown(pod, "volumes") or claims_unknown):
                yield from _mount_findings(view, path, container, volumes)
            for index, row in entries(block(container, "resources"), "claims"):
                if string(row, "name") not in (None, *claims):
                    allowed = ", ".join(filter(None, claims)) or "a name in resourceClaims"
                    message = f"the pod has no claim {row['name']}"
                    yield finding(view, f"{path}.resources.claims[{index}].name", message, allowed=allowed)
            for index, variable in entries(container, "env"):
                if variable.get("value") and variable.get("valueFrom"):
                    yield finding(
                        view, f"{path}.env[{index}].valueFrom", "the variable has a value too", allowed="one of the two"
                    )


def _same_names(view: ObjectView, pod_path: str, pod: Json, kind: str, parts: tuple[str, ...]) -> Iterator[Draft]:
    """Find entries with the same name in certain lists of a pod."""
    rows = [(f"{pod_path}.{part}[{index}].name", string(row, "name")) for part in parts
            for index, row in entries(pod, part)]  # fmt: skip
    for index, name in duplicates([name for _, name in rows]):
        yield finding(view, rows[index][0], f"two {kind} are named {name}", allowed="a name for each")


def _mount_findings(view: ObjectView, path: str, container: Json, volumes: list[str | None]) -> Iterator[Draft]:
    mounts = entries(container, "volumeMounts")
    privileged = block(container, "securityContext").get("privileged")
    allowed = ", ".join(filter(None, volumes)) or "a name in volumes"
    for index, mount in mounts:
        name = string(mount, "name")
        if mount.get("mountPropagation") == "Bidirectional" and privileged is not UNKNOWN and not privileged:
            message = "only a privileged container can propagate its mounts"
            yield finding(view, f"{path}.volumeMounts[{index}].mountPropagation", message, allowed="HostToContainer")
        if name is not None and name not in volumes:
            yield finding(view, f"{path}.volumeMounts[{index}].name", f"the pod has no volume {name}", allowed=allowed)
    for index, device in entries(container, "volumeDevices"):
        if string(device, "name") not in (None, *volumes):
            yield finding(
                view, f"{path}.volumeDevices[{index}].name", f"the pod has no volume {device['name']}", allowed=allowed
            )
    for index, mount_path in duplicates([string(mount, "mountPath") for _, mount in mounts]):
        message = f"two volumes are mounted at {mount_path}"
        yield finding(view, f"{path}.volumeMounts[{index}].mountPath", message, allowed="a path for each")


@object_rule(
    "toleration-form", *WORKLOADS, "kueue.x-k8s.io:ResourceFlavor", ruleset="pods",
    source=f"{SERVER}, and the CRD of Kueue 0.19.2",
)  # fmt: skip
def toleration_form(view: ObjectView) -> Iterator[Draft]:
    """Find a toleration whose operator contradicts its key or value, or that has a duration but not NoExecute."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    owners = [("spec", spec)]
    if "nodeLabels" not in spec:  # most flavors have labels, and none has pods
        owners = [*pods(inputs), *owners]
    for owner_path, owner in owners:
        for index, row in entries(owner, "tolerations"):
            path = f"{owner_path}.tolerations[{index}]"
            if row.get("operator") == "Exists" and row.get("value"):
                yield finding(
                    view, f"{path}.value", "operator Exists takes no value", allowed="no value, or operator Equal"
                )
            if not row.get("key") and row.get("operator") != "Exists":
                yield finding(
                    view,
                    f"{path}.operator",
                    "a toleration without a key tolerates every taint",
                    allowed="Exists",
                    nearest="Exists",
                )
            if row.get("tolerationSeconds") is not None and row.get("effect") != "NoExecute":
                yield finding(
                    view,
                    f"{path}.effect",
                    "tolerationSeconds needs effect NoExecute",
                    allowed="NoExecute",
                    nearest="NoExecute",
                )


@object_rule("pod-selector", JOB, *SELECTING, ruleset="pods", source=SERVER)
def pod_selector(view: ObjectView) -> Iterator[Draft]:
    """Find a selector that its own pods do not match."""
    inputs = view.inputs
    selected = block(inputs, "spec", "selector", "matchLabels")
    labels = block(inputs, "spec", "template", "metadata", "labels")
    for key, value in selected.items():
        if isinstance(value, str) and isinstance(labels.get(key, ""), str) and labels.get(key) != value:
            actual = f"is {labels[key]}" if key in labels else "is missing"
            message = f"the selector has {key} {value}, but the label {actual} on the pods"
            yield finding(view, "spec.selector.matchLabels", message, allowed="a label of the pods")
    for index, row in entries(block(inputs, "spec", "selector"), "matchExpressions"):
        if not _matches(row, labels):
            key = str(row.get("key"))
            actual = f"is {labels[key]}" if key in labels else "is missing"
            message = f"label {key} {actual} on the pods"
            yield finding(
                view, f"spec.selector.matchExpressions[{index}]", message, allowed="an expression that the pods match"
            )


def _matches(row: Json, labels: Json) -> bool:
    """Return True if labels match a selector expression. An unknown or malformed expression is treated as matching."""
    key = string(row, "key")
    values = strings(row, "values")
    label = labels.get(key) if key else UNKNOWN
    if label is UNKNOWN or len(values) != len(row.get("values") or ()):
        return True
    by_operator = {
        "In": not values or label in values, "NotIn": label not in values,
        "Exists": label is not None, "DoesNotExist": label is None,
    }  # fmt: skip
    return by_operator.get(str(row.get("operator")), True)


_SIZES = {"core:PersistentVolumeClaim": "spec.resources.requests", "core:PersistentVolume": "spec.capacity"}
_OF_PODS = ("cpu", "limits.cpu", "limits.memory", "memory", "pods", "requests.cpu", "requests.memory")
_COUNTED = {"BestEffort": ("pods",), "VolumeAttributesClass": ("persistentvolumeclaims", "requests.storage")}
_OPPOSITE = {"NotBestEffort": "BestEffort", "NotTerminating": "Terminating"}
_MEASURED = re.compile(r"(^|\.)(cpu|memory|(ephemeral-)?storage|hugepages-.+)$")  # other quotas count objects


@object_rule("volume-amount", *_SIZES, ruleset="objects", source=SERVER)
def volume_amount(view: ObjectView) -> Iterator[Draft]:
    """Find a volume or a claim whose size is not above 0."""
    inputs = view.inputs
    for path in _SIZES.values():
        amount = block(inputs, *path.split(".")).get("storage")
        size = quantity(amount)
        if size is not None and size <= 0:
            yield finding(view, f"{path}.storage", f"is {amount}", allowed="more than 0", nearest="1Gi")


@object_rule("quota-amount", "core:ResourceQuota", ruleset="objects", source=SERVER)
def quota_amount(view: ObjectView) -> Iterator[Draft]:
    """Find a namespace quota that is negative, or that is a fraction although it limits a number of objects."""
    inputs = view.inputs
    for name, amount in block(inputs, "spec", "hard").items():
        size = quantity(amount)
        if size is not None and size < 0:
            yield finding(view, "spec.hard", f"{name} is {amount}", allowed="at least 0", nearest="0")
        elif size is not None and size % 1 and not _MEASURED.search(name):
            yield finding(view, "spec.hard", f"{name} is {amount}, but must be an integer", allowed="an integer")


@object_rule("quota-scope", "core:ResourceQuota", ruleset="objects", source=SERVER)
def quota_scope(view: ObjectView) -> Iterator[Draft]:
    """Find a quota with a scope that does not count the limited resource, or that contradicts another scope."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    scopes = [("spec.scopes", scope) for scope in strings(spec, "scopes")]
    for index, row in entries(block(spec, "scopeSelector"), "matchExpressions"):
        path = f"spec.scopeSelector.matchExpressions[{index}].scopeName"
        scopes.append((path, string(row, "scopeName") or ""))
    for path, scope in scopes:
        counted = _COUNTED.get(scope, _OF_PODS)
        for name in block(spec, "hard"):
            if "/" not in name and name not in counted:
                yield finding(
                    view, path, f"{scope} does not count {name}, which spec.hard limits", allowed=", ".join(counted)
                )
        if (path, _OPPOSITE.get(scope)) in scopes:
            yield finding(view, path, f"{_OPPOSITE[scope]} and {scope} exclude each other", allowed="one of the two")


@object_rule("limit-range", "core:LimitRange", ruleset="objects", source=SERVER)
def limit_range(view: ObjectView) -> Iterator[Draft]:
    """Find a LimitRange whose values are in the wrong order, or that has two limits of one type."""
    inputs = view.inputs
    rows = entries(block(inputs, "spec"), "limits")
    for index, kind in duplicates([string(row, "type") for _, row in rows]):
        yield finding(view, f"spec.limits[{index}].type", f"two limits have type {kind}", allowed="one for each type")
    order = ("min", "defaultRequest", "default", "max")
    for index, row in rows:
        for low, high in pairwise(order):
            for name, amount in block(row, low).items():
                lower = quantity(amount)
                upper = quantity(block(row, high).get(name))
                if lower is not None and upper is not None and lower > upper:
                    message = f"{low} of {name}, {amount}, is above {high}"
                    yield finding(
                        view, f"spec.limits[{index}].{low}", message, allowed=f"at most {block(row, high)[name]}"
                    )


@object_rule("container-ports", *WORKLOADS, ruleset="pods", source=SERVER)
def container_ports(view: ObjectView) -> Iterator[Draft]:
    """Find ports with the same name or host port, and host ports that differ from the port on the host network."""
    inputs = view.inputs
    for pod_path, pod in pods(inputs):
        taken: list[str | None] = []
        paths: list[str] = []
        for container_path, container in containers(pod_path, pod):
            rows = entries(container, "ports")
            for index, name in duplicates([string(row, "name") for _, row in rows]):
                yield finding(
                    view,
                    f"{container_path}.ports[{index}].name",
                    f"two ports are named {name}",
                    allowed="a name for each",
                )
            for index, row in rows:
                port = integer(row, "containerPort")
                host_port = integer(row, "hostPort")
                paths.append(f"{container_path}.ports[{index}].hostPort")
                address = f"{row.get('protocol') or 'TCP'} {row.get('hostIP') or ''}:{host_port}"
                taken.append(address if host_port and "initContainers" not in container_path else None)
                if pod.get("hostNetwork") is True and host_port and port and host_port != port:
                    message = f"hostPort is {host_port}, but in the host network it has to be containerPort, {port}"
                    yield finding(view, paths[-1], message, allowed=str(port), nearest=str(port))
        for index, address in duplicates(taken):
            yield finding(view, paths[index], f"two containers use {address} of the node", allowed="a port for each")


@object_rule("service-ports", "core:Service", ruleset="pods", source=SERVER)
def service_ports(view: ObjectView) -> Iterator[Draft]:
    """Find unnamed ports if a Service has several, repeated names or ports, and node ports on a ClusterIP Service."""
    inputs = view.inputs
    spec = block(inputs, "spec")
    rows = entries(spec, "ports")
    names = [string(row, "name") for _, row in rows]
    for index, row in rows:
        if len(rows) > 1 and not row.get("name"):
            yield finding(
                view, f"spec.ports[{index}].name", "one of several ports has no name", allowed="a name for each"
            )
        if row.get("nodePort") and spec.get("type") in (None, "ClusterIP"):
            message = "a Service of type ClusterIP cannot have a node port"
            yield finding(
                view, f"spec.ports[{index}].nodePort", message, allowed="no nodePort, or type NodePort or LoadBalancer"
            )
    for index, name in duplicates(names):
        yield finding(view, f"spec.ports[{index}].name", f"two ports are named {name}", allowed="a name for each")
    ports: list[str | None] = []
    for _, row in rows:
        port = integer(row, "port")
        ports.append(f"{row.get('protocol') or 'TCP'} {port}" if port else None)
    for index, name in duplicates(ports):
        yield finding(
            view, f"spec.ports[{index}].port", f"port {name} is listed twice", allowed="another port or protocol"
        )
