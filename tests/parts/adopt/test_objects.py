"""Objects in clusters: which ones match the plan, what an update would change, and how they are imported."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.parts.adopt.stacks import PROJECT
from tests.parts.jobs.runs.api_stub import ApiStub, served, write_kubeconfig
from training_platform.clients.project_contents import POLICY, Contents
from training_platform.parts.adopt.cluster_objects import reach_clusters
from training_platform.parts.adopt.import_file import import_file, settled
from training_platform.parts.adopt.matches import Match, current_values, matches, object_differences, object_matches
from training_platform.resources.resource_types import (
    CLUSTER,
    CLUSTER_QUEUE,
    IAM_MEMBER,
    NAMESPACE,
    RELEASE,
    ROUTER,
    SERVICE_ACCOUNT,
)
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER, UNKNOWN, StackResource

PATH = f"projects/{PROJECT}/locations/us-central1/clusters/lab-main"
QUOTA = "kubernetes:core/v1:ResourceQuota"
VOLUME = "kubernetes:core/v1:PersistentVolume"
ACCOUNT = "kubernetes:core/v1:ServiceAccount"
EMAIL = "lab-vision-jobs@example-lab.iam.gserviceaccount.com"


def planned(kind: str, name: str, inputs: dict[str, Any], **more: Any) -> StackResource:
    about = {"apiVersion": "v1", "kind": kind.rpartition(":")[2]} if kind != RELEASE else {}
    options = {"provider": "main-kubernetes"}
    return StackResource(stack="lab", type=kind, name=name, inputs={**about, **inputs}, options=options, **more)


def resource(name: str, kind: str, *, namespaced: bool) -> dict[str, Any]:
    return {"name": name, "kind": kind, "namespaced": namespaced}


PROVIDER = StackResource(
    stack="lab",
    type=KUBERNETES_PROVIDER,
    name="main-kubernetes",
    inputs={"clusterIdentifier": PATH, "kubeconfig": UNKNOWN, "enableServerSideApply": "true"},
)
IN_NAMESPACE = {"metadata": ((NAMESPACE, "namespace"), (SERVICE_ACCOUNT, "cloud-account"))}
PLAN = [
    PROVIDER,
    planned(NAMESPACE, "namespace", {"metadata": {"name": "vision"}}),
    planned(
        QUOTA,
        "quota",
        {"metadata": {"name": "team", "namespace": UNKNOWN}, "spec": {"hard": {"pods": "10", "cpu": "1024"}}},
        inputs_from=IN_NAMESPACE,
    ),
    planned(
        ACCOUNT,
        "account",
        {
            "metadata": {
                "name": "training",
                "namespace": UNKNOWN,
                "annotations": {"iam.gke.io/gcp-service-account": UNKNOWN},
            }
        },
        inputs_from=IN_NAMESPACE,
    ),
    planned(
        VOLUME,
        "volume",
        {"metadata": {"name": UNKNOWN}, "spec": {"claimRef": {"name": "homes", "namespace": UNKNOWN}}},
        inputs_from=IN_NAMESPACE,
    ),
    planned(QUOTA, "other", {"metadata": {"name": "not-there", "namespace": "vision"}}),
    planned(
        RELEASE, "kueue", {"name": "kueue", "namespace": "kueue-system", "version": "0.19.2", "values": {"replicas": 2}}
    ),
    planned(RELEASE, "jobset", {"name": "jobset", "namespace": "jobset-system", "version": "0.12.0", "values": {}}),
]


class Cluster(ApiStub):
    """An API server with a team's namespace, and Kueue in an older version."""

    def __init__(self) -> None:
        super().__init__()
        release = {"chart": {"metadata": {"version": "0.18.0"}}, "config": {"replicas": 2}}
        packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(release).encode()))).decode()
        self.lists = {
            "/api/v1/namespaces": [{"metadata": {"name": "vision", "uid": "1"}}],
            "/api/v1/namespaces/vision/resourcequotas": [
                {
                    "metadata": {"name": "team", "namespace": "vision"},
                    "spec": {"hard": {"pods": "9", "cpu": "1024000m"}},
                }
            ],
            "/api/v1/namespaces/vision/serviceaccounts": [
                {
                    "metadata": {
                        "name": "training",
                        "namespace": "vision",
                        "annotations": {"iam.gke.io/gcp-service-account": "other@example.com"},
                    }
                }
            ],
            "/api/v1/persistentvolumes": [
                {"metadata": {"name": "x"}, "spec": {"claimRef": {"name": "homes", "namespace": "nlp"}}},
                {"metadata": {"name": "pv-7"}, "spec": {"claimRef": {"name": "homes", "namespace": "vision"}}},
            ],
            "/api/v1/namespaces/kueue-system/secrets": [{"metadata": {"name": "k"}, "data": {"release": packed}}],
        }
        self.kinds = [
            resource("namespaces", "Namespace", namespaced=False),
            resource("resourcequotas", "ResourceQuota", namespaced=True),
            resource("resourcequotas/status", "ResourceQuota", namespaced=True),
            resource("serviceaccounts", "ServiceAccount", namespaced=True),
            resource("persistentvolumes", "PersistentVolume", namespaced=False),
        ]

    def answer(self, method: str, url: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        if url == "/api/v1":
            return 200, {"resources": self.kinds}
        status, answer_body = super().answer(method, url, body)
        empty = status == 404 and url.rpartition("?")[0].endswith("/secrets")
        return (200, {"items": [], "metadata": {}}) if empty else (status, answer_body)


@pytest.fixture(name="cluster")
def _cluster() -> Cluster:
    return Cluster()


@pytest.fixture(name="contents")
def _contents(cluster: Cluster, tmp_path: Path) -> Iterator[Contents]:
    endpoint = {"dnsEndpointConfig": {"endpoint": "gke-1.us-central1.gke.goog"}}
    bodies = {CLUSTER: {PATH: {"name": "lab-main", "controlPlaneEndpointsConfig": endpoint}}}
    with served(cluster) as server:
        kubeconfig = write_kubeconfig(tmp_path / "config", server, f"gke_{PROJECT}_us-central1_lab-main")
        yield Contents(PROJECT, bodies, clusters=reach_clusters([PATH], str(kubeconfig)))


def matches_by_name(contents: Contents) -> dict[str, Match]:
    account = planned(SERVICE_ACCOUNT, "cloud-account", {})
    cloud = {account.key: Match(account, "", f"projects/{PROJECT}/serviceAccounts/{EMAIL}", {})}
    return {name: match for (_, name), match in object_matches(PLAN, cloud, contents).items()}


def rows(contents: Contents) -> dict[str, dict[str, Any]]:
    matched = object_matches(PLAN, {}, contents)
    every: list[dict[str, Any]] = import_file(PLAN, matched)["resources"]
    return {row["name"]: row for row in every}


def changes(match: Match) -> list[str]:
    assert match.body is not None
    return [str(difference) for difference in object_differences(match.planned, match.body)]


def test_objects_in_a_cluster_are_found_by_name_or_by_claim(contents: Contents) -> None:
    ids = {name: match.id for name, match in matches_by_name(contents).items()}

    assert ids == {
        "main-kubernetes": "",
        "namespace": "vision",
        "quota": "vision/team",
        "account": "vision/training",
        "volume": "pv-7",
        "kueue": "kueue-system/kueue",
    }


def test_changes_are_listed_by_field_and_quantities_are_compared_by_value(contents: Contents) -> None:
    matched = matches_by_name(contents)

    assert changes(matched["quota"]) == ["spec.hard.pods is 9, planned 10"]
    assert changes(matched["namespace"]) == []
    assert changes(matched["account"]) == [
        f"metadata.annotations.iam.gke.io/gcp-service-account is other@example.com, planned {EMAIL}"
    ]


def test_settings_of_a_queue_without_a_field_are_listed_unless_they_are_defaults() -> None:
    queue = planned(CLUSTER_QUEUE, "queue", {"metadata": {"name": "vision"}, "spec": {"flavors": [{"name": "h100"}]}})
    body = {
        "spec": {
            "queueingStrategy": "StrictFIFO",
            "stopPolicy": "None",
            "preemption": {"borrowWithinCohort": {"policy": "Never", "maxPriorityThreshold": 100}},
            "flavors": [{"name": "h100", "lendable": "4"}],
        },
        "apiVersion": "v1",
        "kind": "ClusterQueue",
        "metadata": {"name": "vision", "uid": "1"},
    }

    assert [str(difference) for difference in object_differences(queue, body) if difference.planned is None] == [
        "spec.queueingStrategy is StrictFIFO",
        "spec.preemption.borrowWithinCohort.maxPriorityThreshold is 100",
        "spec.flavors[0].lendable is 4",
    ]


def test_lists_of_one_length_are_compared_entry_by_entry_and_others_as_a_whole() -> None:
    queue = planned(CLUSTER_QUEUE, "queue", {"spec": {"same": [1, {"a": 1}], "longer": [1, 2]}})
    body = {"apiVersion": "v1", "kind": "ClusterQueue", "spec": {"same": [1, {"a": 2}], "longer": [1]}}

    assert [difference.path for difference in object_differences(queue, body)] == ["spec.same[1].a", "spec.longer"]


def test_parents_of_providers_are_imported_before_them() -> None:
    home = StackResource(stack="lab", type="training-platform:team:TeamShare", name="share", inputs={}, custom=False)
    provider = StackResource(stack="lab", type=KUBERNETES_PROVIDER, name="inside", inputs={}, parent=home.key)

    first = import_file([home, provider], {}, below=[provider.key])

    assert first["resources"] == [{"type": home.type, "name": "share", "component": True}]


def test_a_release_in_another_version_is_a_change(contents: Contents) -> None:
    assert changes(matches_by_name(contents)["kueue"]) == ["version is 0.18.0, planned 0.19.2"]


def test_an_import_creates_its_provider_with_the_clusters_endpoint(contents: Contents) -> None:
    found_rows = rows(contents)

    provider = found_rows["main-kubernetes"]
    assert "id" not in provider
    assert "https://gke-1.us-central1.gke.goog" in provider["inputs"]["kubeconfig"]
    assert provider["inputs"]["clusterIdentifier"] == PATH
    assert {row["provider"] for name, row in found_rows.items() if name != "main-kubernetes"} == {"main-kubernetes"}


def test_an_object_is_imported_with_the_live_values_of_the_programs_fields(contents: Contents) -> None:
    quota = rows(contents)["quota"]

    assert (quota["type"], quota["id"]) == (QUOTA, "vision/team")
    assert quota["inputs"]["metadata"] == {"name": "team", "namespace": "vision"}
    assert quota["inputs"]["spec"] == {"hard": {"pods": "9", "cpu": "1024"}}


def test_a_release_is_imported_with_its_chart_and_the_deployed_version(contents: Contents) -> None:
    release = rows(contents)["kueue"]

    assert release["id"] == "kueue-system/kueue"
    assert release["inputs"] == {
        "name": "kueue", "namespace": "kueue-system", "version": "0.18.0", "values": {"replicas": 2},
    }  # fmt: skip


def test_a_cluster_that_was_not_asked_has_nothing_to_import() -> None:
    assert object_matches(PLAN, {}, Contents(PROJECT)) == {}


def test_a_cluster_that_refuses_to_list_objects_is_reported(cluster: Cluster, contents: Contents) -> None:
    cluster.refusals = {("GET", "/resourcequotas/team"): (403, "you may not")}

    assert "quota" not in matches_by_name(contents)
    assert contents.unread == {f"{PATH} ResourceQuota": "Cluster lab-main denies access: you may not"}


def test_a_kind_without_a_definition_has_no_objects(cluster: Cluster, contents: Contents) -> None:
    cluster.kinds = []

    assert set(matches_by_name(contents)) == {"main-kubernetes", "kueue"}


@pytest.mark.parametrize(
    ("planned", "current", "expected"),
    [
        ({"a": 1, "b": UNKNOWN}, {"a": 2, "b": 3, "c": 4}, {"a": 2, "b": 3}),
        ({"a": {}, "b": "x"}, {}, {"a": {}}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": "1024Gi"}, {"a": "1Ti"}, {"a": "1024Gi"}),
    ],
)
def test_only_the_programs_fields_of_an_object_are_kept(
    planned: Mapping[str, Any], current: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    assert current_values(planned, current) == expected


def test_the_state_has_an_object_as_if_the_program_had_written_it() -> None:
    urn = f"urn:pulumi:lab::training-platform::{QUOTA}::quota"
    live = {"spec": {"hard": {"pods": "9"}}, "status": {}}
    state = {
        "deployment": {
            "resources": [{"urn": urn, "type": QUOTA, "inputs": live, "outputs": {**live, "__inputs": live}}]
        }
    }
    written = {"spec": {"hard": {"pods": "9"}}}

    fixed, names = settled(state, {"resources": [{"type": QUOTA, "name": "quota", "inputs": written}]})

    (settled_quota,) = fixed["deployment"]["resources"]
    assert names == ["quota"]
    assert settled_quota["inputs"] == settled_quota["outputs"]["__inputs"] == written
    assert settled_quota["outputs"]["status"] == {}


@pytest.mark.parametrize("names", [("other-1a2b", "main-3c4d"), ("main-3c4d", "other-1a2b")])
def test_of_two_routers_of_a_network_the_one_with_the_planned_name_is_adopted(names: tuple[str, str]) -> None:
    network = f"projects/{PROJECT}/global/networks/lab"
    paths = [f"projects/{PROJECT}/regions/us-central1/routers/{name}" for name in names]
    contents = Contents(PROJECT, {ROUTER: {path: {"network": network} for path in paths}})
    inputs = {"project": PROJECT, "region": "us-central1", "network": network}
    router = StackResource(stack="lab", type=ROUTER, name="main", inputs=inputs)

    assert [match.path.rpartition("/")[2] for match in matches([router], contents).values()] == ["main-3c4d"]


@pytest.mark.parametrize(
    ("role", "member", "project", "is_matched"),
    [
        ("roles/viewer", "group:a@example.com", "example-lab", True),
        ("roles/editor", "group:a@example.com", "example-lab", False),
        ("roles/viewer", "group:b@example.com", "example-lab", False),
        ("roles/viewer", "group:a@example.com", "example-other", False),  # of a team with its own project
    ],
)
def test_a_grant_is_adopted_only_with_its_role_its_member_and_its_project(
    role: str, member: str, project: str, is_matched: bool
) -> None:
    bindings = [{"role": role, "members": [member]}, {"role": "roles/browser", "members": ["group:a@example.com"]}]
    contents = Contents("example-lab", {POLICY: {"example-lab": {"bindings": bindings}}})
    inputs = {"project": project, "role": "roles/viewer", "member": "group:a@example.com"}
    grant = StackResource(stack="lab", type=IAM_MEMBER, name="viewers", inputs=inputs)

    assert bool(matches([grant], contents)) is is_matched
