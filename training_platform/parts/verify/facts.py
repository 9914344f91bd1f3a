"""Facts of the catalogue against Google Cloud's own lists; what differs is a change of the catalogue's data files.

Reads lists of a project and nothing else: machine types (Compute Engine), ids of quotas (Cloud Quotas), versions that
GKE offers, and regions of Vertex AI; and in registries whether charts and images are there. Versions of add-ons and
drivers are in no list. Vertex AI lists no machine types, only refuses a job's. A
zone or a machine type that a project does not list refutes nothing, since lists may be shortened for a project. The
change is a patch for ``git apply``, with a comment that says where each value is from: a project, by day, not by id.
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
_FOLDER: Final = "training_platform/catalog/data"  # of the repository, as a patch names it
_MB_PER_GB: Final = 1024  # memoryMb of machineTypes counts MiB, and the catalogue GiB; sources call both otherwise


class Listed(NamedTuple):
    """A machine type as Compute Engine lists it: memory in GiB, vCPUs, GPUs, and the zones that have it."""

    memory_gb: float
    vcpus: int
    chips: int
    zones: frozenset[str]


class Facts(NamedTuple):
    """What differs and what was confirmed, in sentences, and the patch; ``asked`` counts facts that lists decided."""

    differ: Sequence[str]
    confirmed: Sequence[str]
    patch: str
    asked: int


def listed_machines(compute: GoogleApi, project: str) -> dict[str, Listed]:
    """Return the machine types of the catalogue's families that a project lists, by name. Raises GoogleError."""
    families = "|".join(sorted({name.partition("-")[0] for name in MACHINE_TYPES}))
    found: dict[str, Json] = {}
    zones: defaultdict[str, set[str]] = defaultdict(set)
    path = f"projects/{project}/aggregated/machineTypes"
    for page in compute.pages(path, filter=f'name eq "({families})-.*"', maxResults=500):
        for place, rows in (page.get("items") or {}).items():
            for row in rows.get("machineTypes") or ():
                found[row["name"]] = row
                zones[row["name"]].add(place.rpartition("/")[2])
    return {
        name: Listed(
            memory_gb=row["memoryMb"] / _MB_PER_GB,
            vcpus=row["guestCpus"],
            chips=sum(part["guestAcceleratorCount"] for part in row.get("accelerators") or ()),
            zones=frozenset(zones[name]),
        )
        for name, row in found.items()
    }


def listed_quotas(quotas: CloudQuotas) -> dict[str, set[str]]:
    """Return the ids of quotas that Cloud Quotas lists, for each service of the catalogue. Raises UserError."""
    services = sorted({key.service for key in catalog.QUOTAS})
    return {service: {info.quota_id for info in quotas.quotas(service)} for service in services}


class Told(NamedTuple):
    """A sentence about a fact that no data file is changed for; ``holds`` is None where nobody could tell."""

    holds: bool | None
    says: str


def or_why(rows: Iterable[Told]) -> Iterator[Told]:
    """Yield rows, and at the end why a server did not tell the others."""
    try:
        yield from rows
    except ApiError as error:
        yield Told(None, str(error).rstrip("."))


def offered_versions(container: GoogleApi, project: str, clusters: Mapping[str, ClusterSpec]) -> Iterator[Told]:
    """Yield whether GKE offers the version of each cluster, and versions that our software supports. GoogleError."""
    own = (row for row in RELEASES.values() if row.minor == _minor(CHARTS[row.chart].version))
    oldest = {row.chart: row.kubernetes for row in own if row.kubernetes}
    for location in sorted({spec.location for spec in clusters.values()}):
        config = container.call("GET", f"projects/{project}/locations/{location}/serverConfig")
        channels = config.get("channels") or ()  # which may have versions that the list of all lacks
        lists = (config.get("validMasterVersions"), *(row.get("validVersions") for row in channels))
        every = {str(version) for versions in lists for version in versions or ()}
        offered = sorted(every, key=_parts, reverse=True)
        if not offered:
            yield Told(None, f"GKE lists no version in {location}")
            continue
        defaults = ", ".join(f"{row.get('channel')} {row.get('defaultVersion')}" for row in channels)
        yield Told(True, f"GKE in {location} offers {offered[-1]} to {offered[0]}; new clusters get {defaults}")
        for name, spec in clusters.items():
            if spec.location == location and spec.version:
                there = any(one == spec.version or one.startswith(f"{spec.version}.") for one in offered)
                yield Told(there, f"cluster {name}: GKE {'offers' if there else 'does not offer'} {spec.version} there")
        for chart, minor in oldest.items():
            if _parts(_minor(offered[-1])) < _parts(minor):  # a cluster of its own version may be newer
                none = _parts(_minor(offered[0])) < _parts(minor)
                says = f"chart {chart} wants Kubernetes {minor}, and GKE in {location} offers {offered[-1]}"
                yield Told(False if none else None, says)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _parts(version: str) -> tuple[int, ...]:
    """Return the numbers of ``1.34`` or ``1.34.1-gke.1000``, which order versions."""
    return tuple(map(int, re.findall(r"\d+", version)))


def vertex_regions(vertex: GoogleApi, project: str) -> Iterator[Told]:
    """Yield whether Vertex AI has the regions that the catalogue has for each accelerator. Raises GoogleError."""
    pages = vertex.pages(f"projects/{project}/locations")
    listed = {str(row.get("locationId")) for page in pages for row in page.get("locations") or ()}
    for name, accelerator in ACCELERATORS.items() if listed else ():
        regions = accelerator.vertex.regions if accelerator.vertex else ()
        if missing := sorted(set(regions) - listed):
            yield Told(False, f"accelerator {name}: Vertex AI does not list {', '.join(missing)}")
        elif regions:
            yield Told(True, f"accelerator {name}: Vertex AI lists its {len(regions)} regions")
    if not listed:
        yield Told(None, "Vertex AI lists no region")


def published_software(registries: Registries) -> Iterator[Told]:
    """Yield whether the catalogue's charts, in their versions, and its images are in their registries."""
    for name, chart in CHARTS.items():
        what = f"chart {name} {chart.version}"
        yield _told(what, partial(_is_released, registries, chart))
    for name, image in IMAGES.items():
        yield _told(f"image {name}, {image}", partial(registries.has, image))


def _is_released(registries: Registries, chart: Chart) -> bool:
    return chart.version in registries.versions(chart.chart, chart.repository)


def _told(what: str, is_there: Callable[[], bool]) -> Told:
    try:
        there = is_there()
    except ApiError as error:
        return Told(None, f"{what}: {str(error).rstrip('.')}")
    return Told(there, f"{what} is {'' if there else 'not '}in its registry")


class _Findings(NamedTuple):
    """What lists say, by machine type: other values, further zones; and the fields that are right, on which day."""

    wrong: Mapping[str, Sequence[tuple[str, float, float]]]
    zones: Mapping[str, Sequence[str]]
    right: set[tuple[str, str]]
    today: date


def compare(machines: Mapping[str, Listed], quotas: Mapping[str, set[str]], today: date) -> Facts:
    """Return what the lists say of the catalogue's facts."""
    known = {name: one for name, one in machines.items() if name in MACHINE_TYPES}
    values = {name: list(_values(MACHINE_TYPES[name], one)) for name, one in known.items()}
    found = _Findings(
        wrong={name: [row for row in rows if row[1] != row[2]] for name, rows in values.items()},
        zones={name: sorted(one.zones - set(MACHINE_TYPES[name].zones)) for name, one in known.items()},
        right={(name, key) for name, rows in values.items() for key, ours, theirs in rows if ours == theirs},
        today=today,
    )
    rows = ((name, row) for name, rows in found.wrong.items() for row in rows)
    differ = [
        *(f"{name}: {key} is {theirs:g}, and the catalogue has {ours:g}" for name, (key, ours, theirs) in rows),
        *(f"{name}: is listed in {', '.join(new)} too" for name, new in found.zones.items() if new),
        *_missing_quotas(quotas),
    ]
    marks = fact_sheets.undecided().items()
    marked = {(name, field) for (kind, field), names in marks if kind == "machine type" for name in names}
    confirmed = [f"{name}: {key} is as the catalogue has it" for name, key in sorted(found.right & marked)]
    asked = sum(map(len, values.values())) + sum(bool(quotas.get(key.service)) for key in catalog.QUOTAS)
    return Facts(differ, confirmed, "".join(_patches(found)), asked)


def _values(machine: MachineType, listed: Listed) -> Iterator[tuple[str, float, float]]:
    """Yield the facts that both have; Compute Engine counts threads of a TPU's VM where GKE counts cores."""
    yield "memory_gb", machine.memory_gb, listed.memory_gb
    if machine.kind == "gpu":
        yield "vcpus", machine.vcpus, listed.vcpus
    if machine.kind == "gpu" and listed.chips:
        yield "chips", machine.chips, listed.chips


def _missing_quotas(quotas: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the ids that a service does not list; which id it means instead is for a person to say."""
    for key in catalog.QUOTAS:
        ids = quotas.get(key.service)
        if ids and key.quota_id not in ids:
            near = find_nearest(key.quota_id, ids)
            yield f"quota {key.quota_id}: {key.service} does not list it (nearest: {near}); change it by hand"


class _Edit(NamedTuple):
    """A change of a file's text: from and to which character, and the new text."""

    start: int
    end: int
    text: str


def _patches(found: _Findings) -> Iterator[str]:
    """Yield a patch of each data file that changes."""
    for path in sorted(DATA.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        groups = _fields(_fields(yaml.compose(text, Loader=yaml.CSafeLoader)).get("machine_types")).values()
        sharing: defaultdict[int, dict[str, Fields]] = defaultdict(dict)  # rows by the place of what they share
        shares: dict[int, Fields] = {}
        edits: list[_Edit] = []
        for fields in map(_fields, groups):
            shared, rows = fields.get("shared"), _fields(fields.get("rows"))
            for name, row in rows.items():
                edits += _row_edits(name, row, found, text)
            if shared is not None:
                where = shared.start_mark.index
                shares[where] = _fields(shared)
                sharing[where] |= {name: _fields(row) for name, row in rows.items()}
        for where, users in sharing.items():
            edits += _shared_edits(shares[where], users, found, text)
        new = text
        for edit in sorted(edits, reverse=True):
            new = new[: edit.start] + edit.text + new[edit.end :]
        yield difference(f"{_FOLDER}/{path.name}", text, new)


def _row_edits(name: str, row: yaml.Node, found: _Findings, text: str) -> Iterator[_Edit]:
    own = _fields(row)
    for key, _, theirs in found.wrong.get(name, ()):
        if key in own:
            yield _Edit(own[key].start_mark.index, own[key].end_mark.index, f"{theirs:g}")
            yield _noted(row, text, f"{key} as a project lists it, {found.today}")
    if "zones" in own:
        yield from _more_zones(own["zones"], found.zones.get(name, ()), found, text)


def _shared_edits(shared: Fields, users: Mapping[str, Fields], found: _Findings, text: str) -> Iterator[_Edit]:
    """Yield what holds for all rows that share fields: zones that all have, and marks of facts that are right."""
    further = [set(found.zones.get(name, ())) for name, own in users.items() if "zones" not in own]
    if "zones" in shared and further:
        yield from _more_zones(shared["zones"], sorted(set.intersection(*further)), found, text)
    marks = shared.get("unverified")
    if isinstance(marks, yaml.SequenceNode):
        kept = [
            mark.value
            for mark in marks.value
            if not users.keys() <= {name for name, key in found.right if key == mark.value}
        ]
        if len(kept) < len(marks.value):
            yield _Edit(marks.start_mark.index, marks.end_mark.index, f"[{', '.join(kept)}]")
            yield _noted(marks, text, f"decided by the list of a project, {found.today}")


def _more_zones(zones: yaml.Node, new: Sequence[str], found: _Findings, text: str) -> Iterator[_Edit]:
    if new and zones.end_mark.index - zones.start_mark.index > len("[]"):
        end = zones.end_mark.index - 1
        yield _Edit(end, end, f", {', '.join(new)}")
        yield _noted(zones, text, f"{', '.join(new)} as a project lists it, {found.today}")


def _noted(row: yaml.Node, text: str, note: str) -> _Edit:
    """Return a comment above a row."""
    start = text.rindex("\n", 0, row.start_mark.index) + 1
    if text[start : row.start_mark.index].strip() == "":  # the row's name is the line above
        start = text.rindex("\n", 0, start - 1) + 1
    indent = len(text[start:]) - len(text[start:].lstrip(" "))
    return _Edit(start, start, f"{' ' * indent}# {note}\n")


def _fields(node: Any) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}
