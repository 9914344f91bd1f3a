"""Objects of clusters, compared with the plan field by field."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.parts.verify.lab import Lab, answers_of, verdicts
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import ApiKind, ClusterError
from training_platform.resources.stack_resource import UNKNOWN

CLUSTER = "projects/example-lab/locations/us-central1-a/clusters/lab-main"
DEPLOYED = {
    "namespace": "vision",
    "iam.gke.io/gcp-service-account": "lab-vision-jobs@example-lab.iam.gserviceaccount.com",
}


class Objects:
    """A cluster with the planned objects, as one that drops a field of the specification of one kind."""

    def __init__(self, planned: list[Json], kind: str = "", field: str = "") -> None:
        self._objects = {(obj["kind"], str(obj["metadata"]["name"])): copy.deepcopy(obj) for obj in planned}
        self.reviews = 0
        for (name, _), obj in self._objects.items():
            if name == kind:
                del obj["spec"][field]

    def kinds(self, api_version: str) -> dict[str, tuple[ApiKind, bool]]:
        return {
            kind: (ApiKind(api_version, kind), bool(obj["metadata"].get("namespace")))
            for (kind, _), obj in self._objects.items()
            if obj["apiVersion"] == api_version
        }

    def get(self, kind: ApiKind, _namespace: str, name: str) -> Json | None:
        return self._objects.get((kind.plural, name))

    def create(self, kind: ApiKind, _namespace: str, obj: Json, *, dry_run: bool) -> Json:
        """Store nothing. A member may do everything, but the first review is refused, as before a grant has effect."""
        assert not dry_run
        if kind.plural == "selfsubjectaccessreviews" and not self.reviews:
            self.reviews += 1
            raise ClusterError("may not impersonate", status=403)
        return {**obj, "metadata": {"uid": "1"}, "status": {"userInfo": {"username": "eve"}, "allowed": True}}

    def as_member(self, _group: str) -> Objects:
        return self

    def objects(self, _kind: ApiKind, _namespace: str, _selector: str = "") -> Iterator[Json]:
        return iter(())


def deployed(value: Any, name: str = "") -> Any:
    """Put what only a deployment knows in place of unknown values, by the name of the field."""
    if value is UNKNOWN:
        return DEPLOYED[name]
    if isinstance(value, dict):
        return {key: deployed(item, key) for key, item in value.items()}
    return [deployed(item) for item in value] if isinstance(value, list) else value


def planned_objects(lab: Lab) -> list[Json]:
    return [deployed(dict(resource.inputs)) for resource in lab.resources if resource.inputs.get("kind")]


def answers(lab: Lab, folder: Path, kind: str = "", field: str = "") -> Mapping[str, list[str]]:
    with lab.platform(folder) as platform:
        clusters: Any = platform.contents.clusters
        clusters[CLUSTER] = Objects(planned_objects(lab), kind, field)
        return verdicts(answers_of("cluster-objects", platform))


@pytest.mark.parametrize(("kind", "field"), [("ClusterQueue", "preemption"), ("ResourceQuota", "hard")])
def test_a_field_that_the_cluster_dropped_refutes(kind: str, field: str, lab: Lab, tmp_path: Path) -> None:
    (line,) = answers(lab, tmp_path, kind, field)["refuted"]

    assert line.startswith(f"{kind} ")
    assert "differs from the plan" in line


def test_every_right_of_a_member_beyond_its_own_work_refutes(lab: Lab, tmp_path: Path) -> None:
    with lab.platform(tmp_path, options={"group": "vision@example.com"}) as platform:
        clusters: Any = platform.contents.clusters
        clusters[CLUSTER] = Objects(planned_objects(lab))
        sentences = verdicts(answers_of("tenancy-rights", platform))

    assert sentences["proven"] == sentences["undecided"] == []
    assert any("a member may get secrets in " in line for line in sentences["refuted"])


def test_a_cluster_as_planned_refutes_nothing(lab: Lab, tmp_path: Path) -> None:
    sentences = answers(lab, tmp_path)

    assert sentences["refuted"] == []
    assert sentences["proven"] == ["lab-main has the planned objects"]
