"""The pack's policies: one for each rule set, one for quotas, and advice that never stops a deployment.

Rules of one resource are run before it is made, on its inputs. Rules across resources and quotas are run on the whole
stack, on the inputs that were seen before: by then the engine hands out states, where a provider has filled in much
that is not known yet. A mandatory policy never stops at an unknown value; what could not be decided is said by the
advisory policies, which come last and say what the others left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import is_
from pathlib import Path
from typing import Any, NamedTuple

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)

from training_platform.config.reading.finding import Finding
from training_platform.config.reading.printable import printable
from training_platform.config.spec.stack import PROJECT
from training_platform.policy.checkout import Checkout, Facts
from training_platform.policy.planned_resources import options, parse_urn, planned
from training_platform.policy.remediation import FIXES
from training_platform.policy.resource_policy import ResourcePolicy
from training_platform.policy.settings import ADVICE, ADVISORY_RULES, QUOTA, STACK_ADVICE, house_rules_hold, settings
from training_platform.resources.planned import Planned
from training_platform.resources.register import labels_path
from training_platform.rules import RULES, Program, Rule, evaluate, program
from training_platform.rules.adapters.plan import kinds_of
from training_platform.rules.descriptions import TITLES
from training_platform.rules.exemptions import Exempted
from training_platform.rules.views.program import ObjectView

_ADVICE = "Warnings, and what is not decided before deployment, of one resource."
_STACK_ADVICE = "Warnings, and what is not decided or counted, of the whole stack."
_QUOTA = "Quotas and capacity, with what the other stacks of a checkout ask."
SEVERITIES = {
    "protection": Severity.CRITICAL,  # data is lost
    "labels": Severity.MEDIUM,  # a house rule: Google Cloud takes it
    ADVICE: Severity.LOW,
    STACK_ADVICE: Severity.LOW,
}
REFUSED = Severity.HIGH  # all others: the deployment fails, or never works
_ELSEWHERE = Checkout(None)


def policies(root: Path | None) -> list[Policy]:
    """Return the pack's policies; their names, by which an organisation sets levels, are those of the rule sets.

    ``root`` is the folder that may hold ``stacks/``, whose files say more of our own program's resources.
    """
    return Pack(root).policies


class _Said(NamedTuple):
    """What is to be reported, and of which resource."""

    text: str
    urn: str | None = None


class Pack:
    """The policies of one run of the engine; ``root`` as in ``policies``.

    ``seen`` holds every resource's inputs by URN; ``left`` what is advice, by URN or stack and then by policy, until
    the advisory policies say it. The engine may ask for several resources at once. A servicer may read a resource, or
    all of a stack, before the policies, which are then given none of it.
    """

    def __init__(self, root: Path | None) -> None:
        self.checkout = Checkout(root)
        self.seen: dict[str, Planned] = {}
        self.left: dict[str, dict[str, list[_Said]]] = {}
        self._read: _Stacks = {}
        self._judged_last: tuple[tuple[Planned, ...], Facts, Program] | None = None
        self.policies: list[Policy] = list(self._policies())

    def read_resource(self, args: ResourceValidationArgs) -> Planned:
        """Return a resource, and keep it; without properties it is one that was read for all policies together."""
        if args.props or args.urn not in self.seen:
            self.seen[args.urn] = planned(args)
        return self.seen[args.urn]

    def read_stacks(self, resources: Iterable[PolicyResource]) -> None:
        """Keep all resources for the policies of stacks, which are then given none."""
        self._read = self._by_place(resources)

    def _policies(self) -> Iterator[Policy]:
        sets: dict[str, list[Rule]] = {}
        for rule in RULES.values():
            sets.setdefault(rule.ruleset, []).append(rule)
        for name, rules in sets.items():
            make = self._of_stacks if any(rule.across for rule in rules) else self._of_resources
            yield make(name, rules)
        yield StackValidationPolicy(QUOTA, _QUOTA, self._quota, config_schema=_schema(QUOTA), severity=REFUSED)
        yield self._resource_advice()
        yield self._stack_advice()

    def _of_resources(self, name: str, rules: list[Rule]) -> Policy:
        reads = tuple(ObjectView if rule.reads is Program else rule.reads for rule in rules)

        def concerns(kind: str, _urn: str) -> bool:
            return any(issubclass(view, reads) for view in kinds_of(kind))

        def judge(args: ResourceValidationArgs) -> tuple[list[Finding], list[Finding]]:
            return self._judged(_at(args.urn), [self.read_resource(args)], rules, args.get_config())

        def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
            if concerns(args.resource_type, args.urn):
                home = self._home(_at(args.urn))
                errors, advice = judge(args)
                for finding in errors:
                    report(_text(finding, home), None)
                self.left.setdefault(args.urn, {})[name] = [_Said(_text(each, home)) for each in advice]

        def remediate(args: ResourceValidationArgs) -> Mapping[str, Any] | None:
            rule, fix = FIXES[name]
            if labels_path(args.resource_type) is None or rule not in {error.rule for error in judge(args)[0]}:
                return None
            place = _at(args.urn)
            whole = self._program(place, (), args.get_config())
            return args.props if fix(args.resource_type, args.props, whole) else None  # type: ignore[arg-type]

        return ResourcePolicy(
            name, TITLES[name], validate, concerns=concerns,
            config_schema=_schema(name),
            remediate=remediate if name in FIXES else None,
            severity=SEVERITIES.get(name, REFUSED),
        )  # fmt: skip

    def _of_stacks(self, name: str, rules: list[Rule]) -> Policy:
        def validate(args: StackValidationArgs, report: ReportViolation) -> None:
            for place, resources in self._stacks(args.resources).items():
                judged = self._judged(place, resources.values(), rules, args.get_config())
                self._report(name, place, judged, resources, report)

        return StackValidationPolicy(
            name, TITLES[name], validate,
            config_schema=_schema(name), severity=SEVERITIES.get(name, REFUSED),
        )  # fmt: skip

    def _quota(self, args: StackValidationArgs, report: ReportViolation) -> None:
        for place, resources in self._stacks(args.resources).items():
            config, home = args.get_config(), self._home(place)
            found, sentences = home.quota_findings(place.stack, resources.values(), config)
            self._report(QUOTA, place, self._sorted(home, found, config), resources, report)
            sentences += (f"nothing is exempt: {why}" for why in home.exemptions.unreadable)
            self.left[place.stack][QUOTA] += map(_Said, map(printable, sentences))

    def _resource_advice(self) -> Policy:
        def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
            self._say(args.urn, report)

        def concerns(_kind: str, urn: str) -> bool:
            return any(self.left.get(urn, {}).values())

        level, severity = EnforcementLevel.ADVISORY, SEVERITIES[ADVICE]
        return ResourcePolicy(ADVICE, _ADVICE, validate, concerns=concerns, enforcement_level=level, severity=severity)

    def _stack_advice(self) -> Policy:
        def validate(args: StackValidationArgs, report: ReportViolation) -> None:
            for place in self._stacks(args.resources):
                self._say(place.stack, report)

        level, severity = EnforcementLevel.ADVISORY, SEVERITIES[STACK_ADVICE]
        return StackValidationPolicy(STACK_ADVICE, _STACK_ADVICE, validate, level, severity=severity)

    def _say(self, of: str, report: ReportViolation) -> None:
        for said in self.left.pop(of, {}).values():
            for each in said:
                report(each.text, each.urn)

    def _judged(
        self, place: _Place, resources: Iterable[Planned], rules: Iterable[Rule], config: Mapping[str, Any]
    ) -> tuple[list[Finding], list[Finding]]:
        home = self._home(place)
        whole, file = self._program(place, tuple(resources), config), home.stack_file(place.stack)
        if place.project != PROJECT and not house_rules_hold(config):
            rules = [rule for rule in rules if rule.owner != "house"]
        return self._sorted(home, home.suggested(evaluate(whole, rules, file)), config)

    def _program(self, place: _Place, resources: tuple[Planned, ...], config: Mapping[str, Any]) -> Program:
        """Return resources as a program; kept, since most policies ask for the same as the one before."""
        home = self._home(place)
        facts, last = home.facts(place.stack, config), self._judged_last
        if last and last[1] == facts and len(last[0]) == len(resources) and all(map(is_, last[0], resources)):
            return last[2]
        made = program(home.views(place.stack, resources), stack=place.stack, **facts._asdict())
        self._judged_last = resources, facts, made
        return made

    def _sorted(
        self, home: Checkout, found: Iterable[Finding], config: Mapping[str, Any]
    ) -> tuple[list[Finding], list[Finding]]:
        """Return the errors, and what is advice: by its severity, an exemption, or the policy's own config."""
        errors: list[Finding] = []
        advice: list[Finding] = []
        for each in found:
            counts = each.severity == "error" and each.rule not in config.get(ADVISORY_RULES, ())
            (errors if counts and home.exemptions.of(each) is None else advice).append(each)
        return errors, advice

    def _stacks(self, resources: Collection[PolicyResource]) -> _Stacks:
        return self._by_place(resources) if resources else self._read

    def _by_place(self, resources: Iterable[PolicyResource]) -> _Stacks:
        """Return the resources of each stack by URN: their inputs where they were seen, else the engine's state.

        What a resource depends on comes from the engine: by it a rule knows what an unknown name means.
        """
        stacks: _Stacks = {}
        for resource in resources:
            seen = self.seen.get(resource.urn)
            each = replace(seen, options=options(resource)) if seen else planned(resource)
            stacks.setdefault(_at(resource.urn), {})[resource.urn] = each
        return stacks

    def _report(
        self,
        policy: str,
        place: _Place,
        judged: tuple[list[Finding], list[Finding]],
        resources: Mapping[str, Planned],
        report: ReportViolation,
    ) -> None:
        urns = {f"{resource.type} {resource.name}": urn for urn, resource in resources.items()}
        home = self._home(place)
        errors, advice = ([_Said(_text(each, home), urns.get(each.resource or "")) for each in part] for part in judged)
        for said in errors:
            report(said.text, said.urn)
        self.left.setdefault(place.stack, {})[policy] = advice

    def _home(self, place: _Place) -> Checkout:
        """Return where a program's stack files are: nowhere, unless it is our own."""
        return self.checkout if place.project == PROJECT else _ELSEWHERE


class _Place(NamedTuple):
    """A stack of a project."""

    project: str
    stack: str


_Stacks = dict[_Place, dict[str, Planned]]  # by URN


def _at(urn: str) -> _Place:
    parts = parse_urn(urn)
    return _Place(parts.project, parts.stack)


def _text(finding: Finding, home: Checkout) -> str:
    source = f" Source: {finding.source}." if finding.source else ""
    entry = home.exemptions.of(finding)
    exempt = f"\n  {Exempted(finding, entry)}" if entry else ""
    return printable(f"{finding}\n  Rule: {finding.rule}.{source}{exempt}")


def _schema(policy: str) -> PolicyConfigSchema:
    return PolicyConfigSchema(properties=dict(settings()[policy]))
