"""The pack's policies: one for each rule set, one for quotas, and advisory ones that never stop a deployment.

A mandatory policy never fails because of an unknown value. The advisory policies run last, and report open questions
and the advice of the others.

The engine starts the program as soon as it has the list of policies, so this module lists them without loading a rule.
The rules are loaded for the first resource.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ResourceValidationPolicy,
    Severity,
    StackValidationPolicy,
)

from training_platform.policy.settings import ADVICE, QUOTA, RULESETS, STACK_ADVICE, Ruleset, settings

if TYPE_CHECKING:
    from training_platform.policy.evaluation import Evaluation

_ADVICE = "Warnings, and what is not decided before deployment, of one resource."
_STACK_ADVICE = "Warnings, and what is not decided or counted, of the whole stack."
SEVERITIES = {
    "protection": Severity.CRITICAL,  # data is lost
    "labels": Severity.MEDIUM,  # a house rule: Google Cloud accepts it
    ADVICE: Severity.LOW,
    STACK_ADVICE: Severity.LOW,
}
REFUSED = Severity.HIGH  # all others: the deployment fails, or its result does not work


def policies(root: Path | None) -> list[Policy]:
    """Return the pack's policies. They are named after the rule sets; an organisation sets levels for these names.

    ``root`` is the folder that may contain ``stacks/``, whose files describe our own program's resources.
    """
    return list(_Pack(root).policies())


class _Pack:
    """The policies of one run of the engine. ``root`` is the same as in ``policies``."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._loading = threading.Lock()  # the engine may check several resources at once
        self._evaluation: Evaluation | None = None

    def _rules(self) -> Evaluation:
        """Return the rules. They are loaded on first use."""
        with self._loading:
            if self._evaluation is None:
                from training_platform.policy.evaluation import Evaluation  # noqa: PLC0415 # takes a quarter second

                self._evaluation = Evaluation(self._root)
            return self._evaluation

    def policies(self) -> Iterator[Policy]:
        """Yield the policies, with the advisory ones last."""
        for name, ruleset in RULESETS.items():
            if name == QUOTA:
                continue
            if ruleset.across:
                yield self._of_stacks(name, ruleset)
            else:
                yield self._of_resources(name, ruleset)
        yield StackValidationPolicy(
            QUOTA, RULESETS[QUOTA].title, self._later(lambda rules: rules.quota),
            config_schema=_schema(QUOTA), severity=REFUSED,
        )  # fmt: skip
        yield ResourceValidationPolicy(
            ADVICE, _ADVICE, self._later(lambda rules: rules.say_resource),
            enforcement_level=EnforcementLevel.ADVISORY, severity=SEVERITIES[ADVICE],
        )  # fmt: skip
        yield StackValidationPolicy(
            STACK_ADVICE, _STACK_ADVICE, self._later(lambda rules: rules.say_stacks),
            EnforcementLevel.ADVISORY, severity=SEVERITIES[STACK_ADVICE],
        )  # fmt: skip

    def _of_resources(self, name: str, ruleset: Ruleset) -> Policy:
        return ResourceValidationPolicy(
            name, ruleset.title, self._later(lambda rules: partial(rules.resource, name)),
            config_schema=_schema(name),
            remediate=self._later(lambda rules: partial(rules.remedied, name)) if ruleset.fixes else None,
            severity=SEVERITIES.get(name, REFUSED),
        )  # fmt: skip

    def _of_stacks(self, name: str, ruleset: Ruleset) -> Policy:
        return StackValidationPolicy(
            name, ruleset.title, self._later(lambda rules: partial(rules.stacks, name)),
            config_schema=_schema(name), severity=SEVERITIES.get(name, REFUSED),
        )  # fmt: skip

    def _later(self, method: Callable[[Evaluation], Callable[..., Any]]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            return method(self._rules())(*arguments)

        return call


def _schema(policy: str) -> PolicyConfigSchema:
    return PolicyConfigSchema(properties=dict(settings()[policy]))
