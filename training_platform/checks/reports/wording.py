"""Words and numbers that every format of a report shares, so that no two of them disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from training_platform.catalog.prices import LEFT_OUT, Cost
from training_platform.checks.report import Report
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.section import listed
from training_platform.quota.keys import short_quota_id, shown
from training_platform.quota.ledger import CapacityLine, FileLine, Line

NEARLY_FULL = 0.8
Fullness = Literal["over", "unknown", "nearly", "fits"]


class Verdict(NamedTuple):
    """What a whole check comes to; ``said`` are counts such as ``2 errors``, joined by commas."""

    state: Literal["clean", "findings", "unchecked"]
    stacks: str
    said: str

    def __str__(self) -> str:
        """Return the verdict as one line."""
        if self.state == "clean":
            return f"{self.stacks}: clean" + (f", {self.said}" if self.said else "")
        return f"{self.stacks}: {self.said}"


class Place(NamedTuple):
    """Where a finding is shown; a finding that knows no line stands at the start of its file."""

    file: str
    line: int
    column: int


def verdict(report: Report) -> Verdict:
    """Return what a check comes to."""
    counts = {"error": 0, "warning": 0, "note": 0}
    for finding in report.all_findings():
        counts[finding.severity] += 1
    parts = [counted(count, severity) for severity, count in counts.items() if count]
    if exempt := len(report.all_exempted()):
        parts.append(f"{exempt:,} exempt")
    if known := len(report.all_known()):
        parts.append(f"{known:,} known")
    stacks = counted(len(report.stacks), "stack") if report.known_stacks else "no stack in stacks/ yet"
    if report.failures:
        return Verdict(
            "unchecked", stacks, ", ".join([f"{counted(len(report.failures), 'thing')} not checked", *parts])
        )
    return Verdict("findings" if counts["error"] else "clean", stacks, ", ".join(parts))


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def place(finding: Finding) -> Place:
    """Return where to show a finding: its own place, else its stack's file, else the folder of all stacks."""
    file = finding.file or (f"stacks/Pulumi.{finding.stack}.yaml" if finding.stack else "stacks")
    return Place(file, *(finding.position or (1, 1)))


def following(findings: Sequence[Finding], most: int = 3) -> str:
    """Return what follows from a finding, by place; empty where nothing does."""
    places = list(dict.fromkeys(each.place for each in findings))
    verb = "follows" if len(findings) == 1 else "follow"
    return f"and {len(findings):,} more that {verb} from it: {listed(places, most=most)}" if findings else ""


def advice(finding: Finding) -> str:
    """Return what is allowed and the nearest value that passes, empty where the rule names neither."""
    parts = []
    if finding.allowed:
        parts.append(f"Allowed: {finding.allowed}.")
    if finding.nearest:
        parts.append(f"Nearest: {finding.nearest}")
    return " ".join(parts)


def more_about(finding: Finding) -> str:
    """Return the command that says of a finding's rule what it is, why, how to fix it and how to exempt it."""
    return f"More about it: training-platform explain {finding.rule}"


def sentences(finding: Finding, more: Sequence[Finding]) -> list[str]:
    """Return what a report without columns says of a finding and of what follows from it."""
    every = (said(finding), advice(finding), following(more), more_about(finding))
    return [each for each in every if each]


def said(finding: Finding) -> str:
    """Return the field and what is wrong with it, without the place."""
    return ": ".join(part for part in (finding.path, finding.message) if part)


def fullness(line: Line) -> Fullness:
    """Return how full a quota is; one above four fifths is nearly full."""
    if line.limit is None:
        return "unknown"
    if line.over:
        return "over"
    return "nearly" if not math.isinf(line.limit) and line.used > NEARLY_FULL * line.limit else "fits"


def quota_name(line: Line) -> str:
    """Return a quota id without what a column for the location says, its dimensions beside it."""
    return " ".join([short_quota_id(line.key.quota_id), *(value for _, value in line.key.dimensions)])


def location(line: Line) -> str:
    """Return the region or zone that a limit holds for."""
    return line.key.location or "all regions"


def limit(line: Line) -> str:
    """Return a limit as people write it."""
    return "?" if line.limit is None else shown(line.limit)


def limit_and_request(line: Line) -> str:
    """Return a limit, and what is asked for beyond it, which is none yet."""
    pending = line.open_request
    return limit(line) + ("" if pending is None else f" ({shown(pending)} requested)")


def headroom(line: Line) -> str:
    """Return what is left of a limit as people write it."""
    return "?" if line.headroom is None else shown(line.headroom)


def quota_row(line: Line) -> tuple[str, str, str, str]:
    """Return a quota with its unit, what is needed of it, its limit with what is requested, and what is left."""
    return f"{quota_name(line)} ({line.unit})", shown(line.used), limit_and_request(line), headroom(line)


def held_by(line: Line, most: int = 3) -> str:
    """Return the largest holders of a line, with what each has."""
    parts = [f"{held.holder.stack}/{held.holder.label} {shown(held.amount)}" for held in line.holders[:most]]
    rest = len(line.holders) - len(parts)
    return ", ".join(parts) + (f" and {rest} more" if rest > 0 else "")


FILE_COLUMNS = ("instance", ">holds", ">promised", ">free", ">up to", ">read/write", "held by")
FILE_NOTE = "GiB, and MiB/s as Filestore's page on performance estimates them, read 2026-11-22"


def file_row(line: FileLine) -> tuple[str, ...]:
    """Return a line of the ledger of files as the columns of ``FILE_COLUMNS``; up to is how far it can grow."""
    up_to = "?" if line.grows_to is None else f"{line.grows_to:,}"
    name = f"{line.environment} {line.instance}, {line.tier.name if line.tier else '?'}"
    numbers = (shown(line.capacity), shown(line.promised), shown(line.headroom), up_to)
    return (name, *numbers, file_throughput(line) or "?", shares_of(line))


def file_throughput(line: FileLine) -> str | None:
    """Return the MiB/s that an instance gives at most, to readers and to writers; None where they are not known."""
    found = line.throughput
    return f"{found.read_mibps:,}/{found.write_mibps:,}" if found else "by IOPS" if line.custom else None


def shares_of(line: CapacityLine | FileLine) -> str:
    """Return who is promised a part of a flavor or an instance, with what each is; of a flavor also what nobody is."""
    held = [f"{share.holder.label} {shown(share.amount)}" for share in line.shares]
    if isinstance(line, CapacityLine) and line.unpromised:
        held.append(f"{nobodys(line)} {line.unpromised:,}")
    return ", ".join(held)


def nobodys(line: CapacityLine) -> str:
    """Return what becomes of whole slices that no team was promised."""
    return "lent to all" if line.lends else "idle"


def price(cost: Cost) -> str:
    """Return what a stack costs per hour, empty where no price is known; ``price_note`` says what is not in it."""
    return f"at least ${cost.least:,.2f} to ${cost.most:,.2f} per hour" if cost.read else ""


def price_note(cost: Cost) -> str:
    """Return what a price rests on and what it leaves out."""
    parts = [f"at prices of {cost.read}, without {', '.join(LEFT_OUT)}"] if cost.read else []
    if cost.unverified:
        parts.append(f"prices not verified: {', '.join(cost.unverified)}")
    if cost.unpriced:
        parts.append(f"no price known: {', '.join(cost.unpriced)}")
    return "; ".join(parts)
