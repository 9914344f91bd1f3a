"""The pack on programs that are not ours: no stack file says anything of their resources."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.training_platform.policy.pack_run import SNAPSHOT, Run, pool


def messages(messages_by_policy: dict[str, list[str]], policy: str, rule: str) -> list[str]:
    return [message for message in messages_by_policy.get(policy, []) if f"Rule: {rule}." in message]


@pytest.mark.parametrize(("max_nodes", "count"), [(8.0, 0), (9.0, 1)])
def test_one_stack_is_compared_with_the_snapshot_of_the_config(max_nodes: float, count: int) -> None:
    snapshot = yaml.safe_load(SNAPSHOT)

    reported = Run(None, project="another")(pool(max_nodes=max_nodes), quota={"snapshot": snapshot})

    assert len(messages(reported, "quota", "quota-exceeded")) == count
    assert any("other stacks are not counted" in message for message in reported["stack-advice"])


def test_limits_that_come_as_floats_are_whole_numbers(tmp_path: Path) -> None:
    limits = {"GPUS-PER-GPU-FAMILY-per-project-region": [{"limit": 64.0, "region": "us-central1"}]}
    snapshot = {"project": "example-train", "taken": "2026-11-01", "limits": {"compute.googleapis.com": limits}}

    reported = Run(tmp_path, project="another")(pool(max_nodes=9.0), quota={"snapshot": snapshot})

    assert len(messages(reported, "quota", "quota-exceeded")) == 1


def test_a_snapshot_is_read_from_its_path(tmp_path: Path) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text(SNAPSHOT.replace("GPUS-ALL-REGIONS-per-project", "GPUS-elsewhere"))

    reported = Run(None, project="another")(pool(), quota={"snapshot": str(file)})

    (message,) = messages(reported, "quota", "quota-unknown")
    assert (
        f"GPUS-ALL-REGIONS-per-project of compute.googleapis.com, which main-h100-pool needs, is not in {file}"
        in message
    )


def test_projects_that_the_snapshot_is_not_of_are_named() -> None:
    kind, name, inputs = pool(max_nodes=9.0)
    snapshot = yaml.safe_load(SNAPSHOT)

    reported = Run(None, project="another")(
        (kind, name, {**inputs, "project": "elsewhere"}), quota={"snapshot": snapshot}
    )

    assert "quota" not in reported
    assert (
        "the quotas of elsewhere are not checked, because the snapshot is for another project"
        in reported["stack-advice"]
    )


def test_our_stack_files_say_nothing_of_another_projects_stack_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.dev.yaml").write_text("config: {}\n")
    exemption = (
        '{rule: boot-disk-size, stack: dev, resource: "*", reason: R, owner: a@b.example, expires: "2999-01-01"}'
    )
    (tmp_path / "stacks" / "exemptions.yaml").write_text(f"exemptions:\n  - {exemption}\n")

    ours = [message for message in Run(tmp_path)(pool(size=9.0))["advice"] if "Rule: boot-disk-size." in message]
    (theirs,) = Run(tmp_path, project="another")(pool(size=9.0))["disks"]

    assert ["exempt until" in message for message in ours] == [True]
    assert "exempt until" not in theirs


def test_settings_say_the_environment_and_the_team() -> None:
    reported = Run(None, project="another")(pool(), labels={"environment": "prod", "team": "vision"})

    assert [message.splitlines()[0] for message in reported["labels"]] == [
        "dev: nodeConfig.resourceLabels: label environment is 'dev' on NodePool main-h100-pool",
        "dev: nodeConfig.resourceLabels: label team is missing on NodePool main-h100-pool",
    ]


def test_rules_of_the_house_are_for_programs_that_switch_them_on() -> None:
    kind, name, inputs = pool()
    public = (kind, name, {**inputs, "networkConfig": {**inputs["networkConfig"], "enablePrivateNodes": False}})

    assert "labels" not in Run(None, project="another")(public)
    assert "network" not in Run(None, project="another")(public)
    reported = Run(None, project="another")(public, network={"houseRules": True})
    assert [message.splitlines()[0] for message in reported["network"]] == [
        "dev: networkConfig.enablePrivateNodes: nodes of this pool can get public addresses"
    ]
    assert "network" in Run(None)(public)


def test_a_finding_names_the_input_as_the_program_spells_it() -> None:
    (inner,) = Run(None, project="another")(pool(size=9.0))["disks"]
    kind, name, inputs = pool(size=9.0)
    inputs["nodeConfig"] |= {"diskSizeGb": inputs["nodeConfig"].pop("bootDisk")["sizeGb"]}
    (outer,) = Run(None, project="another")((kind, name, inputs))["disks"]

    assert inner.startswith("dev: nodeConfig.bootDisk.sizeGb: ")
    assert outer.startswith("dev: nodeConfig.diskSizeGb: ")
