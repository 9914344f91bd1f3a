"""The report as JSON for programs, with stable keys and everything that the text report shows."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pydantic_core import to_json

from training_platform.catalog.prices import LEFT_OUT
from training_platform.catalog.types import Json
from training_platform.checks.change_report import Act, Amount, Comparison, Consequence, StackChange
from training_platform.checks.report import Report, StackReport, ordered
from training_platform.checks.reports.sections import SECTIONS
from training_platform.checks.reports.tables import ReportSection
from training_platform.checks.reports.wording import conclusion
from training_platform.config.reading.finding import Finding
from training_platform.quota.charges import QuotaKey
from training_platform.quota.ledger import CapacityLine, FileLine, Line, ProjectLedger
from training_platform.rules.exemptions import Exempted

FORMAT_VERSION = 1
_OWN = ("quotas", "capacity", "files", "accelerators", "cost")  # sections with documents; the last two in stacks


def json_report(report: Report) -> str:
    """Return the report as JSON text. The ``limit`` is -1 if a quota is unlimited, and null if it is unknown."""
    result = conclusion(report)
    document = {
        "version": FORMAT_VERSION,
        "today": report.today.isoformat(),
        "verdict": {"state": result.state, "text": str(result), "not_judged": dict(report.unjudged())},
        "stacks": [_stack(stack) for stack in report.stacks],
        "quotas": [ledger_document(ledger) for ledger in report.ledgers],
        "capacity": [_capacity(line) for line in report.capacity],
        "files": [file_document(line) for line in report.files],
        **{name: _rows(sections(report)) for name, sections in SECTIONS.items() if name not in _OWN},
        "findings": [finding_document(finding) for finding in ordered(report.all_findings())],
        "exempted": [_exempted(exempted) for exempted in report.all_exempted()],
        "known": [{**finding_document(row.finding), "known": row.why} for row in report.all_known()],
        "failures": list(report.failures),
    }
    if report.comparison:
        document["changes"] = changes_document(report.comparison)
    # Indentation makes the standard library's JSON five times slower.
    return to_json(document, indent=2, ensure_ascii=True).decode()


def _rows(sections: Iterable[ReportSection]) -> list[Json]:
    """Return the rows of sections that have no JSON structure of their own; each row maps columns to strings."""
    return [
        {column.removeprefix(">"): cell for column, cell in zip(section.columns, row.cells, strict=True)}
        for section in sections
        for row in section.rows
    ]


def _stack(stack: StackReport) -> Json:
    return {
        "name": stack.name,
        "kind": stack.kind,
        "file": stack.file,
        "project": stack.project,
        "environment": stack.environment,
        "planned": stack.planned,
        "resources": {branch.name: branch.kinds for branch in stack.branches},
        "accelerators": [
            {"region": row.region, "flavor": row.flavor, "unit": row.unit, "min": row.minimum, "max": row.maximum}
            for row in stack.accelerators
        ],
        "usd_per_hour": {
            "min": round(stack.cost.minimum, 4) if stack.cost.sums_up else None,
            "max": round(stack.cost.maximum, 4) if stack.cost.sums_up else None,
            "vms": stack.cost.vms,
            "vms_without_price": stack.cost.vms_without,
            "unpriced": list(stack.cost.unpriced),
            "unverified": list(stack.cost.unverified),
            "left_out": list(LEFT_OUT),
            "prices_of": stack.cost.read.isoformat() if stack.cost.read else None,
        },
    }


def ledger_document(ledger: ProjectLedger) -> Json:
    """Return a project's limits and the day on which they were read, or null if they were not read."""
    return {
        "project": ledger.project,
        "taken": ledger.taken.isoformat() if ledger.taken else None,
        "lines": [line_document(line) for line in ledger.lines],
    }


def line_document(line: Line) -> Json:
    """Return a limit and the stacks that use it. ``requested`` is the value in stack files, granted or not."""
    return {
        **key_document(line.key),
        "unit": line.unit,
        "limit": _finite(line.limit),
        "used": line.used,
        "requested": _finite(line.requested),
        "holders": [
            {"stack": held.holder.stack, "name": held.holder.label, "amount": held.amount} for held in line.holders
        ],
    }


def key_document(key: QuotaKey) -> Json:
    """Return the names and the location of a quota."""
    return {
        "service": key.service,
        "quota_id": key.quota_id,
        "location": key.location or None,
        "dimensions": dict(key.dimensions),
    }


def _finite(amount: float | None) -> float | None:
    """Return an amount for JSON; -1 means unlimited."""
    return -1 if amount is not None and math.isinf(amount) else amount


def _capacity(line: CapacityLine) -> Json:
    return {
        "environment": line.environment,
        "cluster": line.cluster,
        "flavor": line.flavor.name,
        "resource": line.resource,
        "capacity": line.capacity,
        "promised": line.promised,
        "unpromised": line.unpromised,
        "lent": line.lent,
        "teams": {share.holder.label: share.amount for share in line.shares},
    }


def file_document(line: FileLine) -> Json:
    """Return a Filestore instance: its size and promised amount in GiB, and its maximum performance."""
    return {
        "environment": line.environment,
        "instance": line.instance,
        "tier": line.tier.name if line.tier else None,
        "capacity_gib": line.capacity,
        "promised_gib": line.promised,
        "grows_to_gib": line.grows_to,
        "throughput": line.throughput._asdict() if line.throughput else None,
        "holders": {share.holder.label: share.amount for share in line.shares},
    }


def _exempted(exempted: Exempted) -> Json:
    exemption = exempted.entry.exemption
    return {
        **finding_document(exempted.finding),
        "exemption": {
            "line": exempted.entry.position.line,
            "reason": exemption.reason,
            "owner": exemption.owner,
            "expires": exemption.expires.isoformat(),
        },
    }


def finding_document(finding: Finding) -> Json:
    """Return a finding as plain values."""
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "stack": finding.stack,
        "file": finding.file,
        "line": finding.position.line if finding.position else None,
        "column": finding.position.column if finding.position else None,
        "path": finding.path or None,
        "resource": finding.resource,
        "allowed": finding.allowed,
        "nearest": finding.nearest,
        "source": finding.source,
        "first": finding.first,
        "becomes": finding.becomes,
        "takes": {stack: list(kinds) for stack, kinds in finding.takes},
        "follows": finding.follows,
        "explain": f"training-platform explain {finding.rule}",
    }


def changes_document(comparison: Comparison) -> Json:
    """Return a comparison as plain values. Each amount has its values before and after, null if unknown."""
    return {
        "base": comparison.ref,
        "commit": comparison.commit,
        "other_stacks": comparison.other_stacks,
        "own_program": comparison.own_program,
        "unknown": comparison.unknown,
        "deployed": list(comparison.deployed),
        "effects": [_consequence(act, row) for act in comparison.acts for row in act.consequences],
        "stacks": [_stack_change(stack) for stack in comparison.stacks],
        "quotas": [
            {
                "project": quota.key.project,
                **key_document(quota.key),
                "unit": quota.unit,
                "used": _amount(quota.used),
                "limit": _amount(quota.limit),
            }
            for quota in comparison.quotas
        ],
        "capacity": [
            {
                **line._asdict(),
                "capacity": _amount(line.capacity),
                "promised": _amount(line.promised),
            }
            for line in comparison.capacity
        ],
    }


def _consequence(act: Act, consequence: Consequence) -> Json:
    return {
        "effect": consequence.kind,
        "on": list(consequence.subjects),
        "acknowledged": str(act.acknowledged) if act.acknowledged else None,
        "listed": consequence.acknowledged,
        "act": act.verb,
        "was": act.was,
        "also": list(act.also),
        **finding_document(act.finding),
    }


def _stack_change(stack: StackChange) -> Json:
    return {
        "name": stack.name,
        "kind": stack.kind,
        "was": stack.was,
        "unknown": stack.unknown,
        "resources": [
            {
                "kind": resource.kind,
                "type": resource.type,
                "name": resource.name,
                "protected": resource.protected,
                "effects": [{"effect": effect.kind, "why": effect.says} for effect in resource.effects],
                "inputs": [
                    {
                        "path": change.path,
                        "old": change.old,
                        "new": change.new,
                        "replaces": change.forces,
                        "effect": change.effect.kind,
                    }
                    for change in resource.inputs
                ],
            }
            for resource in stack.resources
        ],
        "accelerators": [
            {"region": row.region, "flavor": row.flavor, "unit": row.unit, "max": _amount(row.maximum)}
            for row in stack.accelerators
        ],
        "usd_per_hour": {"min": _amount(stack.least_usd, 4), "max": _amount(stack.most_usd, 4)},
    }


def _amount(value: Amount, digits: int | None = None) -> dict[str, float | None]:
    numbers = {"before": value.before, "after": value.after}
    if digits is None:
        return numbers
    return {side: None if number is None else round(number, digits) for side, number in numbers.items()}
