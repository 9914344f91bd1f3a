"""Rules: pure functions from a view to what is wrong with it, written once and run everywhere.

A rule is registered by ``@rule``; its first parameter's annotation says which views it reads, and a second one is given
the whole program. ``evaluate`` runs all rules over a program and returns findings; with the program's stack file at
hand, each has its file, line and column.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_type_hints

from training_platform.config.model.node_pool import PROVIDER_INPUTS
from training_platform.config.model.stack import Stack
from training_platform.config.reading.finding import Finding, Path, Severity, bug, dotted
from training_platform.config.reading.secrets import shows
from training_platform.resources.spelling import python_name
from training_platform.views.program import Program
from training_platform.views.view import NeedsUnknown, View

Owner = Literal["google", "provider", "kubernetes", "kueue", "documents", "catalogue", "house"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A registered rule.

    ``id`` is what exemptions, reports and ``coverage.yaml``, the table of known refusals, call it. ``owner`` says who
    refuses: rules of ``google`` hold in the sandbox too, where the real ``provider`` has its own; ``documents`` are
    upstream's own; ``catalogue`` is what our tables leave open, and a program of another project switches rules of the
    ``house`` on. ``ruleset`` groups rules for enforcement.
    A rule ``across`` resources says nothing of one resource alone. ``when`` is the first field that it reads: it looks
    at views alone that have it, or of which it is not known. Where it ``spoils`` a section, the section has other
    quotas or another flavor than is meant until it is right.
    """

    id: str
    ruleset: str
    severity: Severity
    owner: Owner
    source: str
    summary: str
    reads: type[View]
    check: Check
    whole: bool  # whether it is given the program beside the view
    across: bool = False
    when: str = ""
    spoils: bool = False


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a rule says before it is known which rule said it: the view, the field, the message."""

    view: View
    field: str
    message: str
    allowed: str | None = None
    nearest: str | None = None
    severity: Severity | None = None
    rests_on: tuple[View, ...] = ()
    failed: bool = False


_REFUSERS: frozenset[Owner] = frozenset({"google", "provider", "kubernetes", "kueue"})
Check = Callable[..., Iterator[Draft]]
RULES: dict[str, Rule] = {}


def rule(
    rule_id: str,
    *,
    ruleset: str,
    source: str,
    severity: Severity = "error",
    owner: Owner = "google",
    across: bool = False,
    when: str = "",
    spoils: bool = False,
) -> Callable[[Check], Check]:
    """Register a rule; its first docstring line is its summary.

    Raises ValueError on a second use of an id, TypeError for a function that is no generator.
    """

    def register(check: Check) -> Check:
        if rule_id in RULES:
            raise ValueError(f"rule {rule_id} is registered twice")
        if not inspect.isgeneratorfunction(check):
            raise TypeError(f"rule {rule_id} has to be a generator, which can be asked about the next view")
        first, *more = inspect.signature(check).parameters
        RULES[rule_id] = Rule(
            id=rule_id,
            ruleset=ruleset,
            severity=severity,
            owner=owner,
            source=source,
            summary=(check.__doc__ or "").strip().splitlines()[0],
            reads=get_type_hints(check)[first],
            check=check,
            whole=bool(more),
            across=across,
            when=when,
            spoils=spoils,
        )
        return check

    return register


def finding(
    view: View,
    field: str,
    message: str,
    *,
    allowed: object = None,
    nearest: object = None,
    severity: Severity | None = None,
    rests_on: Iterable[View] = (),
) -> Draft:
    """Return what a rule found wrong with one field of a view; ``severity`` where it differs from the rule's own.

    ``rests_on`` are other views that it counts.
    """
    return Draft(
        view=view,
        field=field,
        message=message,
        allowed=None if allowed is None else str(allowed),
        nearest=None if nearest is None else str(nearest),
        severity=severity,
        rests_on=tuple(rests_on),
    )


def evaluate(program: Program, rules: Iterable[Rule] | None = None, file: Stack | None = None) -> list[Finding]:
    """Run rules over a stack's views and return what they find; a rule that meets an unknown value leaves a note.

    A rule that ends in a bug of ours is a ``failed`` finding by its name, and all others run. ``file`` is the stack as
    its file says; without it findings have no file and no line. What several resources of one section have wrong alike,
    such as the slices of a pool, is said once; so is a value that a rule refuses and its document too, by the rule,
    which knows more of it.
    """
    findings: dict[tuple[object, ...], Finding] = {}
    refused: set[tuple[object, ...]] = set()
    of_documents: dict[tuple[object, ...], tuple[object, ...]] = {}
    for rule in RULES.values() if rules is None else rules:
        for draft in _drafts(rule, program):
            same = draft.view.origin or draft.view.name
            path = _place(draft, file)
            key = (rule.id, same, path, draft.message, draft.allowed)
            if key not in findings:
                findings[key] = _finding(rule, draft, path, file)
            finding = findings[key]
            place = (draft.view.type, same, finding.path)
            if rule.owner == "documents":
                of_documents[key] = place
            elif finding.severity == "error" and rule.owner in _REFUSERS:
                refused.add(place)
    return [finding for key, finding in findings.items() if of_documents.get(key) not in refused]


def _place(draft: Draft, file: Stack | None) -> Path:
    """Return where a draft's field is in the stack file: below the inputs that it gives as they are, if it is there."""
    view, path = draft.view, draft.view.path(draft.field) if draft.field else draft.view.origin
    if file is None or not view.origin:
        return path
    field = view.FIELDS.get(draft.field)
    for name in field.inputs if field else (draft.field,):
        given = (*view.origin, PROVIDER_INPUTS, *map(python_name, name.split(".")))
        if file.says(given):
            return given
    return path


def _drafts(rule: Rule, program: Program) -> Iterator[Draft]:
    """Yield what a rule says of each of its views, of the whole program where it cannot even be asked about one."""
    view: View = program
    try:
        views: Iterable[View] = [program] if rule.reads is Program else program.all(rule.reads, rule.when)
        for view in views:
            try:
                yield from rule.check(view, program) if rule.whole else rule.check(view)
            except NeedsUnknown as unknown:
                message = f"{rule.id} is not decided: {unknown.field} is not known before deployment"
                yield Draft(view=unknown.view, field=unknown.field, message=message, severity="note")
            except Exception as error:  # noqa: BLE001 # any error here is a bug, and nothing about the program
                yield _failure(rule, view, error)
    except Exception as error:  # noqa: BLE001 # as above
        yield _failure(rule, program, error)


def _failure(rule: Rule, view: View, error: Exception) -> Draft:
    message = bug(f"{rule.id} did not look at {view.name}", error)
    return Draft(view=view, field="", message=message.removesuffix("."), severity="error", failed=True)


def _finding(rule: Rule, draft: Draft, path: Path, file: Stack | None) -> Finding:
    """Return what reports say: of a program without a stack file, by the input as that program writes it.

    A message that goes on from its place in a stack file, ``is 9 GB``, is a sentence about the input there.
    """
    view = draft.view
    ours = file is not None or bool(view.origin)
    place = dotted(path) if ours else view.spelled(draft.field) or dotted(path)
    message, allowed, nearest = draft.message, draft.allowed, draft.nearest
    if PROVIDER_INPUTS in path and rule.id == "document-unknown-field":  # names, which a stack file spells otherwise
        allowed, nearest = (python_name(names) if names else None for names in (allowed, nearest))
    if not ours and message.startswith("is "):
        message = f"{place.removesuffix('.0').rpartition('.')[2]} {message}"
    finding = Finding(
        rule=rule.id,
        severity=draft.severity or rule.severity,
        message=message,
        stack=view.stack,
        file=file.source.file if file else None,
        position=file.position(path) if file else None,
        path=place,
        resource=f"{view.type} {view.name}",
        allowed=allowed,
        nearest=nearest,
        source=rule.source,
        failed=draft.failed,
        spoils=(file.at(path), file.at(view.origin)) if file and rule.spoils else (),
        rests_on=tuple(file.at(place) for place in (path, *(read.origin for read in draft.rests_on))) if file else (),
    )
    return finding.without_values() if view.hidden and shows(finding.shown, view.hidden) else finding
