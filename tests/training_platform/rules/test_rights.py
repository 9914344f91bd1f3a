from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.stack_files import cluster, shares, team, workspace_of
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import Workspace
from training_platform.resources.grants import Grant, plan_grants
from training_platform.resources.stack_plan import stack_plan
from training_platform.rules.rights import rights_findings

PROJECT = "example-train"
SUBMITTER = "serviceAccount:submit@example-ci.iam.gserviceaccount.com"
ENVIRONMENT: dict[str, Any] = {
    "project": PROJECT,
    "images": {"location": "us-central1"},
    "admins": ["group:ml-platform@example.com"],
    "network_attachments": {"us-central1": "10.30.0.0/24"},
    "vertex_submitters": [SUBMITTER],
    "filestore": {"homes": {"location": "us-central1-a", "tier": "ZONAL", "capacity_gib": 1024}},
    "data_sets": {"images": {"bucket": {"name": "example-images", "location": "us-central1"}}},
    "clusters": {
        "main": cluster("us-central1", node_pools={"h100": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a"}}),
    },
}
RESOURCE = {"region": "us-central1", "machine_type": "a2-highgpu-1g", "network_attachment": "environment"}
TEAM: dict[str, Any] = {
    **team("dev", shares=shares(h100=8)),
    "buckets": {"data": {"location": "us-central1"}, "open": {"location": "us-central1", "members_write": True}},
    "secrets": ["token"],
    "vertex": {"tensorboards": ["us-central1"], "persistent_resources": {"tuning": RESOURCE}},
}


def workspace(environment: Mapping[str, Any] | None = None, team: Mapping[str, Any] | None = None) -> Workspace:
    return workspace_of(
        {
            "dev": {"environment": {**ENVIRONMENT, **(environment or {})}},
            "dev-vision": {"team": {**TEAM, **(team or {})}},
        }
    )


def grants(stacks: Workspace, name: str) -> list[Grant]:
    plan = stack_plan(stacks.stacks[name], stacks)
    assert plan is not None, stacks.stacks[name].findings
    return plan_grants(plan)


def findings_with(stacks: Workspace, name: str, changed: list[Grant]) -> list[Finding]:
    """Return what is found when a stack's plan has other grants."""
    stacks.once(("grants", name), lambda: changed)
    return rights_findings(stacks)


def test_the_stacks_keep_what_their_files_promise() -> None:
    assert rights_findings(workspace()) == []
    assert rights_findings(workspace(team={"project": "example-vision", "vertex": {"members_submit": True}})) == []


# What no line of a file promises: Google grants the agents' roles itself, and nodes have more than these permissions.
NOT_PROMISED = (
    "agents-",
    "nodes-serviceusage",
    "nodes-artifactregistry",
    "access-ml-platform-",
    "images-reader-",
    "images-writer-",
    *(f"submitters-{part}" for part in ("account-", "team-images-", "data-", "open-")),
)


def planned_grants() -> list[tuple[str, str]]:
    stacks = workspace()
    return [(name, grant.planned_as.name) for name in ("dev", "dev-vision") for grant in grants(stacks, name)]


@pytest.mark.parametrize(
    ("stack", "name"), [row for row in planned_grants() if not row[1].startswith(NOT_PROMISED)], ids=lambda text: text
)
def test_a_grant_that_is_removed_is_missed_at_the_line_that_promises(stack: str, name: str) -> None:
    stacks = workspace()
    every = grants(stacks, stack)
    (removed,) = [grant for grant in every if grant.planned_as.name == name]

    findings = findings_with(stacks, stack, [grant for grant in every if grant is not removed])

    assert {finding.rule for finding in findings} == {"rights"}
    assert any(removed.principal in finding.message for finding in findings)
    assert all(finding.position and finding.severity == "error" for finding in findings)


def test_a_bucket_without_a_role_to_add_is_found_at_the_bucket_with_the_permission() -> None:
    stacks = workspace()
    every = grants(stacks, "dev-vision")
    viewers = [grant for grant in every if "bucket-data-storage-objectCreator" not in grant.planned_as.name]

    (finding,) = findings_with(stacks, "dev-vision", viewers)

    assert finding.path == "buckets.data"
    assert finding.message == (
        "members of vision cannot read and add to bucket data: group:vision@example.com lacks storage.objects.create"
    )
    assert finding.allowed == "a role with these permissions on buckets/example-train-dev-vision-data or above"


@pytest.mark.parametrize(
    ("role", "narrower", "paths", "lacking"),
    [
        (
            "roles/storage.objectUser",
            "roles/storage.objectViewer",
            {"buckets.data", "buckets.open"},
            "storage.objects.create, storage.objects.delete",
        ),
        (
            "roles/artifactregistry.writer",
            "roles/artifactregistry.reader",
            {"members"},
            "artifactregistry.repositories.uploadArtifacts",
        ),
    ],
)
def test_a_role_that_became_narrower_is_found(role: str, narrower: str, paths: set[str], lacking: str) -> None:
    stacks = workspace()
    changed = [
        dataclasses.replace(grant, role=narrower) if grant.role == role else grant
        for grant in grants(stacks, "dev-vision")
    ]

    findings = findings_with(stacks, "dev-vision", changed)

    assert {finding.path for finding in findings} == paths
    assert all(lacking in finding.message for finding in findings)


def test_a_data_set_that_jobs_cannot_read_is_found_at_the_environment_that_has_it() -> None:
    stacks = workspace()
    kept_grants = [grant for grant in grants(stacks, "dev-vision") if not grant.resource.endswith("/example-images")]

    findings = findings_with(stacks, "dev-vision", kept_grants)

    assert {finding.path for finding in findings} == {"environment"}
    assert all("data set images" in finding.message for finding in findings)


def test_a_condition_that_excludes_now_is_found() -> None:
    stacks = workspace()
    expired = [
        dataclasses.replace(grant, condition='request.time < timestamp("2020-01-01T00:00:00Z")')
        if grant.role == "roles/container.clusterViewer"
        else grant
        for grant in grants(stacks, "dev-vision")
    ]

    (finding,) = findings_with(stacks, "dev-vision", expired)

    assert finding.path == "shares.main"
    assert "container.clusters.connect" in finding.message


def test_an_attachment_that_vertex_ai_may_not_use_is_found_at_both_files() -> None:
    stacks = workspace()
    without = [grant for grant in grants(stacks, "dev") if "vertex_network" not in grant.role]

    findings = findings_with(stacks, "dev", without)

    assert {(finding.stack, finding.path) for finding in findings} == {
        ("dev", "network_attachments.us-central1"),
        ("dev-vision", "vertex.persistent_resources.tuning.network_attachment"),
    }


@pytest.mark.parametrize("project", [None, PROJECT])
def test_members_do_not_start_jobs_on_vertex_ai_in_a_project_that_others_use(project: str | None) -> None:
    (finding,) = rights_findings(workspace(team={"project": project, "vertex": {"members_submit": True}}))

    assert (finding.rule, finding.path, finding.nearest) == ("vertex-submission", "vertex.members_submit", "false")
    assert "dev also uses" in finding.message


def test_members_do_not_start_jobs_in_a_project_that_another_team_uses() -> None:
    team = {**TEAM, "project": "example-vision", "vertex": {"members_submit": True}}
    stacks = workspace_of(
        {
            "dev": {"environment": ENVIRONMENT},
            "dev-vision": {"team": team},
            "dev-nlp": {"team": {**TEAM, "name": "nlp", "project": "example-vision", "shares": {}, "vertex": {}}},
        }
    )

    assert [finding.path for finding in rights_findings(stacks)] == ["vertex.members_submit"]


def test_people_are_no_submitters_for_all_teams() -> None:
    (finding,) = rights_findings(workspace({"vertex_submitters": [SUBMITTER, "group:ml-platform@example.com"]}))

    assert (finding.rule, finding.path) == ("vertex-submission", "vertex_submitters[1]")
