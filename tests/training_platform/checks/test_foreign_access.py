"""Roles of one team on what is another team's, in every check and in a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.checks.repository import TODAY, Repository
from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace
from training_platform.resources.kubernetes_objects import PERSISTENT_VOLUME, ROLE_BINDING, binding
from training_platform.resources.plan import Plan, Resource
from training_platform.rules.foreign_access import FOREIGN_ACCESS, Teams, foreign_grants

HEAD = "    project: example-small\n"
NAME = "    name: vision\n"


def role_binding(namespace: str, *subjects: dict[str, str]) -> Resource:
    """Return a binding as an organisation's own code plans it."""
    inputs = {"metadata": {"namespace": namespace}, **binding("Role", "reader", subjects)}
    return Resource(type=ROLE_BINDING, name=f"{namespace}-readers", inputs=inputs)


def images_binding(team: str) -> Resource:
    """Return a binding of readers of a team's images as an organisation's own code plans it."""
    inputs = {
        "project": "example-small",
        "location": "us",
        "repository": f"small-{team}-images",
        "role": "roles/artifactregistry.reader",
        "members": ["group:vision@example.com"],
    }
    kind = "gcp:artifactregistry/repositoryIamBinding:RepositoryIamBinding"
    return Resource(type=kind, name=f"{team}-images", inputs=inputs)


def volume(namespace: str, path: str) -> Resource:
    """Return a volume for a namespace as an organisation's own code plans it."""
    spec = {"nfs": {"server": "10.0.0.2", "path": path}, "claimRef": {"namespace": namespace, "name": "data"}}
    return Resource(type=PERSISTENT_VOLUME, name=f"{namespace}{path}", inputs={"spec": spec})


def test_an_own_object_that_lacks_inputs_gives_no_role(repository: Repository) -> None:
    plan = Plan("small")
    lacking: list[dict[str, Any]] = [{}, {"metadata": None, "spec": {"nfs": {}}, "subjects": [{}]}]
    for number, inputs in enumerate(lacking):
        for kind in (ROLE_BINDING, PERSISTENT_VOLUME):
            plan.add(Resource(type=kind, name=f"{kind}-{number}", inputs=inputs))

    assert list(foreign_grants(plan, "small", Teams(read_workspace(repository.root)))) == []


def test_a_role_in_the_namespace_of_another_team_is_foreign_and_one_in_its_own_is_not(repository: Repository) -> None:
    repository.edit("small", HEAD, f"{HEAD}    images: {{location: us}}\n")
    directory = "    directories: {data: {filestore: homes, size_gib: 10}}\n"
    team = repository.path("small-vision").read_text(encoding="utf-8") + directory
    repository.path("small-nlp").write_text(team.replace("vision", "nlp"), encoding="utf-8")
    plan = Plan("small")
    people = {"kind": "Group", "name": "vision@example.com"}
    jobs = {"kind": "ServiceAccount", "name": "training", "namespace": "vision"}
    plan.add(role_binding("nlp", people, jobs))
    plan.add(role_binding("vision", people, jobs))
    for path in ("/share/nlp", "/share/vision", "/share", "/other"):
        plan.add(volume("vision", path))
    for owner in ("nlp", "vision"):
        plan.add(images_binding(owner))

    grants = foreign_grants(plan, "small", Teams(read_workspace(repository.root)))

    assert [(grant.principal, grant.planned.name, grant.owner) for grant in grants] == [
        ("group:vision@example.com", "nlp-images", "small-nlp"),
        ("group:vision@example.com", "nlp-readers", "small-nlp"),
        ("namespace:small/vision", "nlp-readers", "small-nlp"),
        ("namespace:small/vision", "vision/share/nlp", "small-nlp"),
        ("namespace:small/vision", "vision/share", "small-nlp"),
    ]


BUCKET = "example-small-small-nlp-data"
THEIRS = f"    data_sets: {{theirs: {{bucket: {{name: {BUCKET}, location: us-central1}}}}}}\n"
ROLES = "roles/storage.bucketViewer, roles/storage.objectViewer"
GRANT = f"{ROLES} on buckets/{BUCKET} for small-vision"
EXEMPT = f"""\
exemptions:
  - rule: foreign-access
    stack: small-vision
    path: data_sets
    grant: {GRANT}
    reason: Both teams agreed.
    owner: ml-platform@example.com
    expires: "2027-01-31"
"""
OWN = "    buckets:\n      data: {location: us-central1, delete_after_days: 90}\n"


def consenting(field: str, name: str) -> str:
    """Return the owner's bucket, whose field names a team."""
    return OWN.replace("}", f", {field}: [{name}]}}")


@pytest.fixture
def with_role(repository: Repository) -> Repository:
    """Return the repository with a change by which a team reads the bucket of another."""
    nlp = repository.path("small-vision").read_text(encoding="utf-8").split("    shares:")[0].replace("vision", "nlp")
    repository.path("small-nlp").write_text(f"{nlp}{OWN}", encoding="utf-8")
    repository.commit()
    repository.edit("small-vision", NAME, NAME + THEIRS)
    return repository


def foreign(report: Report) -> list[Finding]:
    """Return what a report finds of roles on what is another's."""
    return [row for row in report.all_findings() if row.rule == FOREIGN_ACCESS.id]


def test_roles_on_the_bucket_of_another_team_are_found_without_a_change(with_role: Repository) -> None:
    [of_vision] = foreign(run_check(with_role.root, CheckOptions(today=TODAY)))

    assert (of_vision.stack, of_vision.severity, of_vision.path) == ("small-vision", "error", "data_sets.theirs")
    people = "group:vision@example.com, serviceAccount:small-vision-jobs@example-small.iam.gserviceaccount.com"
    assert of_vision.message == f"small-vision gets {ROLES} on buckets/{BUCKET} of small-nlp, for {people}"
    where = "buckets.data in stacks/Pulumi.small-nlp.yaml, with which small-nlp consents"
    assert of_vision.allowed == f"readers: [vision] at {where}"


def test_people_of_several_teams_get_roles_as_the_team_that_plans_them(with_role: Repository) -> None:
    vision = with_role.path("small-vision").read_text(encoding="utf-8").split("    data_sets:")[0]
    audio = f"{vision}    members: [group:vision@example.com]\n".replace("name: vision", "name: audio")
    with_role.path("small-audio").write_text(audio, encoding="utf-8")

    [of_vision] = foreign(run_check(with_role.root, CheckOptions(today=TODAY)))

    assert of_vision.message.startswith(f"small-vision gets {ROLES} on")


@pytest.mark.parametrize(
    ("field", "writable", "rules"),
    [
        ("readers", False, []),
        ("writers", False, []),
        ("writers", True, []),
        ("readers", True, [FOREIGN_ACCESS.id, "opens-access"]),
    ],
)
def test_the_owners_field_consents_to_what_it_says_and_needs_no_exemption(
    with_role: Repository, field: str, writable: bool, rules: list[str]
) -> None:
    with_role.edit("small-nlp", OWN, consenting(field, "vision"))
    if writable:
        with_role.edit("small-vision", "us-central1}}}", "us-central1}, writable: true}}")

    report = with_role.compare(base="HEAD")

    assert [row.rule for row in report.all_findings() if row.rule in (FOREIGN_ACCESS.id, "opens-access")] == rules


def test_consent_to_a_team_of_another_environment_names_its_stack(repository: Repository) -> None:
    nlp = repository.path("small-vision").read_text(encoding="utf-8").split("    shares:")[0].replace("vision", "nlp")
    repository.path("small-nlp").write_text(nlp + consenting("readers", "small-vision"), encoding="utf-8")
    workspace = read_workspace(repository.root)
    role = ("group:vision@example.com", "roles/storage.objectViewer", f"buckets/{BUCKET}", "small")

    assert workspace.teams_meant("small-vision", "other") == ["small-vision"]
    assert workspace.teams_meant("small", "other") == []
    assert Teams(workspace).without_consent(*role) is None
    assert Teams(workspace).without_consent(role[0], "roles/storage.admin", *role[2:]) == ("small-vision", "small-nlp")


def test_consent_to_a_team_that_does_not_exist_is_a_warning(with_role: Repository) -> None:
    with_role.edit("small-nlp", OWN, consenting("readers", "visoin"))

    report = run_check(with_role.root, CheckOptions(today=TODAY))

    [unknown] = [row for row in report.all_findings() if row.rule == "team-unknown"]
    assert (unknown.path, unknown.nearest) == ("buckets.data.readers[0]", "vision")
    assert len(foreign(report)) == 1


def test_an_exemption_counts_once_it_was_merged_and_covers_the_roles_that_it_names(with_role: Repository) -> None:
    told = {row.rule: row.follows for row in with_role.compare(base="HEAD").all_findings()}
    file = with_role.root / "stacks" / "exemptions.yaml"
    file.write_text(EXEMPT, encoding="utf-8")
    in_the_change = with_role.compare(base="HEAD")
    theirs = with_role.path("small-vision").read_text(encoding="utf-8")
    with_role.edit("small-vision", NAME + THEIRS, NAME)
    only_the_exemption = with_role.compare(base="HEAD")
    with_role.commit()
    with_role.path("small-vision").write_text(theirs, encoding="utf-8")
    file.write_text(EXEMPT.replace("2027-01-31", "2027-02-28"), encoding="utf-8")
    merged_before = with_role.compare(base="HEAD")
    with_role.edit("small-vision", "us-central1}}}", "us-central1}, writable: true}}")
    further = with_role.compare(base="HEAD")

    assert told[FOREIGN_ACCESS.id] is None
    assert told["opens-access"] == "stacks/Pulumi.small-vision.yaml:5:17: data_sets.theirs"
    assert [row.message.rpartition("; ")[2] for row in foreign(in_the_change)] == [
        "its exemption applies from the next change on, once this change is merged"
    ]
    assert "exemption-unused" not in {row.rule for row in only_the_exemption.all_findings()}
    assert {row.rule for row in merged_before.all_findings()}.isdisjoint({FOREIGN_ACCESS.id, "opens-access"})
    assert {row.finding.rule for row in merged_before.all_exempted()} == {FOREIGN_ACCESS.id, "opens-access"}
    assert len(foreign(further)) == 1


ELSEWHERE = "    data_sets: {state: {bucket: {name: example-state, location: us-central1}, writable: true}}\n"


@pytest.mark.parametrize(
    ("declared", "findings"),
    [
        ("", 1),
        ("    data_sets: {all: {bucket: {name: example-state, location: us-central1}}}\n", 1),
        ("    data_sets: {all: {writer: vision, bucket: {name: example-state, location: us-central1}}}\n", 0),
        ("    data_sets: {all: {writer: vision, bucket: {name: example-other, location: us-central1}}}\n", 1),
    ],
)
def test_a_bucket_that_no_stack_has_is_for_the_teams_that_the_environment_names(
    repository: Repository, declared: str, findings: int
) -> None:
    repository.edit("small-vision", NAME, NAME + ELSEWHERE)
    repository.edit("small", HEAD, HEAD + declared)

    rows = foreign(run_check(repository.root, CheckOptions(today=TODAY)))

    assert [row.path for row in rows] == ["data_sets.state.bucket.name"] * findings
    for row in rows:
        assert row.allowed == (
            "a bucket of the team, or a data set of small in that bucket with teams: [vision], writer: vision"
        )
