"""Roles of one team on what is another team's, in every check and in a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.checks.repository import TODAY, Repository
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
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


THEIRS = "    data_sets: {theirs: {bucket: {name: example-small-small-nlp-data, location: us-central1}}}\n"
EXEMPT = """\
exemptions:
  - rule: foreign-access
    stack: small-vision
    path: data_sets
    reason: Both teams agreed.
    owner: ml-platform@example.com
    expires: "2027-01-31"
"""


@pytest.fixture
def with_role(repository: Repository) -> Repository:
    """Return the repository with a change by which a team reads the bucket of another."""
    nlp = repository.path("small-vision").read_text(encoding="utf-8").split("    shares:")[0].replace("vision", "nlp")
    bucket = "    buckets:\n      data: {location: us-central1, delete_after_days: 90}\n"
    repository.path("small-nlp").write_text(f"{nlp}{bucket}", encoding="utf-8")
    repository.commit()
    repository.edit("small-vision", NAME, NAME + THEIRS)
    return repository


def test_a_role_on_the_bucket_of_another_team_is_found_without_a_change(with_role: Repository) -> None:
    report = run_check(with_role.root, CheckOptions(today=TODAY))

    foreign = [row for row in report.all_findings() if row.rule == FOREIGN_ACCESS.id]

    assert {(row.stack, row.severity, row.path) for row in foreign} == {("small-vision", "error", "data_sets.theirs")}
    role = "roles/storage.objectViewer on buckets/example-small-small-nlp-data of small-nlp"
    assert f"group:vision@example.com of small-vision has {role}" in {row.message for row in foreign}


def test_a_change_that_gives_it_is_one_finding_and_needs_one_exemption(with_role: Repository) -> None:
    told = {row.rule: row.follows for row in with_role.compare(base="HEAD").all_findings()}
    (with_role.root / "stacks" / "exemptions.yaml").write_text(EXEMPT, encoding="utf-8")
    exempt = with_role.compare(base="HEAD")

    assert told[FOREIGN_ACCESS.id] is None
    assert told["opens-access"] == "stacks/Pulumi.small-vision.yaml:5:17: data_sets.theirs"
    assert {row.rule for row in exempt.all_findings()}.isdisjoint({FOREIGN_ACCESS.id, "opens-access"})
    assert {row.finding.rule for row in exempt.all_exempted()} == {FOREIGN_ACCESS.id, "opens-access"}
