"""``quota show`` and ``quota plan`` as Markdown, for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from training_platform.checks.reports.markdown import escaped, file_table_markdown, table
from training_platform.checks.reports.quota.rows import By, Section, all_holders, sections, taken
from training_platform.checks.reports.quota.text_report import NO_HOME, section_head, verdict_of
from training_platform.checks.reports.wording import (
    FILE_NOTE,
    headroom,
    limit,
    limit_and_request,
    location,
    nobodys,
    quota_name,
)
from training_platform.quota.keys import shown
from training_platform.quota.overview import Overview, may_borrow, may_lend
from training_platform.quota.plan import ProjectPlan, request_lines


def overview_markdown(overview: Overview, by: By) -> str:
    """Return both ledgers as tables."""
    parts = [_section(section, by) for section in sections(overview, by)]
    if overview.capacity:
        parts.append("### Capacity of the clusters\n\n" + _capacity(overview))
    if overview.files:
        parts.append(f"### File capacity\n\nIn {FILE_NOTE}.\n\n" + file_table_markdown(overview.files))
    parts += [f"- not known: {escaped(sentence)}." for sentence in overview.unknown()]
    parts += [f"- not counted: {escaped(sentence)}" for sentence in overview.not_counted]
    return "\n\n".join(parts) + "\n"


def plans_markdown(plans: Iterable[ProjectPlan]) -> str:
    """Return what each project has to ask for, with the YAML to paste."""
    return "\n\n".join(part for plan in plans for part in _plan(plan)) + "\n"


def _section(section: Section, by: By) -> str:
    owned = by in ("stack", "team")
    where = section_head(by).removesuffix(" and quota").removesuffix(" of")
    columns = [where, "quota", *([">has"] if owned else []), ">needs", ">limit", ">left", "held by"]
    rows = [
        (
            row.where,
            f"{quota_name(row.line)} ({row.line.unit})",
            *([shown(row.mine or 0)] if owned else []),
            f"**{shown(row.line.used)}**" if row.line.over else shown(row.line.used),
            limit_and_request(row.line),
            headroom(row.line),
            all_holders(row.line),
        )
        for row in section.rows
    ]
    note = f", {section.note}" if section.note else ""
    return f"### {by.capitalize()} {escaped(section.title)}{note}\n\n{table(columns, rows)}"


def _capacity(overview: Overview) -> str:
    rows = []
    for line in overview.capacity:
        place = f"{line.environment} {line.cluster}"
        promised = f"**{shown(line.promised)}**" if line.over else shown(line.promised)
        rows.append((place, line.flavor.name, "all", promised, "", "", f"{line.capacity:,}", shown(line.headroom)))
        for share in line.shares:
            borrow, lend = may_borrow(line, share, overview.workspace), may_lend(line, share, overview.workspace)
            numbers = (shown(share.amount), shown(borrow), shown(lend))
            rows.append((place, line.flavor.name, share.holder.label, *numbers, "", ""))
        if line.unpromised:
            rows.append((place, line.flavor.name, nobodys(line), "", "", shown(line.lent), "", shown(line.unpromised)))
    heads = ("cluster", "flavor", "team", ">guaranteed", ">may borrow", ">may lend", ">pools hold", ">free")
    return table(heads, rows)


def _plan(plan: ProjectPlan) -> Iterator[str]:
    yield f"### Project {escaped(plan.ledger.project)}, {taken(plan.ledger)}"
    if plan.ledger.snapshot is None:
        yield f"No limit is known: `training-platform quota pull {plan.ledger.project}`"
        return
    yield verdict_of(plan)
    if plan.needed:
        rows = [
            (
                location(need.line),
                quota_name(need.line),
                limit(need.line),
                f"**{need.value:,}**",
                need.line.unit,
                all_holders(need.line),
                "; ".join(need.instead) or "-",
            )
            for need in plan.needed
        ]
        yield table(("location", "quota", ">limit", ">request", "", "held by", "or, within today's limits"), rows)
    for line in plan.waiting:
        yield escaped(f"{line.key}: {shown(line.requested or 0)} requested is enough; {limit(line)} today.")
    if plan.unknown:
        ids = ", ".join(dict.fromkeys(line.key.quota_id for line in plan.unknown))
        yield f"Nobody can tell: the snapshot does not list {escaped(ids)}."
    if lines := request_lines(plan):
        assert plan.stack is not None  # whose file the lines are for
        body = "\n".join(lines)
        yield f"In `{plan.stack.source.file}`, in the environment's section:\n\n```yaml\n{body}\n```"
    elif plan.needed:
        yield NO_HOME
