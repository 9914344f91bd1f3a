from __future__ import annotations

import pytest
from pulumi_policy import PolicyResource, PolicyResourceOptions
from pulumi_policy.policy import PolicyCustomTimeouts
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_STRING_VALUE, unknown_checking_proxy

from training_platform.policy.evaluation import parse_urn, plain, planned
from training_platform.resources.stack_resource import UNKNOWN

OPTIONS = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])


@pytest.mark.parametrize(
    ("urn", "parts"),
    [
        (
            "urn:pulumi:dev::training-platform::pulumi:pulumi:Stack::training-platform-dev",
            ("dev", "training-platform", "pulumi:pulumi:Stack", "training-platform-dev"),
        ),
        (
            "urn:pulumi:dev::training-platform::a:b:C$gcp:container/nodePool:NodePool::h100-pool",
            ("dev", "training-platform", "gcp:container/nodePool:NodePool", "h100-pool"),
        ),
        ("urn:pulumi:dev::p::a:b:C::name::with::colons", ("dev", "p", "a:b:C", "name::with::colons")),
    ],
)
def test_urn_is_taken_apart(urn: str, parts: tuple[str, ...]) -> None:
    assert parse_urn(urn) == parts


def test_unknown_values_are_unknown_one_by_one() -> None:
    props = unknown_checking_proxy(
        {
            "known": 8.0,
            "unknown": UNKNOWN_STRING_VALUE,
            "deep": {"list": [1.0, UNKNOWN_NUMBER_VALUE, {"x": UNKNOWN_STRING_VALUE, "y": "z"}]},
        }
    )

    assert plain(props) == {
        "known": 8.0,
        "unknown": UNKNOWN,
        "deep": {"list": [1.0, UNKNOWN, {"x": UNKNOWN, "y": "z"}]},
    }


def test_integers_that_the_engine_sends_as_floats_are_integers_again() -> None:
    values = unknown_checking_proxy({"nodes": 200.0, "deep": [{"share": 0.5}], "huge": float("inf")})

    assert repr(plain(values)) == "{'nodes': 200, 'deep': [{'share': 0.5}], 'huge': inf}"


def test_resource_is_known_by_stack_type_and_name() -> None:
    urn = "urn:pulumi:dev::training-platform::a:b:C$gcp:container/nodePool:NodePool::h100-pool"
    resource = PolicyResource(
        "gcp:container/nodePool:NodePool", {"a": 1}, urn, "h100-pool", OPTIONS, None, None, [], {}
    )

    resource_of_plan = planned(resource)

    assert (resource_of_plan.stack, resource_of_plan.key, resource_of_plan.inputs) == (
        "dev",
        ("gcp:container/nodePool:NodePool", "h100-pool"),
        {"a": 1},
    )


def test_what_was_registered_beside_the_inputs_is_told_too() -> None:
    urn = "urn:pulumi:dev::training-platform::gcp:container/cluster:Cluster::c"
    options = PolicyResourceOptions(True, ["nodeConfig"], True, [], PolicyCustomTimeouts(0, 0, 0), [])
    cluster = PolicyResource("gcp:container/cluster:Cluster", {}, urn, "c", options, None, None, [], {})
    pool = PolicyResource(
        "gcp:container/nodePool:NodePool", {}, urn.replace("cluster:Cluster::c", "nodePool:NodePool::p"), "p", OPTIONS,
        None, None, [cluster], {},
    )  # fmt: skip

    assert planned(cluster).options == {"protect": True, "ignoreChanges": ["nodeConfig"], "deleteBeforeReplace": True}
    assert planned(pool).options == {"dependsOn": [("gcp:container/cluster:Cluster", "c")]}
