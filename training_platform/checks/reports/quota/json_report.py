"""``quota show`` and ``quota plan`` as JSON, for programs: whole ledgers, then the sections of the other formats."""

from __future__ import annotations

import json
from collections.abc import Iterable

from training_platform.catalog.types import Json
from training_platform.checks.reports.json_report import FORMAT_VERSION, file_document, line_document
from training_platform.checks.reports.quota.rows import By, Section, sections
from training_platform.quota.ledger import CapacityLine, Line
from training_platform.quota.overview import Overview, may_borrow, may_lend, of_servers
from training_platform.quota.plan import ProjectPlan


def overview_json(overview: Overview, by: By) -> str:
    """Return both ledgers; an unlimited quota has ``limit`` -1, an unknown one null, and neither has anything left.

    A row of ``sections`` names a line by its quota; ``has`` is what the section's stack or team has of it.
    """
    document = {
        "version": FORMAT_VERSION,
        "today": overview.today.isoformat(),
        "quotas": [
            {
                "project": ledger.project,
                "taken": ledger.snapshot.taken.isoformat() if ledger.snapshot else None,
                "lines": [_line(line, overview) for line in ledger.lines],
            }
            for ledger in overview.ledgers
        ],
        "capacity": [_capacity(line, overview) for line in overview.capacity],
        "files": [file_document(line) for line in overview.files],
        "by": by,
        "sections": [_section(section) for section in sections(overview, by)],
        "not_known": list(overview.unknown()),
        "not_counted": list(overview.not_counted),
    }
    return json.dumps(document, indent=2)


def plans_json(plans: Iterable[ProjectPlan]) -> str:
    """Return what each project has to ask for; ``file`` is the stack file that takes the requests."""
    document = {
        "version": FORMAT_VERSION,
        "projects": [
            {
                "project": plan.ledger.project,
                "taken": plan.ledger.snapshot.taken.isoformat() if plan.ledger.snapshot else None,
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


def _section(section: Section) -> Json:
    rows = [
        {
            "project": row.line.key.project,
            "service": row.line.key.service,
            "quota_id": row.line.key.quota_id,
            "location": row.line.key.location or None,
            "dimensions": dict(row.line.key.dimensions),
            "has": row.mine,
        }
        for row in section.rows
    ]
    return {"title": section.title, "rows": rows}


def _line(line: Line, overview: Overview) -> Json:
    document = line_document(line)
    teams = [{"team": overview.team(held)} for held in line.holders]
    holders = [{**holder, **team} for holder, team in zip(document["holders"], teams, strict=True)]
    unlimited = document["limit"] == -1
    return {**document, "unlimited": unlimited, "left": None if unlimited else line.headroom, "holders": holders}


def _capacity(line: CapacityLine, overview: Overview) -> Json:
    return {
        "environment": line.environment,
        "cluster": line.cluster,
        "flavor": line.flavor.name,
        "resource": line.resource,
        "pools_hold": line.capacity,
        "free": line.headroom,
        "unpromised": line.unpromised,
        "lent": line.lent,
        "shares": [
            {
                "team": share.holder.label,
                "stack": share.holder.stack,
                "guaranteed": share.amount,
                "may_borrow": may_borrow(line, share, overview.workspace),
                "may_lend": may_lend(line, share, overview.workspace),
                **({"model_servers": served} if (served := of_servers(line, share, overview.workspace)) else {}),
            }
            for share in line.shares
        ],
    }
