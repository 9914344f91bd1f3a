"""The pack's policies: one for each rule set, one for quotas, and advice that never stops a deployment.

Rules of one resource are run before it is made, on its inputs. Rules across resources and quotas are run on the whole
stack, on the inputs that were seen before: by then the engine hands out states, where a provider has filled in much
that is not known yet. A mandatory policy never stops at an unknown value; what could not be decided is said by the
advisory policies.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

from modules.config.finding import Finding
from modules.rules import PRODUCTION, RULES, Rule, evaluate
from modules.rules.exemptions import Exempted
from modules.rules.from_plan import LABELS, MAKERS
from modules.rules.planned import Planned
from policies.checkout import Checkout
from policies.resources import options, planned

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = PolicyConfigSchema(
    properties={
        "productionEnvironments": {
            "type": "array",
            "items": {"type": "string"},
            "default": list(PRODUCTION),
            "description": "Environments in which nothing that holds data or jobs may be deleted by one command.",
        }
    }
)
ADVICE = "Warnings, and what is not decided before deployment; the policies of whole stacks need it."
STACK_ADVICE = "What is not decided or counted of the whole stack."
QUOTA = "Quotas and capacity, with what all other stacks ask."


def policies(root: Path = ROOT) -> list[Policy]:
    """Return the pack's policies; their names, by which an organisation sets levels, are those of the rule sets."""
    return list(_Pack(Checkout(root)).policies())


class _Pack:
    """The policies of one run of the engine; ``seen`` holds every resource's inputs by URN."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self.seen: dict[str, Planned] = {}

    def policies(self) -> Iterator[Policy]:
        sets: dict[str, list[Rule]] = {}
        for rule in RULES.values():
            sets.setdefault(rule.ruleset, []).append(rule)
        alone = [rule for rule in RULES.values() if not rule.across]
        yield self._of_resources("advice", alone, ADVICE, advisory=True)
        for name, rules in sets.items():
            make = self._of_stacks if any(rule.across for rule in rules) else self._of_resources
            yield make(name, rules, _title(rules))
        yield StackValidationPolicy("quota", QUOTA, self._quota)
        across = [rule for rule in RULES.values() if rule.across]
        yield self._of_stacks("stack-advice", across, STACK_ADVICE, advisory=True)

    def _of_resources(self, name: str, rules: list[Rule], title: str, *, advisory: bool = False) -> Policy:
        def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
            if args.resource_type not in MAKERS and args.resource_type not in LABELS:
                return
            resource = self.seen[args.urn] = planned(args)
            found = self._evaluate(resource.stack, [resource], rules, args.get_config())
            for finding in found:
                if self._is_advice(finding) is advisory:
                    report(self._text(finding), None)

        return ResourceValidationPolicy(name, title, validate, _level(advisory), SETTINGS)

    def _of_stacks(self, name: str, rules: list[Rule], title: str, *, advisory: bool = False) -> Policy:
        def validate(args: StackValidationArgs, report: ReportViolation) -> None:
            for stack, resources in self._stacks(args.resources).items():
                found = self._evaluate(stack, resources.values(), rules, args.get_config())
                sentences: list[str] = []
                if advisory:
                    charged, sentences = self.checkout.quota_findings(stack, resources.values())
                    sentences += (f"nothing is exempt: {why}" for why in self.checkout.exemptions.unreadable)
                    found += charged
                self._report((each for each in found if self._is_advice(each) is advisory), resources, report)
                for sentence in sentences:
                    report(sentence, None)

        return StackValidationPolicy(name, title, validate, _level(advisory))

    def _quota(self, args: StackValidationArgs, report: ReportViolation) -> None:
        for stack, resources in self._stacks(args.resources).items():
            found, _ = self.checkout.quota_findings(stack, resources.values())
            self._report((each for each in found if not self._is_advice(each)), resources, report)

    def _evaluate(
        self, stack: str, resources: Iterable[Planned], rules: Iterable[Rule], config: Mapping[str, Any]
    ) -> list[Finding]:
        production = config.get("productionEnvironments", PRODUCTION)
        whole = self.checkout.program(stack, resources, production)
        return evaluate(whole, rules, self.checkout.stack_file(stack))

    def _stacks(self, resources: Iterable[PolicyResource]) -> dict[str, dict[str, Planned]]:
        """Return the resources of each stack by URN: their inputs where they were seen, else the engine's state.

        What a resource depends on comes from the engine: by it a rule knows what an unknown name means.
        """
        stacks: dict[str, dict[str, Planned]] = {}
        for resource in resources:
            seen = self.seen.get(resource.urn)
            each = replace(seen, options=options(resource)) if seen else planned(resource)
            stacks.setdefault(each.stack, {})[resource.urn] = each
        return stacks

    def _report(self, found: Iterable[Finding], resources: Mapping[str, Planned], report: ReportViolation) -> None:
        urns = {f"{resource.type} {resource.name}": urn for urn, resource in resources.items()}
        for finding in found:
            report(self._text(finding), urns.get(finding.resource or ""))

    def _text(self, finding: Finding) -> str:
        source = f" Source: {finding.source}." if finding.source else ""
        entry = self.checkout.exemptions.of(finding)
        exempt = f"\n  {Exempted(finding, entry)}" if entry else ""
        return f"{finding}\n  Rule: {finding.rule}.{source}{exempt}"

    def _is_advice(self, finding: Finding) -> bool:
        return finding.severity != "error" or self.checkout.exemptions.of(finding) is not None


def _level(advisory: bool) -> EnforcementLevel | None:
    return EnforcementLevel.ADVISORY if advisory else None


def _title(rules: list[Rule]) -> str:
    """Return what a rule set is about: the first line of the module that its rules stand in."""
    module = inspect.getmodule(rules[0].check)
    return (module.__doc__ or "").splitlines()[0] if module else ""
