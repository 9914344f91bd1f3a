from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.training_platform.sandbox.cloud.conftest import LOCATION, PROJECT, Client, Json
from training_platform.sandbox.cloud.requests.discovery import load

NETWORKS = f"compute/v1/projects/{PROJECT}/global/networks"
CLUSTERS = f"container/v1beta1/{LOCATION}/clusters"
BODIES = {
    "container/v1beta1": (CLUSTERS, "CreateClusterRequest"),
    "compute/beta": (f"compute/beta/projects/{PROJECT}/regions/us-central1/subnetworks", "Subnetwork"),
    "file/v1": (f"file/v1/{LOCATION}/instances", "Instance"),
    "aiplatform/v1": (f"aiplatform/v1/{LOCATION}/persistentResources", "PersistentResource"),
    "monitoring/v3": (f"monitoring/v3/projects/{PROJECT}/alertPolicies", "AlertPolicy"),
    "storage/v1": ("storage/v1/b", "Bucket"),
    "artifactregistry/v1": (f"artifactregistry/v1/{LOCATION}/repositories", "Repository"),
    "iam/v1": (f"iam/v1/projects/{PROJECT}/serviceAccounts", "CreateServiceAccountRequest"),
}
QUERIES = {
    "file": {"instanceId": "drawn"},
    "aiplatform": {"persistentResourceId": "drawn"},
    "storage": {"project": PROJECT},
    "artifactregistry": {"repositoryId": "drawn"},
}


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"clustr": {}}, "", 'Unknown name "clustr": Cannot find field.'),
        ({"cluster": {"nam": "x"}}, "cluster", "Unknown name \"nam\" at 'cluster'"),
        ({"cluster": {"initialNodeCount": "many"}}, "cluster.initialNodeCount", "(TYPE_INT32)"),
        ({"cluster": {"initialNodeCount": 2**31}}, "cluster.initialNodeCount", "(TYPE_INT32)"),
        ({"cluster": {"locations": "us-central1-a"}}, "cluster.locations", "a list"),
        (
            {"cluster": {"nodePools": [{}, {"config": {"spot": "yes"}}]}},
            "cluster.nodePools[1].config.spot",
            "(TYPE_BOOL)",
        ),
        (
            {"cluster": {"networkConfig": {"datapathProvider": "FAST"}}},
            "cluster.networkConfig.datapathProvider",
            "ENUM",
        ),
    ],
)
def test_a_body_that_the_document_does_not_have_is_refused_at_its_field(
    ask: Client, body: Json, field: str, words: str
) -> None:
    refused = ask("POST", CLUSTERS, body)

    error = refused.body["error"]
    assert (refused.code, error["status"]) == (400, "INVALID_ARGUMENT")
    violation = error["details"][0]["fieldViolations"][0]
    assert violation["field"] == field
    assert words in violation["description"]


def test_every_violation_comes_at_once(ask: Client) -> None:
    refused = ask("POST", CLUSTERS, {"cluster": {"nam": 1, "initialNodeCount": "x"}})

    assert len(refused.body["error"]["details"][0]["fieldViolations"]) == 2


def test_names_with_underscores_and_null_are_taken_as_protobufs_take_them(ask: Client) -> None:
    ask.done("POST", NETWORKS, {"name": "net", "auto_create_subnetworks": True, "description": None})

    network = ask.done("GET", f"{NETWORKS}/net")
    assert network["autoCreateSubnetworks"] is True
    assert "description" not in network


def test_what_only_the_api_writes_is_dropped(ask: Client) -> None:
    ask.network()
    ask.cluster(statusMessage="mine", expireTime="2030-01-01T00:00:00Z")

    cluster = ask.done("GET", f"{CLUSTERS}/one")
    assert not {"statusMessage", "expireTime"} & set(cluster)


def test_an_unknown_query_parameter_is_refused(ask: Client) -> None:
    assert 'Unknown name "pagesize"' in ask("GET", NETWORKS, pagesize="2").message


def test_a_missing_required_parameter_is_refused(ask: Client) -> None:
    assert "project" in ask("POST", "storage/v1/b", {"name": "example-bucket"}).message


def test_unknown_paths_and_versions_are_404_in_googles_form(ask: Client) -> None:
    for path in (f"container/v1/{LOCATION}/clusterz", "container/v9/projects", "nothing/v1/x"):
        asked = ask("GET", path)
        assert (asked.code, asked.body["error"]["status"]) == (404, "NOT_FOUND"), path
    assert "this path takes GET" in ask("DELETE", f"container/v1/{LOCATION}/serverConfig").message


def test_a_method_that_is_not_implemented_is_501_and_names_itself(ask: Client) -> None:
    asked = ask("POST", f"container/v1/{LOCATION}/clusters/one:startIpRotation", {})

    assert (asked.code, asked.body["error"]["status"]) == (501, "UNIMPLEMENTED")
    assert "container.projects.locations.clusters.startIpRotation" in asked.message


@pytest.mark.parametrize("service", ["container", "compute", "file", "aiplatform", "iam", "storage", "monitoring"])
def test_every_method_of_a_service_answers_and_never_with_500(ask: Client, service: str) -> None:
    versions = {"monitoring": "v3"}
    api = load(service, versions.get(service, "v1"))
    for method in list(api.methods.values()):
        path = method.flat_path
        for name in ("projectsId", "project", "projectId"):
            path = path.replace("{" + name + "}", PROJECT)
        path = path.replace("{location}", "us-central1").replace("{locationsId}", "us-central1")
        filled = "".join(
            part.split("}", 1)[-1] if i and "}" in part else part
            for i, part in enumerate(path.replace("{", "{x").split("{"))
        )
        asked = ask(method.verb, f"{service}/{api.base}{filled}", {} if method.request else None)
        assert asked.code in {200, 400, 403, 404, 409, 501}, method.id


def test_an_api_that_is_not_enabled_is_refused(ask: Client) -> None:
    asked = ask("GET", "dns/v1/projects/example-lab/managedZones")

    assert asked.code == 403
    assert asked.body["error"]["details"][0]["reason"] == "SERVICE_DISABLED"


def test_a_project_that_is_not_there_is_403(ask: Client) -> None:
    assert ask("GET", "compute/v1/projects/example-none/global/networks").code == 403


def values(schema: Json, schemas: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Return values for a schema: often right, sometimes of another type, sometimes with unknown fields."""
    wrong: st.SearchStrategy[Any] = st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.just([]), st.just({})
    )
    if depth > 3:
        return wrong
    if "$ref" in schema:
        return often(values(schemas[schema["$ref"]], schemas, depth + 1), wrong)
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        names = st.lists(st.sampled_from(sorted(properties) or ["x"]), max_size=4, unique=True)
        return names.flatmap(
            lambda chosen: st.fixed_dictionaries({n: values(properties.get(n, {}), schemas, depth + 1) for n in chosen})
        )
    if kind == "array":
        return often(st.lists(values(schema["items"], schemas, depth + 1), max_size=2), wrong)
    if "enum" in schema:
        return often(st.sampled_from(schema["enum"]), wrong)
    if kind == "boolean":
        return often(st.booleans(), wrong)
    if schema.get("format") == "int32":
        return often(st.integers(-5, 70_000), wrong)
    return often(
        st.sampled_from(["a", "10.0.0.0/20", "1024", "net", "nodes", "-1", "us-central1-a", "e2-standard-4"]), wrong
    )


def often(right: st.SearchStrategy[Any], wrong: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 15).flatmap(lambda dice: wrong if dice == 0 else right)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
@pytest.mark.parametrize("service", BODIES)
def test_whatever_is_sent_is_answered_in_googles_form_and_kept_or_refused_whole(
    ask: Client, service: str, data: st.DataObject
) -> None:
    path, name = BODIES[service]
    api = load(*service.split("/"))
    body = data.draw(values(api.schemas[api.schema(name)], api.schemas))
    if isinstance(body, dict) and name != "CreateClusterRequest":
        body.setdefault("name", "drawn")
    before = {record.name for record in ask.cloud.store.all() if "/operations/" not in record.name}
    query = QUERIES.get(service.partition("/")[0], {})

    asked = ask("POST", path, body, **query)

    after = {record.name for record in ask.cloud.store.all() if "/operations/" not in record.name}
    if asked.code == 200:
        assert before <= after
    else:
        assert asked.body["error"]["code"] == asked.code
        assert asked.body["error"]["message"]
        assert after == before
