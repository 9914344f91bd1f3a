"""Compares facts of the catalogue with Google Cloud's lists. Differences become a patch of the catalogue's data files.

It only reads lists of a project: machine types (Compute Engine), quota ids (Cloud Quotas), versions that GKE offers,
and regions of Vertex AI. It also asks registries whether charts and images exist. No list has versions of add-ons and
drivers. Vertex AI does not list machine types; it only refuses those that a job may not have. If a project does not
list a zone or a machine type, this refutes nothing, since Google may shorten lists for a project. The patch is for
``git apply``. A comment in it names the source of each value: a project, with the day but without its id.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from training_platform import catalog
from training_platform.catalog import ACCELERATORS, CHARTS, IMAGES, MACHINE_TYPES, RELEASES, fact_sheets
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import Chart, Json, MachineType
from training_platform.clients.failures import ApiError
from training_platform.clients.google_api import GoogleApi
from training_platform.clients.quota_pull import CloudQuotas
from training_platform.clients.registries import Registries
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.reading.editing import difference

DATA: Final = Path(catalog.__file__).parent / "data"
Fields = Mapping[str, yaml.Node]
_DATA_IN_REPOSITORY: Final = "training_platform/catalog/data"
_MB_PER_GB: Final = 1024  # memoryMb of machineTypes counts MiB, and the catalogue GiB, despite their names


class Listed(NamedTuple):
    """A machine type in Compute Engine's list: memory in GiB, vCPUs, GPUs, and the zones that have it."""

    memory_gb: float
    vcpus: int
    chips: int
    zones: frozenset[str]


class Facts(NamedTuple):
    """Sentences about differences and confirmed facts, and the patch. ``compared`` counts the facts in the lists."""

    differ: Sequence[str]
    confirmed: Sequence[str]
    patch: str
    compared: int


def listed_machines(compute: GoogleApi, project: str) -> dict[str, Listed]:
    """Return a project's machine types in the families of the catalogue, keyed by name. Raises GoogleError."""
    families = "|".join(sorted({name.partition("-")[0] for name in MACHINE_TYPES}))
    rows: dict[str, Json] = {}
    zones: defaultdict[str, set[str]] = defaultdict(set)
    path = f"projects/{project}/aggregated/machineTypes"
    for page in compute.pages(path, filter=f'name eq "({families})-.*"', maxResults=500):
        for zone_path, in_zone in (page.get("items") or {}).items():
            for row in in_zone.get("machineTypes") or ():
                rows[row["name"]] = row
                zones[row["name"]].add(zone_path.rpartition("/")[2])
    machines: dict[str, Listed] = {}
    for name, row in rows.items():
        machines[name] = Listed(
            memory_gb=row["memoryMb"] / _MB_PER_GB,
            vcpus=row["guestCpus"],
            chips=sum(part["guestAcceleratorCount"] for part in row.get("accelerators") or ()),
            zones=frozenset(zones[name]),
        )
    return machines


def listed_quotas(quotas: CloudQuotas) -> dict[str, set[str]]:
    """Return the quota ids that Cloud Quotas lists for each service in the catalogue. Raises UserError."""
    services = sorted({key.service for key in catalog.QUOTAS})
    return {service: {info.quota_id for info in quotas.quotas(service)} for service in services}


class FactCheck(NamedTuple):
    """A sentence about a fact that the patch cannot correct. ``holds`` is None if it could not be decided."""

    holds: bool | None
    says: str


def with_failure(checks: Iterable[FactCheck]) -> Iterator[FactCheck]:
    """Yield checks. If a server does not answer, the last one contains the reason."""
    try:
        yield from checks
    except ApiError as error:
        yield FactCheck(None, str(error).rstrip("."))


def offered_versions(container: GoogleApi, project: str, clusters: Mapping[str, ClusterSpec]) -> Iterator[FactCheck]:
    """Yield whether GKE offers each cluster's version, and a version that our software supports. Raises GoogleError."""
    oldest_supported: dict[str, str] = {}
    for release in RELEASES.values():
        if release.kubernetes and release.minor == _minor(CHARTS[release.chart].version):
            oldest_supported[release.chart] = release.kubernetes
    for location in sorted({spec.location for spec in clusters.values()}):
        config = container.call("GET", f"projects/{project}/locations/{location}/serverConfig")
        offered = _newest_first(config)
        if not offered:
            yield FactCheck(None, f"GKE lists no version in {location}")
            continue
        newest = offered[0]
        oldest = offered[-1]
        defaults = [f"{row.get('channel')} {row.get('defaultVersion')}" for row in config.get("channels") or ()]
        says = f"GKE in {location} offers {oldest} to {newest}; new clusters get {', '.join(defaults)}"
        yield FactCheck(True, says)
        for name, spec in clusters.items():
            if spec.location != location or not spec.version:
                continue
            if any(version == spec.version or version.startswith(f"{spec.version}.") for version in offered):
                yield FactCheck(True, f"cluster {name}: GKE offers {spec.version} there")
            else:
                yield FactCheck(False, f"cluster {name}: GKE does not offer {spec.version} there")
        for chart, minor in oldest_supported.items():
            if _numbers(_minor(oldest)) >= _numbers(minor):
                continue
            says = f"chart {chart} requires Kubernetes {minor}, but GKE in {location} offers {oldest}"
            all_too_old = _numbers(_minor(newest)) < _numbers(minor)
            yield FactCheck(False if all_too_old else None, says)  # a cluster may have one of the newer versions


def _newest_first(config: Json) -> list[str]:
    """Return the versions in a server config, newest first, including those that only a channel lists."""
    versions = set(map(str, config.get("validMasterVersions") or ()))
    for channel in config.get("channels") or ():
        versions.update(map(str, channel.get("validVersions") or ()))
    return sorted(versions, key=_numbers, reverse=True)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers in ``1.34`` or ``1.34.1-gke.1000`` as a sorting key."""
    return tuple(map(int, re.findall(r"\d+", version)))


def vertex_regions(vertex: GoogleApi, project: str) -> Iterator[FactCheck]:
    """Yield whether Vertex AI lists the regions that the catalogue has for each accelerator. Raises GoogleError."""
    listed: set[str] = set()
    for page in vertex.pages(f"projects/{project}/locations"):
        listed.update(str(row.get("locationId")) for row in page.get("locations") or ())
    if not listed:
        yield FactCheck(None, "Vertex AI lists no region")
        return
    for name, accelerator in ACCELERATORS.items():
        regions = accelerator.vertex.regions if accelerator.vertex else ()
        missing = sorted(set(regions) - listed)
        if missing:
            yield FactCheck(False, f"accelerator {name}: Vertex AI does not list {', '.join(missing)}")
        elif regions:
            yield FactCheck(True, f"accelerator {name}: Vertex AI lists its {len(regions)} regions")


def published_software(registries: Registries) -> Iterator[FactCheck]:
    """Yield whether registries have the catalogue's charts with their versions, and the catalogue's images."""
    for name, chart in CHARTS.items():
        yield _registry_check(f"chart {name} {chart.version}", partial(_is_released, registries, chart))
    for name, image in IMAGES.items():
        yield _registry_check(f"image {name}, {image}", partial(registries.has, image))


def _is_released(registries: Registries, chart: Chart) -> bool:
    return chart.version in registries.versions(chart.chart, chart.repository)


def _registry_check(artifact: str, exists: Callable[[], bool]) -> FactCheck:
    try:
        if exists():
            return FactCheck(True, f"{artifact} is in its registry")
    except ApiError as error:
        return FactCheck(None, f"{artifact}: {str(error).rstrip('.')}")
    return FactCheck(False, f"{artifact} is not in its registry")


class _WrongValue(NamedTuple):
    """A field of a machine type whose value in the list differs from the catalogue's."""

    field: str
    catalogue: float
    listed: float


class _Comparison(NamedTuple):
    """The result of comparing machine types with lists: wrong values, additional zones, and fields that are right."""

    wrong: Mapping[str, Sequence[_WrongValue]]
    zones: Mapping[str, Sequence[str]]
    right: set[tuple[str, str]]
    today: date


def compare(machines: Mapping[str, Listed], quotas: Mapping[str, set[str]], today: date) -> Facts:
    """Compare the catalogue's facts with the lists."""
    wrong: dict[str, list[_WrongValue]] = {}
    zones: dict[str, list[str]] = {}
    right: set[tuple[str, str]] = set()
    compared = sum(bool(quotas.get(quota.service)) for quota in catalog.QUOTAS)
    for name, listed in machines.items():
        if name not in MACHINE_TYPES:
            continue
        machine = MACHINE_TYPES[name]
        wrong[name] = []
        zones[name] = sorted(listed.zones - set(machine.zones))
        for field, catalogue_value, listed_value in _values(machine, listed):
            compared += 1
            if listed_value == catalogue_value:
                right.add((name, field))
            else:
                wrong[name].append(_WrongValue(field, catalogue_value, listed=listed_value))

    differ: list[str] = []
    for name, values in wrong.items():
        differ.extend(
            f"{name}: {value.field} is {value.listed:g}, but the catalogue has {value.catalogue:g}" for value in values
        )
    differ.extend(f"{name}: is also listed in {', '.join(further)}" for name, further in zones.items() if further)
    differ.extend(_missing_quotas(quotas))
    marked = set(_marked_fields())
    confirmed = [f"{name}: {field} matches the catalogue" for name, field in sorted(right & marked)]
    patch = "".join(_patches(_Comparison(wrong, zones, right=right, today=today)))
    return Facts(differ, confirmed, patch=patch, compared=compared)


def _marked_fields() -> Iterator[tuple[str, str]]:
    """Yield the machine type and the field of each fact that is marked as unverified."""
    for (kind, field), names in fact_sheets.undecided().items():
        if kind == "machine type":
            for name in names:
                yield name, field


def _values(machine: MachineType, listed: Listed) -> Iterator[tuple[str, float, float]]:
    """Yield field, catalogue value and listed value.

    For a TPU's VM, Compute Engine counts threads and GKE counts cores.
    """
    yield "memory_gb", machine.memory_gb, listed.memory_gb
    if machine.kind == "gpu":
        yield "vcpus", machine.vcpus, listed.vcpus
    if machine.kind == "gpu" and listed.chips:
        yield "chips", machine.chips, listed.chips


def _missing_quotas(quotas: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the quota ids that a service does not list. A person has to find the right id."""
    for quota in catalog.QUOTAS:
        ids = quotas.get(quota.service)
        if ids and quota.quota_id not in ids:
            nearest = find_nearest(quota.quota_id, ids)
            yield f"quota {quota.quota_id}: {quota.service} does not list it (nearest: {nearest}); change it by hand"


class _Edit(NamedTuple):
    """A change of a file's text: the offsets of its start and its end, and the new text."""

    start: int
    end: int
    text: str


def _patches(comparison: _Comparison) -> Iterator[str]:
    """Yield a patch for each data file that changes."""
    for path in sorted(DATA.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        document = _fields(yaml.compose(text, Loader=yaml.CSafeLoader))
        new_text = text
        for edit in sorted(_file_edits(document, comparison, text), reverse=True):
            new_text = new_text[: edit.start] + edit.text + new_text[edit.end :]
        yield difference(f"{_DATA_IN_REPOSITORY}/{path.name}", text, new_text)


def _file_edits(document: Fields, comparison: _Comparison, text: str) -> Iterator[_Edit]:
    """Yield the edits of rows and of the fields that rows share. Several groups can share a block by a YAML anchor."""
    rows_by_block: defaultdict[int, dict[str, Fields]] = defaultdict(dict)
    shared_blocks: dict[int, Fields] = {}
    for group in _fields(document.get("machine_types")).values():
        fields = _fields(group)
        rows = _fields(fields.get("rows"))
        for name, row in rows.items():
            yield from _row_edits(name, row, comparison, text)
        shared = fields.get("shared")
        if shared is not None:
            start = shared.start_mark.index
            shared_blocks[start] = _fields(shared)
            rows_by_block[start].update({name: _fields(row) for name, row in rows.items()})
    for start, shared_fields in shared_blocks.items():
        yield from _shared_edits(shared_fields, rows_by_block[start], comparison, text)


def _row_edits(name: str, row: yaml.Node, comparison: _Comparison, text: str) -> Iterator[_Edit]:
    fields = _fields(row)
    for value in comparison.wrong.get(name, ()):
        if value.field in fields:
            node = fields[value.field]
            yield _Edit(node.start_mark.index, node.end_mark.index, text=f"{value.listed:g}")
            yield _comment(row, text, f"{value.field} as a project lists it, {comparison.today}")
    if "zones" in fields:
        yield from _zone_edits(fields["zones"], comparison.zones.get(name, ()), comparison.today, text)


def _shared_edits(shared: Fields, rows: Mapping[str, Fields], comparison: _Comparison, text: str) -> Iterator[_Edit]:
    """Yield the edits of shared fields: zones that all rows gain, and removed marks of facts confirmed in all rows."""
    further_zones = [set(comparison.zones.get(name, ())) for name, fields in rows.items() if "zones" not in fields]
    if "zones" in shared and further_zones:
        common = sorted(set.intersection(*further_zones))
        yield from _zone_edits(shared["zones"], common, comparison.today, text)
    marks = shared.get("unverified")
    if not isinstance(marks, yaml.SequenceNode):
        return
    remaining: list[str] = []
    for mark in marks.value:
        confirmed = {name for name, field in comparison.right if field == mark.value}
        if not rows.keys() <= confirmed:
            remaining.append(mark.value)
    if len(remaining) < len(marks.value):
        yield _Edit(marks.start_mark.index, marks.end_mark.index, text=f"[{', '.join(remaining)}]")
        yield _comment(marks, text, f"decided by the list of a project, {comparison.today}")


def _zone_edits(zones: yaml.Node, further: Sequence[str], today: date, text: str) -> Iterator[_Edit]:
    is_empty = zones.end_mark.index - zones.start_mark.index <= len("[]")
    if further and not is_empty:
        end = zones.end_mark.index - 1
        yield _Edit(end, end, text=f", {', '.join(further)}")
        yield _comment(zones, text, f"{', '.join(further)} as a project lists it, {today}")


def _comment(row: yaml.Node, text: str, comment: str) -> _Edit:
    """Return an edit that adds a comment above a row."""
    start = text.rindex("\n", 0, row.start_mark.index) + 1
    if text[start : row.start_mark.index].strip() == "":  # the row's name is in the line above
        start = text.rindex("\n", 0, start - 1) + 1
    indent = len(text[start:]) - len(text[start:].lstrip(" "))
    return _Edit(start, start, text=f"{' ' * indent}# {comment}\n")


def _fields(node: Any) -> dict[str, yaml.Node]:
    """Return the values of a mapping, keyed by key, or nothing for any other node."""
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: value for key, value in node.value}
