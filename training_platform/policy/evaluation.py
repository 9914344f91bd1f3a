"""Applies rules to the engine's resources: to the inputs of each before its creation, then to the whole stack.

Rules for one resource run on its inputs before it is created. Rules that compare resources, and rules for quotas, run
on the whole stack, but use the same inputs: at that time the engine passes states, which contain many values from the
provider that are unknown before the creation. Advice is kept until the advisory policies report it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import is_
from pathlib import Path
from typing import Any, NamedTuple

from pulumi_policy import PolicyResource, ReportViolation, ResourceValidationArgs, StackValidationArgs
from pulumi_policy.proxy import (
    UNKNOWN_ARCHIVE_VALUE,
    UNKNOWN_ARRAY_VALUE,
    UNKNOWN_ASSET_VALUE,
    UNKNOWN_BOOLEAN_VALUE,
    UNKNOWN_NUMBER_VALUE,
    UNKNOWN_OBJECT_VALUE,
    UNKNOWN_STRING_VALUE,
    UnknownValueError,
)

from training_platform.catalog import MACHINE_TYPES
from training_platform.config.model.stack import PROJECT
from training_platform.config.reading.finding import Finding, others_go_on, printable
from training_platform.config.reading.secrets import Secrets
from training_platform.config.reading.section import enumeration
from training_platform.policy.checkout import Checkout, CheckoutFacts
from training_platform.policy.settings import ADVISORY_RULES, QUOTA, house_rules_hold
from training_platform.resources.resource_types import NODE_POOL, labels_path
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import Program, Rule, evaluate, program, view_rules
from training_platform.rules.exemptions import Exempted
from training_platform.views.adapters import kinds_of
from training_platform.views.whole_stack import ObjectView

_ELSEWHERE = Checkout(None)
EXISTING_NETWORKS = "addresses"  # the policy that judges the ranges of subnets, also of existing ones


_UNKNOWN_VALUES = frozenset(
    (
        UNKNOWN_ARCHIVE_VALUE, UNKNOWN_ARRAY_VALUE, UNKNOWN_ASSET_VALUE, UNKNOWN_BOOLEAN_VALUE, UNKNOWN_NUMBER_VALUE,
        UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE,
    )
)  # fmt: skip


class Evaluation:
    """The rules in one run of the engine. ``root`` is the folder that may contain ``stacks/``.

    - ``resources`` contains every resource that a policy has received, keyed by URN.
    - ``unsaid_advice`` contains the advice until the advisory policies report it, keyed by URN or stack, then by
      policy.
    - ``unjudged`` contains the findings about things that could not be checked, keyed by stack, then by URN or stack
      and policy. Each kind is reported once per stack.

    The engine may check several resources concurrently. No message shows a secret of a resource. The engine does not
    mark secrets for a policy, so the names of inputs decide.
    """

    def __init__(self, root: Path | None) -> None:
        self.checkout = Checkout(root)
        self.resources: dict[str, StackResource] = {}
        self.secrets = Secrets()
        self.unsaid_advice: dict[str, dict[str, list[_Message]]] = {}
        self.unjudged: dict[_Place, dict[tuple[str, str], list[Finding]]] = {}
        self._rules: dict[str, list[Rule]] = {}
        for rule in view_rules():
            self._rules.setdefault(rule.ruleset, []).append(rule)
        self._concerned: dict[str, set[str]] = {}  # policies by type of resource
        self._last_program: _KnownProgram | None = None

    def _concerns(self, policy: str, kind: str) -> bool:
        """Return True if a policy has a rule that reads resources of a type."""
        if kind not in self._concerned:
            views = kinds_of(kind)
            self._concerned[kind] = {
                name
                for name, rules in self._rules.items()
                for rule in rules
                if any(issubclass(view, ObjectView if rule.reads is Program else rule.reads) for view in views)
            }
        return policy in self._concerned[kind]

    def resource(self, policy: str, args: ResourceValidationArgs, report: ReportViolation) -> None:
        """Report the errors of a resource, and keep its advice."""
        resource = self._read(args)
        if self._concerns(policy, args.resource_type):
            home = self._home(_at(args.urn))
            with _reporting(f"{policy}: {args.urn}", report):
                errors, advice = self._judged(_at(args.urn), [resource], self._rules[policy], args.get_config())
                for finding in errors:
                    report(self._text(finding, home), None)
                judged_advice = self._without_unjudged(advice, _at(args.urn), args.urn, policy)
                messages = [_Message(self._text(finding, home)) for finding in judged_advice]
                self.unsaid_advice.setdefault(args.urn, {})[policy] = messages

    def remedied(self, policy: str, args: ResourceValidationArgs) -> Mapping[str, Any] | None:
        """Return a resource's corrected properties, or None if they need no correction or if none is known."""
        rule, fix = FIXES[policy]
        if labels_path(args.resource_type) is None:
            return None
        place = _at(args.urn)
        config = args.get_config()
        errors, _ = self._judged(place, [self._read(args)], self._rules[policy], config)
        if rule not in {error.rule for error in errors}:
            return None
        whole = self._program(place, (), config)
        return args.props if fix(args.resource_type, args.props, whole) else None  # type: ignore[arg-type]

    def stacks(self, policy: str, args: StackValidationArgs, report: ReportViolation) -> None:
        """Report the errors of whole stacks, and keep their advice."""
        for place, resources in self._by_place(args.resources).items():
            with _reporting(f"{policy}: stack {place.stack}", report):
                config = args.get_config()
                errors, advice = self._judged(place, resources.values(), self._rules[policy], config)
                if policy == EXISTING_NETWORKS:
                    home = self._home(place)
                    of_networks = home.existing_networks(place.stack, resources.values())
                    more_errors, more_advice = self._errors_and_advice(home, of_networks, config)
                    errors += more_errors
                    advice += more_advice
                self._report(policy, place, (errors, advice), resources, report)

    def quota(self, args: StackValidationArgs, report: ReportViolation) -> None:
        """Report violations of quotas and capacity, and keep the notes about resources that are in no sum."""
        for place, resources in self._by_place(args.resources).items():
            config = args.get_config()
            home = self._home(place)
            with _reporting(f"{QUOTA}: stack {place.stack}", report):
                findings, sentences = home.quota_findings(place.stack, resources.values(), config)
                self._report(QUOTA, place, self._errors_and_advice(home, findings, config), resources, report)
                sentences += (f"nothing is exempt: {why}" for why in home.exemptions.unreadable)
                self.unsaid_advice[place.stack][QUOTA] += map(_Message, map(printable, sentences))

    def say_resource(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        """Report the advice of a resource."""
        self._say(args.urn, report)

    def say_stacks(self, args: StackValidationArgs, report: ReportViolation) -> None:
        """Report the advice of whole stacks."""
        for place, resources in self._by_place(args.resources).items():
            self._say(place.stack, report)
            home = self._home(place)
            urns = _urns(resources)
            unjudged = [finding for rows in self.unjudged.pop(place, {}).values() for finding in rows]
            for finding in _each_kind_once(unjudged):
                report(self._text(finding, home), urns.get(finding.resource or ""))

    def _say(self, of: str, report: ReportViolation) -> None:
        for messages in self.unsaid_advice.pop(of, {}).values():
            for message in messages:
                report(*message)

    def _read(self, args: ResourceValidationArgs) -> StackResource:
        """Return a resource, and keep it. An update passes it again, with inputs that were unknown in a preview.

        Each policy gets the same object for a resource, so ``_program`` can compare resources by identity.
        """
        resource = planned(args)
        if self.resources.get(args.urn) != resource:
            self.resources[args.urn] = resource
            self.secrets.add(resource.inputs)
        return self.resources[args.urn]

    def _judged(
        self, place: _Place, resources: Iterable[StackResource], rules: Iterable[Rule], config: Mapping[str, Any]
    ) -> _Judged:
        home = self._home(place)
        whole = self._program(place, tuple(resources), config)
        file = home.stack_file(place.stack)
        if place.project != PROJECT and not house_rules_hold(config):
            rules = [rule for rule in rules if rule.owner != "house"]
        return self._errors_and_advice(home, home.suggested(evaluate(whole, rules, file)), config)

    def _program(self, place: _Place, resources: tuple[StackResource, ...], config: Mapping[str, Any]) -> Program:
        """Return resources as a program, the form that rules read. The last one is cached for the other policies."""
        home = self._home(place)
        facts = home.facts(place.stack, config)
        last = self._last_program
        if last and last.facts == facts and _are_same(last.resources, resources):
            return last.program
        whole = program(home.views(place.stack, resources), stack=place.stack, **facts._asdict())
        self._last_program = _KnownProgram(resources, facts, program=whole)
        return whole

    def _errors_and_advice(self, home: Checkout, findings: Iterable[Finding], config: Mapping[str, Any]) -> _Judged:
        """Split findings into errors and advice, by severity, exemptions and the policy's config."""
        errors: list[Finding] = []
        advice: list[Finding] = []
        for finding in findings:
            counts = finding.severity == "error" and finding.rule not in config.get(ADVISORY_RULES, ())
            counts = finding.failed or (counts and home.exemptions.of(finding) is None)
            (errors if counts else advice).append(finding)
        return errors, advice

    def _by_place(self, resources: Iterable[PolicyResource]) -> _Stacks:
        """Return the resources of each stack, keyed by URN: their inputs if known, else the engine's state.

        Dependencies always come from the engine, because rules use them to resolve unknown names.
        """
        stacks: _Stacks = {}
        for resource in resources:
            seen = self.resources.get(resource.urn)
            current = replace(seen, options=options(resource)) if seen else planned(resource)
            stacks.setdefault(_at(resource.urn), {})[resource.urn] = current
        return stacks

    def _report(
        self,
        policy: str,
        place: _Place,
        judged: _Judged,
        resources: Mapping[str, StackResource],
        report: ReportViolation,
    ) -> None:
        urns = _urns(resources)
        home = self._home(place)
        error_findings, advice_findings = judged
        judged_advice = self._without_unjudged(advice_findings, place, place.stack, policy)
        errors, advice = (
            [_Message(self._text(finding, home), urns.get(finding.resource or "")) for finding in part]
            for part in (error_findings, judged_advice)
        )
        for message in errors:
            report(*message)
        self.unsaid_advice.setdefault(place.stack, {})[policy] = advice

    def _without_unjudged(self, advice: Sequence[Finding], place: _Place, of: str, policy: str) -> list[Finding]:
        """Return the advice without findings about things that could not be checked. Those are reported at the end."""
        self.unjudged.setdefault(place, {})[of, policy] = [finding for finding in advice if finding.unjudged]
        return [finding for finding in advice if not finding.unjudged]

    def _text(self, finding: Finding, home: Checkout) -> str:
        if self.secrets.shown_in(finding.shown):
            finding = finding.without_values()
        source = f" Source: {finding.source}." if finding.source else ""
        entry = home.exemptions.of(finding)
        exempt = f"\n  {Exempted(finding, entry)}" if entry else ""
        return printable(f"{finding}\n  Rule: {finding.rule}.{source}{exempt}")

    def _home(self, place: _Place) -> Checkout:
        """Return the checkout with a program's stack files. If the program is not ours, the checkout is empty."""
        return self.checkout if place.project == PROJECT else _ELSEWHERE


def _each_kind_once(unjudged: Iterable[Finding]) -> Iterator[Finding]:
    """Yield, for each kind of thing that could not be checked, its first finding with the number of the others.

    The finding also names the rules of the others.
    """
    kinds: dict[str, list[Finding]] = {}
    for finding in unjudged:
        kinds.setdefault(finding.unjudged, []).append(finding)
    for first, *alike in kinds.values():
        message = first.message
        if alike:
            rules = enumeration({finding.rule for finding in alike})
            message += f"; {len(alike):,} more are not judged for the same reason: {rules}"
        yield replace(first, message=message)


def _urns(resources: Mapping[str, StackResource]) -> dict[str, str]:
    """Return the URNs of resources, keyed by the names that findings use."""
    return {f"{resource.type} {resource.name}": urn for urn, resource in resources.items()}


def _are_same(resources: tuple[StackResource, ...], other_resources: tuple[StackResource, ...]) -> bool:
    """Return True if two tuples contain the same objects. This is much faster than comparing their inputs."""
    return len(resources) == len(other_resources) and all(map(is_, resources, other_resources))


@contextmanager
def _reporting(subject: str, report: ReportViolation) -> Iterator[None]:
    """Report a bug in this program as a violation, since an exception would hide all other findings."""
    failures: list[str] = []
    with others_go_on(subject, failures):
        yield
    for failure in failures:
        report(printable(failure), None)


class _Message(NamedTuple):
    """A message to report, and the URN of its resource, if any."""

    text: str
    urn: str | None = None


class _KnownProgram(NamedTuple):
    """Resources that were converted to a program, and the facts about the checkout that were used."""

    resources: tuple[StackResource, ...]
    facts: CheckoutFacts
    program: Program


class _Place(NamedTuple):
    """A stack of a project."""

    project: str
    stack: str


_Stacks = dict[_Place, dict[str, StackResource]]  # by URN


_Judged = tuple[list[Finding], list[Finding]]  # errors, and advice


def _at(urn: str) -> _Place:
    parts = parse_urn(urn)
    return _Place(parts.project, parts.stack)


class Urn(NamedTuple):
    """The parts of ``urn:pulumi:{stack}::{project}::{types}::{name}``. A name may contain ``::`` itself."""

    stack: str
    project: str
    type: str
    name: str


def parse_urn(urn: str) -> Urn:
    """Return the parts of a URN, without the types of its parents."""
    head, project, types, name = urn.split("::", 3)
    return Urn(head.rpartition(":")[2], project, type=types.rpartition("$")[2], name=name)


def planned(resource: ResourceValidationArgs | PolicyResource) -> StackResource:
    """Return a resource of the engine as a planned resource. Each unknown value is ``UNKNOWN``."""
    urn = parse_urn(resource.urn)
    return StackResource(
        stack=urn.stack, type=urn.type, name=urn.name, inputs=plain(resource.props), options=options(resource)
    )


def options(resource: ResourceValidationArgs | PolicyResource) -> dict[str, Any]:
    """Return a resource's options. The engine passes its dependencies only when it checks a whole stack."""
    written = {
        "protect": resource.opts.protect,
        "ignoreChanges": list(resource.opts.ignore_changes),
        "deleteBeforeReplace": resource.opts.delete_before_replace,
    }
    if isinstance(resource, PolicyResource):
        urns = (parse_urn(other.urn) for other in resource.dependencies)
        written["dependsOn"] = sorted((urn.type, urn.name) for urn in urns)
    return {name: value for name, value in written.items() if value}


def plain(value: Any) -> Any:
    """Return a value without wrappers. These raise if an unknown value is read, which would end the whole policy.

    Values in a remediation have no wrappers, and mark unknown values with constants. The engine sends every number as a
    float. Whole numbers are converted back to integers, so that messages show them as stack files do.
    """
    kind = value.__class__
    if kind is float and value.is_integer():
        return int(value)
    if kind is dict:
        return {key: plain(item) for key, item in value.items()}
    if kind is list:
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _read_item(value.__getitem__, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_read_item(value.__getitem__, index) for index in range(len(value))]
    return UNKNOWN if isinstance(value, str) and value in _UNKNOWN_VALUES else value


def _read_item(get: Callable[[Any], Any], key: Any) -> Any:
    try:
        return plain(get(key))
    except UnknownValueError:
        return UNKNOWN


Properties = MutableMapping[str, Any]  # the SDK's mapping is not a MutableMapping, but accepts new values


Fix = Callable[[str, Properties, Program], bool]


def fix_labels(resource_type: str, properties: Properties, program: Program) -> bool:
    """Set the labels of environment and team, and return True."""
    inner = properties
    for name in labels_path(resource_type) or ():
        if name not in inner:
            inner[name] = {}
        inner = inner[name]
    inner["environment"] = program.environment
    if program.team:
        inner["team"] = program.team
    return True


def fix_boot_disk_type(resource_type: str, properties: Properties, _program: Program) -> bool:
    """Set the disk type of a node pool whose machine type supports only one. Return True if it does."""
    if resource_type != NODE_POOL:
        return False
    node = properties["nodeConfig"]
    types = MACHINE_TYPES[node["machineType"]].boot_disk_types
    if len(types) != 1:
        return False
    for block in (node, node.get("bootDisk")):
        if block is not None and "diskType" in block:
            block["diskType"] = types[0]
    return True


FIXES: Mapping[str, tuple[str, Fix]] = {
    "labels": ("labels", fix_labels),
    "disks": ("boot-disk-type", fix_boot_disk_type),
}
"""For each policy, the rule whose findings have only one possible fix, and this fix."""
