"""Runs rules on a stack's views, which are typed models of its resources.

The type of a rule's first parameter determines which views it gets. Findings have a file, line and column if the
program's stack file is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from training_platform.config.model.stack import Stack
from training_platform.config.reading.declaration import RULES, Draft, Owner, Rule, Value, anchored, finding
from training_platform.config.reading.finding import Anchor, Finding, Path, Place, Position, bug, dotted
from training_platform.config.reading.rejection import choices
from training_platform.config.reading.secrets import shows
from training_platform.resources.plan import OWN_RESOURCES
from training_platform.resources.provider_inputs import PROVIDER_INPUTS
from training_platform.resources.spelling import python_name
from training_platform.views.view import NeedsUnknown, View
from training_platform.views.whole_stack import Program

_BEFORE_DEPLOYMENT = "value that is known only after deployment"
_REFUSERS: frozenset[Owner | None] = frozenset({"google", "provider", "kubernetes", "kueue"})


def view_rules() -> list[Rule]:
    """Return the rules that read views, in order of declaration."""
    return [rule for rule in RULES.values() if rule.check is not None]


def evaluate(program: Program, rules: Iterable[Rule] | None = None, file: Stack | None = None) -> list[Finding]:
    """Run rules on a stack's views and return their findings. A rule that needs an unknown value yields a note.

    If a rule raises an exception, this is a bug of ours. It becomes a ``failed`` finding, and the other rules still
    run. ``file`` is the stack of the stack file; without it, findings have no file and no line. Equal findings about
    several resources of one section, such as the slices of a pool, are merged. If both a rule and a document refuse a
    value, only the rule's finding is returned, because it is more informative.
    """
    findings: dict[tuple[object, ...], Finding] = {}
    refused: set[tuple[object, ...]] = set()
    of_documents: dict[tuple[object, ...], tuple[object, ...]] = {}
    if rules is None:
        rules = view_rules()
    for rule in rules:
        for view, draft in _drafts(rule, program):
            same = view.origin or view.name
            path = _field_path(view, str(draft.field), file)
            key = (rule.id, same, path, draft.message, draft.allowed)
            if key not in findings:
                findings[key] = _finding(rule, view, draft, path, file)
            subject = (view.type, same, findings[key].path)
            if rule.owner == "documents":
                of_documents[key] = subject
            elif findings[key].severity == "error" and rule.owner in _REFUSERS:
                refused.add(subject)
    return [finding for key, finding in findings.items() if of_documents.get(key) not in refused]


def _field_path(view: View, name: str, file: Stack | None) -> Path:
    """Return the path in the stack file of a view's field. It is in ``provider_inputs`` if the file sets it there."""
    path = view.path(name) if name else view.origin
    if file is None or not view.origin:
        return path
    field = view.FIELDS.get(name)
    input_names = field.inputs if field else (name,)
    for input_name in input_names:
        input_path = (*view.origin, PROVIDER_INPUTS, *map(python_name, input_name.split(".")))
        if file.says(input_path):
            return input_path
    return path


def _drafts(rule: Rule, program: Program) -> Iterator[tuple[View, Draft]]:
    """Yield the findings of a rule before they have positions, each with its view.

    A failure outside any view applies to the whole program.
    """
    view: View = program
    try:
        views: Iterable[View] = [program] if rule.reads is Program else program.all(rule.reads, rule.when)
        for view in views:
            try:
                for draft in _check(rule, view, program):
                    yield cast("View", draft.subject), draft
            except NeedsUnknown as unknown:
                message = f"{rule.id} is not decided: {unknown.field} is not known before deployment"
                yield (
                    unknown.view,
                    finding(
                        unknown.view, unknown.field, message, rule=rule, severity="note", unjudged=_BEFORE_DEPLOYMENT
                    ),
                )
            except Exception as error:  # noqa: BLE001 # any error here is a bug, and nothing about the program
                yield view, _failure(rule, view, error)
    except Exception as error:  # noqa: BLE001 # as above
        yield program, _failure(rule, program, error)


def _check(rule: Rule, view: View, program: Program) -> Iterator[Draft]:
    check = rule.check
    if check is None:
        raise TypeError(f"rule {rule.id} has no function")
    drafts = check(view, program) if rule.whole else check(view)
    for draft in drafts:
        yield draft if draft.rule else replace(draft, rule=rule)


def _failure(rule: Rule, view: View, error: Exception) -> Draft:
    message = bug(f"{rule.id} did not check {view.name}", error).removesuffix(".")
    return replace(finding(view, "", message, rule=rule, severity="error"), failed=True)


def _finding(rule: Rule, view: View, draft: Draft, path: Path, file: Stack | None) -> Finding:
    """Return the finding for a draft of a rule. Without a stack file, its path is the input's name in the program.

    A message such as ``is 9 GB`` continues a path in a stack file. Without a path, the input becomes its subject.
    """
    anchor = view.locate(str(draft.field))
    spoils: tuple[Place, ...] = ()
    rests_on: tuple[Place, ...] = ()
    if view.own_line is not None:
        anchor = anchor._replace(file=OWN_RESOURCES, position=Position(view.own_line, 1))
        if not re.search(rf"\b{re.escape(view.name)}\b", draft.message):
            draft = replace(draft, message=f"{view.name}: {draft.message}")
    elif file is not None:
        anchor = Anchor(
            view.stack, file.source.file, position=file.position(path), path=dotted(path), resource=anchor.resource
        )
        rests_on = (file.at(path), *(file.at(view_read.origin) for view_read in draft.views))
        if rule.spoils:
            spoils = (file.at(path), file.at(view.origin))
    elif not view.origin and draft.message.startswith("is "):
        draft = replace(draft, message=f"{anchor.path.removesuffix('.0').rpartition('.')[2]} {draft.message}")
    if PROVIDER_INPUTS in path and rule.id == "document-unknown-field":  # a stack file spells names in another way
        draft = replace(draft, allowed=_python_names(draft.allowed), nearest=_python_names(draft.nearest))
    if file is not None and file.section is not None and PROVIDER_INPUTS not in path:
        written = [str(choice) for choice in choices(type(file.section), path)]
        draft = replace(draft, allowed=_as_written(draft.allowed, written), nearest=_as_written(draft.nearest, written))
    placed = replace(anchored(draft, anchor), spoils=spoils, rests_on=rests_on)
    return placed.without_values() if view.hidden and shows(placed.shown, view.hidden) else placed


def _as_written(values: Value, choices_of_field: Sequence[str]) -> Value:
    """Return the values of an input in the form of a stack file's field: ``private-service-access``."""
    if isinstance(values, tuple):
        return tuple(str(_as_written(value, choices_of_field)) for value in values)
    written = str(values).lower().replace("_", "-")
    return written if written in choices_of_field and values not in choices_of_field else values


def _python_names(names: Value) -> Value:
    if isinstance(names, tuple):
        return tuple(python_name(str(name)) for name in names)
    return python_name(str(names)) if names else None
