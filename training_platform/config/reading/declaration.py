"""How a finding is made: a rule is declared, what judges writes drafts about a subject, and each draft is located.

``declare`` adds a rule to ``RULES``, the only list of rules. ``@rule`` declares the rule of one function, by its
docstring. ``finding`` writes a draft; ``located`` returns drafts as findings, with the place that the subject knows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, get_type_hints

from training_platform.config.reading.finding import Anchor, Finding, Path, Place, Severity

Owner = Literal["google", "provider", "kubernetes", "kueue", "documents", "catalogue", "house"]
Value = str | int | float | tuple[str | int | float, ...] | None
"""What is allowed, or nearest: a value, or several that will each do."""
Excuse = Literal["exemption", "acknowledgement"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A declared rule.

    ``id`` is its name in exemptions, reports and ``coverage.yaml``, the table of known refusals; ``title`` and
    ``details`` are what people read about it. ``ruleset`` groups rules: those of views for enforcement by the pack.
    ``owner`` says who refuses: rules of ``google`` apply in the sandbox too, where the real ``provider`` checks its
    own; ``documents`` are upstream's; ``catalogue`` is for values that our tables lack; a program of another project
    has to switch on rules of the ``house``. ``refused_by`` says it in words of its own. ``excuse`` is what excuses a
    finding in ``stacks/exemptions.yaml``. ``unjudged`` is the noun for what its findings could not judge, which the
    verdict counts: ``change of a stack``.

    The other fields are of rules over views. ``reads`` is the class of the views, and ``whole`` says that the program
    is read as well. A rule ``across`` resources needs the whole stack. ``when`` is the first field that it reads: it
    sees only views where the field is set or unknown. A finding of a rule that ``spoils`` makes other findings about
    its section unreliable: until it is fixed, the section has other quotas, or another flavor, than intended.
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
"""Every declared rule, by id; importing a module declares the rules in it."""


class Subject(Protocol):
    """What a finding can be about: it knows the place of each of its fields."""

    def locate(self, field: Any) -> Anchor:
        """Return the place of a field."""
        ...


class Declared(Protocol):
    """What a section of a stack file declares, such as a view of a resource."""

    origin: Path


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A finding as a rule writes it: the subject, its field, what is wrong, what is allowed, and the nearest value.

    ``allowed`` and ``nearest`` are values, or several values that will each do. ``rests_on`` are the places, and
    ``views`` the views, that the rule read with the field, ``spoils`` the places that are unreliable until it is fixed.
    ``severity`` is None if it is the rule's. ``about`` tells several findings of one rule at one field
    apart, such as by the limit that each exceeds. ``resource`` is needed only if the subject is none. ``unjudged`` is
    the rule's if it is empty. The rest is as in ``Finding``.
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
        """The place as findings that follow from this one name it."""
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
    """Declare a rule without a function of its own. Raises ValueError on a second use of an id."""
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
    """Declare the rule of one function over views, a generator of drafts; its docstring's first line is the title.

    Raises ValueError on a second use of an id, TypeError for a function that is no generator.
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
    """Return a draft about one field of a subject; ``rule`` is needed only outside a function of ``@rule``."""
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
    """Return drafts as findings, each at the place that its subject gives."""
    return [anchored(draft, draft.subject.locate(draft.field)) for draft in drafts]


def anchored(draft: Draft, anchor: Anchor) -> Finding:
    """Return a draft as the finding at an anchor. Raises ValueError for a draft of no rule."""
    if draft.rule is None:
        raise ValueError(f"no rule was named for: {draft.message}")
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
    """Return a value as people read it, several of them with a joint in between."""
    if value is None:
        return None
    return joint.join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(value: object) -> Value:
    """Return a value as findings have it: several as a tuple, and any other object as its text."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(item if isinstance(item, (str, int, float)) else str(item) for item in value)
    return str(value)
