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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import Field

from training_platform.config.reading.finding import Finding, Position, UserError
from training_platform.config.reading.rejection import read_section
from training_platform.config.reading.section import Section
from training_platform.simulate.quotas import Json
from training_platform.simulate.traces import RULE

Row = dict[str, object]
_GPUS: Final = re.compile(r"gres/gpu(?::([^=,]+))?=(\d+)")
_ELAPSED: Final = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)(?:\.\d+)?")
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
    """Rows of a trace, the jobs that were left out by the reason, and what could not be read."""

    rows: list[Row] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, row: Row | str) -> None:
        """Add a row, or count the reason why there is none."""
        if isinstance(row, str):
            self.left_out[row] += 1
        else:
            self.rows.append(row)

    def add_workloads(self, items: Iterable[Json], table: NameTable, **more: object) -> None:
        """Add Kueue's workloads that have ended; a job that was evicted runs from its last admission on."""
        for item in items:
            status = item.get("status", {})
            met = (row for row in status.get("conditions", ()) if row["status"] == "True")
            times = {row["type"]: datetime.fromisoformat(row["lastTransitionTime"]) for row in met}
            admission = status.get("admission") or {}
            needs = [
                (str(row["resourceUsage"][resource]), flavor)
                for row in admission.get("podSetAssignments", ())
                for resource, flavor in row.get("flavors", {}).items()
                if resource in _RESOURCES
            ]
            if "Finished" not in times or "Admitted" not in times:
                self.left_out["workloads that have not ended, or never ran"] += 1
            elif not needs:
                self.left_out["workloads without GPUs or TPUs"] += 1
            else:
                seconds = max(1, round((times["Finished"] - times["Admitted"]).total_seconds()))
                self.add(table.row(
                    admission["clusterQueue"], needs, submitted=item["metadata"]["creationTimestamp"], seconds=seconds,
                    priority=item["spec"].get("priority", 0), job=item["metadata"]["name"], **more,
                ))  # fmt: skip

    def wrong(self, path: Path, line: int, column: int, message: str, allowed: str) -> None:
        """Note a row that cannot be read."""
        self.findings.append(Finding(rule=RULE, severity="error", message=message, file=str(path),
                                     position=Position(line, column), allowed=allowed))  # fmt: skip


def read_foreign(path: Path, kind: str, table: NameTable) -> Imported:
    """Read a file of a kind of ``KINDS``. UserError where it cannot be read at all."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{path} cannot be read: {reason}.") from error
    found = Imported()
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

        def column(name: str, cells: list[str] = cells) -> int:
            return 1 + sum(len(cell) + 1 for cell in cells[: place[name]])

        job, submit = cells[place["jobid"]], cells[place["submit"]]
        gpus = _GPUS.findall(cells[place[tres]])
        seconds = _elapsed(cells[place[elapsed]])
        if "." in job:
            found.left_out["steps of jobs"] += 1
        elif not gpus:
            found.left_out["jobs without GPUs"] += 1
        elif seconds == 0:
            found.left_out["jobs that never ran"] += 1
        elif seconds is None:
            allowed = "seconds, or days-hours:minutes:seconds"
            found.wrong(path, number, column(elapsed), f"{cells[place[elapsed]]!r} is not a time", allowed)
        elif not _is_moment(submit):
            found.wrong(path, number, column("submit"), f"{submit!r} is not a moment", "2026-11-01T09:30:00")
        else:
            named = [row for row in gpus if row[0]] or gpus  # gres/gpu=8 sums up what gres/gpu:a100=8 says again
            needs = [(amount, name or "gpu") for name, amount in named]
            found.add(table.row(cells[place["account"]], needs, submitted=submit, seconds=round(seconds), job=job))


def _elapsed(text: str) -> float | None:
    if text.isdecimal():
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
        job, submitted, _, seconds, used, _, _, asked, *_ = values
        group, partition = (f"{values[place]:.0f}" for place in (12, 15))
        processors = used if used > 0 else asked
        if seconds <= 0 or processors <= 0:
            found.left_out["jobs that never ran, or used no processor"] += 1
            continue
        found.add(table.row(group, [(f"{processors:.0f}", partition)], submitted=f"{submitted:.0f}",
                            seconds=math.ceil(seconds), job=f"{job:.0f}"))  # fmt: skip


def _kueue(path: Path, text: str, table: NameTable, found: Imported) -> None:
    try:
        items = json.loads(text)["items"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not a list of workloads: kubectl get workloads -A -o json writes one.") from error
    found.add_workloads(items, table)


KINDS: Final[Mapping[str, Callable[[Path, str, NameTable, Imported], None]]] = {
    "slurm": _slurm, "swf": _swf, "kueue": _kueue,
}  # fmt: skip
"""What reads a file, by the name of its format."""
