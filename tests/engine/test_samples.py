"""The samples in stacks/, and the examples of whole stacks: brought up, changed, refreshed and destroyed.

Other tests use an organisation of their own, which cannot tell whether the shipped files can be brought up. Each stack
is run with the rights of its deployer, as the set-up grants them: this is a deployer's day, also with a quota project.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_google_cloud.api import Access, Missing, Policies
from tests.engine.deployers import deployer_of, set_up
from tests.engine.fleet import KEPT, Fleet, Ran, served, state, unchanged
from tests.parts.sandbox.run.repositories import held, without_stacks
from tests.support.places import ROOT
from training_platform.catalog.operations import principals
from training_platform.catalog.permissions import permissions
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.sandbox.google_rules import PlatformJudge
from training_platform.parts.sandbox.run.existing import existing_resources
from training_platform.resources.resource_types import BUCKET, CRYPTO_KEY_MEMBER
from training_platform.resources.stack_plan import stack_plan

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

ROOTS = sorted({ROOT, *(folder.parent for part in ("docs", "examples") for folder in (ROOT / part).rglob("stacks"))})


@pytest.fixture(params=ROOTS, ids=lambda root: str(root.relative_to(ROOT)))
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    sandbox = without_stacks(tmp_path / "repository")
    shutil.copytree(request.param / "stacks", sandbox.folder.root / "stacks", dirs_exist_ok=True)
    with served(sandbox) as fleet:
        yield fleet


def is_judged(method: str) -> bool:
    """Whether a method requires a permission, which operations.yaml has to list for its callers."""
    return permissions().methods.get(method, ("?",)) != ()


def levels(workspace: Workspace) -> tuple[list[str], list[str]]:
    """Return environments and teams."""
    stacks = workspace.stacks.items()
    return [name for name, stack in stacks if not stack.team], [name for name, stack in stacks if stack.team]


def retained(workspace: Workspace) -> set[str]:
    """Return the records of buckets, and of keys with grants, that a destroy leaves since the plans say so."""
    records: set[str] = set()
    for stack in workspace.stacks.values():
        plan = stack_plan(stack, workspace)
        assert plan is not None
        for resource in plan.resources():
            if resource.options.retain_on_delete and resource.type == BUCKET:
                records.add(f"storage/b/{resource.inputs['name']}")
            if resource.options.retain_on_delete and resource.type == CRYPTO_KEY_MEMBER:
                records.add(f"cloudkms/{resource.inputs['crypto_key_id']}")
    return records


def change(root: Path, stack: str) -> None:
    """Change a stack file: one more admin or member, and how many versions of images are kept.

    Labels would replace persistent resources of teams, whose protection refuses that.
    """
    path = root / "stacks" / f"Pulumi.{stack}.yaml"
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    (section,) = (value for key, value in content["config"].items() if key.startswith("training-platform:"))
    section.setdefault("members" if "members" in section else "admins", []).append("group:changed@example.com")
    if "images" in section:
        section["images"]["keep_versions"] = 7
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


class Calls:
    """The methods that deployers called, and those of them that IAM refused."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.refused: list[str] = []

    def method(self) -> Callable[[PlatformJudge, str, Access, Policies], list[Missing]]:
        """Return the judge's method, which also writes down a deployer's call."""
        lacking = PlatformJudge.lacking

        def written_down(judge: PlatformJudge, member: str, access: Access, policies: Policies) -> list[Missing]:
            missing = list(lacking(judge, member, access, policies))
            self.called.add(access.method)
            self.refused += map(str, missing)
            return missing

        return written_down


def test_a_shipped_stack_comes_up_changes_and_goes_down(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fleet.sandbox.folder.root
    workspace = read_workspace(root)
    calls = Calls()
    monkeypatch.setattr(PlatformJudge, "lacking", calls.method())
    set_up(workspace, fleet.ask)
    roles = {name for name in held(fleet.sandbox.folder) if "/roles/" in name}  # the set-up made them
    stays = roles | retained(workspace) | {resource.record for resource in existing_resources(workspace)}
    environments, teams = levels(workspace)
    stacks = [*environments, *teams]

    def each(command: str, names: list[str], *options: str) -> dict[str, Ran]:
        ran: dict[str, Ran] = {}
        for member in dict.fromkeys(deployer_of(name, workspace) for name in names):
            names_of_member = [name for name in names if deployer_of(name, workspace) == member]
            ran |= fleet.each(command, names_of_member, "--as", member, *options)
        return ran

    def run(command: str, names: list[str], *options: str) -> dict[str, str]:
        ran = each(command, names, *options)
        assert {
            name: ran_command.stdout + ran_command.stderr for name, ran_command in ran.items() if ran_command.returncode
        } == {}
        return {name: ran_command.stdout for name, ran_command in ran.items()}

    for level in (environments, teams):
        run("up", level)
    for command in ("refresh", "up"):
        ran = each(command, stacks)
        assert {
            name: ran_command.stdout for name, ran_command in ran.items() if not unchanged(command, name, ran_command)
        } == {}

    for stack in stacks:
        change(root, stack)
    set_up(read_workspace(root), fleet.ask)  # its first admin has an environment grant roles that it did not before
    for level in (environments, teams):
        for stack, text in run("up", level).items():
            assert re.search(r"\d+ (created|updated)", text), f"{stack}: {text}"
            assert "replace" not in text, f"{stack}: {text}"
    ran = each("refresh", stacks)
    assert {
        name: ran_command.stdout for name, ran_command in ran.items() if not unchanged("refresh", name, ran_command)
    } == {}

    for level in (teams, environments):
        run("destroy", level, "--lift-protection")
    assert {stack: state(fleet.sandbox.folder, stack) for stack in stacks} == {stack: set() for stack in stacks}
    assert calls.refused == []
    assert {method for method in calls.called - principals()["deployer"].methods if is_judged(method)} == set()
    remaining_records = {name for name in held(fleet.sandbox.folder) if not KEPT.match(name)}
    assert remaining_records == {name for name in stays if not KEPT.match(name)}


def test_the_provider_says_what_iam_refuses_and_leaves_nothing(fleet: Fleet) -> None:
    """The released provider meets a 403: for a deployer who lacks one permission, and for one without any."""
    workspace = read_workspace(fleet.sandbox.folder.root)
    name = levels(workspace)[0][0]
    project = workspace.project_of(workspace.stacks[name])
    nobody = fleet.sandbox("up", name, "--as", "serviceAccount:nobody@example-admin.iam.gserviceaccount.com")
    remaining_records = {record for record in held(fleet.sandbox.folder) if not KEPT.match(record)}
    set_up(workspace, fleet.ask)
    role = f"iam/v1/projects/{project}/roles/deploy_{name.replace('-', '_')}"
    permissions_ = fleet.ask("GET", role)["includedPermissions"]
    # A stack in a network of others makes none, and the accounts of its nodes.
    lacks = next(
        permission
        for permission in ("compute.networks.create", "iam.serviceAccounts.create")
        if permission in permissions_
    )
    fleet.ask(
        "PATCH", role, {"includedPermissions": [permission for permission in permissions_ if permission != lacks]}
    )

    ran = fleet.sandbox("up", name, "--as", deployer_of(name, workspace))

    assert nobody.returncode == ran.returncode == 1
    assert "denied" in nobody.stdout + nobody.stderr
    assert remaining_records <= {thing.record for thing in existing_resources(workspace)}
    output = ran.stdout + ran.stderr
    assert lacks in output
    assert "Traceback" not in output
