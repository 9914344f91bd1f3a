"""Imports traces from other schedulers: Slurm's accounting, the Standard Workload Format, and Kueue's workloads.

A table maps the accounts in such a file to teams, and its kinds of GPUs to accelerators or flavors::

    teams: {physics: vision, "*": nlp}
    needs: {a100: a100-80, "*": h100}

``*`` matches every other name. If a section has no ``*``, jobs with unlisted names are left out. If a section is
missing, names are kept unchanged. The import counts the jobs that it leaves out for each reason. Each row that cannot
be read produces a finding with line and column.

Source: sacct(1) of Slurm 24.05 for ``--parsable2`` and TRES; Feitelson's Standard Workload Format, version 2.2; Kueue's
API v1beta2 for workloads. None of the three imports has been tried with files of a real cluster.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from kueue_model.quotas import Json
from kueue_model.traces import MOST_MOMENT, MOST_SECONDS, TRACE
from training_platform.config.reading.declaration import finding, located
from training_platform.config.reading.finding import Anchor, Finding, Position, UserError
from training_platform.config.reading.rejection import read_section
from training_platform.config.reading.section import Section

Row = dict[str, object]
_GPUS: Final = re.compile(r"gres/gpu(?::([^=,]+))?=([0-9]+)")
_ELAPSED: Final = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?")
_MOST_GPUS: Final = 1_000_000
_SPACE: Final = re.compile(r"[ \t\r\n]*")
MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError, OverflowError)
"""Exceptions raised while reading an object that lacks a field which its kind requires."""
_ACCELERATORS: Final = ("nvidia.com/gpu", "google.com/tpu")


class NameTable(Section):
    """How names in another scheduler's records translate to ours: accounts to teams, kinds of GPUs to ``needs``.

    The keys of ``teams`` are accounts, groups or ClusterQueues.
    """

    teams: dict[str, str] = Field(default_factory=dict)
    needs: dict[str, str] = Field(default_factory=dict)

    def row(self, team: str, needs: Iterable[tuple[str, str]], **more: object) -> Row | str:
        """Return a row of a trace for a job that uses these GPUs, or the reason why the table gives no row for it."""
        parts: list[str] = []
        for amount, kind in needs:
            need = _our_name(self.needs, kind)
            if need is None:
                return f"jobs on {kind!r}, which the table of names does not list under needs"
            parts.append(f"{amount} {need}")
        our_team = _our_name(self.teams, team)
        if our_team is None:
            return f"jobs of {team!r}, which the table of names does not list under teams"
        return {"team": our_team, "needs": " + ".join(parts), **more}


def _our_name(names: Mapping[str, str], name: str) -> str | None:
    if not names:
        return name
    return names.get(name, names.get("*"))


def read_table(path: Path | None) -> NameTable:
    """Read a table of names. Without a file, all names are kept. Raises UserError with every error in the file."""
    return NameTable() if path is None else read_section(path, NameTable)


@dataclass
class Imported:
    """Rows of a trace, the number of jobs left out for each reason, and findings about unreadable rows.

    If ``resources`` is set, the rows of Kueue's workloads list all of their resources, not only their GPUs or TPUs.
    """

    resources: bool = False
    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, row: Row | str) -> None:
        """Add a row. If ``row`` is a string, count it as the reason why a job was left out."""
        if isinstance(row, str):
            self.left_out[row] += 1
        else:
            self.rows.append(row)

    def add_workload(self, item: Any, table: NameTable, **more: object) -> None:
        """Add one of Kueue's workloads if it has ended. The run of an evicted job starts at its last admission.

        Raises one of the MALFORMED exceptions if no API server could have written the workload.
        """
        status = item.get("status") or {}
        times: dict[str, datetime] = {}
        for condition in status.get("conditions") or ():
            if condition["status"] == "True":
                times[condition["type"]] = datetime.fromisoformat(condition["lastTransitionTime"])
        if "Finished" not in times or "Admitted" not in times:
            self.left_out["workloads that have not ended, or never ran"] += 1
            return
        admission = status["admission"]
        needs = _accelerator_needs(admission)
        all_resources = _all_resources(admission) if self.resources else ""
        if self.resources and not all_resources:
            self.left_out["workloads without resources"] += 1
            return
        if not self.resources and not needs:
            self.left_out["workloads without GPUs or TPUs"] += 1
            return
        metadata = item["metadata"]
        if not _is_moment(metadata["creationTimestamp"]):
            raise ValueError(metadata["creationTimestamp"])
        row = table.row(
            str(admission["clusterQueue"]),
            () if self.resources else needs,
            submitted=metadata["creationTimestamp"],
            seconds=max(1, round((times["Finished"] - times["Admitted"]).total_seconds())),
            priority=int(item["spec"].get("priority") or 0),
            job=metadata["name"],
            **more,
        )
        if all_resources and not isinstance(row, str):
            row["needs"] = all_resources
        self.add(row)

    def add_workloads(self, items: Iterable[Json], table: NameTable, **more: object) -> None:
        """Add workloads from an API server, and count the unreadable ones."""
        for item in items:
            try:
                self.add_workload(item, table, **more)
            except MALFORMED:
                self.left_out["workloads that cannot be read"] += 1

    def reject(self, path: Path, line: int, column: int, message: str, allowed: str) -> None:
        """Add a finding about a row that cannot be read."""
        place = Anchor(file=str(path), position=Position(line, column))
        self.findings += located([finding(place, (), message, rule=TRACE, allowed=allowed)])


def _accelerator_needs(admission: Json) -> list[tuple[str, str]]:
    """Return, for each kind of pods, the amount and flavor of its GPUs or TPUs."""
    needs: list[tuple[str, str]] = []
    for assignment in admission["podSetAssignments"]:
        for resource, flavor in (assignment.get("flavors") or {}).items():
            if resource in _ACCELERATORS:
                needs.append((str(assignment["resourceUsage"][resource]), flavor))
    return needs


def _all_resources(admission: Json) -> str:
    """Return, for each kind of pods, the amounts of all resources, in the format of a trace."""
    kinds: list[str] = []
    for assignment in admission["podSetAssignments"]:
        usage = assignment["resourceUsage"]
        if usage:
            kinds.append(" ".join(f"{quantity} {name}" for name, quantity in usage.items()))
    return " + ".join(kinds)


def read_foreign(path: Path, kind: str, table: NameTable, *, resources: bool = False) -> Imported:
    """Read a file in one of the formats of ``KINDS``. Raises UserError if it cannot be read at all."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    imported = Imported(resources)
    KINDS[kind](path, text, table, imported)
    return imported


def _read_slurm(path: Path, text: str, table: NameTable, imported: Imported) -> None:
    lines = text.splitlines()
    header = lines[0].split("|") if lines else []
    columns = {name.lower(): index for index, name in enumerate(header)}
    elapsed = "elapsedraw" if "elapsedraw" in columns else "elapsed"
    tres = "alloctres" if "alloctres" in columns else "reqtres"
    missing = [name for name in ("jobid", "submit", "account", elapsed, tres) if name not in columns]
    if missing:
        fields = "JobID,Submit,Account,ElapsedRaw,AllocTRES"
        raise UserError(
            f"{path}:1: the header has no {', '.join(missing)}. Allowed: sacct --parsable2 --format={fields}."
        )
    for number, line in enumerate(lines[1:], 2):
        cells = line.split("|")
        if len(cells) != len(header):
            message = f"has {len(cells)} cells, not {len(header)}"
            imported.reject(path, number, 1, message, "a cell for each column of the header")
            continue
        row = {name: cells[index] for name, index in columns.items()}
        try:
            imported.add(_slurm_job(row["jobid"], row["submit"], row["account"], (row[elapsed], row[tres]), table))
        except _WrongCellError as error:
            wrong_column = {"submit": "submit", "elapsed": elapsed, "tres": tres}[error.column]
            offset = 1 + sum(len(cell) + 1 for cell in cells[: columns[wrong_column]])
            imported.reject(path, number, offset, error.message, error.allowed)


class _WrongCellError(Exception):
    """An invalid cell of a Slurm accounting file: its column, what is wrong, and what is allowed."""

    def __init__(self, column: str, message: str, allowed: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message
        self.allowed = allowed


def _slurm_job(job: str, submit: str, account: str, run: tuple[str, str], table: NameTable) -> Row | str:
    """Return a row of a trace, or the reason for leaving the job out. ``run`` has the elapsed time and the TRES."""
    elapsed, tres = run
    numbers = [(amount, name) for name, amount in _GPUS.findall(tres)]
    gpus = [(amount, name) for amount, name in numbers if amount.strip("0")]
    seconds = _elapsed(elapsed)
    if "." in job:
        return "steps of jobs"
    if not gpus:
        return "jobs without GPUs"
    if seconds == 0:
        return "jobs that never ran"
    if any(len(amount) > 7 or int(amount) > _MOST_GPUS for amount, _ in gpus):
        raise _WrongCellError("tres", f"{tres!r} has more GPUs than any cluster", f"up to {_MOST_GPUS:,} GPUs")
    if seconds is None or seconds > MOST_SECONDS:
        allowed = "seconds, or days-hours:minutes:seconds, up to ten years"
        raise _WrongCellError("elapsed", f"{elapsed!r} is not a duration", allowed)
    if not _is_moment(submit):
        raise _WrongCellError("submit", f"{submit!r} is not a point in time", "2026-11-01T09:30:00")
    named = [row for row in gpus if row[1]] or gpus  # gres/gpu=8 sums up what gres/gpu:a100=8 says again
    needs = [(amount, name or "gpu") for amount, name in named]
    return table.row(account, needs, submitted=submit, seconds=round(seconds), job=job)


def _elapsed(text: str) -> float | None:
    if text.isascii() and text.isdecimal():
        return float(text)
    parts = _ELAPSED.fullmatch(text)
    if not parts:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _read_swf(path: Path, text: str, table: NameTable, imported: Imported) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if not cells or cells[0].startswith(";"):
            continue
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            values = []
        if len(values) != 18:
            imported.reject(path, number, 1, "is not a job in the Standard Workload Format", "18 numbers")
            continue
        too_large = [index for index, value in enumerate(values) if not abs(value) <= MOST_MOMENT]  # nor nan
        if too_large:
            first = too_large[0]
            column = [match.start() for match in re.finditer(r"\S+", line)][first] + 1
            imported.reject(path, number, column, f"{cells[first]!r} is too large", f"up to {MOST_MOMENT:.0e}")
            continue
        job, submitted, _, seconds, used, _, _, requested, *_ = values
        group = f"{values[12]:.0f}"
        partition = f"{values[15]:.0f}"
        processors = used if used > 0 else requested
        if seconds <= 0 or processors <= 0:
            imported.left_out["jobs that never ran, or used no processor"] += 1
            continue
        if seconds > MOST_SECONDS or processors > _MOST_GPUS:
            message = f"runs for {seconds:.0f} seconds on {processors:.0f} processors"
            imported.reject(path, number, 1, message, f"up to ten years and {_MOST_GPUS:,} processors")
            continue
        needs = [(f"{processors:.0f}", partition)]
        row = table.row(group, needs, submitted=f"{submitted:.0f}", seconds=math.ceil(seconds), job=f"{job:.0f}")
        imported.add(row)


def _read_kueue(path: Path, text: str, table: NameTable, imported: Imported) -> None:
    for item, offset in workload_items(path, text):
        try:
            imported.add_workload(item, table)
        except MALFORMED:
            before = text[:offset]
            line = before.count("\n") + 1
            column = offset - before.rfind("\n")
            metadata = item.get("metadata") if isinstance(item, dict) else None
            subject = "this item"
            if isinstance(metadata, dict) and "name" in metadata:
                subject = repr(metadata["name"])
            message = f"{subject} is not a Workload in Kueue's format"
            imported.reject(path, line, column, message, "the output of kubectl")


def workload_items(path: Path, text: str) -> Iterator[tuple[Any, int]]:
    """Yield each item of a list that kubectl printed as JSON, with its offset. Raises UserError for any other file."""
    decode = json.JSONDecoder().raw_decode
    try:
        if not isinstance(json.loads(text)["items"], list):
            raise TypeError  # noqa: TRY301 # handled like a file without items
        offset = _next_token(text, _next_token(text, 0) + 1)
        while text[offset] == '"':
            key, offset = decode(text, offset)
            offset = _next_token(text, _next_token(text, offset) + 1)
            if key == "items":
                break
            _, offset = decode(text, offset)
            offset = _next_token(text, _next_token(text, offset) + 1)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is not a list of workloads: kubectl get workloads -A -o json writes one.") from error
    offset = _next_token(text, offset + 1)
    while text[offset] != "]":
        item, end = decode(text, offset)
        yield item, offset
        offset = _next_token(text, end)
        if text[offset] == ",":
            offset = _next_token(text, offset + 1)


def _next_token(text: str, offset: int) -> int:
    """Return the offset of the next token of JSON."""
    match = _SPACE.match(text, offset)
    return match.end() if match else offset


KINDS: Final[Mapping[str, Callable[[Path, str, NameTable, Imported], None]]] = {
    "slurm": _read_slurm,
    "swf": _read_swf,
    "kueue": _read_kueue,
}
"""The file readers, keyed by the name of the format."""
