"""Declares rules and creates findings: a check writes drafts, and each draft becomes a finding at a position.

``declare`` adds a rule to ``RULES``, the only list of rules. ``@rule`` declares a function as a rule; the first line of
its docstring is the title. ``finding`` creates a draft about a subject, which is for example a stack or a resource.
``located`` converts drafts to findings, with the position that the subject provides.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, get_type_hints

from training_platform.config.reading.finding import Anchor, Finding, Path, Place, Severity

Owner = Literal["google", "provider", "kubernetes", "kueue", "documents", "catalogue", "house"]
Value = str | int | float | tuple[str | int | float, ...] | None
"""The allowed or the nearest valid value in a finding, or several alternatives."""
Excuse = Literal["exemption", "acknowledgement"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A declared rule.

    - ``id``: its name in exemptions, reports and ``coverage.yaml``, the table of known refusals
    - ``title`` and ``details``: its description for people
    - ``ruleset``: its group; the policy pack enforces the groups whose rules read views of planned resources
    - ``owner``: who refuses what the rule finds. The sandbox also applies rules of ``google``; rules of ``provider``
      are left to the real provider, which it runs. ``documents`` stands for upstream's documents, ``catalogue`` for
      values that are not in our tables, and ``house`` for our conventions, which a program of another project has to
      enable.
    - ``refused_by``: a text that replaces the text about the owner
    - ``excuse``: the kind of entry in ``stacks/exemptions.yaml`` that excuses a finding
    - ``unjudged``: a noun for the things that its findings could not check, such as ``change of a stack``; the
      summary counts them

    The other fields are for rules that read views:

    - ``reads``: the class of the views
    - ``whole``: True if the rule also reads the whole program
    - ``across``: True if the rule needs all resources of the stack
    - ``when``: the first field that the rule reads; it gets only views in which this field is set or unknown
    - ``spoils``: True if a finding of the rule makes other findings about its section unreliable. Until it is
      fixed, the section has other quotas, or another flavor, than intended.
    """

    id: str
    title: str
    ruleset: str
    severity: Severity = "error"
    source: str | None = None
    owner: Owner | None = None
    refused_by: str | None = None
    excuse: Excuse | None = None
    unjudged: str = ""
    details: str = ""
    check: Callable[..., Iterator[Draft]] | None = None
    reads: Any = None
    whole: bool = False
    across: bool = False
    when: str = ""
    spoils: bool = False


Function = TypeVar("Function", bound=Callable[..., Iterator["Draft"]])
RULES: dict[str, Rule] = {}
"""All declared rules, keyed by id. Importing a module declares its rules."""


class Subject(Protocol):
    """The thing that a finding is about, such as a stack. It provides the position of each of its fields."""

    def locate(self, field: Any) -> Anchor:
        """Return the position of a field."""
        ...


class Declared(Protocol):
    """An object that a section of a stack file declares, such as a view of a resource."""

    origin: Path


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A finding as a rule creates it: the subject, its field, the error, the allowed and the nearest value.

    - ``allowed`` and ``nearest``: a value, or several alternatives
    - ``rests_on`` and ``views``: what the rule read in addition to the field: places in files, and views of resources
    - ``spoils``: the places that are unreliable until the error is fixed
    - ``severity``: None for the severity of the rule
    - ``about``: distinguishes several findings of one rule at one field, such as by the limit that each exceeds
    - ``resource``: needed only if the subject is not a resource
    - ``unjudged``: empty for the value of the rule

    The other fields are described in ``Finding``.
    """

    rule: Rule | None
    subject: Subject
    field: str | Path
    message: str
    allowed: Value = None
    nearest: Value = None
    severity: Severity | None = None
    about: str = ""
    resource: str | None = None
    spoils: tuple[Place, ...] = ()
    rests_on: tuple[Place, ...] = ()
    views: tuple[Declared, ...] = ()
    first: str | None = None
    becomes: str | None = None
    follows: str | None = None
    failed: bool = False
    unjudged: str = ""
    amount: float | None = None
    holders: tuple[tuple[str, str], ...] = ()
    takes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def place(self) -> str:
        """The place of the error as text, by which other findings refer to it as their cause."""
        return anchored(self, self.subject.locate(self.field)).place


def declare(
    rule_id: str,
    title: str,
    *,
    ruleset: str,
    severity: Severity = "error",
    source: str | None = None,
    refused_by: str | None = None,
    excuse: Excuse | None = None,
    unjudged: str = "",
) -> Rule:
    """Declare a rule that is not a function. Raises ValueError if the id exists already."""
    declared = Rule(
        id=rule_id,
        title=title,
        ruleset=ruleset,
        severity=severity,
        source=source,
        refused_by=refused_by,
        excuse=excuse,
        unjudged=unjudged,
    )
    _register(declared)
    return declared


def rule(
    rule_id: str,
    *,
    ruleset: str,
    source: str | None = None,
    severity: Severity = "error",
    owner: Owner = "google",
    across: bool = False,
    when: str = "",
    spoils: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as a rule. It takes views, which are typed readings of planned resources.

    The function is a generator of drafts. The first line of its docstring is the rule's title.

    Raises ValueError if the id exists already, and TypeError if the function is not a generator.
    """

    def decorate(check: Function) -> Function:
        function: Callable[..., Iterator[Draft]] = check
        if not inspect.isgeneratorfunction(function):
            raise TypeError(f"rule {rule_id} has to be a generator function")
        title, *paragraphs = inspect.cleandoc(check.__doc__ or "").split("\n\n")
        first, *more = inspect.signature(check).parameters
        declared = Rule(
            id=rule_id,
            title=title.splitlines()[0],
            ruleset=ruleset,
            severity=severity,
            source=source,
            owner=owner,
            excuse="exemption",
            details="\n\n".join(" ".join(text.split()) for text in paragraphs),
            check=check,
            reads=get_type_hints(check)[first],
            whole=bool(more),
            across=across,
            when=when,
            spoils=spoils,
        )
        _register(declared)
        return check

    return decorate


def _register(declared: Rule) -> None:
    if declared.id in RULES:
        raise ValueError(f"rule {declared.id} is registered twice")
    RULES[declared.id] = declared


def finding(
    subject: Subject,
    field: str | Path,
    message: str,
    *,
    rule: Rule | None = None,
    allowed: object = None,
    nearest: object = None,
    severity: Severity | None = None,
    about: str = "",
    resource: str | None = None,
    spoils: Iterable[Place] = (),
    rests_on: Iterable[Place] = (),
    views: Iterable[Declared] = (),
    first: str | None = None,
    becomes: str | None = None,
    follows: str | None = None,
    unjudged: str = "",
    amount: float | None = None,
    holders: Iterable[tuple[str, str]] = (),
    takes: Iterable[tuple[str, tuple[str, ...]]] = (),
) -> Draft:
    """Return the draft of a finding about one field. ``rule`` is required only outside a function with ``@rule``."""
    return Draft(
        rule=rule,
        subject=subject,
        field=field,
        message=message,
        allowed=_value(allowed),
        nearest=_value(nearest),
        severity=severity,
        about=about,
        resource=resource,
        spoils=tuple(spoils),
        rests_on=tuple(rests_on),
        views=tuple(views),
        first=first,
        becomes=becomes,
        follows=follows,
        unjudged=unjudged,
        amount=amount,
        holders=tuple(holders),
        takes=tuple(takes),
    )


def located(drafts: Iterable[Draft]) -> list[Finding]:
    """Return drafts as findings, each at the position that its subject provides."""
    return [anchored(draft, draft.subject.locate(draft.field)) for draft in drafts]


def anchored(draft: Draft, anchor: Anchor) -> Finding:
    """Return the finding for a draft, at the position in ``anchor``. Raises ValueError if the draft has no rule."""
    if draft.rule is None:
        raise ValueError(f"no rule was given for: {draft.message}")
    return Finding(
        rule=draft.rule.id,
        severity=draft.severity or draft.rule.severity,
        message=draft.message,
        stack=anchor.stack,
        file=anchor.file,
        position=anchor.position,
        path=anchor.path,
        about=draft.about,
        resource=draft.resource or anchor.resource,
        allowed=as_text(draft.allowed, ", "),
        nearest=as_text(draft.nearest, "; or "),
        source=draft.rule.source,
        first=draft.first,
        becomes=draft.becomes,
        follows=draft.follows,
        failed=draft.failed,
        spoils=draft.spoils,
        rests_on=draft.rests_on,
        unjudged=draft.unjudged or draft.rule.unjudged,
        amount=draft.amount,
        holders=draft.holders,
        takes=draft.takes,
        draft=draft,
    )


def as_text(value: Value, joint: str) -> str | None:
    """Return a value as text, with several alternatives separated by ``joint``."""
    if value is None:
        return None
    return joint.join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(value: object) -> Value:
    """Return a value as findings store it: alternatives as a tuple, and any other object as text."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(item if isinstance(item, (str, int, float)) else str(item) for item in value)
    return str(value)
