"""The pack's policies: one for each rule set, one for quotas, and advice that never stops a deployment.

A mandatory policy never stops at an unknown value; the advisory policies, which run last, report open questions
and the advice of the others.

The engine starts the program once it knows the policies, so this file describes them without loading a rule. The
rules are loaded while the program loads its SDK.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
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
    "labels": Severity.MEDIUM,  # a house rule: Google Cloud takes it
    ADVICE: Severity.LOW,
    STACK_ADVICE: Severity.LOW,
}
REFUSED = Severity.HIGH  # all others: the deployment fails, or never works


def policies(root: Path | None) -> list[Policy]:
    """Return the pack's policies; their names, by which an organisation sets levels, are those of the rule sets.

    ``root`` is the folder that may hold ``stacks/``, whose files describe our own program's resources.
    """
    return Pack(root).policies


class Pack:
    """The policies of one run of the engine; ``root`` as in ``policies``."""

    def __init__(self, root: Path | None) -> None:
        self.root = root
        self.policies: list[Policy] = list(self._policies())
        self._loading = threading.Lock()
        self._evaluation: Evaluation | None = None

    @property
    def evaluation(self) -> Evaluation:
        """The rules, which are loaded when they are first asked for."""
        with self._loading:
            if self._evaluation is None:
                from training_platform.policy.evaluation import Evaluation  # noqa: PLC0415 # it takes a quarter second

                self._evaluation = Evaluation(self.root)
            return self._evaluation

    def load(self) -> None:
        """Load the rules, and read the documents by which every program is judged."""
        with suppress(Exception):  # whoever asks for it next is told
            self.evaluation.load()

    def _policies(self) -> Iterator[Policy]:
        for name, ruleset in RULESETS.items():
            if name != QUOTA:
                yield (self._of_stacks if ruleset.across else self._of_resources)(name, ruleset)
        yield StackValidationPolicy(
            QUOTA, RULESETS[QUOTA].title, self._later(lambda rules: rules.quota),
            config_schema=_schema(QUOTA), severity=REFUSED,
        )  # fmt: skip
        yield ResourcePolicy(
            ADVICE, _ADVICE, self._later(lambda rules: rules.say_resource),
            concerns=lambda _kind, urn: self.evaluation.has_advice(urn),
            enforcement_level=EnforcementLevel.ADVISORY, severity=SEVERITIES[ADVICE],
        )  # fmt: skip
        yield StackValidationPolicy(
            STACK_ADVICE, _STACK_ADVICE, self._later(lambda rules: rules.say_stacks),
            EnforcementLevel.ADVISORY, severity=SEVERITIES[STACK_ADVICE],
        )  # fmt: skip

    def _of_resources(self, name: str, ruleset: Ruleset) -> Policy:
        return ResourcePolicy(
            name, ruleset.title, self._later(lambda rules: partial(rules.resource, name)),
            concerns=lambda kind, _urn: self.evaluation.concerns(name, kind),
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
            return method(self.evaluation)(*arguments)

        return call


def _schema(policy: str) -> PolicyConfigSchema:
    return PolicyConfigSchema(properties=dict(settings()[policy]))


Concerns = Callable[[str, str], bool]


class ResourcePolicy(ResourceValidationPolicy):
    """A policy of single resources; ``concerns`` says by type and URN whether it has anything to look at."""

    def __init__(self, *args: Any, concerns: Concerns, **more: Any) -> None:
        super().__init__(*args, **more)
        self.concerns = concerns
