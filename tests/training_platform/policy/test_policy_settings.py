"""The pack's config: valid settings, and findings about wrong ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationPolicy,
)

from tests.support.places import ORGANISATION
from tests.training_platform.policy.pack_run import OPTIONS, SNAPSHOT, Run, pool, urn
from training_platform.cli.main import app
from training_platform.policy import evaluation, registered
from training_platform.policy.evaluation import FIXES
from training_platform.policy.pack import policies
from training_platform.policy.settings import LEVELS, RULESETS, RULESETS_FILE, settings, wrong_configs, wrong_settings
from training_platform.rules import view_rules

POLICIES = Path(__file__).parents[3] / "policies"


@pytest.fixture(scope="module")
def pack() -> dict[str, Policy]:
    return {policy.name: policy for policy in policies(None)}


def test_the_policies_that_a_config_may_name_are_those_of_the_pack(pack: dict[str, Policy]) -> None:
    assert list(settings()) == list(pack)
    assert set(LEVELS) == {level.value for level in EnforcementLevel}


def test_every_setting_has_a_type_and_says_what_it_is_for(pack: dict[str, Policy]) -> None:
    schemas = [policy.config_schema for policy in pack.values() if policy.config_schema]
    settings = [setting for schema in schemas for setting in schema.properties.values()]

    assert len(schemas) == len(pack) - 2  # advice has none
    assert all(setting["type"] and setting["description"] for setting in settings)


def test_severities_tell_data_loss_from_house_rules_and_advice(pack: dict[str, Policy]) -> None:
    assert pack["protection"].severity is Severity.CRITICAL
    assert pack["tpu"].severity is pack["quota"].severity is Severity.HIGH
    assert pack["labels"].severity is Severity.MEDIUM
    assert pack["advice"].severity is pack["stack-advice"].severity is Severity.LOW


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"labls": {}}, "policy 'labls' does not exist. Allowed: access, addresses, "),
        ({"labels": {"enviroment": "dev"}}, "labels has no setting 'enviroment'. Allowed: advisoryRules, "),
        ({"all": {"level": 1}}, "all has no setting 'level'. Allowed: enforcementLevel."),
        (
            {"labels": "advisry"},
            "'advisry' is not an enforcement level. Allowed: advisory, mandatory, remediate, disabled.",
        ),
        ({"labels": {"enforcementLevel": 1}}, "1 is not an enforcement level."),
        ({"labels": 5}, "5 is not an enforcement level."),
        ({"labels": {"environment": 5}}, "5 has the wrong type. Allowed: a string."),
        ({"disks": {"advisoryRules": "boot-disk-size"}}, "'boot-disk-size' has the wrong type. Allowed: a list."),
        (
            {"disks": {"advisoryRules": ["boot-dsk-size"]}},
            "'boot-dsk-size' is not a rule of disks. Allowed: boot-disk-",
        ),
        ({"quota": {"snapshot": 5}}, "5 has the wrong type. Allowed: a string or limits."),
        ({"quota": {"snapshot": "nowhere.yaml"}}, "quota.snapshot: nowhere.yaml: cannot be read: "),
        ({"quota": {"snapshot": {"project": "example-train"}}}, "quota.snapshot: the snapshot in the policy pack's"),
    ],
)
def test_what_is_wrong_is_said(config: dict[str, Any], message: str) -> None:
    (wrong,) = wrong_settings(config)

    assert str(wrong).startswith(message)


def test_the_nearest_name_is_named() -> None:
    wrong = wrong_settings({
        "labls": {},
        "labels": {"enviroment": "dev", "enforcementLevel": "mandtory"},
        "disks": {"advisoryRules": ["boot-disk-size", "boot-dsk-type"]},
    })  # fmt: skip

    assert [(setting.path, setting.nearest) for setting in wrong] == [
        (("labls",), "labels"),
        (("labels", "enviroment"), "environment"),
        (("labels", "enforcementLevel"), "mandatory"),
        (("disks", "advisoryRules", 1), "boot-disk-type"),
    ]


def test_a_right_config_is_taken(tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text(SNAPSHOT)
    config = {
        "all": {},
        "labels": {"environment": "dev", "enforcementLevel": "remediate"},
        "disks": {"advisoryRules": ["boot-disk-size"]},
        "tpu": "disabled",
        "quota": {"snapshot": "limits.yaml"},
    }

    assert list(wrong_settings(config, tmp_path)) == []


def test_the_files_of_a_repository_are_checked_with_line_and_column(tmp_path: Path) -> None:
    folder = tmp_path / "policies" / "config"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text('{\n  "labls": "advisory",\n\t"labels": {"enviroment": "dev", "team": 5}\n}\n')
    (folder / "b.json").write_text('{"labels": "advisory",}')
    (folder / "c.json").write_text("[]")
    (folder / "d.json").write_text('{"labels": "advisory"}')
    (folder / "e.json").write_bytes(b'{"labels": "\xff"}')

    messages = list(wrong_configs(tmp_path))

    assert [message.partition(": ")[0] for message in messages] == [
        "policies/config/a.json:2:3",
        "policies/config/a.json:3:13",
        "policies/config/a.json:3:34",
        "policies/config/b.json:1:23",
        "policies/config/c.json:1:1",
        "policies/config/e.json",
    ]
    assert messages[0].endswith("Nearest: labels")


def test_a_check_with_a_wrong_config_ends_with_2_and_says_all_of_it(tmp_path: Path) -> None:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copytree(POLICIES / "config", tmp_path / "policies" / "config")
    shutil.copy(POLICIES.parent / "Pulumi.yaml", tmp_path)
    command = ["check", "--root", str(tmp_path)]
    right = CliRunner().invoke(app, command)
    (tmp_path / "policies" / "config" / "prod.json").write_text('{"labls": {}, "quota": "mandtory"}')

    wrong = CliRunner().invoke(app, command)

    assert (right.exit_code, wrong.exit_code) == (0, 2)
    assert "not checked: policies/config/prod.json:1:2: labls: policy 'labls' does not exist." in wrong.stdout
    assert "not checked: policies/config/prod.json:1:15: quota: 'mandtory' is not an enforcement level." in wrong.stdout


def test_the_configs_that_come_along_are_ones_that_the_pack_takes() -> None:
    assert len(list((POLICIES / "config").glob("*.json"))) == 3
    assert list(wrong_configs(POLICIES.parent)) == []


def test_an_advisory_rule_of_a_mandatory_policy_is_advice(tmp_path: Path) -> None:
    reported = Run(tmp_path)(pool(size=9.0), disks={"advisoryRules": ["boot-disk-size"]})

    assert "disks" not in reported
    assert any("Rule: boot-disk-size." in message for message in reported["advice"])


STARTED = """
import sys
from pulumi_policy import PolicyPack
from training_platform.policy.pack import policies

before = set(sys.modules)
print(len(policies(None)))
print(*{"pydantic", "yaml", "training_platform.rules", "training_platform.catalog.loader"} & set(sys.modules) - before)
"""


def test_the_file_says_what_the_registered_rules_say() -> None:
    assert RULESETS_FILE.read_text(encoding="utf-8") == registered.text(), "run `make reference`"


def test_each_policy_is_of_the_kind_that_its_rules_want() -> None:
    across = {rule.ruleset for rule in view_rules() if rule.across}
    policies_by_name = {policy.name: policy for policy in policies(None)}

    assert {name for name, policy in policies_by_name.items() if isinstance(policy, StackValidationPolicy)} == {
        *across, "quota", "stack-advice",
    }  # fmt: skip
    assert {
        name
        for name, policy in policies_by_name.items()
        if isinstance(policy, ResourceValidationPolicy) and policy.has_remediation()
    } == set(FIXES)
    assert {name: policy.description for name, policy in policies_by_name.items() if name in RULESETS} == {
        name: ruleset.title for name, ruleset in RULESETS.items()
    }


def test_the_engine_is_told_of_the_policies_before_any_rule_is_loaded() -> None:
    ran = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines() == [str(len(policies(None))), ""]


def test_resources_that_are_asked_for_at_once_share_their_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[threading.Thread] = []
    disks = next(policy for policy in policies(None) if policy.name == "disks")
    assert isinstance(disks, ResourceValidationPolicy)
    kind, name, inputs = pool()
    args = ResourceValidationArgs(kind, inputs, urn(kind, name, "dev"), name, OPTIONS, None, None)
    whole = evaluation.Evaluation

    def ask() -> None:
        disks.validate(args, lambda _message, _urn: None)

    def load(root: Path | None) -> object:
        loads.append(threading.Thread(target=ask))
        if len(loads) == 1:
            loads[0].start()
            loads[0].join(0.05)  # it waits for this one
        return whole(root)

    monkeypatch.setattr(evaluation, "Evaluation", load)
    ask()
    loads[0].join()

    assert len(loads) == 1
