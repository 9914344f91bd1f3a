"""Queues of any cluster with Kueue, from manifests: what ``kubectl get -o yaml`` prints, and Kueue's Configuration.

Read are ClusterQueues, Cohorts, ResourceFlavors, LocalQueues and WorkloadPriorityClasses of v1beta2 and v1beta1, and
Configurations, also inside the ConfigMap that Kueue's own manifests have. Other objects of a file are passed over. What
the model does not play, such as admission checks, is named. There are as many machines as nominal quota, at once,
unless a table says something else of a flavor::

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

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import UserError
from training_platform.config.reading.rejection import read_section
from training_platform.parts.simulate.from_stacks import Cluster, Counting, FlavorMachines
from training_platform.parts.simulate.machines import DEFAULTS, CapacityTimes
from training_platform.parts.simulate.quotas import Json, amount, units
from training_platform.resources.kueue import UNCOUNTED, local_queue_names

STRATEGIES: Final = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")  # Kueue's defaults of fair sharing
QUOTA: Final = "quota"
"""What a flavor without a row in the table of machines has in place of a provisioning model."""
_KINDS: Final = ("ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue", "WorkloadPriorityClass", "Configuration")
_OTHER_KINDS: Final = (
    "AdmissionCheck",
    "MultiKueueConfig",
    "MultiKueueCluster",
    "Topology",
    "ProvisioningRequestConfig",
)
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_OLD_FUNGIBILITY: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Object(NamedTuple):
    """An object of a file, and where it begins: ``file:line``."""

    place: str
    body: Json

    @property
    def name(self) -> str:
        """Its name; empty where it has none."""
        metadata = self.body.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""

    @property
    def spec(self) -> Json:
        """Its spec; empty where it has none."""
        spec = self.body.get("spec")
        return spec if isinstance(spec, Mapping) else {}


class FlavorTimes(CapacityTimes):
    """When machines of a flavor come and go, and their price per unit of its first resource and hour."""

    usd_an_hour: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class FlavorFile(RootModel[dict[str, FlavorTimes]]):
    """A table of machines by flavor."""


class Manifests(NamedTuple):
    """The queues of manifests, when their machines come and go, and sentences on what is not played.

    ``labels`` are the node labels of each ResourceFlavor.
    """

    cluster: Cluster
    times: Mapping[str, CapacityTimes]
    left_out: tuple[str, ...]
    labels: Mapping[str, Mapping[str, str]] = {}


def read_manifests(path: Path, machines: Path | None = None) -> Manifests:
    """Read a file, or all YAML and JSON files below a folder. UserError names all that is wrong."""
    objects = _objects(path)
    wrong = [*_duplicates(objects), *_nameless(objects)]
    queues = {row.name: row for row in objects["ClusterQueue"]}
    if not queues and not wrong:
        raise UserError(
            f"{path} has no ClusterQueue: kubectl get clusterqueues,cohorts,resourceflavors,localqueues -o yaml."
        )
    specs = {name: _checked(row, _queue, wrong) for name, row in queues.items()}
    cohorts = {row.name: _checked(row, _cohort, wrong) for row in objects["Cohort"]}
    wrong += _circles({row.name: row for row in objects["Cohort"]}, cohorts)
    configuration = objects["Configuration"][-1].body if objects["Configuration"] else {}
    priorities = {row.name: row.body.get("value") for row in objects["WorkloadPriorityClass"]}
    wrong += [f"WorkloadPriorityClass {name}: value is not an integer." for name, value in priorities.items()
              if not isinstance(value, int)]  # fmt: skip
    if wrong:
        raise UserError("\n".join(wrong))
    table = read_section(machines, FlavorFile).root if machines else {}
    cluster = Cluster(
        name=path.stem or "cluster",
        queues=specs,
        cohorts=cohorts,
        flavors=_flavors([*specs.values(), *cohorts.values()], table),
        priorities={name: int(value or 0) for name, value in priorities.items()},
        fair_sharing=_strategies(configuration),
        counting=_counting(configuration, objects["LocalQueue"]),
    )
    known = {flavor for flavor, _ in _cells([*specs.values(), *cohorts.values()])}
    for name in table:
        if name not in known:
            nearest = find_nearest(name, known)
            hint = f" Nearest: {nearest}." if nearest else ""
            raise UserError(f"{machines}: {name!r} is not a flavor of {path}.{hint}")
    times: dict[str, CapacityTimes] = {QUOTA: CapacityTimes(), **table}
    labels = {row.name: row.spec.get("nodeLabels") or {} for row in objects["ResourceFlavor"]}
    return Manifests(cluster, times, tuple(_left_out(objects, configuration)), labels)


def manifests_of(cluster: Cluster, labels: Mapping[str, Mapping[str, str]]) -> Manifests:
    """Return the queues of stack files as those of manifests, so that workloads, which name resources, can be played.

    ``labels`` are the node labels of each flavor.
    """
    local_queues = {f"{team}/{name}": team for team in cluster.queues for name in local_queue_names(team)}
    counting = Counting(excluded=UNCOUNTED, local_queues=local_queues)
    at_once = dict.fromkeys(DEFAULTS, CapacityTimes())
    left_out = ("Topologies, admission checks and waits for machines are not played.",)
    return Manifests(cluster._replace(counting=counting), at_once, left_out, labels)


def _objects(path: Path) -> dict[str, list[Object]]:
    """Return the objects of files by kind."""
    if not path.exists():
        raise UserError(f"{path} does not exist.")
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    found: dict[str, list[Object]] = {kind: [] for kind in (*_KINDS, *_OTHER_KINDS)}
    wrong = []
    for file in files:
        try:
            for row in _documents(file):
                kind, group = str(row.body.get("kind")), str(row.body.get("apiVersion"))
                if kind in found and "kueue.x-k8s.io" in group:
                    found[kind].append(row)
        except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
            wrong.append(f"{place}: cannot be read: {getattr(error, 'problem', None) or str(error).splitlines()[0]}.")
    if wrong:
        raise UserError("\n".join(wrong))
    return found


def _documents(file: Path) -> Iterator[Object]:
    """Yield the objects of a file, those of lists and of Kueue's ConfigMap too."""
    loader = _LOADER(file.read_text(encoding="utf-8-sig"))
    while loader.check_node():
        node = loader.get_node()
        body = loader.construct_document(node)
        if not isinstance(body, Mapping):
            continue
        items, line = body.get("items"), node.start_mark.line + 1
        if isinstance(items, list):
            (nodes,) = (value.value for key, value in node.value if key.value == "items")
            for item, item_node in zip(items, nodes, strict=True):
                if isinstance(item, Mapping):
                    yield Object(f"{file}:{item_node.start_mark.line + 1}", item)
        elif body.get("kind") == "ConfigMap":
            data = body.get("data")
            text = data.get("controller_manager_config.yaml") if isinstance(data, Mapping) else None
            inner = yaml.load(text, Loader=_LOADER) if isinstance(text, str) else None  # noqa: S506 # a safe loader
            if isinstance(inner, Mapping):
                yield Object(f"{file}:{line}", inner)
        else:
            yield Object(f"{file}:{line}", body)


def _duplicates(objects: Mapping[str, list[Object]]) -> Iterator[str]:
    for kind in ("ClusterQueue", "Cohort", "ResourceFlavor"):
        first: dict[str, Object] = {}
        for row in objects[kind]:
            if row.name in first and row.spec != first[row.name].spec:
                yield f"{row.place}: {kind} {row.name} is at {first[row.name].place} too, with another spec."
            first.setdefault(row.name, row)


def _nameless(objects: Mapping[str, list[Object]]) -> Iterator[str]:
    for kind in ("ClusterQueue", "Cohort", "ResourceFlavor", "LocalQueue", "WorkloadPriorityClass"):
        for row in objects[kind]:
            if not row.name:
                yield f"{row.place}: {kind} has no metadata.name."


def _checked(row: Object, read: Callable[[Json], Json], wrong: list[str]) -> Json:
    """Return a spec as the model takes it; what is wrong with it is added to ``wrong``."""
    try:
        return read(row.spec)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        wrong.append(f"{row.place}: {row.body['kind']} {row.name}: {reason}.")
        return {}


def _queue(spec: Json) -> Json:
    found = _cohort(spec)
    fungibility = {
        key: _OLD_FUNGIBILITY.get(value, value) for key, value in (spec.get("flavorFungibility") or {}).items()
    }
    for key in ("preemption", "fairSharing"):
        if spec.get(key) is None:
            found.pop(key, None)
    cohort = spec.get("cohortName") or spec.get("cohort")  # that of v1beta1
    return {**found, "flavorFungibility": fungibility, **({"cohortName": cohort} if cohort else {})}


def _cohort(spec: Json) -> dict[str, Any]:
    """Return the spec of a ClusterQueue or Cohort whose groups have the fields that the model reads."""
    groups = spec.get("resourceGroups") or []
    for group in groups:
        for flavor in group["flavors"]:
            _check_quota(flavor, group["coveredResources"])
    readable = {**spec, "resourceGroups": groups}
    weight = (spec.get("fairSharing") or {}).get("weight")
    if weight is not None:
        readable["fairSharing"] = {"weight": amount("cpu", weight) / units("cpu")}
    parent = spec.get("parentName") or spec.get("parent")
    if parent:
        readable["parentName"] = parent
    return readable


def _check_quota(flavor: Json, covered: Sequence[object]) -> None:
    """Raise ValueError if a flavor's quota is not of the covered resources, or is no amount."""
    rows = {row["name"]: row for row in flavor["resources"]}
    if set(rows) != set(covered):
        resources = ", ".join(map(str, covered))
        raise ValueError(f"flavor {flavor['name']} has quota of {', '.join(rows)}, not of {resources}")
    for name, row in rows.items():
        for key in ("nominalQuota", "borrowingLimit", "lendingLimit"):
            if row.get(key) is not None:
                amount(name, row[key])


def _circles(rows: Mapping[str, Object], cohorts: Mapping[str, Json]) -> Iterator[str]:
    for name in cohorts:
        seen = [name]
        while above := cohorts.get(seen[-1], {}).get("parentName"):
            if above in seen:
                if above == name:
                    yield f"{rows[name].place}: Cohort {name} is below itself: {' < '.join([*seen, above])}."
                break
            seen.append(above)


def _cells(specs: list[Json]) -> Iterator[tuple[str, str]]:
    for spec in specs:
        for group in spec.get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for resource in group["coveredResources"]:
                    yield flavor["name"], resource


def _flavors(specs: list[Json], table: Mapping[str, FlavorTimes]) -> dict[str, FlavorMachines]:
    """Return the machines of each flavor and resource by the label that ``Quotas`` gives them."""
    nominal: Counter[tuple[str, str]] = Counter()
    for spec in specs:
        for group in spec.get("resourceGroups", ()):
            for flavor in group["flavors"]:
                for row in flavor["resources"]:
                    nominal[flavor["name"], row["name"]] += amount(row["name"], row.get("nominalQuota", 0))
    several = Counter(flavor for flavor, _ in nominal)
    found, priced = {}, set()
    for (flavor, resource), total in nominal.items():
        usd = table[flavor].usd_an_hour if flavor in table and flavor not in priced else None
        priced.add(flavor)
        label = f"{flavor} {resource}" if several[flavor] > 1 else flavor
        capacity = flavor if flavor in table else QUOTA
        found[label] = FlavorMachines(flavor, resource, resource, capacity, total, 1, usd, _unit(resource))
    return found


def _unit(resource: str) -> int:
    """Return how many of an amount are shown as one: a CPU, or a GiB."""
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
    """Yield what the manifests have and the model does not play."""

    def names(rows: list[Object]) -> str:
        return ", ".join(sorted({row.name for row in rows}))

    def queues(*keys: str) -> list[Object]:
        return [row for row in objects["ClusterQueue"] if any(row.spec.get(key) for key in keys)]

    flavors = objects["ResourceFlavor"]
    checks = queues("admissionChecks", "admissionChecksStrategy")
    multi = [row for row in objects["AdmissionCheck"] if "multikueue" in str(row.spec.get("controllerName"))]
    for what, rows in (
        ("Topologies of ResourceFlavors", [row for row in flavors if row.spec.get("topologyName")]),
        ("Taints of ResourceFlavors, which every job is taken to tolerate",
         [row for row in flavors if row.spec.get("nodeTaints")]),
        ("Admission checks of ClusterQueues", checks),
        ("MultiKueue's AdmissionChecks", multi),
        ("Concurrent admission of ClusterQueues", queues("concurrentAdmissionPolicy")),
        ("Admission fair sharing of ClusterQueues", queues("admissionScope")),
        ("Stop policies of LocalQueues",
         [row for row in objects["LocalQueue"] if row.spec.get("stopPolicy", "None") != "None"]),
    ):  # fmt: skip
        if rows:
            yield f"{what} are not played: {names(rows)}."
    yield from _left_out_of_configuration(configuration)
    if not objects["Configuration"]:
        yield "There is no Configuration of Kueue: fair sharing is taken to be off, and every resource to be counted."
    if flavors and (missing := _missing_flavors(objects)):
        yield f"ResourceFlavors that the manifests lack are taken to exist: {', '.join(missing)}."


def _left_out_of_configuration(configuration: Json) -> Iterator[str]:
    gates = configuration.get("featureGates") or {}
    resources = configuration.get("resources") or {}
    if "admissionFairSharing" in configuration:
        yield "Admission fair sharing of the Configuration is not played."
    if (configuration.get("waitForPodsReady") or {}).get("enable", "waitForPodsReady" in configuration):
        yield "waitForPodsReady of the Configuration is not played."
    if gates:
        yield f"Feature gates of the Configuration are not played: {', '.join(sorted(gates))}."
    if resources.get("deviceClassMappings"):
        yield "Device classes of the Configuration are not played."
    if any(row.get("multiplyBy") for row in resources.get("transformations") or ()):
        yield "Transformations with multiplyBy are not played."


def _missing_flavors(objects: Mapping[str, list[Object]]) -> list[str]:
    used = {flavor for flavor, _ in _cells([row.spec for row in objects["ClusterQueue"]])}
    return sorted(used - {row.name for row in objects["ResourceFlavor"]})
