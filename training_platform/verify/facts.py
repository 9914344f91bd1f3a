"""Facts of the catalogue against Google Cloud's own lists; what differs is a change of the catalogue's data files.

Reads two lists of a project and nothing else: machine types (Compute Engine) and the ids of quotas (Cloud Quotas). A
zone or a machine type that a project does not list refutes nothing, since lists may be shortened for a project. The
change is a patch for ``git apply``, with a comment that says where each value is from: a project, by day, not by id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from training_platform import catalog
from training_platform.catalog import MACHINE_TYPES, fact_sheets
from training_platform.catalog.nearest import find_nearest
from training_platform.catalog.types import Json, MachineType
from training_platform.clients.google_api import GoogleApi
from training_platform.clients.quota_pull import CloudQuotas
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
