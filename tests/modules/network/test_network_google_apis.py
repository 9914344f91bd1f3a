"""The private zones by which names of Google's APIs lead to addresses that policies can name."""

from __future__ import annotations

from collections.abc import Callable

from modules.network import Network, NetworkArgs
from training_platform.checks.planning.recorder import Plan
from training_platform.resources.network import ENTRANCES
from training_platform.resources.scope import Scope

Deploy = Callable[[Callable[[], object]], Plan]
ZONE, RECORD = "gcp:dns/managedZone:ManagedZone", "gcp:dns/recordSet:RecordSet"
VPC = ("gcp:compute/network:Network", "network-vpc")


def network(scope: Scope, entrance: str | None) -> Network:
    found = ENTRANCES[entrance] if entrance else None
    return Network("network", NetworkArgs(scope=scope, regions=("us-west4",), google_apis=found))


def records(plan: Plan) -> dict[str, tuple[str, list[str]]]:
    return {each.inputs["name"]: (each.inputs["type"], each.inputs["rrdatas"]) for each in plan.of(RECORD)}


def test_the_vpc_alone_sees_a_zone_for_each_domain_of_googles(scope: Scope, deploy: Deploy) -> None:
    plan = deploy(lambda: network(scope, "private"))

    zones = {each.inputs["name"]: each for each in plan.of(ZONE)}
    assert {name: each.inputs["dnsName"] for name, each in zones.items()} == {
        "dev-gcr-io": "gcr.io.",
        "dev-googleapis-com": "googleapis.com.",
        "dev-pkg-dev": "pkg.dev.",
    }
    for each in zones.values():
        assert each.inputs["visibility"] == "private"
        assert each.inputs["labels"] == scope.labels
        assert VPC in each.options["dependsOn"]


def test_every_name_below_a_domain_leads_to_the_entrance(scope: Scope, deploy: Deploy) -> None:
    addresses = [f"199.36.153.{number}" for number in (8, 9, 10, 11)]

    assert records(deploy(lambda: network(scope, "private"))) == {
        "private.googleapis.com.": ("A", addresses),
        "*.googleapis.com.": ("CNAME", ["private.googleapis.com."]),
        "pkg.dev.": ("A", addresses),
        "*.pkg.dev.": ("CNAME", ["pkg.dev."]),
        "gcr.io.": ("A", addresses),
        "*.gcr.io.": ("CNAME", ["gcr.io."]),
    }


def test_a_restricted_entrance_has_its_own_name_and_addresses(scope: Scope, deploy: Deploy) -> None:
    found = records(deploy(lambda: network(scope, "restricted")))

    assert found["*.googleapis.com."] == ("CNAME", ["restricted.googleapis.com."])
    assert found["restricted.googleapis.com."] == ("A", [f"199.36.153.{number}" for number in (4, 5, 6, 7)])


def test_public_addresses_need_no_zone(scope: Scope, deploy: Deploy) -> None:
    assert deploy(lambda: network(scope, None)).of(ZONE) == []
