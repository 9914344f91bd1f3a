"""The plugin over gRPC: an object's life, as the engine leads it, and the settings of a provider."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from local_google_cloud.kubernetes import plugin
from local_google_cloud.kubernetes.object_store import Key, ObjectStore
from local_google_cloud.kubernetes.plugin import changed_settings, configured, serve
from tests.local_google_cloud.kubernetes.client import CallRefused, Client, connect
from training_platform.catalog.types import Json
from training_platform.config.reading.secrets import SECRET, SIGNATURE
from training_platform.views.inputs import at

NAMESPACE = "kubernetes:core/v1:Namespace"
CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
SECRETS = "kubernetes:core/v1:Secret"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
ROLE = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
LOCAL_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"
CLUSTER_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"


def obj(name: str | None = "x", namespace: str | None = None, **fields: Any) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"metadata": {key: value for key, value in metadata.items() if value}, **fields}


def secret(value: Any) -> Json:
    return {SIGNATURE: SECRET, "value": value}


def test_an_object_lives_from_check_to_delete(cluster: Client, store: ObjectStore) -> None:
    inputs, failures = cluster.check(CONFIG_MAP, "cm", obj(namespace="default", data={"a": "1"}))
    assert failures == {}

    identity, created = cluster.create(CONFIG_MAP, "cm", inputs)
    assert identity == "default/x"
    assert created["data"] == {"a": "1"}
    assert created["metadata"]["resourceVersion"] == "1"

    news = obj(namespace="default", data={"a": "2"})
    updated = cluster.update(CONFIG_MAP, "cm", identity, news)
    assert updated["data"] == {"a": "2"}
    assert updated["metadata"]["resourceVersion"] == "2"
    assert updated["metadata"]["uid"] == created["metadata"]["uid"]
    assert cluster.read(CONFIG_MAP, "cm", identity, news) == (identity, updated, news)

    cluster.delete(CONFIG_MAP, "cm", identity)
    assert store.keys("tests") == []
    assert cluster.read(CONFIG_MAP, "cm", identity, news) == ("", {}, {})
    cluster.delete(CONFIG_MAP, "cm", identity)


def test_configuring_offers_what_the_engine_needs(cluster: Client) -> None:
    answer = cluster.configure(clusterIdentifier="tests")

    assert (answer.acceptSecrets, answer.acceptResources, answer.supportsPreview) == (True, True, True)
    assert not answer.acceptOutputs
    shaken = cluster.call("Handshake", pb.ProviderHandshakeRequest())
    assert (shaken.accept_secrets, shaken.accept_resources, shaken.accept_outputs) == (True, True, False)


@pytest.mark.parametrize(
    ("token", "inputs", "identity"),
    [
        (NAMESPACE, obj(), "x"),
        (ROLE, obj(namespace="ignored"), "x"),
        (CONFIG_MAP, obj(), "default/x"),
        (LOCAL_QUEUE, obj(namespace="default"), "default/x"),
        (CLUSTER_QUEUE, obj(), "x"),
    ],
)
def test_an_id_tells_the_namespace_of_what_has_one(cluster: Client, token: str, inputs: Json, identity: str) -> None:
    assert cluster.create(token, "x", inputs)[0] == identity


def test_a_preview_creates_nothing(cluster: Client, store: ObjectStore) -> None:
    inputs = obj(data={"a": "1"})
    identity, created = cluster.create(CONFIG_MAP, "cm", inputs, preview=True)
    assert (identity, created["data"]) == ("", {"a": "1"})
    assert created["metadata"]["uid"] == "00000000-0000-0000-0000-000000000000"
    assert store.keys("tests") == []

    cluster.create(CONFIG_MAP, "cm", inputs)
    assert cluster.update(CONFIG_MAP, "cm", "default/x", obj(data={"a": "2"}), preview=True)["data"] == {"a": "2"}
    assert cluster.read(CONFIG_MAP, "cm", "default/x", inputs)[2] == inputs


def test_unknowns_and_secrets_survive_a_preview(cluster: Client) -> None:
    inputs = obj(data={"a": UNKNOWN_ON_WIRE, "b": secret("hush"), "c": secret(UNKNOWN_ON_WIRE)})

    checked, failures = cluster.check(CONFIG_MAP, "cm", inputs)

    assert (checked, failures) == (inputs, {})
    assert cluster.create(CONFIG_MAP, "cm", checked, preview=True) == ("", inputs)
    assert cluster.update(CONFIG_MAP, "cm", "default/x", checked, preview=True) == inputs


def test_an_object_without_a_crd_is_judged_by_its_documents(cluster: Client) -> None:
    right = obj(namespace="default", data={"a": "1"})
    wrong = obj(namespace="default", data={"a": 1}, immutible=True)

    assert cluster.check(CONFIG_MAP, "cm", right)[1] == {}
    assert cluster.check(CONFIG_MAP, "cm", wrong)[1].keys() == {"data.a", "immutible"}


@pytest.mark.parametrize("metadata", [UNKNOWN_ON_WIRE, {"name": UNKNOWN_ON_WIRE}, secret({"name": UNKNOWN_ON_WIRE})])
def test_an_unknown_name_is_a_name(cluster: Client, metadata: Any) -> None:
    assert cluster.check(CONFIG_MAP, "cm", {"metadata": metadata}) == ({"metadata": metadata}, {})


def test_secrets_stay_secret_through_creation_and_reading(cluster: Client) -> None:
    inputs = obj(stringData={"token": secret("hush")})

    _, created = cluster.create(SECRETS, "s", inputs)
    _, outputs, again = cluster.read(SECRETS, "s", "default/x", inputs)

    assert created["stringData"] == outputs["stringData"] == {"token": secret("hush")}
    assert again == inputs


@pytest.mark.parametrize("data", [8_417_263_559, {"a": 8_417_263_559}, {"a": ["hush-hush"]}, ["hush-hush"]])
@pytest.mark.parametrize("field", ["stringData", "data"])
def test_no_refusal_has_the_value_of_a_secret(cluster: Client, field: str, data: Any) -> None:
    failures = cluster.check(SECRETS, "s", obj(**{field: data}))[1]

    assert failures != {}
    assert "hush-hush" not in str(failures)
    assert "8417263559" not in str(failures).replace(",", "")


def test_one_object_is_taken_in_all_versions_of_its_kind(cluster: Client) -> None:
    cluster.create(CLUSTER_QUEUE, "a", obj())

    with pytest.raises(CallRefused, match=r'clusterqueues\.kueue\.x-k8s\.io "x" already exists'):
        cluster.create(CLUSTER_QUEUE.replace("v1beta2", "v1beta1"), "a", obj())


def test_a_nameless_object_is_named_after_its_resource_and_marked(cluster: Client) -> None:
    first, _ = cluster.check(CONFIG_MAP, "settings", obj(None), randomSeed=b"one")
    again, _ = cluster.check(CONFIG_MAP, "settings", obj(None), randomSeed=b"one")
    other, _ = cluster.check(CONFIG_MAP, "settings", obj(None), randomSeed=b"two")

    stem, _, suffix = first["metadata"]["name"].partition("-")
    assert (stem, len(suffix)) == ("settings", 8)
    assert int(suffix, 16) >= 0
    assert first["metadata"]["annotations"] == {"pulumi.com/autonamed": "true"}
    assert first == again
    assert other["metadata"]["name"] != first["metadata"]["name"]


def test_a_given_name_stays_and_an_old_name_of_ours_is_kept(cluster: Client) -> None:
    first, _ = cluster.check(CONFIG_MAP, "settings", obj(None), randomSeed=b"one")

    kept, _ = cluster.check(CONFIG_MAP, "settings", obj(None, data={"a": "1"}), olds=first, randomSeed=b"two")

    assert kept["metadata"] == first["metadata"]
    assert cluster.check(CONFIG_MAP, "settings", obj("given"))[0] == obj("given")


def test_the_engine_may_propose_names_or_forbid_them(cluster: Client) -> None:
    options = pb.CheckRequest.AutonamingOptions
    proposed, _ = cluster.check(CONFIG_MAP, "cm", obj(None), autonaming=options(proposed_name="wanted"))
    _, failures = cluster.check(CONFIG_MAP, "cm", obj(None), autonaming=options(mode=options.DISABLE))

    assert proposed["metadata"]["name"] == "wanted"
    assert failures == {"metadata.name": "must be set, since auto-naming is disabled"}


def test_equal_inputs_are_no_difference(cluster: Client) -> None:
    assert cluster.diff(CONFIG_MAP, "cm", obj(data={"a": "1"}), obj(data={"a": secret("1")})) == (False, {}, [], False)


def test_a_difference_names_what_changed(cluster: Client) -> None:
    old = obj(spec={"groups": [{"quota": 4, "name": "a"}]})
    new = obj(spec={"groups": [{"quota": 8, "name": "a"}], "cohort": "c"})

    difference = cluster.diff(CLUSTER_QUEUE, "q", old, new)

    assert difference == (True, {"spec.groups[0].quota": "UPDATE", "spec.cohort": "ADD"}, [], False)
    assert cluster.diff(CLUSTER_QUEUE, "q", old, new, ("spec.groups[0]", "spec.cohort")).changes is False


@pytest.mark.parametrize(
    ("token", "old", "new", "verdict"),
    [
        (CONFIG_MAP, obj("a"), obj("b"), (["metadata.name"], False)),
        (CONFIG_MAP, obj(namespace="a"), obj(namespace="b"), (["metadata.namespace"], False)),
        (CONFIG_MAP, obj(data={"a": "1"}), obj(data={"a": "2"}), (["data.a"], True)),
        (CONFIG_MAP, obj(labels={"a": "1"}), obj(labels={"a": "2"}), ([], False)),
        (SECRETS, obj(stringData={"a": "1"}), obj(stringData={"a": UNKNOWN_ON_WIRE}), (["stringData.a"], True)),
        (BINDING, obj(roleRef={"name": "a"}), obj(roleRef={"name": "b"}), (["roleRef.name"], True)),
        (CLAIM, obj(spec={"volumeName": "a"}), obj(spec={"volumeName": "b"}), (["spec.volumeName"], True)),
        (CLAIM, obj(spec={"resources": "a"}), obj(spec={"resources": "b"}), ([], False)),
        (CLAIM, obj(spec={"volumeName": "a"}), obj(), (["spec"], True)),
        (CLUSTER_QUEUE, obj(spec={"cohort": "a"}), obj(spec={"cohort": "b"}), ([], False)),
    ],
)
def test_what_cannot_change_is_replaced_and_makes_room_where_the_name_stays(
    cluster: Client, token: str, old: Json, new: Json, verdict: tuple[list[str], bool]
) -> None:
    difference = cluster.diff(token, "x", old, new)

    assert (difference.replaces, difference.delete_first) == verdict
    assert {path for path, kind in difference.paths.items() if kind.endswith("_REPLACE")} == set(verdict[0])


@pytest.mark.parametrize(
    ("token", "path"),
    [
        ("kubernetes:core/v1:Service", "spec.clusterIP"),
        ("kubernetes:core/v1:PersistentVolume", "spec.csi.volumeHandle"),
        (CLAIM, "spec.accessModes"),
        (CLAIM, "spec.selector.matchLabels"),
        (CLAIM, "spec.storageClassName"),
        ("kubernetes:storage.k8s.io/v1:StorageClass", "parameters.tier"),
        ("kubernetes:storage.k8s.io/v1:StorageClass", "provisioner"),
        ("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", "roleRef.name"),
        ("kubernetes:apps/v1:Deployment", "spec.selector.matchLabels.app"),
        ("kubernetes:apps/v1:DaemonSet", "spec.selector.matchLabels.app"),
        ("kubernetes:apps/v1:StatefulSet", "spec.serviceName"),
        ("kubernetes:batch/v1:Job", "spec.template.spec"),
        (SECRETS, "type"),
        (CONFIG_MAP, "binaryData.a"),
        (CONFIG_MAP, "kind"),
    ],
)
def test_a_field_that_cannot_change_replaces_its_object(cluster: Client, token: str, path: str) -> None:
    def holding(value: Any) -> Json:
        for name in reversed(path.split(".")):
            value = {name: value}
        return obj(**value)

    assert cluster.diff(token, "x", holding("a"), holding("b")) == (True, {path: "UPDATE_REPLACE"}, [path], True)


def test_a_name_of_ours_lets_the_replacement_come_first(cluster: Client) -> None:
    old, _ = cluster.check(CONFIG_MAP, "cm", obj(None, data={"a": "1"}))
    new, _ = cluster.check(CONFIG_MAP, "cm", obj(None, data={"a": "2"}), olds=old)

    assert cluster.diff(CONFIG_MAP, "cm", old, new) == (True, {"data.a": "UPDATE_REPLACE"}, ["data.a"], False)


def test_a_providers_namespace_is_given_to_what_has_none(cluster: Client) -> None:
    cluster.configure(namespace="vision")

    assert at(cluster.check(CONFIG_MAP, "cm", obj())[0], ("metadata", "namespace")) == "vision"
    assert at(cluster.check(CONFIG_MAP, "cm", obj(namespace="other"))[0], ("metadata", "namespace")) == "other"
    assert cluster.check(NAMESPACE, "ns", obj())[0] == obj()
    assert cluster.check(CLUSTER_QUEUE, "q", obj())[0] == obj()


def test_reading_shows_what_others_changed(cluster: Client, store: ObjectStore) -> None:
    inputs = obj(data={"a": "1"})
    cluster.create(CONFIG_MAP, "cm", inputs)
    store.update("tests", Key("", "ConfigMap", "default", "x"), {"data": {"a": "9", "b": "2"}}, "configmaps")

    _, outputs, read = cluster.read(CONFIG_MAP, "cm", "default/x", inputs)

    assert outputs["data"] == {"a": "9", "b": "2"}
    assert read == obj(data={"a": "9"})


def test_reading_without_inputs_imports_all_but_what_the_server_owns(cluster: Client) -> None:
    cluster.create(CONFIG_MAP, "cm", obj(data={"a": "1"}, kind="ConfigMap"))

    _, _, read = cluster.read(CONFIG_MAP, "cm", "default/x")

    assert read == obj("x", "default", data={"a": "1"}, kind="ConfigMap")


@pytest.mark.parametrize("method", ["Parameterize", "GetSchema", "GetMapping", "GetMappings", "Construct", "Call"])
def test_a_method_that_the_plugin_lacks_gives_one_sentence(cluster: Client, method: str) -> None:
    request = getattr(pb, f"{method}Request")

    with pytest.raises(CallRefused, match="no such call"):
        cluster.call(method, request())


@pytest.mark.parametrize("tok", ["kubernetes:helm:template", "kubernetes:yaml:decode"])
def test_functions_are_refused_by_name(cluster: Client, tok: str) -> None:
    with pytest.raises(CallRefused, match=f"{tok}: the stand-in provider has no functions"):
        cluster.call("Invoke", pb.InvokeRequest(tok=tok))


@pytest.mark.parametrize("token", ["kubernetes:core/v1:ConfigMapList", "kubernetes:core/v1:ConfigMapPatch"])
def test_lists_and_patches_are_refused(cluster: Client, token: str) -> None:
    assert list(cluster.check(token, "x", obj())[1]) == ["kind"]


def test_a_type_that_names_no_kind_is_refused(cluster: Client) -> None:
    with pytest.raises(CallRefused, match="'kubernetes:index:Thing' is not a Kubernetes kind"):
        cluster.check("kubernetes:index:Thing", "x", obj())


def test_a_provider_sees_the_cluster_of_its_own_connection(store: ObjectStore) -> None:
    with serve(store=store) as port, connect(port) as a, connect(port) as b:
        a.configure(clusterIdentifier="a")
        b.configure(clusterIdentifier="b")
        for client in (a, b):
            client.create(NAMESPACE, "ns", obj("vision"))

        assert store.clusters() == ["a", "b"]
        a.delete(NAMESPACE, "ns", "vision")
        assert store.clusters() == ["b"]


def test_an_unconfigured_connection_is_served_only_where_there_is_no_choice(store: ObjectStore) -> None:
    with serve(store=store) as port, connect(port) as a, connect(port) as b, connect(port) as stranger:
        with pytest.raises(CallRefused, match="never configured"):
            stranger.create(NAMESPACE, "ns", obj("one"))
        a.configure(clusterIdentifier="a")
        stranger.create(NAMESPACE, "ns", obj("one"))
        b.configure(clusterIdentifier="b")
        with pytest.raises(CallRefused, match="never configured"):
            stranger.create(NAMESPACE, "ns", obj("two"))

    assert store.keys("a") == [Key("", "Namespace", "", "one")]


def test_connections_of_engines_that_ended_are_forgotten(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_MOST_PROVIDERS", 2)
    with serve(store=store) as port, ExitStack() as stack:
        clients = [stack.enter_context(connect(port)) for _ in range(3)]
        for index, client in enumerate(clients):
            client.configure(clusterIdentifier=f"cluster-{index}")

        with pytest.raises(CallRefused, match="never configured"):
            clients[0].create(NAMESPACE, "ns", obj("vision"))
        clients[2].create(NAMESPACE, "ns", obj("vision"))

    assert store.clusters() == ["cluster-2"]


def test_a_settings_check_and_difference_reach_the_engine(cluster: Client) -> None:
    def settings(**args: str) -> Any:
        return {"news": pb.CheckRequest(news=_struct(args)).news}

    checked = cluster.call("CheckConfig", pb.CheckRequest(**settings(clusterIdentifier="b")))
    olds = _struct({"clusterIdentifier": "a"})
    changed = cluster.call("DiffConfig", pb.DiffRequest(olds=olds, **settings(clusterIdentifier="b")))

    assert list(checked.failures) == []
    assert checked.inputs["clusterIdentifier"] == "b"
    assert list(changed.replaces) == list(changed.diffs) == ["clusterIdentifier"]


def _struct(args: dict[str, str]) -> Any:
    request = pb.CheckRequest()
    request.news.update(args)
    return request.news


def test_serving_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())

    with serve() as port, connect(port) as client:
        client.configure()

    assert [thread.name for thread in set(threading.enumerate()) - before if "kubernetes" in thread.name] == []
    with connect(port) as client, pytest.raises(CallRefused):
        client.configure()


URN = "urn:pulumi:dev::p::pulumi:providers:kubernetes::a"


def test_a_cluster_is_its_identifier_before_its_provider() -> None:
    assert configured(URN, {"clusterIdentifier": "id", "kubeconfig": "x"}).cluster == "id"
    assert configured(URN, {}).cluster == URN


@pytest.mark.parametrize(
    ("old", "new", "changed", "replaces"),
    [
        ({"clusterIdentifier": "a"}, {"clusterIdentifier": "a"}, [], []),
        ({"namespace": "a"}, {"namespace": "b"}, ["namespace"], []),
        ({"clusterIdentifier": "a"}, {"clusterIdentifier": "b"}, ["clusterIdentifier"], ["clusterIdentifier"]),
        ({}, {"clusterIdentifier": "b"}, ["clusterIdentifier"], []),
        (
            {"clusterIdentifier": "a", "kubeconfig": "x"},
            {"clusterIdentifier": "a", "kubeconfig": UNKNOWN_ON_WIRE},
            ["kubeconfig"],
            [],
        ),
    ],
)
def test_a_change_replaces_the_provider_only_where_it_means_another_cluster(
    old: Json, new: Json, changed: list[str], replaces: list[str]
) -> None:
    assert changed_settings(old, new) == (changed, replaces)
