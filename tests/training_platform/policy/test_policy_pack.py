"""What the policies of the pack say, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel
from pulumi_policy.proxy import UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE

from tests.training_platform.checks.reports.hostile import DOES
from tests.training_platform.policy.pack_run import NODE_POOL, SNAPSHOT, Run, pool, urn
from training_platform.config.reading.declaration import Draft
from training_platform.policy.pack import policies
from training_platform.rules import RULES, view_rules

CLUSTER = "gcp:container/cluster:Cluster"
STACK = """\
config:
  training-platform:environment:
    project: example-train
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.10.0.0/20, pods: 10.64.0.0/16, services: 10.10.16.0/20}
        node_pools:
          h100: {machine_type: a3-highgpu-8g, max_nodes: 4}
          v5e: {machine_type: ct5lp-hightpu-8t, topology: 2x4}
    production: false
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "stacks" / "quotas").mkdir(parents=True)
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text(STACK)
    (tmp_path / "stacks" / "clock.yaml").write_text('today: "2026-11-21"\n')
    (tmp_path / "stacks" / "quotas" / "example-train.yaml").write_text(SNAPSHOT)
    return tmp_path


def test_every_rule_set_is_a_policy_and_advice_never_blocks(checkout: Path) -> None:
    policies_by_name = {policy.name: policy for policy in policies(checkout)}

    assert {rule.ruleset for rule in view_rules()} | {"quota", "advice", "stack-advice"} == set(policies_by_name)
    assert {
        name for name, policy in policies_by_name.items() if policy.enforcement_level is EnforcementLevel.ADVISORY
    } == {
        "advice",
        "stack-advice",
    }
    assert all(
        0 < len(policy.description) < 160 for policy in policies_by_name.values()
    )  # it names what its rules judge


def test_flawless_stack_breaks_no_policy(checkout: Path) -> None:
    assert Run(checkout)(pool()) == {}


def test_error_has_the_line_of_the_stack_file(checkout: Path) -> None:
    (message,) = Run(checkout)(pool(size=700_000.0))["disks"]

    assert message.startswith(
        "stacks/Pulumi.dev.yaml:9:11: clusters.main.node_pools.h100.boot_disk.size_gb: is 700,000 GB\n"
    )
    assert "Allowed: 10 to 65,536 GB. Nearest: 65536" in message
    assert "Rule: boot-disk-size. Source: GKE cluster-autoscaler" in message


def test_warning_is_advice(checkout: Path) -> None:
    kind, name, inputs = pool(spot=True, reservationAffinity={"consumeReservationType": "NO_RESERVATION"})
    reported = Run(checkout)(
        (kind, name, {**inputs, "autoscaling": {"maxNodeCount": 4.0, "locationPolicy": "BALANCED"}})
    )

    assert "location-policy-any" in reported["advice"][0]
    assert "consumption" not in reported


def test_unknown_value_is_advice_and_hides_no_error(checkout: Path) -> None:
    reported = Run(checkout)(pool(size=UNKNOWN_NUMBER_VALUE, machineType="a3-higpu-8g"))

    (undecided,) = (text for text in reported["stack-advice"] if "not decided" in text)
    assert "is not decided: disk_gb is not known before deployment" in undecided
    assert "boot-disk-size" in undecided
    assert "disks" not in reported
    assert "'a3-higpu-8g' is not in the catalogue" in reported["machines"][0]


@pytest.mark.parametrize("setting", [{}, {"advisoryRules": ["boot-disk-type"]}], ids=["", "advisory"])
def test_a_rule_that_fails_is_a_violation_and_leaves_none_of_its_rule_set_silent(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, setting: dict[str, Any]
) -> None:
    monkeypatch.setitem(RULES, "boot-disk-type", replace(RULES["boot-disk-type"], check=_broken))
    (checkout / "stacks" / "exemptions.yaml").write_text(
        'exemptions:\n- {rule: boot-disk-type, stack: dev, path: "*", reason: no reason, owner: nobody, '
        'expires: "2026-12-31"}\n'
    )

    size, failed = sorted(Run(checkout)(pool(size=700_000.0), disks=setting)["disks"], key=lambda text: "bug" in text)

    assert "is 700,000 GB" in size
    assert "boot-disk-type did not check main-h100-pool because of a bug in training-platform: KeyError" in failed


def _broken(*_: object) -> Iterator[Draft]:
    raise KeyError("a value of the file")
    yield


@pytest.mark.parametrize("policy", ["disks", "addresses", "quota"])
def test_a_policy_that_fails_before_its_rules_is_a_violation(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    monkeypatch.setattr("training_platform.policy.checkout.views_of_plan", _fails)

    message, *_ = Run(checkout)(pool())[policy]

    assert "was not checked because of a bug in training-platform: KeyError" in message


def _fails(*_: object) -> None:
    raise KeyError("a value of the file")


def test_wholly_unknown_resource_ends_no_policy(checkout: Path) -> None:
    kind, name, _ = pool()

    reported = Run(checkout)((kind, name, {"nodeConfig": UNKNOWN_OBJECT_VALUE}), pool("main-h100-b-pool", size=1.0))

    assert "is 1 GB" in reported["disks"][0]


def test_stack_policies_read_inputs_and_not_the_engines_state(checkout: Path) -> None:
    labels = {"training-platform/flavor": "tpu-v5e-2x2"}
    inputs = {"location": "us-central1-a", "nodeConfig": {"machineType": "ct5lp-hightpu-8t", "labels": labels}}
    spec = {"nodeLabels": {"cloud.google.com/gke-tpu-topology": "2x2"}}
    flavor = {"metadata": {"name": "tpu-v5e-2x2"}, "spec": spec}
    run = Run(checkout)

    reported = run(
        (NODE_POOL, "main-v5e-pool", inputs),
        ("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor", "main-flavors-tpu-v5e-2x2", flavor),
        state={"nodeConfig": UNKNOWN_OBJECT_VALUE, "metadata": UNKNOWN_OBJECT_VALUE},
    )

    assert "'2x2' is not a valid topology for ct5lp-hightpu-8t" in reported["flavors"][0]
    assert urn(NODE_POOL, "main-v5e-pool", "dev") in run.urns


@pytest.mark.parametrize(("max_nodes", "count"), [(8.0, 0), (9.0, 1)])
def test_quota_is_counted_from_the_plan(checkout: Path, max_nodes: float, count: int) -> None:
    quota_messages = Run(checkout)(pool(max_nodes=max_nodes)).get("quota", [])

    assert len(quota_messages) == count
    assert all(
        "needs 72, all of it for h100" in message and "max_nodes 8 for h100" in message for message in quota_messages
    )


def test_quota_counts_other_stacks_from_their_files(checkout: Path) -> None:
    (checkout / "stacks" / "Pulumi.stage.yaml").write_text(STACK)  # 4 * 8 of the 64

    quota_messages = Run(checkout)(pool(max_nodes=5.0))["quota"]

    assert len(quota_messages) == 1
    assert "needs 72, of which h100 40 and h100 of stage 32" in quota_messages[0]  # readable: a list follows


EXEMPTION = """\
exemptions:
  - {rule: RULE, stack: dev, path: clusters.main.node_pools.h100, reason: R, owner: a@b.example, expires: "2026-11-21"}
"""


@pytest.mark.parametrize(
    ("rule", "changed", "policy", "advice"),
    [
        ("boot-disk-size", {"size": 9.0}, "disks", "advice"),
        ("quota-exceeded", {"max_nodes": 9.0}, "quota", "stack-advice"),
    ],
)
def test_exempt_error_is_advice_until_its_last_day_is_over(
    checkout: Path, rule: str, changed: dict[str, Any], policy: str, advice: str
) -> None:
    file = checkout / "stacks" / "exemptions.yaml"
    file.write_text(EXEMPTION.replace("RULE", rule))

    exempt = Run(checkout)(pool(**changed))
    (checkout / "stacks" / "clock.yaml").write_text('today: "2026-11-22"\n')
    expired = Run(checkout)(pool(**changed))

    assert policy not in exempt
    (message,) = (message for message in exempt[advice] if f"Rule: {rule}." in message)
    assert message.endswith("\n  exempt until 2026-11-21 by a@b.example: R")
    (message,) = (message for message in expired[policy] if f"Rule: {rule}." in message)
    assert "exempt" not in message


def test_exemptions_that_are_rejected_exempt_nothing_and_that_is_said(checkout: Path) -> None:
    (checkout / "stacks" / "exemptions.yaml").write_text(EXEMPTION.replace("RULE", "boot-disk-sise"))

    reported = Run(checkout)(pool(size=9.0))

    assert "is 9 GB" in reported["disks"][0]
    assert any(
        message.startswith("nothing is exempt: stacks/exemptions.yaml:2:6: ") for message in reported["stack-advice"]
    )


def test_what_cannot_be_counted_is_advice(checkout: Path) -> None:
    reported = Run(checkout)(pool(max_nodes=UNKNOWN_NUMBER_VALUE))

    assert any("max_nodes is not known before deployment" in message for message in reported["stack-advice"])
    assert "quota" not in reported


def test_outside_a_checkout_rules_hold_and_the_rest_is_said(tmp_path: Path) -> None:
    reported = Run(tmp_path)(pool(size=9.0))

    assert reported["disks"][0].startswith("dev: nodeConfig.bootDisk.sizeGb: sizeGb is 9 GB\n")
    assert "quota" not in reported
    assert any("quotas are not checked" in message for message in reported["stack-advice"])
    assert any("labels is not decided: environment is not known" in message for message in reported["stack-advice"])


UNPROTECTED = (CLUSTER, "main-cluster", {"name": "c", "deletionProtection": False})


@pytest.mark.parametrize("stack", ["dev", "prod", "prod-vision"])
@pytest.mark.parametrize("production", [True, False])
def test_a_program_without_a_stack_file_is_production_where_the_config_says_so(
    tmp_path: Path, stack: str, production: bool
) -> None:
    reported = Run(tmp_path, stack)(UNPROTECTED, protection={"production": production})

    assert len(reported.get("protection", [])) == int(production)


def test_a_program_of_which_nothing_says_whether_it_is_production_is_not_decided(tmp_path: Path) -> None:
    reported = Run(tmp_path, "prod")(UNPROTECTED)

    assert "protection" not in reported
    (undecided,) = (text for text in reported["stack-advice"] if "not decided" in text)
    assert "cluster-deletion-protection" in undecided


def test_what_cannot_be_judged_in_one_way_is_said_once_for_a_stack(tmp_path: Path) -> None:
    topics = [("gcp:bigtable/table:Table", name, {"name": name}) for name in ("first", "second", "third")]
    account = {"serviceAccount": "nodes@example-other.iam.gserviceaccount.com"}

    reported = Run(tmp_path, project="other")(*topics, pool(**account))

    (undocumented,) = (text for text in reported["stack-advice"] if "document-missing" in text)
    assert "2 more are not judged for the same reason: document-missing" in undocumented
    (elsewhere,) = (text for text in reported["stack-advice"] if "elsewhere-not-judged" in text)
    assert "main is not in this program" in elsewhere
    assert not any("not judged" in text for text in reported.get("advice", []))


SHARED = """\
config:
  training-platform:environment:
    project: example-train
    production: false
    network: {name: shared, project: example-host}
    clusters:
      main:
        location: us-central1
        subnet: {name: train, nodes: 10.10.0.0/29, pods: 10.64.0.0/16, services: 10.10.16.0/20}
        system_pool: {min_nodes: 1, max_nodes: 2}
"""


@pytest.mark.parametrize(("nodes_of_lab", "count"), [(2, 0), (3, 1)])
def test_nodes_of_all_environments_on_an_existing_subnet_are_summed(
    checkout: Path, nodes_of_lab: int, count: int
) -> None:
    (checkout / "stacks" / "Pulumi.dev.yaml").write_text(SHARED)
    other = SHARED.replace("max_nodes: 2", f"max_nodes: {nodes_of_lab}").replace("example-train", "example-other")
    (checkout / "stacks" / "Pulumi.lab.yaml").write_text(other)
    autoscaling = {"totalMinNodeCount": 1.0, "totalMaxNodeCount": 2.0}
    system = (NODE_POOL, "main-system-pool", {**pool()[2], "autoscaling": autoscaling, "location": "us-central1"})

    reported = Run(checkout)(system)

    messages = [text for text in reported.get("addresses", []) if "of subnet train" in text]
    assert len(messages) == count
    assert all("has 4 addresses for 5 nodes: main of dev 2, main of lab 3" in text for text in messages)
    assert any("its other users are not known here" in " ".join(text.split()) for text in reported["stack-advice"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [("production: true", "can be deleted"), ("production: false", None), ("", "does not say whether")],
)
def test_a_stack_file_says_whether_it_is_production(checkout: Path, line: str, expected: str | None) -> None:
    text = STACK.replace("    production: false\n", f"    {line}\n" if line else "")
    (checkout / "stacks" / "Pulumi.dev.yaml").write_text(text)

    protection_messages = Run(checkout)(UNPROTECTED).get("protection", [])

    assert len(protection_messages) == (1 if expected else 0)
    assert all(expected in message for message in protection_messages if expected)


def test_rejected_stack_file_leaves_findings_without_a_line(checkout: Path) -> None:
    (checkout / "stacks" / "Pulumi.dev.yaml").write_text(STACK.replace("project:", "projekt:"))

    reported = Run(checkout)(pool(size=9.0))

    assert reported["disks"][0].startswith("dev: nodeConfig.bootDisk.sizeGb: sizeGb is 9 GB\n")


def test_what_the_pack_says_does_nothing_in_a_log(checkout: Path) -> None:
    kind, _, inputs = pool(size=700_000.0)
    hostile = "a\n::error::gone\n##[add-path]/tmp\x1b[2K"
    run = Run(checkout)

    lines = [
        message for messages in run((kind, hostile, {**inputs, "project": hostile})).values() for message in messages
    ]

    assert any("gone" in line for line in lines)
    assert [line for line in lines if DOES.search(line)] == []


def test_no_message_has_a_value_that_can_be_secret() -> None:
    marker = "Zx9-secret-of-nobody-4711"
    inputs = {"stringData": {"a": 5.0, "b": [marker]}, "data": {"c": marker}}

    reported = str(Run(None)(("kubernetes:core/v1:Secret", "one", inputs)))

    assert "stringData" in reported
    assert marker not in reported


def test_no_message_has_the_secret_of_a_resource_that_was_seen_before() -> None:
    secret = ("kubernetes:core/v1:Secret", "one", {"stringData": {"a": "us-nowhere1"}})
    bucket = (
        "gcp:storage/bucket:Bucket",
        "two",
        {"name": "example-two", "location": "EU", "storageClass": "us-nowhere1"},
    )

    alone = str(Run(None)(bucket))
    both = str(Run(None)(secret, bucket))

    assert "us-nowhere1" in alone
    assert "us-nowhere1" not in both
    assert "may be secret" in both


def test_a_resource_of_an_update_is_judged_by_its_new_inputs() -> None:
    run = Run(None)
    run(pool(size=9.0))
    before = run.messages.pop("disks")
    after = run(pool(size=200.0))

    assert "boot-disk-size" in str(before)
    assert "disks" not in after
