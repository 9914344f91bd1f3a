"""Service accounts of pipelines, and who may act as each of them.

An account deploys one environment, one previews pull requests, one runs at night. A CI service signs a token for each
job; Google Cloud takes those of one repository, and reads from the token's claims which account the job may act as.
Claims are compared one by one, never the token's subject: its text changes with the settings of a repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from training_platform.config.workspace import Workspace
from training_platform.resources.scope import account_id
from training_platform.resources.team_account import WORKLOAD_USER

PREVIEW = "preview"
NIGHTLY = "nightly"
POOL = "pipelines"
ATTRIBUTE = "attribute.account"
PREAMBLE = ("set -eu", 'exists() { gcloud "$@" > /dev/null 2>&1; }')
# Of the project with the accounts: Google Cloud exchanges tokens by the last two.
APIS = ("iam.googleapis.com", "iamcredentials.googleapis.com", "sts.googleapis.com")


@dataclass(frozen=True, kw_only=True)
class Federation:
    """How Google Cloud reads the tokens of a CI service.

    ``condition`` refuses tokens of other repositories. ``account`` is an expression over the claims whose value is one
    of ``PREVIEW``, ``NIGHTLY`` and ``deployer(environment)``; ``subject`` is what audit logs show, which Google Cloud
    limits to 127 bytes. All are in the Common Expression Language.
    """

    provider: str
    issuer: str
    subject: str
    condition: str
    account: str


def github(repository_id: str, branch: str = "main") -> Federation:
    """Return the federation of GitHub Actions. ``repository_id`` stays the same when a repository is renamed.

    Only a job that names a GitHub environment has the claim ``environment``, and it waits for the environment's
    reviewers. A pull request's workflow can name any, so that the claim counts on the branch alone. Source: GitHub
    docs, OpenID Connect reference, read 2026-11-24.
    """
    account = (
        f"assertion.ref != 'refs/heads/{branch}' ? '{PREVIEW}' : "
        f"has(assertion.environment) ? '{deployer('')}' + assertion.environment : '{NIGHTLY}'"
    )
    return Federation(
        provider="github",
        subject="assertion.repository_id + '/' + assertion.run_id",
        issuer="https://token.actions.githubusercontent.com",
        condition=f"assertion.repository_id == '{repository_id}'",
        account=account,
    )


def gitlab(project_id: str, issuer: str = "https://gitlab.com", branch: str = "main") -> Federation:
    """Return the federation of GitLab CI.

    An environment without protection has no approvers, so a job that deploys to it is treated as a preview. The ref of
    a merge request's pipeline is the source branch, which may have the name of the main branch in a fork. Source:
    GitLab docs, ID token authentication, read 2026-11-24.
    """
    account = (
        f"assertion.ref != '{branch}' || assertion.ref_type != 'branch' || assertion.ref_protected != 'true' "
        f"|| assertion.pipeline_source == 'merge_request_event' ? '{PREVIEW}' : "
        f"!has(assertion.environment) ? '{NIGHTLY}' : "
        f"assertion.environment_protected == 'true' ? '{deployer('')}' + assertion.environment : '{PREVIEW}'"
    )
    return Federation(
        provider="gitlab",
        issuer=issuer,
        subject="assertion.project_id + '/' + assertion.job_id",
        condition=f"assertion.project_id == '{project_id}'",
        account=account,
    )


def deployer(environment: str) -> str:
    """Return the value of ``Federation.account`` for jobs that deploy an environment."""
    return f"deploy-{environment}"


def pipeline_account_id(account: str) -> str:
    """Return the id of a service account, by its value of ``Federation.account``."""
    return account_id(account.lower().replace("_", "-").replace(".", "-"))


def setup_script(project: str, workspace: Workspace, federation: Federation | None) -> str:
    """Return a script for a shell that creates the accounts in ``project``, with the rights that the stacks need.

    It may be run again. Without a federation only people and triggers of Cloud Build may act as the accounts.
    """
    environments = [stack.name for stack, _ in workspace.environments()]
    accounts = [PREVIEW, NIGHTLY, *(deployer(name) for name in environments)]
    lines = [*PREAMBLE, f"gcloud services enable {' '.join(APIS)} --project={project}"]
    for account in accounts:
        email, account_id = account_email(account, project), pipeline_account_id(account)
        lines.append(
            f"exists iam service-accounts describe {email} --project={project} "
            f"|| gcloud iam service-accounts create {account_id} --project={project}"
        )
    if federation:
        lines += federation_commands(project, federation, accounts)
    return "\n".join(lines) + "\n"


def federation_commands(project: str, federation: Federation, accounts: Iterable[str]) -> Iterator[str]:
    """Yield commands that let the jobs of a CI service act as accounts of ``project``."""
    place = f"--location=global --project={project}"
    yield (
        f"exists iam workload-identity-pools describe {POOL} {place} "
        f"|| gcloud iam workload-identity-pools create {POOL} {place}"
    )
    provider = f"{federation.provider} --workload-identity-pool={POOL} {place}"
    mapping = f"google.subject={federation.subject},{ATTRIBUTE}={federation.account}"
    yield f"verb=create; ! exists iam workload-identity-pools providers describe {provider} || verb=update"
    yield (
        f"gcloud iam workload-identity-pools providers $verb-oidc {provider} --issuer-uri={federation.issuer} "
        f'--attribute-mapping="{mapping}" --attribute-condition="{federation.condition}"'
    )
    yield f"number=$(gcloud projects describe {project} --format='value(projectNumber)')"
    pool = f"projects/$number/locations/global/workloadIdentityPools/{POOL}"
    for account in accounts:
        yield (
            f"gcloud iam service-accounts add-iam-policy-binding {account_email(account, project)} "
            f"--project={project} --role={WORKLOAD_USER} "
            f'--member="principalSet://iam.googleapis.com/{pool}/{ATTRIBUTE}/{account}"'
        )
    yield f'echo "WORKLOAD_IDENTITY_PROVIDER={pool}/providers/{federation.provider}"'


def account_email(account: str, project: str) -> str:
    """Return the address of an account, by its value of ``Federation.account``."""
    return f"{pipeline_account_id(account)}@{project}.iam.gserviceaccount.com"
