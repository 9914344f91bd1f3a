"""Which service account each job of the shipped pipelines may act as, by the claims of its token.

The conditions are evaluated by Google's own implementation of the Common Expression Language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.support.places import ROOT, gitlab_pipeline
from training_platform.resources.pipeline_accounts import JOBS_ENVIRONMENT, Federation, deployer, github, gitlab

cel = pytest.importorskip("cel_expr_python.cel", reason="the package cel-expr-python is not installed")

WORKFLOWS = ROOT / ".github" / "workflows"
GITHUB = github("1234")
GITLAB = gitlab("56")
SUBJECT = "repo:example/training-platform:ref:refs/heads/main"
MAIN = {"sub": SUBJECT, "repository_id": "1234", "ref": "refs/heads/main", "event_name": "push"}
REQUEST = {**MAIN, "ref": "refs/pull/7/merge", "event_name": "pull_request"}
EVENTS = {
    "pull_request": [REQUEST],
    "schedule": [{**MAIN, "event_name": "schedule"}],
    "push": [MAIN],
    "workflow_dispatch": [{**MAIN, "event_name": "workflow_dispatch"}],
}
PUSHED = {
    "project_id": "56", "ref": "main", "ref_type": "branch", "ref_protected": "true", "pipeline_source": "push",
}  # fmt: skip
PROTECTED = {**PUSHED, "environment": "prod", "environment_protected": "true"}
SCHEDULED = {**PUSHED, "pipeline_source": "schedule"}
MERGE_REQUEST = {**PUSHED, "ref": "feature", "ref_protected": "false", "pipeline_source": "merge_request_event"}
ENVIRONMENT = cel.NewEnv(variables={"assertion": cel.Type.Map(cel.Type.STRING, cel.Type.STRING)})


def evaluate(expression: str, claims: Mapping[str, str]) -> Any:
    return ENVIRONMENT.compile(expression).eval(data={"assertion": dict(claims)}).plain_value()


def account(federation: Federation, claims: Mapping[str, str]) -> str | None:
    """Return the account that a token is for; None if Google Cloud refuses it."""
    if not evaluate(federation.condition, claims):
        return None
    value: str = evaluate(federation.account, claims)
    return value


def github_jobs() -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield each job with credentials under each event that starts it: its name, its claims, its variable."""
    for file in sorted(WORKFLOWS.glob("*.yml")):
        workflow = yaml.safe_load(file.read_text())
        callers = [
            workflow
            for workflow in WORKFLOWS.glob("*.yml")
            if f"uses: ./.github/workflows/{file.name}" in workflow.read_text()
        ]
        started_by = {event for source in (file, *callers) for event in events(source)}
        for event in sorted(started_by & EVENTS.keys()):
            for name, job in workflow["jobs"].items():
                for variable in re.findall(r"vars\.(\w+_SERVICE_ACCOUNT)", str(job)):
                    for claims in EVENTS[event]:
                        yield f"{file.name} {name} {event}", with_environment(claims, job), variable


def events(file: Any) -> list[str]:
    triggers = yaml.safe_load(file.read_text())[True]  # YAML reads the key `on` as a boolean
    return [triggers] if isinstance(triggers, str) else list(triggers)


def with_environment(claims: dict[str, str], job: dict[str, Any]) -> dict[str, str]:
    name = job.get("environment")
    if name is None:
        return claims
    return {**claims, "environment": "prod" if "${{" in name else name}


def gitlab_jobs() -> Iterator[tuple[str, dict[str, str], str]]:
    for name, job in gitlab_pipeline().items():
        if isinstance(job, dict) and job.get("extends") == ".google":
            (rule,) = job["rules"]
            claims = MERGE_REQUEST if "merge_request_event" in rule["if"] else SCHEDULED
            if "environment" in job:
                claims = {**PROTECTED, "pipeline_source": "api", "environment": job["environment"]["name"]}
            yield name, claims, job["variables"]["SERVICE_ACCOUNT"].removeprefix("$")
    up = yaml.safe_load((ROOT / "pipelines" / "gitlab" / "google.yml").read_text())[".up"]
    claims = {**PROTECTED, "pipeline_source": "parent_pipeline"}
    assert up["environment"] == {"name": "$ENVIRONMENT"}
    yield "up prod", claims, up["variables"]["SERVICE_ACCOUNT"].removeprefix("$")


ACCOUNTS = {
    "PREVIEW_SERVICE_ACCOUNT": "preview",
    "NIGHTLY_SERVICE_ACCOUNT": "nightly",
    "DEPLOY_SERVICE_ACCOUNT": deployer("prod"),
    "SUBMIT_SERVICE_ACCOUNT": deployer(JOBS_ENVIRONMENT),
}
JOBS = [
    *((GITHUB, *job) for job in github_jobs()),
    *((GITLAB, *job) for job in gitlab_jobs()),
]


@pytest.mark.parametrize(
    ("federation", "name", "claims", "variable"), JOBS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_job_may_act_as_its_account_and_as_no_other(
    federation: Federation, name: str, claims: dict[str, str], variable: str
) -> None:
    assert account(federation, claims) == ACCOUNTS[variable], name


@pytest.mark.parametrize(
    ("federation", "claims", "expected"),
    [
        (GITHUB, {**REQUEST, "environment": "prod"}, "preview"),
        (GITHUB, {**MAIN, "ref": "refs/heads/main2", "environment": "prod"}, "preview"),
        (GITHUB, {**MAIN, "ref": "refs/tags/main", "environment": "prod"}, "preview"),
        (GITHUB, {**MAIN, "environment": "dev"}, "deploy-dev"),
        (GITHUB, {**MAIN, "environment": "nightly"}, "deploy-nightly"),
        (GITHUB, {**MAIN, "repository_id": "12345"}, None),
        (GITLAB, {**PUSHED, "environment": "prod", "environment_protected": "false"}, "preview"),
        (GITLAB, {**PROTECTED, "environment": "dev"}, "deploy-dev"),
        (GITLAB, {**PUSHED, "ref_protected": "false"}, "preview"),
        (GITLAB, {**PROTECTED, "ref_type": "tag"}, "preview"),
        (
            GITLAB,
            {**PROTECTED, "pipeline_source": "merge_request_event"},
            "preview",
        ),
        (GITLAB, {**PUSHED, "project_id": "561"}, None),
    ],
)  # fmt: skip
def test_what_no_reviewer_has_seen_is_a_preview(
    federation: Federation, claims: dict[str, str], expected: str | None
) -> None:
    assert account(federation, claims) == expected
