"""The set-up that `training-platform pipeline-accounts` prints, carried out in a local cloud."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from training_platform.config.workspace import Workspace
from training_platform.resources.pipeline_accounts import IAM_ADMIN, PulumiState, account_email, deployer, setup_script

ADMIN_PROJECT = "example-admin"
_ROLE = re.compile(r"gcloud iam roles \$verb (\S+) --project=(\S+) .*--permissions=(\S+)")
_ACCOUNT = re.compile(r"gcloud iam service-accounts create (\S+) --project=(\S+) --display-name='(.+)'")
_GRANT = re.compile(
    r"gcloud projects add-iam-policy-binding (\S+) --member=(\S+) --role=(\S+)"
    r"(?: --condition=None| --condition-from-file=/dev/stdin <<'END'\ntitle: (.+)\nexpression: \"(.+)\"\nEND)"
)
_ACTING = re.compile(
    r"gcloud iam service-accounts add-iam-policy-binding (\S+) --project=(\S+) --role=(\S+) --member=(\S+)"
)
Ask = Callable[[str, str, Any], Any]


def deployer_of(stack: str, workspace: Workspace) -> str:
    """Return the member that deploys a stack."""
    environment = workspace.stacks[stack].environment_name
    return f"serviceAccount:{account_email(deployer(str(environment)), ADMIN_PROJECT)}"


def set_up(workspace: Workspace, ask: Ask) -> None:
    """Make the roles, accounts and grants of the script, as the projects' owner; it may be run again."""
    script = setup_script(ADMIN_PROJECT, workspace, None, PulumiState())
    roles = {(project, role): permissions for role, project, permissions in _ROLE.findall(script)}
    for project in {project for project, _ in roles}:  # gcloud asks IAM of its own project, where it is enabled
        ask("POST", f"serviceusage/v1/projects/{project}/services:batchEnable", {"serviceIds": ["iam.googleapis.com"]})
    for (project, role), permissions in roles.items():
        collection = f"iam/v1/projects/{project}/roles"
        existing = {row["name"].rpartition("/")[2] for row in ask("GET", collection, None).get("roles", ())}
        content = {"includedPermissions": permissions.split(",")}
        if role in existing:  # the sandbox makes roles that stacks only refer to
            ask("PATCH", f"{collection}/{role}", content)
        else:
            ask("POST", collection, {"roleId": role, "role": content})
    for account, project, title in sorted({*_ACCOUNT.findall(script)}):
        collection = f"iam/v1/projects/{project}/serviceAccounts"
        existing = {row["email"].partition("@")[0] for row in ask("GET", collection, None).get("accounts", ())}
        if account not in existing:
            ask("POST", collection, {"accountId": account, "serviceAccount": {"displayName": title}})
    bindings: dict[str, list[dict[str, Any]]] = {}
    for project, member, role, title, expression in _GRANT.findall(script):
        binding: dict[str, Any] = {"role": role, "members": [member]}
        if expression:
            binding["condition"] = {"title": title, "expression": expression}
        bindings.setdefault(f"cloudresourcemanager/v1/projects/{project}", []).append(binding)
    for email, project, role, member in _ACTING.findall(script):
        name = f"iam/v1/projects/{project}/serviceAccounts/{email}"
        bindings.setdefault(name, []).append({"role": role, "members": [member]})
    for name, rows in bindings.items():
        policy = ask("POST", f"{name}:getIamPolicy", None)
        # The script takes away what its accounts may grant before it says so anew.
        kept = [row for row in policy.get("bindings", ()) if row["role"] != IAM_ADMIN and row not in rows]
        ask("POST", f"{name}:setIamPolicy", {"policy": {**policy, "version": 3, "bindings": [*kept, *rows]}})
