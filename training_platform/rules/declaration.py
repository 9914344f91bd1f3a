"""Rules: pure functions from a view to drafts of findings, written once and run everywhere.

``@rule`` declares a rule; the annotation of its first parameter says which views it reads, and a second parameter gets
the whole program. ``evaluate`` runs all rules over a program and returns findings, with file, line and column if it
has the program's stack file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_type_hints

from training_platform.config.model.stack import Stack
from training_platform.config.reading.finding import Finding, Path, Severity, bug, dotted
from training_platform.config.reading.secrets import shows
from training_platform.resources.provider_inputs import PROVIDER_INPUTS
from training_platform.resources.spelling import python_name
from training_platform.views.view import NeedsUnknown, View
from training_platform.views.whole_stack import Program

Owner = Literal["google", "provider", "kubernetes", "kueue", "documents", "catalogue", "house"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A declared rule.

    ``id`` is its name in exemptions, reports and ``coverage.yaml``, the table of known refusals. ``owner`` says who
    refuses: rules of ``google`` apply in the sandbox too, where the real ``provider`` checks its own; ``documents`` are
    upstream's; ``catalogue`` is for values that our tables lack; a program of another project has to switch on rules of
    the ``house``. ``ruleset`` groups rules for enforcement.
    A rule ``across`` resources needs the whole stack. ``when`` is the first field that it reads: it sees only views
    where the field is set or unknown. A finding of a rule that ``spoils`` makes other findings about its section
    unreliable: until it is fixed, the section has other quotas, or another flavor, than intended.
    """

    id: str
    ruleset: str
    severity: Severity
    owner: Owner
    source: str
    summary: str
    reads: type[View]
    check: Check
    whole: bool  # whether it takes the program as well
    across: bool = False
    when: str = ""
    spoils: bool = False


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A finding as a rule writes it: the view, the field, the message."""

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
    """Declare a rule; its first docstring line is its summary.

    Raises ValueError on a second use of an id, TypeError for a function that is no generator.
    """

    def register(check: Check) -> Check:
        if rule_id in RULES:
            raise ValueError(f"rule {rule_id} is registered twice")
        if not inspect.isgeneratorfunction(check):
            raise TypeError(f"rule {rule_id} has to be a generator function")
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
    """Return a draft about one field of a view; ``severity`` is needed only if it differs from the rule's.

    ``rests_on`` are other views that the rule counts.
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
    """Run rules over a stack's views and return their findings; a rule that needs an unknown value yields a note.

    A rule that raises, which is a bug of ours, becomes a ``failed`` finding, and the other rules run. ``file`` is the
    stack of the stack file; without it findings have no file and no line. Equal findings about several resources of one
    section, such as the slices of a pool, are merged. If both a rule and a document refuse a value, only the rule's
    finding is returned, since it says more.
    """
    findings: dict[tuple[object, ...], Finding] = {}
    refused: set[tuple[object, ...]] = set()
    of_documents: dict[tuple[object, ...], tuple[object, ...]] = {}
    if rules is None:
        rules = RULES.values()
    for rule in rules:
        for draft in _drafts(rule, program):
            same = draft.view.origin or draft.view.name
            path = _field_path(draft, file)
            key = (rule.id, same, path, draft.message, draft.allowed)
            if key not in findings:
                findings[key] = _finding(rule, draft, path, file)
            finding = findings[key]
            subject = (draft.view.type, same, finding.path)
            if rule.owner == "documents":
                of_documents[key] = subject
            elif finding.severity == "error" and rule.owner in _REFUSERS:
                refused.add(subject)
    return [finding for key, finding in findings.items() if of_documents.get(key) not in refused]


def _field_path(draft: Draft, file: Stack | None) -> Path:
    """Return the path of a draft's field in the stack file: below its section's provider inputs, if they have it."""
    view = draft.view
    path = view.path(draft.field) if draft.field else view.origin
    if file is None or not view.origin:
        return path
    field = view.FIELDS.get(draft.field)
    names = field.inputs if field else (draft.field,)
    for name in names:
        input_path = (*view.origin, PROVIDER_INPUTS, *map(python_name, name.split(".")))
        if file.says(input_path):
            return input_path
    return path


def _drafts(rule: Rule, program: Program) -> Iterator[Draft]:
    """Yield the drafts of a rule for each of its views; a failure outside any view is one of the whole program."""
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
    """Return a draft as a finding; without a stack file, its path is the input as the program writes it.

    A message such as ``is 9 GB``, which continues a path in a stack file, then gets the input as its subject.
    """
    view = draft.view
    ours = file is not None or bool(view.origin)
    place = dotted(path) if ours else view.spelled(draft.field) or dotted(path)
    message = draft.message
    allowed = draft.allowed
    nearest = draft.nearest
    if PROVIDER_INPUTS in path and rule.id == "document-unknown-field":  # a stack file spells names in another way
        allowed = python_name(allowed) if allowed else None
        nearest = python_name(nearest) if nearest else None
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
