"""Traces of what other schedulers ran: Slurm's accounting, the Standard Workload Format, and Kueue's workloads.

A table says which team an account is, and which accelerator or flavor a kind of GPU::

    teams: {physics: vision, "*": nlp}
    needs: {a100: a100-80, "*": h100}

``*`` is everything else. Where a table has a section without ``*``, jobs of names that it lacks are left out; a section
that is missing leaves names as they are. What is left out is counted by the reason, and rows that cannot be read are
findings with line and column.

Source: sacct(1) of Slurm 24.05 for ``--parsable2`` and TRES; Feitelson's Standard Workload Format, version 2.2; Kueue's
API v1beta2 for workloads. None of the three was tried with files of a real cluster of Slurm.
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

from training_platform.config.reading.finding import Finding, Position, UserError
from training_platform.config.reading.rejection import read_section
from training_platform.config.reading.section import Section
from training_platform.parts.simulate.quotas import Json
from training_platform.parts.simulate.traces import MOST_MOMENT, MOST_SECONDS, RULE

Row = dict[str, object]
_GPUS: Final = re.compile(r"gres/gpu(?::([^=,]+))?=([0-9]+)")
_ELAPSED: Final = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?")
_MOST_GPUS: Final = 1_000_000
_SPACE: Final = re.compile(r"[ \t\r\n]*")
MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError, OverflowError)
"""What reading an object raises that has not the fields of its kind."""
_RESOURCES: Final = ("nvidia.com/gpu", "google.com/tpu")


class NameTable(Section):
    """What names of another scheduler are here: teams by account, group or ClusterQueue, needs by kind of GPU."""

    teams: dict[str, str] = Field(default_factory=dict)
    needs: dict[str, str] = Field(default_factory=dict)

    def row(self, team: str, needs: Iterable[tuple[str, str]], **more: object) -> Row | str:
        """Return a row of a trace, of amounts by kind of GPU, or the reason why the table has none."""
        said = []
        for amount, kind in needs:
            if (need := _named(self.needs, kind)) is None:
                return f"jobs on {kind!r}, which needs lacks"
            said.append(f"{amount} {need}")
        if (owner := _named(self.teams, team)) is None:
            return f"jobs of {team!r}, which teams lacks"
        return {"team": owner, "needs": " + ".join(said), **more}


def _named(names: Mapping[str, str], name: str) -> str | None:
    return names.get(name, names.get("*")) if names else name


def read_table(path: Path | None) -> NameTable:
    """Read a table of names; without a file all names stay. UserError names all that is wrong."""
    return NameTable() if path is None else read_section(path, NameTable)


@dataclass
class Imported:
    """Rows of a trace, the jobs that were left out by the reason, and what could not be read.

    With ``resources``, jobs of Kueue ask for all of their resources, and not for GPUs or TPUs of a flavor.
    """

    resources: bool = False
    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, row: Row | str) -> None:
        """Add a row, or count the reason why there is none."""
        if isinstance(row, str):
            self.left_out[row] += 1
        else:
            self.rows.append(row)

    def add_workload(self, item: Any, table: NameTable, **more: object) -> None:
        """Add one of Kueue's workloads if it has ended; a job that was evicted runs from its last admission on.

        Raises MALFORMED where the API server could not have written it.
        """
        status = item.get("status") or {}
        met = (row for row in status.get("conditions") or () if row["status"] == "True")
        times = {row["type"]: datetime.fromisoformat(row["lastTransitionTime"]) for row in met}
        if "Finished" not in times or "Admitted" not in times:
            self.left_out["workloads that have not ended, or never ran"] += 1
            return
        admission = status["admission"]
        needs = [
            (str(row["resourceUsage"][resource]), flavor)
            for row in admission["podSetAssignments"]
            for resource, flavor in (row.get("flavors") or {}).items()
            if resource in _RESOURCES
        ]
        whole = ""
        if self.resources:
            needs = []
            usages = [row["resourceUsage"] for row in admission["podSetAssignments"]]
            kinds = (" ".join(f"{quantity} {name}" for name, quantity in usage.items()) for usage in usages)
            whole = " + ".join(filter(None, kinds))
        if not (whole if self.resources else needs):
            self.left_out["workloads without resources" if self.resources else "workloads without GPUs or TPUs"] += 1
            return
        metadata = item["metadata"]
        if not _is_moment(metadata["creationTimestamp"]):
            raise ValueError(metadata["creationTimestamp"])
        seconds = max(1, round((times["Finished"] - times["Admitted"]).total_seconds()))
        priority = int(item["spec"].get("priority") or 0)
        row = table.row(
            str(admission["clusterQueue"]), needs, submitted=metadata["creationTimestamp"], seconds=seconds,
            priority=priority, job=metadata["name"], **more,
        )  # fmt: skip
        if whole and not isinstance(row, str):
            row["needs"] = whole
        self.add(row)

    def add_workloads(self, items: Iterable[Json], table: NameTable, **more: object) -> None:
        """Add workloads as an API server returned them; those that cannot be read are counted."""
        for item in items:
            try:
                self.add_workload(item, table, **more)
            except MALFORMED:
                self.left_out["workloads that cannot be read"] += 1

    def wrong(self, path: Path, line: int, column: int, message: str, allowed: str) -> None:
        """Note a row that cannot be read."""
        self.findings.append(Finding(rule=RULE, severity="error", message=message, file=str(path),
                                     position=Position(line, column), allowed=allowed))  # fmt: skip


def read_foreign(path: Path, kind: str, table: NameTable, *, resources: bool = False) -> Imported:
    """Read a file of a kind of ``KINDS``. UserError where it cannot be read at all."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    found = Imported(resources)
    KINDS[kind](path, text, table, found)
    return found


def _slurm(path: Path, text: str, table: NameTable, found: Imported) -> None:
    lines = text.splitlines()
    header = lines[0].split("|") if lines else []
    place = {name.lower(): index for index, name in enumerate(header)}
    elapsed = "elapsedraw" if "elapsedraw" in place else "elapsed"
    tres = "alloctres" if "alloctres" in place else "reqtres"
    if missing := [name for name in ("jobid", "submit", "account", elapsed, tres) if name not in place]:
        fields = "JobID,Submit,Account,ElapsedRaw,AllocTRES"
        raise UserError(f"{path}:1: has no {', '.join(missing)}. Allowed: sacct --parsable2 --format={fields}.")
    for number, line in enumerate(lines[1:], 2):
        cells = line.split("|")
        if len(cells) != len(header):
            found.wrong(path, number, 1, f"has {len(cells)} cells, not {len(header)}", "those of the header")
            continue
        row = {name: cells[index] for name, index in place.items()}
        try:
            found.add(_slurm_job(row["jobid"], row["submit"], row["account"], (row[elapsed], row[tres]), table))
        except _WrongCellError as error:
            wrong = {"submit": "submit", "elapsed": elapsed, "tres": tres}[error.column]
            column = 1 + sum(len(cell) + 1 for cell in cells[: place[wrong]])
            found.wrong(path, number, column, error.message, error.allowed)


class _WrongCellError(Exception):
    """A cell of Slurm's accounting that has no meaning: its column, what is wrong, and what is allowed."""

    def __init__(self, column: str, message: str, allowed: str) -> None:
        super().__init__(message)
        self.column, self.message, self.allowed = column, message, allowed


def _slurm_job(job: str, submit: str, account: str, run: tuple[str, str], table: NameTable) -> Row | str:
    """Return a row of a trace, or the reason why there is none; ``run`` is the elapsed time and the TRES."""
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
        raise _WrongCellError("elapsed", f"{elapsed!r} is not a time", allowed)
    if not _is_moment(submit):
        raise _WrongCellError("submit", f"{submit!r} is not a moment", "2026-11-01T09:30:00")
    named = [row for row in gpus if row[1]] or gpus  # gres/gpu=8 sums up what gres/gpu:a100=8 says again
    needs = [(amount, name or "gpu") for amount, name in named]
    return table.row(account, needs, submitted=submit, seconds=round(seconds), job=job)


def _elapsed(text: str) -> float | None:
    if text.isascii() and text.isdecimal():
        return float(text)
    if not (parts := _ELAPSED.fullmatch(text)):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _swf(path: Path, text: str, table: NameTable, found: Imported) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if not cells or cells[0].startswith(";"):
            continue
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            values = []
        if len(values) != 18:
            found.wrong(path, number, 1, "is not a job of the Standard Workload Format", "18 numbers")
            continue
        if too_large := [index for index, value in enumerate(values) if not abs(value) <= MOST_MOMENT]:
            column = [match.start() for match in re.finditer(r"\S+", line)][too_large[0]] + 1
            found.wrong(path, number, column, f"{cells[too_large[0]]!r} is too large", f"up to {MOST_MOMENT:.0e}")
            continue
        job, submitted, _, seconds, used, _, _, asked, *_ = values
        group, partition = (f"{values[place]:.0f}" for place in (12, 15))
        processors = used if used > 0 else asked
        if seconds <= 0 or processors <= 0:
            found.left_out["jobs that never ran, or used no processor"] += 1
            continue
        if seconds > MOST_SECONDS or processors > _MOST_GPUS:
            message = f"runs for {seconds:.0f} seconds on {processors:.0f} processors"
            found.wrong(path, number, 1, message, f"up to ten years and {_MOST_GPUS:,} processors")
            continue
        found.add(table.row(group, [(f"{processors:.0f}", partition)], submitted=f"{submitted:.0f}",
                            seconds=math.ceil(seconds), job=f"{job:.0f}"))  # fmt: skip


def _kueue(path: Path, text: str, table: NameTable, found: Imported) -> None:
    for item, offset in workload_items(path, text):
        try:
            found.add_workload(item, table)
        except MALFORMED:
            before = text[:offset]
            line, column = before.count("\n") + 1, offset - before.rfind("\n")
            name = item.get("metadata") if isinstance(item, dict) else None
            named = f"{name['name']!r}" if isinstance(name, dict) and "name" in name else "this item"
            found.wrong(path, line, column, f"{named} is not a workload as Kueue writes it", "kubectl's own output")


def workload_items(path: Path, text: str) -> Iterator[tuple[Any, int]]:
    """Yield the items of a list that kubectl wrote as JSON, and the offset of each. UserError where it is none."""
    scan = json.JSONDecoder().raw_decode
    try:
        if not isinstance(json.loads(text)["items"], list):
            raise TypeError  # noqa: TRY301 # as where there are no items at all
        at = _past(text, _past(text, 0) + 1)
        while text[at] == '"':
            key, at = scan(text, at)
            at = _past(text, _past(text, at) + 1)
            if key == "items":
                break
            _, at = scan(text, at)
            at = _past(text, _past(text, at) + 1)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is not a list of workloads: kubectl get workloads -A -o json writes one.") from error
    at = _past(text, at + 1)
    while text[at] != "]":
        item, end = scan(text, at)
        yield item, at
        at = _past(text, end)
        if text[at] == ",":
            at = _past(text, at + 1)


def _past(text: str, at: int) -> int:
    """Return where the next token of JSON begins."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


KINDS: Final[Mapping[str, Callable[[Path, str, NameTable, Imported], None]]] = {
    "slurm": _slurm, "swf": _swf, "kueue": _kueue,
}  # fmt: skip
"""What reads a file, by the name of its format."""
