"""Reads the queues of any cluster with Kueue from ``kubectl get -o yaml`` output and Kueue's Configuration.

The module reads ClusterQueues, Cohorts, ResourceFlavors, LocalQueues and WorkloadPriorityClasses of v1beta2 and
v1beta1. It also reads Configurations, including one inside the ConfigMap of Kueue's own manifests. It ignores other
objects. Notes name the fields that the model leaves out, such as admission checks. By default, all machines of the
nominal quota exist from the start; a table can set other times for a flavor::

    spot-h100:
      arrive_minutes: {median: 5, p90: 30}
      lost_hours: {mean: 24}
      usd_an_hour: 4.1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from pydantic import Field, RootModel

from kueue_model.cluster import Cluster, Counting, FlavorMachines
from kueue_model.kinds import AMOUNTS, GROUP, refusals
from kueue_model.machines import CapacityTimes
from kueue_model.quotas import Json, amount, units
from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.rejection import read_section

STRATEGIES: Final = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")  # Kueue's defaults of fair sharing
QUOTA: Final = "quota"
"""The provisioning model of a flavor that has no row in the table of machines."""
_KINDS: Final = ("ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue", "WorkloadPriorityClass", "Configuration")
_OTHER_KINDS: Final = (
    "AdmissionCheck",
    "MultiKueueConfig",
    "MultiKueueCluster",
    "Topology",
    "ProvisioningRequestConfig",
)
_IGNORED_KINDS: Final = ("Workload",)  # a trace has the jobs
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_OLD_FUNGIBILITY: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
_DEEPEST: Final = 100
_MOST_LEVELS: Final = 50  # of cohorts; deeper trees would take minutes
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Object(NamedTuple):
    """An object of a file, its position as ``file:line``, and its YAML node (None inside a ConfigMap)."""

    position: str
    body: Json
    node: yaml.MappingNode | None = None

    @property
    def name(self) -> str:
        """The object's name, or an empty string."""
        metadata = self.body.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""

    @property
    def spec(self) -> Json:
        """The object's spec, or an empty mapping."""
        spec = self.body.get("spec")
        return spec if isinstance(spec, Mapping) else {}


class FlavorTimes(CapacityTimes):
    """The arrival and loss times of a flavor's machines, and their price per hour and unit of the first resource."""

    usd_an_hour: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class FlavorFile(RootModel[dict[str, FlavorTimes]]):
    """A table of machines, keyed by flavor."""


class Manifests(NamedTuple):
    """The queues read from manifests, the arrival and loss times of their machines, and sentences about ignored fields.

    ``labels`` contains the node labels of each ResourceFlavor.
    """

    cluster: Cluster
    times: Mapping[str, CapacityTimes]
    left_out: tuple[str, ...]
    labels: Mapping[str, Mapping[str, str]] = {}


def read_manifests(path: Path, machines: Path | None = None) -> Manifests:
    """Read a file, or all YAML and JSON files below a folder. Raises UserError with every error in them."""
    objects = _objects(path)
    errors = [*_refused(objects), *_duplicates(objects), *_nameless(objects)]
    if errors:
        raise UserError("\n".join(errors))
    queues = {row.name: row for row in objects["ClusterQueue"]}
    if not queues:
        raise UserError(
            f"{path} has no ClusterQueue. See kubectl get clusterqueues,cohorts,resourceflavors,localqueues -o yaml."
        )
    errors = []
    queue_specs = {name: _readable(row, _queue_spec, errors) for name, row in queues.items()}
    cohorts = {row.name: row for row in objects["Cohort"]}
    cohort_specs = {row.name: _readable(row, _cohort_spec, errors) for row in objects["Cohort"]}
    errors += _circles(cohorts, cohort_specs)
    priorities = {row.name: row.body.get("value") for row in objects["WorkloadPriorityClass"]}
    for name, value in priorities.items():
        if not isinstance(value, int):
            errors.append(f"WorkloadPriorityClass {name}: value is not an integer.")
    if errors:
        raise UserError("\n".join(errors))
    configuration = objects["Configuration"][-1].body if objects["Configuration"] else {}
    cluster = Cluster(
        name=path.stem or "cluster",
        queues=queue_specs,
        cohorts=cohort_specs,
        flavors=_flavors([*queue_specs.values(), *cohort_specs.values()], {}),
        priorities={name: int(value or 0) for name, value in priorities.items()},
        fair_sharing=_strategies(configuration),
        counting=_counting(configuration, objects["LocalQueue"]),
    )
    labels = {row.name: row.spec.get("nodeLabels") or {} for row in objects["ResourceFlavor"]}
    read = Manifests(
        cluster, {QUOTA: CapacityTimes()}, left_out=tuple(_left_out(objects, configuration)), labels=labels
    )
    return read if machines is None else with_machines([read], machines)[0]


def with_machines(sides: Sequence[Manifests], machines: Path) -> list[Manifests]:
    """Return the manifests with the times and prices of a table. It may name any flavor that one of them has.

    Raises UserError for a table that cannot be read or that names another flavor.
    """
    table = read_section(machines, FlavorFile).root
    flavors = {flavor.name for side in sides for flavor in side.cluster.flavors.values()}
    for name in table:
        if name not in flavors:
            nearest = find_nearest(name, flavors)
            hint = f" Nearest: {nearest}." if nearest else ""
            raise UserError(f"{machines}: {name!r} is not a flavor. Allowed: {', '.join(sorted(flavors))}.{hint}")
    times: dict[str, CapacityTimes] = {QUOTA: CapacityTimes(), **table}
    priced: list[Manifests] = []
    for side in sides:
        specs = [*side.cluster.queues.values(), *side.cluster.cohorts.values()]
        cluster = side.cluster._replace(flavors=_flavors(specs, table))
        priced.append(side._replace(cluster=cluster, times=times))
    return priced


def _objects(path: Path) -> dict[str, list[Object]]:
    """Return the objects of files, keyed by kind."""
    if not path.exists():
        raise UserError(f"{path} does not exist.")
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    objects: dict[str, list[Object]] = {kind: [] for kind in (*_KINDS, *_OTHER_KINDS)}
    errors: list[str] = []
    for file in files:
        try:
            for row in _documents(file):
                kind = str(row.body.get("kind"))
                group = str(row.body.get("apiVersion")).partition("/")[0]
                if group not in (GROUP, f"config.{GROUP}"):
                    continue
                if kind in objects:
                    objects[kind].append(row)
                elif kind not in _IGNORED_KINDS:
                    errors.append(_unknown_kind(row, kind))
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:  # a date with a month 13 is a ValueError
            mark = getattr(error, "problem_mark", None)
            position = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
            problem = getattr(error, "problem", None) or str(error).splitlines()[0]
            errors.append(f"{position}: cannot be read: {problem}.")
    if errors:
        raise UserError("\n".join(errors))
    return objects


def _unknown_kind(row: Object, kind: str) -> str:
    kinds = (*_KINDS, *_OTHER_KINDS, *_IGNORED_KINDS)
    nearest = find_nearest(kind, kinds)
    hint = f" Nearest: {nearest}." if nearest else ""
    return f"{row.position}: {kind!r} is not a kind of Kueue. Allowed: {', '.join(sorted(kinds))}.{hint}"


def _documents(file: Path) -> Iterator[Object]:
    """Yield the objects of a file, including those inside lists and inside Kueue's ConfigMap."""
    text = file.read_text(encoding="utf-8-sig")
    _check_depth(text)
    loader = _LOADER(text)
    while loader.check_node():
        node = loader.get_node()
        body = loader.construct_document(node)
        if not isinstance(body, Mapping):
            continue
        items = body.get("items")
        line = node.start_mark.line + 1
        if isinstance(items, list):
            (nodes,) = (value.value for key, value in node.value if key.value == "items")
            for item, item_node in zip(items, nodes, strict=True):
                if isinstance(item, Mapping):
                    yield Object(f"{file}:{item_node.start_mark.line + 1}", item, node=item_node)
        elif body.get("kind") == "ConfigMap":
            data = body.get("data")
            settings = data.get("controller_manager_config.yaml") if isinstance(data, Mapping) else None
            if isinstance(settings, str):
                _check_depth(settings)
                inner = yaml.load(settings, Loader=_LOADER)  # noqa: S506 # _LOADER is a safe one
                if isinstance(inner, Mapping):
                    yield Object(f"{file}:{line}", inner)
        else:
            yield Object(f"{file}:{line}", body, node=node)


def _check_depth(text: str) -> None:
    """Raise YAMLError for text that is nested too deeply, since libyaml would crash while building its tree of nodes.

    This check is safe because it reads libyaml's events one by one.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            mark = event.start_mark
            raise yaml.MarkedYAMLError(problem=f"more than {_DEEPEST} levels", problem_mark=mark)  # type: ignore[arg-type] # libyaml's mark has the same fields


def _refused(objects: Mapping[str, list[Object]]) -> Iterator[str]:
    """Yield a sentence for each part of an object that the API server refuses."""
    for kind, rows in objects.items():
        for row in rows:
            if row.node is not None:
                file = row.position.rpartition(":")[0]
                yield from refusals(kind, str(row.body.get("apiVersion")), row.node, file)


def _duplicates(objects: Mapping[str, list[Object]]) -> Iterator[str]:
    for kind in ("ClusterQueue", "Cohort", "ResourceFlavor"):
        first: dict[str, Object] = {}
        for row in objects[kind]:
            if row.name in first and row.spec != first[row.name].spec:
                yield f"{row.position}: {kind} {row.name} is also at {first[row.name].position}, with another spec."
            first.setdefault(row.name, row)


def _nameless(objects: Mapping[str, list[Object]]) -> Iterator[str]:
    for kind in ("ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue", "WorkloadPriorityClass"):
        for row in objects[kind]:
            if not row.name:
                yield f"{row.position}: {kind} has no metadata.name."


def _lost_local_queues(local_queues: list[Object], queues: Mapping[str, Object]) -> Iterator[str]:
    """Yield a sentence for each LocalQueue whose ClusterQueue is missing. Kueue accepts such a queue as inactive."""
    for row in local_queues:
        queue = str(row.spec.get("clusterQueue"))
        if queue not in queues:
            nearest = find_nearest(queue, queues)
            hint = f" Nearest: {nearest}." if nearest else ""
            yield (
                f"{_position(row, 'spec', 'clusterQueue')}: LocalQueue {row.name}: {queue!r} is not a ClusterQueue, so "
                f"its jobs never start. Allowed: {', '.join(sorted(queues))}.{hint}"
            )


def _position(row: Object, *path: str) -> str:
    """Return the position, ``file:line``, of a field of an object."""
    file = row.position.rpartition(":")[0]
    node: yaml.Node | None = row.node
    for name in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == name), None)
    return row.position if node is None else f"{file}:{node.start_mark.line + 1}"


def _readable(row: Object, read: Callable[[Json], Json], errors: list[str]) -> Json:
    """Return a spec as converted by ``read`` to the model's form, and add any error in it to ``errors``."""
    try:
        return read(row.spec)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        errors.append(f"{row.position}: {row.body['kind']} {row.name}: {reason}.")
        return {}


def _queue_spec(spec: Json) -> Json:
    """Return the spec of a ClusterQueue in the model's form. Raises ValueError if it lends more than it has."""
    readable = _cohort_spec(spec)
    for group in readable["resourceGroups"]:
        for flavor in group["flavors"]:
            for row in flavor["resources"]:
                lent = row.get("lendingLimit")
                if lent is not None and amount(row["name"], lent) > amount(row["name"], row.get("nominalQuota", 0)):
                    raise ValueError(f"{row['name']} of flavor {flavor['name']} lends more than its nominalQuota")
    for key in ("preemption", "fairSharing"):
        if spec.get(key) is None:
            readable.pop(key, None)
    fungibility = spec.get("flavorFungibility") or {}
    readable["flavorFungibility"] = {key: _OLD_FUNGIBILITY.get(value, value) for key, value in fungibility.items()}
    cohort = spec.get("cohortName") or spec.get("cohort")  # the latter in v1beta1
    if cohort:
        readable["cohortName"] = cohort
    return readable


def _cohort_spec(spec: Json) -> dict[str, Any]:
    """Return the spec of a ClusterQueue or Cohort in the form that the model reads."""
    groups = spec.get("resourceGroups") or []
    is_root = not any(spec.get(key) for key in ("cohortName", "cohort", "parentName", "parent"))
    for group in groups:
        for flavor in group["flavors"]:
            _check_quota(flavor, group["coveredResources"], is_root=is_root)
    readable = {**spec, "resourceGroups": groups}
    weight = (spec.get("fairSharing") or {}).get("weight")
    if weight is not None:
        readable["fairSharing"] = {"weight": amount("cpu", weight) / units("cpu")}
    parent = spec.get("parentName") or spec.get("parent")
    if parent:
        readable["parentName"] = parent
    return readable


def _check_quota(flavor: Json, covered: Sequence[object], *, is_root: bool) -> None:
    """Raise ValueError for quota that the API server or Kueue's webhook refuses.

    The resources must be those of the resource group, and the amounts must be quantities. A queue or cohort without a
    parent cohort (``is_root``) must not have limits. A cohort may lend more than its own quota, since its members add
    to it. Source: kubernetes-sigs/kueue v0.19.2, pkg/webhooks/clusterqueue_webhook.go and cohort_webhook.go, read
    2026-11-28.
    """
    rows = {row["name"]: row for row in flavor["resources"]}
    if set(rows) != set(covered):
        resources = ", ".join(map(str, covered))
        raise ValueError(f"flavor {flavor['name']} has quota for {', '.join(rows)}, not for {resources}")
    for name, row in rows.items():
        for key in AMOUNTS:
            if row.get(key) is None:
                continue
            amount(name, row[key])
            if is_root and key != "nominalQuota":
                raise ValueError(f"{name} of flavor {flavor['name']} has a {key}, but the object is in no cohort")


def _circles(rows: Mapping[str, Object], cohorts: Mapping[str, Json]) -> Iterator[str]:
    for name in cohorts:
        seen = [name]
        while above := cohorts.get(seen[-1], {}).get("parentName"):
            if len(seen) > _MOST_LEVELS:
                yield f"{rows[name].position}: Cohort {name} has more than {_MOST_LEVELS} ancestors."
                return
            if above in seen:
                if above == name:
                    yield f"{rows[name].position}: Cohort {name} is its own ancestor: {' < '.join([*seen, above])}."
                break
            seen.append(above)


def _cells(specs: list[Json]) -> Iterator[tuple[str, str]]:
    for spec in specs:
        for group in spec.get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for resource in group["coveredResources"]:
                    yield flavor["name"], resource


def _flavors(specs: list[Json], table: Mapping[str, FlavorTimes]) -> dict[str, FlavorMachines]:
    """Return the machines of each flavor and resource, keyed by the label that ``Quotas`` uses."""
    nominal: Counter[tuple[str, str]] = Counter()
    for spec in specs:
        for group in spec.get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for row in flavor["resources"]:
                    nominal[flavor["name"], row["name"]] += amount(row["name"], row.get("nominalQuota", 0))
    resource_counts = Counter(flavor for flavor, _ in nominal)
    machines: dict[str, FlavorMachines] = {}
    priced_flavors: set[str] = set()
    for (flavor, resource), total in nominal.items():
        usd = None
        if flavor in table and flavor not in priced_flavors:  # the price is per unit of the first resource
            usd = table[flavor].usd_an_hour
        priced_flavors.add(flavor)
        label = f"{flavor} {resource}" if resource_counts[flavor] > 1 else flavor
        machines[label] = FlavorMachines(
            name=flavor,
            resource=resource,
            accelerator=resource,
            capacity=flavor if flavor in table else QUOTA,
            chips=total,
            per_slice=1,
            usd=usd,
            unit=_unit(resource),
        )
    return machines


def _unit(resource: str) -> int:
    """Return the size of the unit in which amounts are displayed, such as one CPU or one GiB."""
    return 2**30 if resource in ("memory", "ephemeral-storage") else units(resource)


def _strategies(configuration: Json) -> tuple[str, ...] | None:
    sharing = configuration.get("fairSharing")
    if not isinstance(sharing, Mapping) or sharing.get("enable") is False:
        return None
    return tuple(map(str, sharing.get("preemptionStrategies") or STRATEGIES))


def _counting(configuration: Json, local_queues: list[Object]) -> Counting:
    resources = configuration.get("resources") or {}
    transformations = {
        str(row["input"]): (row.get("strategy", "Retain") == "Retain", dict(row.get("outputs") or {}))
        for row in resources.get("transformations") or ()
        if not row.get("multiplyBy")
    }
    return Counting(
        excluded=tuple(map(str, resources.get("excludeResourcePrefixes") or ())),
        transformations=transformations,
        ignores_undeclared=resources.get("quotaCheckStrategy") == "IgnoreUndeclared",
        local_queues={
            f"{row.body['metadata'].get('namespace', 'default')}/{row.name}": str(row.spec.get("clusterQueue"))
            for row in local_queues
        },
    )


def _left_out(objects: Mapping[str, list[Object]], configuration: Json) -> Iterator[str]:
    """Yield a sentence for each field of the manifests that the model ignores."""
    flavors = objects["ResourceFlavor"]
    queues = objects["ClusterQueue"]
    checks = objects["AdmissionCheck"]
    local_queues = objects["LocalQueue"]
    ignored = {
        "Topologies of ResourceFlavors": [row for row in flavors if row.spec.get("topologyName")],
        "Taints of ResourceFlavors (every job is assumed to tolerate them)": [
            row for row in flavors if row.spec.get("nodeTaints")
        ],
        "Admission checks of ClusterQueues": [
            row for row in queues if row.spec.get("admissionChecks") or row.spec.get("admissionChecksStrategy")
        ],
        "MultiKueue's AdmissionChecks": [row for row in checks if "multikueue" in str(row.spec.get("controllerName"))],
        "Concurrent admission policies of ClusterQueues": [
            row for row in queues if row.spec.get("concurrentAdmissionPolicy")
        ],
        "Scopes of admission fair sharing of ClusterQueues": [row for row in queues if row.spec.get("admissionScope")],
        "Stop policies of LocalQueues": [row for row in local_queues if row.spec.get("stopPolicy", "None") != "None"],
    }
    for feature, rows in ignored.items():
        if rows:
            yield f"{feature} are not simulated: {', '.join(sorted({row.name for row in rows}))}."
    yield from _left_out_of_configuration(configuration)
    if not objects["Configuration"]:
        yield (
            "Without a Configuration of Kueue, it is assumed that fair sharing is off and that every resource uses "
            "quota."
        )
    yield from _lost_local_queues(objects["LocalQueue"], {row.name: row for row in objects["ClusterQueue"]})
    missing_flavors = _missing_flavors(objects) if flavors else []
    if missing_flavors:
        yield (
            f"ResourceFlavors that are not in the manifests are assumed to exist: {', '.join(missing_flavors)}. In "
            "Kueue, a ClusterQueue with a missing flavor is inactive: its jobs never start."
        )


def _left_out_of_configuration(configuration: Json) -> Iterator[str]:
    gates = configuration.get("featureGates") or {}
    resources = configuration.get("resources") or {}
    if "admissionFairSharing" in configuration:
        yield "Admission fair sharing of the Configuration is not simulated."
    if (configuration.get("waitForPodsReady") or {}).get("enable", "waitForPodsReady" in configuration):
        yield "waitForPodsReady of the Configuration is not simulated."
    if gates:
        yield f"Feature gates of the Configuration are not simulated: {', '.join(sorted(gates))}."
    if resources.get("deviceClassMappings"):
        yield "Device classes of the Configuration are not simulated."
    if any(row.get("multiplyBy") for row in resources.get("transformations") or ()):
        yield "Transformations with multiplyBy are not simulated."


def _missing_flavors(objects: Mapping[str, list[Object]]) -> list[str]:
    """Return the flavors of ClusterQueues that have no ResourceFlavor, each with the nearest existing name.

    Kueue does not admit any job in such a ClusterQueue. Source: kubernetes-sigs/kueue v0.19.2 (8eab687),
    pkg/cache/scheduler/clusterqueue.go, updateQueueStatus and updateFlavorMetadata, read 2026-11-28.
    """
    used = {flavor for flavor, _ in _cells([row.spec for row in objects["ClusterQueue"]])}
    existing = {row.name for row in objects["ResourceFlavor"]}
    missing: list[str] = []
    for name in sorted(used - existing):
        nearest = find_nearest(name, existing)
        missing.append(f"{name} (nearest: {nearest})" if nearest else name)
    return missing
