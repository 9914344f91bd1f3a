"""Exemptions: findings that an owner accepts until a date, from ``stacks/exemptions.yaml``.

An exemption names a rule, a stack, and either a ``path`` or a ``resource``. The path of a section in the stack's file
includes everything below it. A resource is given by its logical name, or as ``<type> <name>``. ``*`` matches any
string. An exemption is valid until the end of the day ``expires``.

An acknowledgement permits the losses that one decision in a change causes. It names the field and its new value, or, if
the decision is not made in a field, the resource and its inputs. It lists what may be taken from its own stack and from
other stacks. It may be in the file before and after the change, until its expiry date.

A file that cannot be read or is rejected exempts nothing, and a check reports this instead of a verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import RULES, Draft, declare, finding, located
from training_platform.config.reading.finding import Anchor, Finding, Path, Position, Severity
from training_platform.config.reading.rejection import validated
from training_platform.config.reading.section import NOTHING, Email, OneOf, Section, counted, unique
from training_platform.config.reading.source import Source, UnreadableError, read_source
from training_platform.config.schema import file_schema
from training_platform.quota import ledger_findings
from training_platform.quota.charges import shown
from training_platform.quota.reservations import RESERVATION_EXCEEDED
from training_platform.rules import existing_networks, foreign_access, rights, workloads  # noqa: F401 # declare rules that entries may name
from training_platform.rules.losses import LOSS_RULES, LossKind, LossPlace

FILE = "stacks/exemptions.yaml"
_OF_OTHERS = foreign_access.FOREIGN_ACCESS.id
_OF_QUOTAS = ledger_findings.QUOTA_EXCEEDED.id
_BY_AMOUNT = frozenset(
    declared.id
    for declared in (
        ledger_findings.QUOTA_EXCEEDED,
        ledger_findings.CAPACITY_EXCEEDED,
        ledger_findings.FILE_CAPACITY_EXCEEDED,
        RESERVATION_EXCEEDED,
    )
)
"""Rules about a limit that several stacks or pools share. An exemption gives the maximum that they may use together."""
EXEMPTIBLE = frozenset(rule.id for rule in RULES.values() if rule.excuse == "exemption")
"""Rules that an exemption may name."""
LOSSES = frozenset(rule.id for rule in RULES.values() if rule.excuse == "acknowledgement")
"""Rules about losses that a change causes. An acknowledgement may name them."""


def _not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("empty", "is blank", {"allowed": "a string that is not blank"})
    return value


_OLD = {"until": "expires, the last day on which the entry applies"}
Text = Annotated[str, AfterValidator(_not_blank)]


def _one_subject(path: str | None, resource: str | None) -> None:
    if (path is None) == (resource is None):
        raise ValueError("needs either path or resource")


class Exemption(Section):
    """Permission for one part of a stack to break a rule, with the reason, the owner, and an expiry date."""

    REMOVED: ClassVar[Mapping[str, str]] = _OLD
    rule: Annotated[str, OneOf("rule that can be exempt", EXEMPTIBLE)] = Field(description="Id of the rule.")
    stack: Text = Field(description="Stack in which the rule may be broken.", examples=["dev"])
    path: Text | None = Field(default=None, description="Path in the stack file, as in the finding.")
    resource: Text | None = Field(default=None, description="Type and name of a resource, as in the finding.")
    quota: Text | None = Field(
        default=None,
        description="For quota-exceeded: the quota, as in the finding. `path` is the path of any of its holders.",
        examples=["NVIDIA-H100-GPUS-per-project-region in us-central1"],
    )
    up_to: float | None = Field(
        default=None,
        description="For a limit with several holders: the total that they may need. `path` is the path of any of "
        "them.",
        examples=[48],
    )
    grant: Text | None = Field(
        default=None,
        description="For foreign-access: the roles, their resource and their principal, as `explain FILE:LINE` "
        "prints them.",
        examples=["roles/storage.objectViewer on buckets/example-train-prod-nlp-data for prod-vision"],
    )
    reason: Text = Field(description="Why the rule may be broken.", examples=["The cache moves to Filestore."])
    owner: Email = Field(description="Address of the person responsible for the entry.")
    expires: date = Field(description="Last day on which the entry applies.", examples=["2027-01-31"])

    @model_validator(mode="after")
    def _names_a_part(self) -> Self:
        _one_subject(self.path, self.resource)
        if self.rule == _OF_QUOTAS and (self.quota is None) != (self.up_to is None):
            raise ValueError("needs both quota and up_to, or neither")
        if self.quota is not None and (self.rule != _OF_QUOTAS or self.path is None):
            raise ValueError(f"has `quota`, which needs rule {_OF_QUOTAS} and a path")
        if self.up_to is not None and (self.rule not in _BY_AMOUNT or self.path is None):
            raise ValueError(f"has `up_to`, which needs a path and one of the rules {', '.join(sorted(_BY_AMOUNT))}")
        if (self.grant is None) == (self.rule == _OF_OTHERS):
            raise ValueError(
                f"must have `grant`, as `explain FILE:LINE` prints it, if and only if the rule is {_OF_OTHERS}"
            )
        return self

    @property
    def subject(self) -> str:
        """The path or resource that the exemption names."""
        return self.path or self.resource or ""

    def covers(self, finding: Finding) -> bool:
        """Return True if the exemption applies to a finding and its amount, ignoring its expiry date.

        In the past, entries without an amount were allowed. Such an entry applies only if it names all holders
        of the limit.
        """
        if finding.rule != self.rule:
            return False
        if finding.holders:
            if self.up_to is None:
                return all(map(self._names_holder, finding.holders))
            return self.names_limit(finding) and (finding.amount or 0) <= self.up_to
        if finding.stack != self.stack or (self.grant is not None and finding.about != self.grant):
            return False
        if self.path is not None:
            return bool(_pattern(self.path, below=True).fullmatch(finding.path))
        resource = finding.resource or ""
        pattern = _pattern(self.resource or "", below=False)
        return bool(pattern.fullmatch(resource) or pattern.fullmatch(resource.partition(" ")[2]))

    def names_limit(self, finding: Finding) -> bool:
        """Return True if the exemption names the limit of a finding through any of its holders, up to any amount.

        A holder is something that uses part of the limit, such as a pool.
        """
        if self.up_to is None or finding.rule != self.rule:
            return False
        if self.quota is not None and not _pattern(self.quota, below=False).fullmatch(finding.about):
            return False
        return any(map(self._names_holder, finding.holders))

    def _names_holder(self, holder: tuple[str, str]) -> bool:
        stack, path = holder
        return stack == self.stack and bool(_pattern(self.path or "", below=True).fullmatch(path))

    @property
    def names_everything(self) -> bool:
        """Return True if the exemption applies to its whole stack and names neither a limit nor a grant."""
        return not self.subject.strip("*") and self.up_to is None and self.grant is None

    @property
    def names_no_amount(self) -> bool:
        """Return True if the exemption is for a shared limit but gives no amount, which was allowed in the past."""
        return self.rule in _BY_AMOUNT and self.up_to is None


class Acknowledgement(Section):
    """Losses that a change may cause: the field and its new value, the losses, reason, owner, and expiry date."""

    REMOVED: ClassVar[Mapping[str, str]] = _OLD
    stack: Text = Field(
        description="Stack whose file causes the losses. The file may be deleted.", examples=["prod-vision"]
    )
    path: Text | None = Field(
        default=None,
        description="Field of the stack file, as in the finding. `.` means the stack itself, if it stays deployed or "
        "costs more.",
        examples=["buckets.checkpoints.location"],
    )
    resource: Text | None = Field(
        default=None, description="Type and name of a resource that no field of the file determines, as in the finding."
    )
    becomes: str | int | float | bool = Field(
        description="New value of the field, as in the finding; `removed` if it is deleted.", examples=["us-west4"]
    )
    takes: Annotated[tuple[LossKind, ...], AfterValidator(unique)] = Field(
        default=(), description="Losses that the change may cause in the stack itself.", examples=[["data", "jobs"]]
    )
    from_others: dict[Text, Annotated[tuple[LossKind, ...], AfterValidator(unique)]] = Field(
        default=NOTHING,
        description="Losses that the change may cause in other stacks, keyed by stack.",
        examples=[{"prod-nlp": ["jobs", "promises"]}],
    )
    effect: Annotated[str, OneOf("effect that can be acknowledged", LOSSES)] | None = Field(
        default=None, description="Id of the only effect, in entries of version 0.1. Use takes and from_others instead."
    )
    reason: Text = Field(description="Why the change is right.", examples=["The team copied its checkpoints."])
    owner: Email = Field(description="Address of the person responsible for the entry.")
    expires: date = Field(description="Last day on which the entry applies.", examples=["2027-01-31"])

    @model_validator(mode="after")
    def _names_a_part(self) -> Self:
        _one_subject(self.path, self.resource)
        if not (self.takes or self.from_others or self.effect):
            raise ValueError("needs takes or from_others: without them it permits nothing")
        if self.effect and (self.takes or self.from_others):
            raise ValueError("has `effect`, which excludes takes and from_others")
        return self

    @property
    def place(self) -> LossPlace:
        """The field or resource that may cause losses."""
        becomes = str(self.becomes).lower() if isinstance(self.becomes, bool) else str(self.becomes)
        return LossPlace(stack=self.stack, path=self.path, resource=self.resource, becomes=becomes)

    def accepts(self, act: LossPlace, cause: LossPlace, kind: LossKind, stack: str) -> bool:
        """Return True if the entry permits a decision to take something from a stack, ignoring its expiry date.

        Entries from version 0.1 have an ``effect``. Such an entry names only the cause of this loss.
        """
        if self.effect:
            return self.place == cause and self.effect == LOSS_RULES[kind].id
        taken = self.takes if stack == self.stack else self.from_others.get(stack, ())
        return self.place == act and kind in taken

    def covers(self, _: Finding) -> bool:
        """Return False, because whether an entry applies is decided separately for each loss."""
        return False

    @property
    def names_no_resource(self) -> bool:
        """Return True if the entry is for resources but names none, which was once allowed. It then has no effect."""
        return self.path == "." and self.effect is not None and self.effect not in ("leaves-stack", "costs-more")

    @property
    def subject(self) -> str:
        """The path or resource that the acknowledgement names."""
        return self.path or self.resource or ""


class ExemptionsFile(Section):
    """The content of the exemptions file."""

    exemptions: tuple[Exemption, ...] = Field(
        default=(), description="Parts of stacks that may break a rule, each until a date."
    )
    acknowledged: tuple[Acknowledgement, ...] = Field(
        default=(), description="Losses that a change may cause, each until a date."
    )


class ExemptionEntry(NamedTuple):
    """An exemption or an acknowledgement, and its position in the file."""

    exemption: Exemption | Acknowledgement
    position: Position

    def locate(self, field: Path) -> Anchor:
        """Return the position of the entry; the field is ignored."""
        return Anchor(stack=self.exemption.stack, file=FILE, position=self.position).locate(field)


class Exempted(NamedTuple):
    """A finding to which an exemption applies, and the entry of the exemption."""

    finding: Finding
    entry: ExemptionEntry

    def __str__(self) -> str:
        """Return the reason why the finding is ignored, as reports show it below the finding."""
        exemption = self.entry.exemption
        verb = "acknowledged" if isinstance(exemption, Acknowledgement) else "exempt"
        return f"{verb} until {exemption.expires} by {exemption.owner}: {' '.join(exemption.reason.split())}"


EXEMPTION_EXPIRED = declare(
    "exemption-expired",
    "Find an expired exemption.",
    ruleset="exemptions",
)


EXEMPTION_UNUSED = declare(
    "exemption-unused",
    "Find an exemption that no finding needs.",
    ruleset="exemptions",
    severity="warning",
)


EXEMPTION_WIDE = declare(
    "exemption-wide",
    "Find an exemption that covers a whole stack.",
    ruleset="exemptions",
    severity="warning",
)


EXEMPTION_UNTYPED = declare(
    "exemption-untyped",
    "Find an entry in the form of the previous version: a limit without its amount, or losses without a list.",
    ruleset="exemptions",
    severity="warning",
)


@dataclass(frozen=True)
class Exemptions:
    """The exemptions of a repository on one day. ``unreadable`` has a sentence for each problem in the file.

    ``added`` are the entries that a change adds. They permit nothing that affects another team. To do so, an entry must
    be merged before the change that needs it.
    """

    today: date
    entries: tuple[ExemptionEntry, ...] = ()
    unreadable: tuple[str, ...] = ()
    added: tuple[Exemption | Acknowledgement, ...] = ()

    def since(self, base: Exemptions) -> Exemptions:
        """Return the exemptions with the entries ``added`` since a base.

        An entry is not added if only its expiry date or reason has changed.
        """
        before = [_without_terms(entry.exemption) for entry in base.entries if entry.exemption.expires >= self.today]
        rows = (entry.exemption for entry in self.entries)
        return replace(self, added=tuple(row for row in rows if _without_terms(row) not in before))

    def split(self, findings: Iterable[Finding]) -> tuple[list[Finding], list[Exempted]]:
        """Separate findings into those to which no exemption applies today and those to which one applies."""
        counted: list[Finding] = []
        exempted: list[Exempted] = []
        for row in findings:
            covering = self.of(row)
            if covering is not None:
                exempted.append(Exempted(row, covering))
                continue
            if any(self._is_late(other) and other.exemption.covers(row) for other in self.entries):
                message = f"{row.message}; its exemption applies from the next change on, once this change is merged"
                counted.append(replace(row, message=message))
                continue
            exceeded = [other.exemption for other in self._exceeded(row)]
            bounds = [entry.up_to for entry in exceeded if isinstance(entry, Exemption) and entry.up_to is not None]
            if bounds:
                message = f"{row.message}; it is exempt up to {shown(max(bounds))}, but needs {shown(row.amount or 0)}"
                counted.append(replace(row, message=message))
            else:
                counted.append(row)
        return counted, exempted

    def exceeded(self, findings: Iterable[Finding]) -> set[ExemptionEntry]:
        """Return the exemptions whose ``up_to`` is exceeded by a finding."""
        return {entry for finding in findings for entry in self._exceeded(finding)}

    def _exceeded(self, finding: Finding) -> list[ExemptionEntry]:
        return [
            entry
            for entry in self.entries
            if isinstance(entry.exemption, Exemption)
            and entry.exemption.names_limit(finding)
            and entry.exemption.expires >= self.today
        ]

    def accepting(
        self, act: LossPlace, cause: LossPlace, kind: LossKind, stack: str, *, of_team: bool
    ) -> ExemptionEntry | None:
        """Return the first acknowledgement that permits a decision to take something from a stack today.

        It must name one of the decision's causes. If a team's file takes something from others, the entry applies only
        if it was merged before.
        """
        for entry in self.entries:
            row = entry.exemption
            if not isinstance(row, Acknowledgement) or row.expires < self.today:
                continue
            if of_team and stack != row.stack and row in self.added:
                continue
            if row.accepts(act, cause, kind, stack):
                return entry
        return None

    def of_another_value(self, act: LossPlace) -> str:
        """Return the position and value of an acknowledgement for the same field or resource with another new value.

        Return an empty string if there is none.
        """
        for entry in self.entries:
            row = entry.exemption
            if isinstance(row, Acknowledgement) and row.place._replace(becomes=act.becomes) == act != row.place:
                return f"{FILE}:{entry.position.line} has becomes: {json.dumps(row.place.becomes)}"
        return ""

    def of(self, finding: Finding) -> ExemptionEntry | None:
        """Return the first exemption that applies to a finding today."""
        covering = (entry for entry in self.entries if entry.exemption.covers(finding) and not self._is_late(entry))
        return next((entry for entry in covering if entry.exemption.expires >= self.today), None)

    def _is_late(self, entry: ExemptionEntry) -> bool:
        row = entry.exemption
        return isinstance(row, Exemption) and row.grant is not None and row in self.added

    def findings(
        self, used: Collection[ExemptionEntry], *, stacks: Collection[str], checked: Collection[str],
        decided: Collection[str],
    ) -> list[Finding]:  # fmt: skip
        """Return findings about the exemptions of ``checked`` stacks, and of stacks that do not exist.

        ``stacks`` are all existing stacks. For stacks that were not checked, only expired exemptions are reported,
        which needs no plan. An exemption can be reported as unused only for a ``decided`` stack, which has a plan that
        every rule has checked.
        """
        return located(self._drafts(used, stacks, checked, decided))

    def _drafts(
        self,
        used: Collection[ExemptionEntry],
        stacks: Collection[str],
        checked: Collection[str],
        decided: Collection[str],
    ) -> Iterator[Draft]:
        for entry in self.entries:
            exemption = entry.exemption
            days = (self.today - exemption.expires).days
            if isinstance(exemption, Acknowledgement):
                yield from _of_acknowledgement(entry, exemption, days)
                continue
            unchecked = exemption.stack in stacks and exemption.stack not in checked
            if days > 0:
                message = f"{exemption.rule} of {exemption.subject}: expired {counted(days, 'day')} ago"
                allowed = f"fix the finding and delete the exemption, or have {exemption.owner} choose a later date"
                severity: Severity | None = "warning" if unchecked else None
                yield finding(entry, (), message, rule=EXEMPTION_EXPIRED, allowed=allowed, severity=severity)
            elif unchecked:
                continue
            elif exemption.stack not in stacks:
                message = f"{exemption.rule}: stack {exemption.stack} does not exist"
                yield finding(entry, (), message, rule=EXEMPTION_UNUSED, nearest=find_nearest(exemption.stack, stacks))
            elif exemption.names_everything:
                message = (
                    f"{exemption.rule} of {exemption.subject}: covers every section, and therefore also future mistakes"
                )
                yield finding(entry, (), message, rule=EXEMPTION_WIDE, allowed="the path or resource, as in a finding")
            elif exemption.names_no_amount:
                message = (
                    f"{exemption.rule} of {exemption.subject}: has no amount, so it applies only to limits without "
                    f"other holders, and the next release will no longer support it"
                )
                fields = "quota and up_to" if exemption.rule == _OF_QUOTAS else "up_to"
                allowed = f"{fields}, as `explain FILE:LINE` prints the entry"
                yield finding(entry, (), message, rule=EXEMPTION_UNTYPED, allowed=allowed)
            elif exemption.stack in decided and entry not in used and not self._is_late(entry):
                message = f"{exemption.rule} of {exemption.subject}: no finding needs it"
                yield finding(entry, (), message, rule=EXEMPTION_UNUSED, allowed="delete it")


def _without_terms(row: Exemption | Acknowledgement) -> Mapping[str, Any]:
    """Return the fields that determine what an entry applies to, without its reason, owner and expiry date."""
    return row.model_dump(exclude={"reason", "owner", "expires"})


def _of_acknowledgement(entry: ExemptionEntry, row: Acknowledgement, days: int) -> Iterator[Draft]:
    """Yield findings about what has to change in an acknowledgement that expired ``days`` days ago."""
    if days > 0:
        yield finding(entry, (), f"{row.subject}: has expired", rule=EXEMPTION_UNUSED, allowed="delete it")
    elif row.names_no_resource:
        message = f"{row.effect} of `.`: permits nothing, because it names no resource"
        allowed = "`resource: TYPE NAME` in place of `path`, as `explain FILE:LINE --base REF` prints the entry"
        yield finding(entry, (), message, rule=EXEMPTION_UNUSED, allowed=allowed)
    elif row.effect:
        message = f"{row.effect} of {row.subject}: lists no losses, which the next release will no longer support"
        allowed = "`takes` in place of `effect`, as `explain FILE:LINE --base REF` prints the entry"
        yield finding(entry, (), message, rule=EXEMPTION_UNTYPED, allowed=allowed)


def read_exemptions(root: FilePath, today: date) -> Exemptions:
    """Read ``stacks/exemptions.yaml``. Without the file, nothing is exempt."""
    path = root / FILE
    if not path.exists():
        return Exemptions(today)
    try:
        return parse_exemptions(read_source(path, FILE), today)
    except UnreadableError as error:
        return Exemptions(today, unreadable=(str(error),))


def parse_exemptions(source: Source, today: date) -> Exemptions:
    """Return the exemptions in a file. An empty file, or one with only the key, has none."""
    value = source.value
    if value is None or value == {"exemptions": None}:
        value = {}
    file, rejected = validated(ExemptionsFile, value, source)
    wrong = [*source.findings, *rejected]
    if file is None or wrong:
        return Exemptions(today, unreadable=tuple(finding.one_line for finding in wrong))
    entries = [
        *(
            ExemptionEntry(exemption, source.position(("exemptions", index, "rule")))
            for index, exemption in enumerate(file.exemptions)
        ),
        *(
            ExemptionEntry(acknowledgement, source.position(("acknowledged", index)))
            for index, acknowledgement in enumerate(file.acknowledged)
        ),
    ]
    return Exemptions(today, tuple(entries))


@lru_cache(maxsize=1024)
def _pattern(text: str, *, below: bool) -> re.Pattern[str]:
    body = ".*".join(map(re.escape, text.split("*")))
    return re.compile(body + (r"([.\[].*)?" if below else ""), re.DOTALL)


SCHEMA_FILE = "stacks/exemptions.schema.json"


def exemptions_schema() -> dict[str, Any]:
    """Return the JSON schema, from which an editor suggests the rules that an entry may name."""
    schema = file_schema(ExemptionsFile, "Exemptions")
    exemption = schema["$defs"]["Exemption"]
    exemption["properties"]["rule"]["enum"] = sorted(EXEMPTIBLE)
    effect = schema["$defs"]["Acknowledgement"]["properties"]["effect"]["anyOf"][0]
    effect["enum"] = sorted(LOSSES)
    for name in ("Exemption", "Acknowledgement"):
        schema["$defs"][name]["oneOf"] = [{"required": ["path"]}, {"required": ["resource"]}]
    return schema
