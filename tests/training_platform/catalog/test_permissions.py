from __future__ import annotations

import re
from datetime import date
from pathlib import Path

from training_platform.catalog import permissions as module
from training_platform.catalog.operations import called_methods, principals
from training_platform.catalog.permissions import permissions, permissions_of
from training_platform.catalog.reading import table
from training_platform.config.workspace import read_workspace
from training_platform.resources.resource_types import RESOURCE_TYPES
from training_platform.resources.stack_plan import stack_plan

_ROOT = Path(__file__).parents[3]
HELD_BESIDE = {
    # Google Cloud asks for them where a plan has a vault and an instance has a plan (unverified).
    "backupdr.backupPlanAssociations.list",
    "backupdr.backupVaults.associate",
    # Addresses of regions are external here and global ones internal: a role that holds both may make either.
    "compute.addresses.createInternal",
    "compute.addresses.deleteInternal",
    "compute.globalAddresses.create",
    "compute.globalAddresses.delete",
    # Service Networking peers the network (unverified).
    "compute.networks.addPeering",
    "compute.networks.removePeering",
    "compute.networks.updatePeering",
    # A notebook is stopped and started to be changed; the local cloud has no notebooks.
    "notebooks.instances.checkUpgradability",
    "notebooks.instances.start",
    "notebooks.instances.stop",
}
"""What the role of the set-up holds beside what methods of the deployer ask for."""


def test_every_method_of_an_operation_has_a_row_and_every_row_an_operation() -> None:
    assert permissions().methods.keys() == called_methods()


def test_operations_of_the_deployer_ask_for_what_its_role_holds() -> None:
    held = set()
    for row in RESOURCE_TYPES.values():
        for collection, verbs in row.permissions.items():
            held |= {f"{collection}.{verb}" for verb in verbs}
    methods = principals()["deployer"].methods
    needed = {need.permission for method in methods for need in permissions().methods[method]}

    assert len(held) > 100
    assert held - needed == HELD_BESIDE


def test_every_permission_of_a_method_is_held_by_a_role_here() -> None:
    held = {permission for role in permissions().roles.values() for permission in role.permissions}
    required = {need.permission for needs in permissions().methods.values() for need in needs}

    assert required <= held
    assert held <= required  # roles are restricted to what some method requires


def test_permissions_are_named_as_iam_names_them() -> None:
    for needs in permissions().methods.values():
        for need in needs:
            assert re.fullmatch(r"[a-z][a-zA-Z0-9]*(\.[a-zA-Z0-9]+){2}", need.permission)


def test_every_agent_of_a_need_is_in_the_table() -> None:
    agents = {need.agent for needs in permissions().methods.values() for need in needs if need.agent}

    assert agents <= permissions().agents.keys()


def test_a_role_holds_no_more_of_these_permissions_than_its_count() -> None:
    assert all(len(role.permissions) <= role.total for role in permissions().roles.values())


def test_the_sources_are_named_by_commit_and_day() -> None:
    for source in table(module.__file__, "permissions.yaml")["sources"].values():
        assert re.fullmatch(r"[0-9a-f]{40}", source["commit"])
        assert date.fromisoformat(source["day"]) >= date(2026, 1, 1)


def test_every_predefined_role_that_a_stack_grants_is_in_the_catalogue() -> None:
    granted = set()
    for root in (_ROOT / "tests" / "organisation", _ROOT / "docs" / "reference" / "examples"):
        workspace = read_workspace(root)
        for stack in workspace.stacks.values():
            plan = stack_plan(stack, workspace)
            if plan is None:
                continue
            for resource in plan.resources():
                role = resource.inputs.get("role")
                if isinstance(role, str):
                    granted.add(role)

    assert len(granted) > 10
    assert {role for role in granted if role.startswith("roles/")} <= permissions().roles.keys()


def test_facts_on_roles_that_decide_what_members_may_do() -> None:
    assert "storage.buckets.get" not in permissions_of("roles/storage.objectUser")
    assert "compute.networkAttachments.get" not in permissions_of("roles/aiplatform.serviceAgent")
    assert "container.clusters.connect" in permissions_of("roles/container.clusterViewer")
    assert permissions_of("roles/no.such") == frozenset()


def test_patterns_of_members_are_expressions() -> None:
    assert all(re.compile(principal.members) for principal in principals().values())
