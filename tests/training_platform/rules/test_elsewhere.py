"""References to resources of other programs are counted as not judged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.foreign import DROP, found, planned
from training_platform.rules import RULES, evaluate, program, views_of_plan

RULE = "elsewhere-not-judged"
INTERFACES = [{"network": "their-vpc", "subnetwork": "their-subnet"}]


@pytest.mark.parametrize(
    ("spoiled", "name"),
    [
        ({"gpu.cluster": "theirs"}, "theirs"),
        ({"gpu.nodeConfig.serviceAccount": "nodes@example-other.iam.gserviceaccount.com"}, "nodes@example-other"),
        ({"cluster.network": "their-vpc"}, "their-vpc"),
        ({"cluster.subnetwork": "their-subnet"}, "their-subnet"),
        ({"files.networks.0.network": "their-vpc"}, "their-vpc"),
        ({"files.networks.0.reservedIpRange": "projects/p/global/addresses/their-range"}, "their-range"),
        ({"gpu.networkConfig.additionalNodeNetworkConfigs": INTERFACES}, "their-vpc"),
        ({"gpu.networkConfig.additionalNodeNetworkConfigs": INTERFACES}, "their-subnet"),
        ({"wall.network": "their-vpc"}, "their-vpc"),
        ({"cluster.subnetwork": DROP}, "names no subnet"),
    ],
)
def test_what_is_not_in_the_program_is_a_note_that_names_it(spoiled: dict[str, Any], name: str) -> None:
    before = {finding.message for finding in found(rule=RULE)}

    after = [finding for finding in found(spoiled, rule=RULE) if finding.message not in before]

    assert {finding.severity for finding in after} == {"note"}
    assert {finding.unjudged for finding in after} == {"reference to a resource of another program"}
    assert any(finding.message.startswith(name) for finding in after)


def test_the_default_account_is_no_reference() -> None:
    assert found({"gpu.nodeConfig.serviceAccount": "default"}, rule=RULE) == found(rule=RULE)


def test_a_vm_is_counted_as_not_judged_by_its_quota() -> None:
    assert {row.unjudged for row in found(rule="quota-uncounted")} == {"resource with an uncounted quota"}
    assert [row.resource for row in found({"reserved": DROP}, rule="quota-uncounted")] == [
        "gcp:compute/instance:Instance vm"
    ]


def test_a_project_of_own_code_alone_is_a_note_once() -> None:
    resources = planned({"bucket.project": "example-other", "images.project": "example-other"})
    for resource in resources:
        resource.own_line = 7 if resource.name in {"bucket", "images", "vm"} else None
    whole = program(views_of_plan(resources), stack="dev", environment="dev", team=None, production=True)

    (note,) = (row for row in evaluate(whole, [RULES[RULE]]) if row.unjudged == "project of no stack")
    assert note.message.startswith("images is in example-other, which no stack file names")


def test_addresses_are_no_reference_and_a_network_of_several_interfaces_is_one() -> None:
    of_pool = {"gpu.networkConfig.additionalNodeNetworkConfigs": [*INTERFACES, *INTERFACES]}
    (*_, first, second) = found({**of_pool, "files.networks.0.reservedIpRange": "10.2.0.64/26"}, rule=RULE)

    assert [row.message.partition(" ")[0] for row in (first, second)] == ["their-vpc", "their-subnet"]


def test_of_a_program_that_is_not_ours_vms_and_disks_of_their_own_are_counted_by_no_quota() -> None:
    findings = found(rule="quota-uncounted")

    assert {(finding.resource or "").rpartition(" ")[2] for finding in findings} == {"reserved", "vm"}
    assert {(finding.severity, finding.unjudged) for finding in findings} == {
        ("note", "resource with an uncounted quota")
    }
