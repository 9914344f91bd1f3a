"""The longest chain of needs, and what a state says of them."""

from __future__ import annotations

from training_platform.sandbox.run.reports import Leg, longest_chain, needs_of, reversed_needs

SECONDS = {"network": 2.0, "cluster": 6.0, "pool": 3.0, "filestore": 10.0, "alert": 1.0}
NEEDS = {"cluster": {"network"}, "pool": {"cluster"}, "filestore": {"network"}, "alert": set[str]()}


def test_the_path_is_the_longest_chain_and_not_the_longest_resource() -> None:
    path = longest_chain(SECONDS | {"filestore": 8.0}, NEEDS)

    assert path == [Leg("network", 2.0, 2.0), Leg("cluster", 6.0, 8.0), Leg("pool", 3.0, 11.0)]


def test_a_longer_resource_elsewhere_takes_the_path_over() -> None:
    assert [leg.urn for leg in longest_chain(SECONDS, NEEDS)] == ["network", "filestore"]


def test_a_resource_that_took_no_part_costs_nothing_and_leads_on() -> None:
    needs = {"pool": {"component"}, "component": {"cluster"}}

    path = longest_chain({"cluster": 6.0, "pool": 3.0}, needs)

    assert path == [Leg("cluster", 6.0, 6.0), Leg("pool", 3.0, 6.0 + 3.0)]


def test_nothing_done_has_no_path() -> None:
    assert longest_chain({}, {"pool": {"cluster"}}) == []


def test_a_destroy_waits_for_those_that_need_a_resource() -> None:
    path = longest_chain({"network": 1.0, "cluster": 5.0, "pool": 2.0}, reversed_needs(NEEDS))

    assert [leg.urn for leg in path] == ["pool", "cluster", "network"]


def test_a_state_names_needs_in_four_places() -> None:
    pool = {
        "urn": "pool",
        "dependencies": ["cluster"],
        "propertyDependencies": {"nodeConfig": ["account"], "name": None},
        "provider": "urn:pulumi:dev::p::pulumi:providers:gcp::default::0f1e",
        "parent": "component",
    }

    provider = "urn:pulumi:dev::p::pulumi:providers:gcp::default"
    assert needs_of([pool]) == {"pool": {"cluster", "account", provider, "component"}}
