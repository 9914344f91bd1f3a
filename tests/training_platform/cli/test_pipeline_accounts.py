from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tests.support.places import ORGANISATION
from tests.support.plans import planned_stack
from training_platform.catalog.operations import principals
from training_platform.catalog.permissions import permissions as required
from training_platform.catalog.permissions import permissions_of
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace, stacks_of
from training_platform.resources import gcp
from training_platform.resources.pipeline_accounts import IAM_ADMIN
from training_platform.resources.resource_types import BUDGET, IAM_MEMBER, RESOURCE_TYPES

# A gcloud without anything: what it is asked to describe does not exist, but for projects.
GCLOUD = """#!/bin/sh
echo "$*" >> "$LOG"
case "$*" in projects*) echo 123;; *" describe "*) exit 1;; esac
"""


def script(*options: str) -> str:
    result = CliRunner().invoke(app, ["pipeline-accounts", "example-admin", *options, "--root", str(ORGANISATION)])
    assert result.exit_code == 0, result.output
    return result.stdout


def run(text: str, folder: Path) -> list[str]:
    """Run a script with a gcloud that only records its arguments, and return them but for descriptions."""
    (folder / "gcloud").write_text(GCLOUD)
    (folder / "gcloud").chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "LOG": str(folder / "log")}
    subprocess.run(["sh", "-c", text], env=environment, check=True, capture_output=True)
    return [line for line in (folder / "log").read_text().splitlines() if " describe " not in line]


def test_each_environment_has_an_account_that_deploys_nothing_else(tmp_path: Path) -> None:
    commands = run(script("--github", "4567"), tmp_path)

    created = [command.split()[3] for command in commands if " service-accounts create " in command]
    assert created[:4] == ["preview", "nightly", "deploy-dev", "deploy-prod"]
    users = {
        command.split()[3].partition("@")[0]: command.rpartition("/")[2]
        for command in commands
        if "roles/iam.workloadIdentityUser" in command
    }
    assert users == {name: name for name in created[:4]}


def test_a_submitter_of_the_project_gets_the_tokens_of_jobs_by_hand_and_no_role(tmp_path: Path) -> None:
    text = script("--github", "4567").replace("example-admin", "example-ci")
    result = CliRunner().invoke(
        app, ["pipeline-accounts", "example-ci", "--github", "4567", "--root", str(ORGANISATION)]
    )

    commands = [line for line in run(result.stdout, tmp_path) if "submit@" in line or " create submit " in line]

    assert "submit" not in text.replace("submits", "")
    assert [command.rpartition("/")[2].rpartition(" ")[2] for command in commands] == [
        "--project=example-ci", "deploy-vertex-jobs",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        (("--github", "4567"), "assertion.repository_id == '4567'"),
        (("--gitlab", "89"), "assertion.project_id == '89'"),
    ],
)
def test_tokens_of_other_repositories_are_refused(options: tuple[str, ...], condition: str, tmp_path: Path) -> None:
    (provider,) = (command for command in run(script(*options), tmp_path) if " create-oidc " in command)

    assert provider.endswith(f"--attribute-condition={condition}")


def test_a_provider_that_exists_gets_the_new_condition(tmp_path: Path) -> None:
    text = script("--github", "4567").replace("exists()", "exists() { true; }; unused()")

    commands = run(text, tmp_path)

    assert not any(re.search(r" create\b", command) for command in commands)
    assert any(" update-oidc " in command for command in commands)


def test_without_a_service_nobody_is_let_in(tmp_path: Path) -> None:
    assert not any("workload" in command for command in run(script(), tmp_path))


def test_the_accounts_of_an_environment_pull_charts_from_its_mirror(tmp_path: Path) -> None:
    root = tmp_path / "organisation"
    shutil.copytree(ORGANISATION, root)
    file = root / "stacks" / "Pulumi.dev.yaml"
    content = yaml.safe_load(file.read_text())
    chart = "oci://us-docker.pkg.dev/example-mirror/charts/kueue"
    content["config"]["training-platform:environment"]["charts"] = {"kueue": {"chart": chart}}
    file.write_text(yaml.safe_dump(content))
    result = CliRunner().invoke(app, ["pipeline-accounts", "example-admin", "--root", str(root)])

    pulling = {
        option(command, "member").removeprefix("serviceAccount:").partition("@")[0]
        for command in run(result.stdout, tmp_path)
        if command.startswith("projects add-iam-policy-binding example-mirror ")
        and option(command, "role") == "roles/artifactregistry.reader"
    }
    assert pulling == {"preview", "nightly", "deploy-dev"}


def option(command: str, name: str) -> str:
    """Return the value of an option of a command."""
    return command.partition(f"--{name}=")[2].split(" ")[0]


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    options = ("--state", "gs://example-state", "--state-key", "projects/p/cryptoKeys/state")
    return run(script(*options, "--operator", "user:ada@example.com"), tmp_path_factory.mktemp("script"))


def permissions(commands: list[str], role: str) -> set[str]:
    """Return the permissions of a custom role of production's project."""
    (command,) = (
        command for command in commands if command.startswith(f"iam roles create {role} --project=example-train-prod ")
    )
    return set(option(command, "permissions").split(","))


def grants(commands: list[str], email: str) -> set[tuple[str, str]]:
    """Return the roles of an account, by kind of resource or last part of its name."""
    member = f"--member=serviceAccount:{email}@example-admin.iam.gserviceaccount.com"
    granted = [command for command in commands if member in command and " add-iam-policy-binding " in command]
    return {
        (command.partition(" add-iam-policy-binding ")[2].split()[0].partition("@")[0], option(command, "role"))
        for command in granted
    }


def test_a_deployer_is_no_owner(commands: list[str]) -> None:
    assert grants(commands, "deploy-prod") == {
        ("example-train-prod", "projects/example-train-prod/roles/deploy_prod"),
        ("example-train-prod", "roles/container.admin"),
        ("example-train-prod", "roles/resourcemanager.projectIamAdmin"),
        ("prod-gke-nodes", "roles/iam.serviceAccountUser"),
        ("gs://example-state", "roles/storage.objectUser"),
        ("projects/p/cryptoKeys/state", "roles/cloudkms.cryptoKeyEncrypterDecrypter"),
    }


def test_the_account_of_nodes_is_called_what_its_stack_calls_it(commands: list[str]) -> None:
    (command,) = (command for command in commands if " service-accounts create prod-gke-nodes " in command)

    assert command.endswith(" --display-name=GKE nodes of prod")


def test_a_deployer_holds_what_its_resources_require_and_no_way_to_more(commands: list[str]) -> None:
    held = permissions(commands, "deploy_prod")

    assert {
        "compute.networks.create", "compute.networks.updatePolicy",
        "dns.networks.bindPrivateDNSZone", "file.instances.create", "aiplatform.persistentResources.create",
        "storage.buckets.setIamPolicy",
    } <= held  # fmt: skip
    assert "aiplatform.persistentResources.create" not in dev_permissions(commands)  # dev has none
    assert not any(permission.startswith("container.") for permission in held)
    assert held.isdisjoint({
        "resourcemanager.projects.setIamPolicy", "iam.roles.create", "iam.roles.update", "iam.roles.delete",
        "iam.serviceAccounts.actAs", "iam.serviceAccounts.getAccessToken", "iam.serviceAccountKeys.create",
        "secretmanager.versions.access", "storage.objects.get",
    })  # fmt: skip


def dev_permissions(commands: list[str]) -> set[str]:
    (command,) = (command for command in commands if command.startswith("iam roles create deploy_dev "))
    return set(option(command, "permissions").split(","))


def test_a_deployer_may_grant_only_the_roles_of_its_plans() -> None:
    conditions = re.findall(
        r"binding example-train-prod .*deploy-prod@.*\ntitle: .*\nexpression: .*hasOnly\(\[(.*)\]\)", script()
    )
    workspace = read_workspace(ORGANISATION)
    planned = set()
    for name in stacks_of(workspace, "prod"):
        for resource in planned_stack(workspace.stacks[name], workspace).of(IAM_MEMBER):
            planned.add(resource.inputs["role"])

    lists = [re.findall(r"'([^']+)'", condition) for condition in conditions]
    assert {role for roles in lists for role in roles} == planned
    assert all(len(roles) <= 10 for roles in lists)
    assert not planned & {"roles/owner", "roles/editor", "roles/resourcemanager.projectIamAdmin"}


@pytest.mark.parametrize("account", ["preview", "nightly"])
def test_what_changes_nothing_may_change_nothing(account: str, commands: list[str]) -> None:
    assert grants(commands, account) == {
        *((project, f"projects/{project}/roles/{account}") for project in ("example-train-dev", "example-train-prod")),
        *((project, "roles/container.viewer") for project in ("example-train-dev", "example-train-prod")),
        *((project, "roles/container.clusterViewer") for project in ("example-train-dev", "example-train-prod")),
        ("gs://example-state", "roles/storage.objectViewer"),
        ("projects/p/cryptoKeys/state", "roles/cloudkms.cryptoKeyDecrypter"),
    }
    reads = re.compile(r"\.(get|list)(IamPolicy)?$|^serviceusage\.services\.use$")
    assert {held for held in permissions(commands, account) if not reads.search(held)} == set()


def test_the_nightly_account_reads_whatever_the_deployer_makes(commands: list[str]) -> None:
    deployed = {held for held in permissions(commands, "deploy_prod") if re.search(r"\.get(IamPolicy)?$", held)}

    assert deployed <= permissions(commands, "nightly")


def test_a_person_deploys_as_the_account(commands: list[str]) -> None:
    operators = [command for command in commands if command.endswith("--member=user:ada@example.com")]

    assert [(command.split()[3].partition("@")[0], option(command, "role")) for command in operators] == [
        (account, "roles/iam.serviceAccountTokenCreator") for account in ("deploy-dev", "deploy-prod")
    ]


def test_every_type_that_plans_create_has_its_permissions() -> None:
    created = {value for name, value in vars(gcp).items() if name.isupper() and str(value).startswith("gcp:")}
    by_predefined_roles = {BUDGET, IAM_MEMBER}  # billing.costsManager and projectIamAdmin

    assert {kind for kind in created if not RESOURCE_TYPES[kind].permissions} == by_predefined_roles


def test_the_rights_cover_each_method_that_a_deployer_calls() -> None:
    by_type = set()
    for row in RESOURCE_TYPES.values():
        for collection, verbs in row.permissions.items():
            by_type |= {f"{collection}.{verb}" for verb in verbs}
    held = by_type | permissions_of("roles/container.admin") | permissions_of(IAM_ADMIN)
    needs = {
        need.permission
        for method in principals()["deployer"].methods
        for need in required().methods[method]
        if not need.agent
    }

    unplanned = "storage.anywhereCaches."  # no plan has such resources
    assert {permission for permission in needs - held if not permission.startswith(unplanned)} == {
        "iam.serviceAccounts.actAs",  # on the nodes' account alone
        *(f"billing.budgets.{verb}" for verb in ("create", "delete", "get", "update")),  # costsManager
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("example-train-prod",), "example-train-prod is the project of prod, prod-nlp, prod-vision: "),
        (("example admin",), "project 'example admin' is not a project's id."),
        (("example-admin", "--github", "a;b"), "--github 'a;b' is not an id, which has only digits."),
        (("example-admin", "--branch", "$(a)"), "--branch '$(a)' is not a branch such as main."),
        (("example-admin", "--github", "1", "--gitlab", "2"), "--github and --gitlab exclude each other."),
    ],
)
def test_what_no_script_can_be_written_for_is_refused(arguments: tuple[str, ...], sentence: str) -> None:
    result = CliRunner().invoke(app, ["pipeline-accounts", *arguments, "--root", str(ORGANISATION)])

    assert result.exit_code == 2
    assert sentence in result.stderr
