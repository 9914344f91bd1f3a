"""``quota show`` and ``quota plan`` as text, Markdown and JSON: who uses each limit, and which limits to request."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from training_platform.catalog.types import Json
from training_platform.checks.reports.json_report import (
    FORMAT_VERSION,
    file_document,
    key_document,
    ledger_document,
    line_document,
)
from training_platform.checks.reports.markdown_tables import escaped, section_table
from training_platform.checks.reports.sections import (
    file_section,
    fullness,
    headroom,
    held_by,
    limit,
    limit_and_request,
    location,
    quota_name,
    taken,
    unpromised_label,
)
from training_platform.checks.reports.tables import ReportRow, ReportSection
from training_platform.checks.reports.terminal_tables import PrintableConsole, plain_width, section_text
from training_platform.config.reading.section import counted
from training_platform.config.workspace import Workspace
from training_platform.quota.charges import shown
from training_platform.quota.ledger import CapacityLine, Held, Line
from training_platform.quota.needed_requests import ProjectRequests, request_lines
from training_platform.quota.overview import Overview, may_borrow, may_lend, of_servers
from training_platform.quota.snapshot import not_known

By = Literal["project", "region", "quota", "stack", "team"]
GROUPINGS: tuple[By, ...] = get_args(By)
LOG_WIDTH = 120  # columns without a terminal
NO_HOME = "No environment stack uses this project: request the limits in the Google Cloud console."
_SERVERS = "model servers among these, at most"


def quota_console() -> Console:
    """Return a console for standard output: colours and full width on a terminal, plain text otherwise.

    Text in a pipe has a fixed width.
    """
    console = PrintableConsole(highlight=False)
    return console if console.is_terminal else PrintableConsole(highlight=False, width=plain_width(LOG_WIDTH))


class GroupedLimit(NamedTuple):
    """A limit below a title, such as a team. ``where`` is its location; ``part`` is how much of it the team uses."""

    where: str
    line: Line
    part: float | None = None


def grouped_limits(overview: Overview, by: By) -> dict[str, list[GroupedLimit]]:
    """Return the limits of an overview, grouped by title and sorted by location and quota."""
    groups: dict[str, list[GroupedLimit]] = defaultdict(list)
    for line in (line for ledger in overview.ledgers for line in ledger.lines):
        project = line.key.project
        place = location(line.key)
        if by == "project":
            groups[project].append(GroupedLimit(place, line))
        elif by == "region":
            groups[place].append(GroupedLimit(project, line))
        elif by == "quota":
            groups[f"{quota_name(line.key)} ({line.unit})"].append(GroupedLimit(f"{project} {place}", line))
        else:
            amounts: dict[str, float] = defaultdict(float)
            for held in line.holders:
                amounts[overview.team(held) if by == "team" else held.holder.stack] += held.amount
            for owner, amount in amounts.items():
                groups[owner].append(GroupedLimit(f"{project} {place}", line, part=amount))
    return {title: sorted(groups[title], key=lambda limit: (limit.where, limit.line.key)) for title in sorted(groups)}


def _limit_sections(overview: Overview, by: By) -> Iterator[ReportSection]:
    """Yield a section for each group. If the group is a stack or a team, it shows how much of each limit it uses."""
    first_column = {"region": "project", "quota": "limit"}.get(by, "place")
    owned = by in ("stack", "team")
    columns = [first_column, "quota", ">needs", ">limit", ">left", "held by"]
    if owned:
        columns.insert(2, ">has")
    notes = {ledger.project: taken(ledger) for ledger in overview.ledgers} if by == "project" else {}
    for title, limits in grouped_limits(overview, by).items():
        rows: list[ReportRow] = []
        for place, line, part in limits:
            cells = [
                place,
                f"{quota_name(line.key)} ({line.unit})",
                shown(line.used),
                limit_and_request(line),
                headroom(line),
                held_by(line, len(line.holders)),
            ]
            if owned:
                cells.insert(2, shown(part or 0))
            rows.append(ReportRow(tuple(cells), fullness(line)))
        unit = notes.get(title, "")
        stressed = 3 if owned else 2
        yield ReportSection(
            title=title,
            unit=unit,
            columns=tuple(columns),
            rows=rows,
            subject=1,
            stressed=stressed,
            grouped=True,
            noted=True,
        )


def _capacity_sections(overview: Overview) -> Iterator[ReportSection]:
    """Yield the flavors of each cluster, with the amounts promised to teams and what is left."""
    lines: dict[str, list[CapacityLine]] = defaultdict(list)
    for line in overview.capacity:
        lines[f"{line.environment} {line.cluster}"].append(line)
    for cluster, flavors in lines.items():
        yield ReportSection(
            title=f"capacity of {cluster}",
            unit="chips or GPUs",
            columns=("flavor", "team", ">guaranteed", ">may borrow", ">may lend", ">pools hold", ">free"),
            rows=[row for line in flavors for row in _capacity_rows(line, overview)],
            subject=1,
            stressed=2,
        )


def _capacity_rows(line: CapacityLine, overview: Overview) -> Iterator[ReportRow]:
    name = line.flavor.name
    workspace = overview.workspace
    whole = (shown(line.promised), "", "", f"{line.capacity:,}", shown(line.headroom))
    yield ReportRow((name, "all", *whole), "over" if line.over else "fits")
    for share in line.shares:
        amounts = (share.amount, may_borrow(line, share, workspace), may_lend(line, share, workspace))
        yield ReportRow((name, share.holder.label, *map(shown, amounts), "", ""))
        if served := of_servers(line, share, workspace):
            yield ReportRow((name, _SERVERS, shown(served), "", "", "", ""))
    if line.unpromised:
        yield ReportRow((name, unpromised_label(line), "", "", shown(line.lent), "", shown(line.unpromised)))


def print_overview(overview: Overview, by: By, console: Console) -> None:
    """Print who uses each limit, then who uses each flavor, then what the snapshots of limits do not contain."""
    sections = [replace(section, title=f"{by} {section.title}") for section in _limit_sections(overview, by)]
    sections += _capacity_sections(overview)
    if overview.files:
        sections.append(file_section(overview.files))
    for section in sections:
        console.print(section_text(section, console.width), Text())
    for sentence in overview.unknown():
        console.print(Text(f"not known: {sentence}.", style="dim"))
    for sentence in overview.not_counted:
        console.print(Text(f"not counted: {sentence}", style="bold red"), soft_wrap=True)


def print_plans(plans: Iterable[ProjectRequests], console: Console) -> None:
    """Print the requests that each project needs, alternatives to them, and the lines to add to the stack file."""
    for plan in plans:
        console.print(Group(*_plan_text(plan)), Text(), crop=False)  # lines to paste are not folded


def _plan_text(plan: ProjectRequests) -> Iterator[RenderableType]:
    title = Text.assemble("project ", (plan.ledger.project, "bold"), (f"  {taken(plan.ledger)}", "dim"))
    yield Rule(title, align="left", style="dim")
    if plan.ledger.taken is None:
        yield Padding(Text(plan_summary(plan)), (0, 0, 0, 2))
        return
    for need in plan.needed:
        line = need.line
        name = (f"{quota_name(line.key)} in {location(line.key)}: ", "bold")
        parts = [Text.assemble(name, f"{limit(line)} -> {need.value:,} {line.unit}")]
        parts.append(Text(f"held by {held_by(line, len(line.holders))}", style="dim"))
        parts += (Text(f"or, within today's limits, {way}") for way in need.instead)
        yield Padding(Group(parts[0], Padding(Group(*parts[1:]), (0, 0, 0, 2))), (0, 0, 0, 2))
    yield from (Text(f"  {sentence}") for sentence in _waiting(plan))
    if plan.unknown:
        yield Text(f"  not known, because the snapshot does not list {_unlisted(plan)}", style="bold red")
    yield Text(f"  {plan_summary(plan)}", style="bold")
    if lines := request_lines(plan):
        assert plan.stack is not None  # whose file the lines are for
        yield Text(
            f"\n  In {plan.stack.source.file}, in the environment's section (`training-platform quota "
            f"request` writes these lines):\n"
        )
        yield Text("\n".join(f"    {line}" for line in lines), no_wrap=True, overflow="ignore")
    elif plan.needed:
        yield Text(f"  {NO_HOME}")


def _waiting(plan: ProjectRequests) -> list[str]:
    return [
        f"{line.key}: {shown(line.requested or 0)} requested is enough; {limit(line)} today" for line in plan.waiting
    ]


def _unlisted(plan: ProjectRequests) -> str:
    return ", ".join(dict.fromkeys(line.key.quota_id for line in plan.unknown))


def plan_summary(plan: ProjectRequests) -> str:
    """Return a sentence about the requests of a project."""
    if plan.ledger.taken is None:
        return f"Nothing can be planned: {not_known(plan.ledger.project)}."
    if plan.needed:
        return f"{counted(len(plan.needed), 'request')} to make."
    if plan.waiting:
        return "The open requests are enough, once Google grants them."
    return "Every known limit is enough." if plan.unknown else "No request is necessary."


def overview_markdown(overview: Overview, by: By) -> str:
    """Return as tables how much of each quota and of each cluster's capacity is used."""
    parts = []
    for section in _limit_sections(overview, by):
        note = f", {section.unit}" if section.unit else ""
        parts.append(f"### {by.capitalize()} {escaped(section.title)}{note}\n\n{section_table(section)}")
    capacity = _capacity_sections(overview)
    parts += [f"### {section.title.capitalize()}\n\n{section_table(section)}" for section in capacity]
    if overview.files:
        files = file_section(overview.files)
        parts.append(f"### File capacity\n\nIn {files.note}.\n\n" + section_table(files))
    parts += [f"- not known: {escaped(sentence)}." for sentence in overview.unknown()]
    parts += [f"- not counted: {escaped(sentence)}" for sentence in overview.not_counted]
    return "\n\n".join(parts) + "\n"


def plans_markdown(plans: Iterable[ProjectRequests]) -> str:
    """Return the requests that each project needs, with the YAML to paste."""
    return "\n\n".join(part for plan in plans for part in _plan_markdown(plan)) + "\n"


def _plan_markdown(plan: ProjectRequests) -> Iterator[str]:
    yield f"### Project {escaped(plan.ledger.project)}, {taken(plan.ledger)}"
    if plan.ledger.taken is None:
        yield escaped(plan_summary(plan))
        return
    yield plan_summary(plan)
    if plan.needed:
        rows = []
        for need in plan.needed:
            line = need.line
            instead = "; ".join(need.instead) or "-"
            names = (location(line.key), quota_name(line.key))
            holders = held_by(line, len(line.holders))
            rows.append(ReportRow((*names, limit(line), f"{need.value:,}", line.unit, holders, instead), "over"))
        columns = ("location", "quota", ">limit", ">request", "", "held by", "or, within today's limits")
        yield section_table(ReportSection(title="", columns=columns, rows=rows, stressed=3))
    yield from (escaped(f"{sentence}.") for sentence in _waiting(plan))
    if plan.unknown:
        yield f"Not known, because the snapshot does not list {escaped(_unlisted(plan))}."
    if lines := request_lines(plan):
        assert plan.stack is not None  # whose file the lines are for
        body = "\n".join(lines)
        yield f"In `{plan.stack.source.file}`, in the environment's section:\n\n```yaml\n{body}\n```"
    elif plan.needed:
        yield NO_HOME


def overview_json(overview: Overview, by: By) -> str:
    """Return the use of quotas and capacity. ``limit`` is -1 if unlimited, null if unknown; then ``left`` is null.

    A row of ``sections`` refers to a limit by its quota. ``has`` is the amount that the section's stack or team uses.
    """
    document = {
        "version": FORMAT_VERSION,
        "today": overview.today.isoformat(),
        "quotas": [
            {**ledger_document(ledger), "lines": [_line_document(line, overview) for line in ledger.lines]}
            for ledger in overview.ledgers
        ],
        "capacity": [_capacity_document(line, overview) for line in overview.capacity],
        "files": [file_document(line) for line in overview.files],
        "by": by,
        "sections": [
            {
                "title": title,
                "rows": [
                    {"project": line.key.project, **key_document(line.key), "has": part} for _, line, part in limits
                ],
            }
            for title, limits in grouped_limits(overview, by).items()
        ],
        "not_known": list(overview.unknown()),
        "not_counted": list(overview.not_counted),
    }
    return json.dumps(document, indent=2)


def plans_json(plans: Iterable[ProjectRequests]) -> str:
    """Return the requests that each project needs; ``file`` is the stack file to which to add the requests."""
    document = {
        "version": FORMAT_VERSION,
        "projects": [
            {
                "project": plan.ledger.project,
                "taken": plan.ledger.taken.isoformat() if plan.ledger.taken else None,
                "file": plan.stack.source.file if plan.stack else None,
                "requests": [
                    {
                        **line_document(need.line),
                        "name": need.name,
                        "dimensions": need.dimensions,
                        "value": need.value,
                        "instead": list(need.instead),
                    }
                    for need in plan.needed
                ],
                "waiting": [line_document(line) for line in plan.waiting],
                "not_known": [line_document(line) for line in plan.unknown],
            }
            for plan in plans
        ],
    }
    return json.dumps(document, indent=2)


def _line_document(line: Line, overview: Overview) -> Json:
    document = line_document(line)
    for holder, held in zip(document["holders"], line.holders, strict=True):
        holder["team"] = overview.team(held)
    unlimited = document["limit"] == -1
    return {**document, "unlimited": unlimited, "left": None if unlimited else line.headroom}


def _capacity_document(line: CapacityLine, overview: Overview) -> Json:
    return {
        "environment": line.environment,
        "cluster": line.cluster,
        "flavor": line.flavor.name,
        "resource": line.resource,
        "pools_hold": line.capacity,
        "free": line.headroom,
        "unpromised": line.unpromised,
        "lent": line.lent,
        "shares": [_share_document(line, share, overview.workspace) for share in line.shares],
    }


def _share_document(line: CapacityLine, share: Held, workspace: Workspace) -> Json:
    document: Json = {
        "team": share.holder.label,
        "stack": share.holder.stack,
        "guaranteed": share.amount,
        "may_borrow": may_borrow(line, share, workspace),
        "may_lend": may_lend(line, share, workspace),
    }
    if served := of_servers(line, share, workspace):
        document["model_servers"] = served
    return document
