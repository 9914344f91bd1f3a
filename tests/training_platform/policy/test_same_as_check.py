"""The pack says of a stack what ``check`` says of it: the plan's resources are handed to the pack's policies."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pulumi_policy import (
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.policy import PolicyCustomTimeouts
from pulumi_policy.proxy import unknown_checking_proxy

from tests.support.places import ORGANISATION, ROOT
from tests.training_platform.policy.pack_run import marked, urn
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.clock import today
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace
from training_platform.policy.pack import policies
from training_platform.resources.stack_plan import plannable, stack_plan
from training_platform.resources.stack_resource import StackResource

PLANTED = {  # in prod's file: an error of one resource, one of the ledgers, and a warning that needs both
    "zone: us-central1-b": "zone: us-central1-f",
    "boot_disk: {type: pd-ssd, size_gb: 200}": "boot_disk: {type: pd-ssd, size_gb: 700000}",
    "max_nodes: 8\n            boot_disk: {size_gb: 200}": "max_nodes: 12\n            boot_disk: {size_gb: 200}",
}


class Judgement(NamedTuple):
    """The messages about a stack: mandatory errors, and advice."""

    errors: set[str]
    advice: set[str]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("same")
    shutil.copytree(ORGANISATION / "stacks", root / "stacks")
    (root / "__main__.py").write_text((ROOT / "__main__.py").read_text())
    file = root / "stacks" / "Pulumi.prod.yaml"
    text = file.read_text()
    for old, new in PLANTED.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return root


@pytest.fixture(scope="module")
def report(checkout: Path) -> Report:
    return run_check(checkout, CheckOptions(today=today(checkout)))


@pytest.fixture(scope="module")
def plans(checkout: Path) -> dict[str, list[StackResource]]:
    workspace = read_workspace(checkout)
    plans = {stack.name: stack_plan(stack, workspace) for stack in plannable(workspace, workspace.stacks)}
    return {name: plan.planned() for name, plan in plans.items() if plan}


@pytest.mark.parametrize("stack", sorted(read_workspace(ORGANISATION).stacks))
def test_the_pack_says_of_a_stack_what_check_says(
    stack: str, checkout: Path, report: Report, plans: dict[str, list[StackResource]]
) -> None:
    (checked,) = (checked_stack for checked_stack in report.stacks if checked_stack.name == stack)
    errors = {said(finding) for finding in checked.findings if finding.severity == "error"}
    other = {said(finding) for finding in checked.findings if finding.severity != "error"}

    judged = judge(checkout, stack, plans[stack])

    assert judged.errors == errors
    assert other <= judged.advice
    assert bool(errors) is (stack == "prod")


def said(finding: Finding) -> str:
    return f"{finding}\n  Rule: {finding.rule}."


def judge(root: Path, stack: str, resources: list[StackResource]) -> Judgement:
    judged = Judgement(set(), set())
    policy_resources = list(as_given(stack, resources))
    for policy in policies(root):
        kept = judged.advice if policy.enforcement_level else judged.errors
        report = partial(keep, kept)
        if isinstance(policy, ResourceValidationPolicy):
            for resource in policy_resources:
                args = (resource.resource_type, resource.props, resource.urn, resource.name, resource.opts, None)
                policy.validate(ResourceValidationArgs(*args), report)
        elif isinstance(policy, StackValidationPolicy):
            policy.validate(StackValidationArgs(policy_resources), report)
    return judged


def keep(kept: set[str], message: str, _urn: str | None) -> None:
    kept.add(message.partition(" Source: ")[0])


def as_given(stack: str, resources: list[StackResource]) -> Iterator[PolicyResource]:
    """Yield planned resources as the SDK passes them to policies, each after its dependencies."""
    policy_resources: dict[tuple[str, str], PolicyResource] = {}
    for resource in resources:
        after = [policy_resources[key] for key in resource.options.get("dependsOn", ()) if key in policy_resources]
        props: Any = unknown_checking_proxy(marked(dict(resource.inputs)))
        where = urn(resource.type, resource.name, stack)
        policy_resources[resource.key] = PolicyResource(
            resource.type, props, where, resource.name, registered(resource), None, None, after, {}
        )
        yield policy_resources[resource.key]


def registered(resource: StackResource) -> PolicyResourceOptions:
    options = resource.options
    return PolicyResourceOptions(
        options.get("protect", False), options.get("ignoreChanges", []), options.get("deleteBeforeReplace"),
        [], PolicyCustomTimeouts(0, 0, 0), [],
    )  # fmt: skip
