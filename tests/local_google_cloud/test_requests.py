"""Requests checked by the documents, masks and merges, rules' views of bodies, and filters of lists."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_google_cloud.requests.discovery import SERVICES, Api, load
from local_google_cloud.requests.errors import Refusal
from local_google_cloud.requests.validation import read_body
from local_google_cloud.resources.actions import apply_mask, mask_paths, merge
from local_google_cloud.resources.lists import read_filter
from tests.local_google_cloud.client import LOCATION, PROJECT, Client, Json
from training_platform.config.reading.secrets import can_be_secret
from training_platform.views.adapters import views_of_rest
from training_platform.views.cluster import AutoProvisioningView, ClusterView, ResourceLimit
from training_platform.views.network import NetworkView, SubnetView
from training_platform.views.node_pool import NodePoolView

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
        ({"cluster": {"initialNodeCount": 10**400}}, "cluster.initialNodeCount", "(TYPE_INT32)"),
        ({"cluster": {"locations": "us-central1-a"}}, "cluster.locations", "a list"),
        (
            {"cluster": {"nodePools": [{}, {"config": {"spot": "yes"}}]}},
            "cluster.nodePools[1].config.spot",
            "(TYPE_BOOL)",
        ),
        (
            {
                "cluster": {
                    "maintenancePolicy": {"window": {"recurringWindow": {"window": {"startTime": "2026-01-03"}}}}
                }
            },
            "cluster.maintenancePolicy.window.recurringWindow.window.startTime",
            "(TYPE_GOOGLE_DATETIME)",
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


def test_a_number_that_no_double_can_hold_is_refused(ask: Client) -> None:
    condition = {"conditionThreshold": {"thresholdValue": 10**400}}

    refused = ask("POST", f"monitoring/v3/projects/{PROJECT}/alertPolicies", {"conditions": [condition]})

    assert refused.code == 400
    assert "conditions[0].conditionThreshold.thresholdValue' (TYPE_DOUBLE)" in refused.message


def test_every_violation_is_reported_at_once(ask: Client) -> None:
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
        answer = ask("GET", path)
        assert (answer.code, answer.body["error"]["status"]) == (404, "NOT_FOUND"), path
    assert "this path takes GET" in ask("DELETE", f"container/v1/{LOCATION}/serverConfig").message


def test_a_method_that_is_not_implemented_is_501_and_names_itself(ask: Client) -> None:
    answer = ask("POST", f"container/v1/{LOCATION}/clusters/one:startIpRotation", {})

    assert (answer.code, answer.body["error"]["status"]) == (501, "UNIMPLEMENTED")
    assert "container.projects.locations.clusters.startIpRotation" in answer.message


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
        answer = ask(method.verb, f"{service}/{api.base}{filled}", {} if method.request else None)
        assert answer.code in {200, 400, 403, 404, 409, 501}, method.id


def test_an_api_that_is_not_enabled_is_refused(ask: Client) -> None:
    answer = ask("GET", "dns/v1/projects/example-lab/managedZones")

    assert answer.code == 403
    assert answer.body["error"]["details"][0]["reason"] == "SERVICE_DISABLED"


def test_an_unknown_project_is_403(ask: Client) -> None:
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

    answer = ask("POST", path, body, **query)

    after = {record.name for record in ask.cloud.store.all() if "/operations/" not in record.name}
    if answer.code == 200:
        assert before <= after
    else:
        assert answer.body["error"]["code"] == answer.code
        assert answer.body["error"]["message"]
        assert after == before


def test_a_mask_changes_what_it_names_and_clears_what_is_not_sent() -> None:
    old = {"description": "a", "labels": {"x": "1"}, "config": {"size": 1, "kind": "k"}}

    new = apply_mask(old, {"labels": {"y": "2"}, "config": {"size": 2}}, mask_paths("labels,config.size,description"))

    assert new == {"labels": {"y": "2"}, "config": {"size": 2, "kind": "k"}}
    assert old["description"] == "a"


def test_the_paths_of_a_mask_are_read_in_either_spelling() -> None:
    assert mask_paths("display_name, file_shares.capacity_gb,labels") == [
        "displayName", "fileShares.capacityGb", "labels",
    ]  # fmt: skip


def test_a_merge_goes_by_key_replaces_lists_and_null_removes() -> None:
    assert merge({"a": {"x": 1, "y": 2}, "b": [1], "c": 3}, {"a": {"y": 5}, "b": [2], "c": None}) == {
        "a": {"x": 1, "y": 5},
        "b": [2],
    }


@pytest.mark.parametrize(
    "config",
    [{"diskSizeGb": 200, "diskType": "pd-ssd"}, {"bootDisk": {"sizeGb": "200", "diskType": "pd-ssd"}}],
)
def test_both_spellings_of_a_boot_disk_are_one(ask: Client, config: dict[str, Any]) -> None:
    ask.network()
    ask.cluster()
    pool = {"name": "cpu", "initialNodeCount": 1, "config": {"machineType": "e2-standard-4", **config}}
    ask.done("POST", f"container/v1/{LOCATION}/clusters/one/nodePools", {"nodePool": pool})

    answered = ask.done("GET", f"container/v1/{LOCATION}/clusters/one/nodePools/cpu")["config"]
    assert (answered["diskSizeGb"], answered["diskType"]) == (200, "pd-ssd")
    assert answered["bootDisk"] == {"sizeGb": "200", "diskType": "pd-ssd"}


def test_a_node_pools_body_is_read_into_views() -> None:
    body = {
        "initialNodeCount": 0,
        "locations": ["us-west4-a"],
        "autoscaling": {"enabled": True, "maxNodeCount": 8, "totalMaxNodeCount": 0, "locationPolicy": "ANY"},
        "management": {"autoUpgrade": True},
        "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x8"},
        "config": {
            "machineType": "ct5lp-hightpu-4t",
            "flexStart": True,
            "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
            "bootDisk": {"sizeGb": "100", "diskType": "pd-balanced"},
            "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "2"}],
        },
        "maxPodsConstraint": {"maxPodsPerNode": "64"},
        "networkConfig": {"acceleratorNetworkProfile": "auto"},
        "queuedProvisioning": {"enabled": True},
        "upgradeSettings": {"maxSurge": 3},
    }
    name = f"projects/{PROJECT}/locations/us-west4/clusters/one/nodePools/slice"

    views = views_of_rest("container.nodePools", body, project=PROJECT, name=name)

    (pool,) = [view for view in views if isinstance(view, NodePoolView)]
    assert (pool.project, pool.cluster, pool.location, pool.zones) == (PROJECT, "one", "us-west4", ("us-west4-a",))
    assert (pool.min_nodes, pool.max_nodes, pool.total_max_nodes, pool.most_vms) == (0, 8, None, 8)
    assert (pool.flex_start, pool.spot, pool.auto_repair, pool.auto_upgrade) == (True, False, False, True)
    assert (pool.tpu_topology, pool.hosts, pool.capacity) == ("4x8", 8, "flex-start")
    assert (pool.disk_gb, pool.disk_type) == (100, "pd-balanced")
    assert (pool.accelerator_type, pool.accelerator_count, pool.max_pods) == ("nvidia-l4", 2, 64)
    assert (pool.queued, pool.network_profile, pool.max_surge) == (True, "auto", 3)


def test_a_clusters_body_is_read_into_views() -> None:
    body = {
        "locations": ["us-west4-a", "us-west4-b"],
        "networkConfig": {"datapathProvider": "ADVANCED_DATAPATH", "enableMultiNetworking": True},
        "defaultMaxPodsConstraint": {"maxPodsPerNode": "110"},
        "autoscaling": {
            "enableNodeAutoprovisioning": True,
            "resourceLimits": [{"resourceType": "cpu", "maximum": "64"}],
            "autoprovisioningLocations": ["us-west4-b"],
        },
    }
    name = f"projects/{PROJECT}/locations/us-west4-a/clusters/one"

    views = views_of_rest("container.clusters", body, project=PROJECT, name=name)

    (cluster,) = [view for view in views if isinstance(view, ClusterView)]
    (provisioning,) = [view for view in views if isinstance(view, AutoProvisioningView)]
    assert (cluster.location, cluster.zones, cluster.max_pods) == ("us-west4-a", ("us-west4-b",), 110)
    assert (cluster.datapath, cluster.multi_networking) == ("ADVANCED_DATAPATH", True)
    assert (provisioning.limits, provisioning.zones) == ((ResourceLimit("cpu", 64),), ("us-west4-b",))


@pytest.mark.parametrize(
    ("collection", "body", "place"),
    [
        ("aiplatform.persistentResources", {}, "persistentResources/tuning"),
        ("compute.resourcePolicies", {"workloadPolicy": {"type": "HIGH_THROUGHPUT"}}, "resourcePolicies/cube"),
        ("compute.routers", {"nats": [{"natIps": ["a"]}]}, "routers/out"),
        ("file.instances", {"tier": "ZONAL"}, "instances/homes"),
        ("lustre.instances", {"capacityGib": "9000"}, "instances/scratch"),
    ],
)
def test_each_collection_that_rules_read_has_a_view(collection: str, body: Json, place: str) -> None:
    name = f"projects/{PROJECT}/locations/us-central1/{place}"

    assert views_of_rest(collection, body, project=PROJECT, name=name) != []


def test_networks_and_subnetworks_are_read_into_views(ask: Client) -> None:
    ask.network()
    base = f"projects/{PROJECT}"
    bodies = {
        (collection, path): ask.done("GET", f"compute/v1/{base}/{path}")
        for collection, path in (
            ("compute.networks", "global/networks/net"),
            ("compute.subnetworks", "regions/us-central1/subnetworks/nodes"),
        )
    }

    views = [
        view
        for (collection, path), body in bodies.items()
        for view in views_of_rest(collection, body, project=PROJECT, name=f"{base}/{path}")
    ]
    (network,) = (view for view in views if isinstance(view, NetworkView))
    (subnet,) = (view for view in views if isinstance(view, SubnetView))

    assert (network.project, network.network, network.mtu, network.profile) == (PROJECT, "net", 1460, None)
    assert (subnet.region, subnet.subnetwork, subnet.network) == ("us-central1", "nodes", "net")
    assert (subnet.cidr, subnet.ranges) == ("10.0.0.0/20", {"pods": "10.64.0.0/16", "services": "10.65.0.0/20"})


def test_a_collection_that_no_rule_reads_has_no_views() -> None:
    assert views_of_rest("monitoring.alertPolicies", {}, project=PROJECT, name="projects/x/alertPolicies/1") == []


def test_a_resource_fits_where_all_terms_do() -> None:
    item = {"name": "one", "labels": {"team": "a b"}, "enabled": True}

    def fits(text: str) -> bool:
        return all(term.matches(item) for term in read_filter(text))

    assert fits("")
    assert fits('name = "one"')
    assert fits("name=one AND labels.team != b")
    assert fits("(name = one) (enabled = true)")
    assert fits("name = *")
    assert fits("labels.team = 'a b'")
    assert not fits("name:two")


@pytest.mark.parametrize(
    "text", ["((", "name", "name =", "name ~ x", "name eq o.*", "= x name", "(name = a", "(" + " " * 60_000]
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="Invalid list filter expression"):
        read_filter(text)


SECRET = "Zx9-secret-of-nobody-4711"
NUMBER = 8_417_263_559


def with_secrets(api: Api, schema: Json, value: Any, keys: tuple[Any, ...] = (), seen: tuple[str, ...] = ()) -> Any:
    """Return a body with a value in each place that can hold a secret; None if no place can."""
    if can_be_secret(keys):
        return value
    if reference := schema.get("$ref"):
        if reference in seen:
            return None
        schema, seen = api.schemas[reference], (*seen, reference)
    if schema.get("type") == "array":
        item = with_secrets(api, schema["items"], value, (*keys, 0), seen)
        return None if item is None else [item]
    parts = {**schema.get("properties", {}), "entry": schema.get("additionalProperties")}
    body = {key: with_secrets(api, part, value, (*keys, key), seen) for key, part in parts.items() if part}
    return {key: part for key, part in body.items() if part is not None} or None


@pytest.mark.parametrize("service", SERVICES)
def test_no_refusal_of_a_body_has_a_value_that_can_be_a_secret(service: str) -> None:
    api = load(service, SERVICES[service][-1])
    methods = {method.request: method for method in api.methods.values() if method.request}
    refused = 0
    for method in methods.values():
        for value in (SECRET, NUMBER, [SECRET], {"a": NUMBER}, [{"a": SECRET}], {"a": {"b": SECRET}}):
            body = with_secrets(api, {"$ref": method.request}, value)
            try:
                read_body(api, method, body)
            except Refusal as error:
                refusal = f"{error} {error.body(service)}"
                refused += 1
                assert SECRET[:10] not in refusal, method.id
                assert str(NUMBER) not in refusal, method.id
    assert refused or all(with_secrets(api, {"$ref": method.request}, 1) is None for method in methods.values())
