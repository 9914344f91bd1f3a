"""Which cluster a provider means, and what a change of its settings replaces."""

from __future__ import annotations

import json

import pytest
import yaml
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from training_platform.checks.planning.wire import SECRET, SIGNATURE
from training_platform.sandbox.kubernetes.plugin import changed_settings, configured, refused_settings
from training_platform.sandbox.kubernetes.values import Json

URN = "urn:pulumi:dev::p::pulumi:providers:kubernetes::a"


def kubeconfig(server: str = "https://a.example.com", user: str = "me") -> Json:
    return {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": user}}],
        "current-context": "x",
        "users": [{"name": user, "user": {}}],
    }


def test_a_cluster_is_its_identifier_before_its_server_before_its_provider() -> None:
    config = json.dumps(kubeconfig())

    assert configured(URN, {"clusterIdentifier": "id", "kubeconfig": config}).cluster == "id"
    assert configured(URN, {"kubeconfig": {SIGNATURE: SECRET, "value": config}}).cluster == "https://a.example.com"
    assert configured(URN, {}).cluster == URN


@pytest.mark.parametrize("broken", ["~/.kube/config", "a: [", "contexts: 3", "clusters: [1]\ncurrent-context: x"])
def test_a_kubeconfig_that_cannot_be_read_names_no_cluster(broken: str) -> None:
    assert configured(URN, {"kubeconfig": broken}).cluster == URN


@pytest.mark.parametrize(("written", "mutable"), [("true", True), (True, True), ("false", False), (None, False)])
def test_booleans_arrive_as_json_text(written: object, mutable: bool) -> None:
    settings = configured(URN, {"enableSecretMutable": written, "enableConfigMapMutable": written})

    assert (settings.secret_mutable, settings.config_map_mutable) == (mutable, mutable)


def test_a_namespace_of_the_provider_is_the_default_one() -> None:
    assert configured(URN, {"namespace": "vision"}).default_namespace == "vision"
    assert configured(URN, {}).default_namespace == "default"


@pytest.mark.parametrize(
    ("old", "new", "changed", "replaces"),
    [
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig()}, [], []),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig(user="you")}, ["kubeconfig"], []),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig("https://b")}, ["kubeconfig"], ["kubeconfig"]),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": UNKNOWN_ON_WIRE}, ["kubeconfig"], ["kubeconfig"]),
        ({"namespace": "a"}, {"namespace": "b"}, ["namespace"], []),
        ({"clusterIdentifier": "a"}, {"clusterIdentifier": "b"}, ["clusterIdentifier"], ["clusterIdentifier"]),
        ({}, {"clusterIdentifier": "b"}, ["clusterIdentifier"], []),
        (
            {"clusterIdentifier": "a", "kubeconfig": kubeconfig()},
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


def test_a_kubeconfig_as_text_means_what_it_means_as_a_map() -> None:
    as_text = {"kubeconfig": yaml.safe_dump(kubeconfig("https://b"))}

    assert changed_settings({"kubeconfig": kubeconfig("https://b")}, as_text) == (["kubeconfig"], [])
    assert changed_settings({"kubeconfig": kubeconfig()}, as_text) == (["kubeconfig"], ["kubeconfig"])


def test_rendering_is_refused_and_first_of_all_beside_a_kubeconfig() -> None:
    assert refused_settings({"kubeconfig": "x"}) == []
    assert [name for name, _ in refused_settings({"renderYamlToDirectory": "out"})] == ["renderYamlToDirectory"]
    assert [name for name, _ in refused_settings({"renderYamlToDirectory": "out", "kubeconfig": "x"})] == ["kubeconfig"]
