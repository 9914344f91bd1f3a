"""``training-platform quota request``: what ``quota plan`` names, written into the stack files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from training_platform.cli.options import RootOption, TodayOption
from training_platform.cli.quota import overview_of, say_not_counted
from training_platform.cli.root import fail, repository, say

if TYPE_CHECKING:
    from training_platform.quota.plan import ProjectPlan


def request(
    *,
    projects: Annotated[list[str] | None, typer.Option("--project", help="Only these; repeatable.")] = None,
    justification: Annotated[
        str | None, typer.Option("--justification", metavar="TEXT", help="Why; default: who uses what.")
    ] = None,
    contact: Annotated[
        str | None,
        typer.Option("--contact", metavar="EMAIL", help="Whom Google may ask; default: the first of alerts.emails."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    today: TodayOption = None,
    root: RootOption = None,
) -> None:
    """Write the requests that `quota plan` names into the environments' stack files, for review.

    The next deployment of an environment asks Google Cloud. Comments and all else stay. Writes every file or none.
    Exit code 2: a file could not be counted, so that nobody knows what to ask for, or not be written.
    """
    from training_platform.checks.output import write_files
    from training_platform.checks.reports.quota.text_report import verdict_of
    from training_platform.quota.overview import Selection, select
    from training_platform.quota.plan import plan_requests
    from training_platform.quota.request_file import with_requests

    folder = repository(root)
    overview = overview_of(root, today)
    say_not_counted(overview)
    if overview.not_counted:
        fail("what the stacks need cannot be said before that is mended; nothing was written.")
    _check_contact(contact)
    chosen = select(overview, Selection(projects=projects or ()))
    plans = plan_requests(chosen.ledgers, chosen.workspace)
    texts = {}
    for plan in plans:
        if plan.needed:
            path = folder / plan.stack.source.file if plan.stack else folder
            text = path.read_bytes().decode("utf-8-sig") if plan.stack else ""
            texts[path] = with_requests(plan, text, contact=contact, justification=justification)
    if not dry_run:
        write_files(texts)
    for plan in plans:
        _say(plan, verdict_of(plan), dry_run=dry_run)


def _check_contact(contact: str | None) -> None:
    from training_platform.config.reading.section import Email, fits

    if not fits(Email | None, contact):
        fail(f"--contact {contact}: that is not an address such as ml-platform@example.com.")


def _say(plan: ProjectPlan, verdict: str, *, dry_run: bool) -> None:
    from training_platform.checks.reports.wording import limit, location, quota_name

    if not plan.needed or plan.stack is None:
        say(f"{plan.ledger.project}: {verdict}")
        return
    count = f"{len(plan.needed):,} request{'' if len(plan.needed) == 1 else 's'}"
    say(f"{plan.stack.source.file}: {count} {'not written' if dry_run else 'written'}")
    for need in plan.needed:
        line = need.line
        change = f"{limit(line)} -> {need.value:,} {line.unit}"
        say(f"  {need.name}: {quota_name(line)} in {location(line)}, {change}")
