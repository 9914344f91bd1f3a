"""The pack's config: what it may say, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest
from jsonschema import Draft7Validator
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel, Policy, Severity

from policies.pack import policies
from policies.serving import servicer
from policies.settings import wrong_settings
from tests.policies.pack_run import SNAPSHOT, Run, pool

POLICIES = Path(__file__).parents[2] / "policies"
LEVELS = {each.value for each in EnforcementLevel}


@pytest.fixture(scope="module")
def pack() -> dict[str, Policy]:
    return {policy.name: policy for policy in policies(None)}


def test_every_setting_has_a_type_and_says_what_it_is_for(pack: dict[str, Policy]) -> None:
    schemas = [policy.config_schema for policy in pack.values() if policy.config_schema]
    settings = [each for schema in schemas for each in schema.properties.values()]

    assert len(schemas) == len(pack) - 2  # advice has none
    assert all(each["type"] and each["description"] for each in settings)


def test_severities_tell_data_loss_from_house_rules_and_advice(pack: dict[str, Policy]) -> None:
    assert pack["protection"].severity is Severity.CRITICAL
    assert pack["tpu"].severity is pack["quota"].severity is Severity.HIGH
    assert pack["labels"].severity is Severity.MEDIUM
    assert pack["advice"].severity is pack["stack-advice"].severity is Severity.LOW


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"labls": {}}, "there is no policy 'labls'. Allowed: addresses, "),
        ({"labels": {"enviroment": "dev"}}, "labels has no setting 'enviroment'. Allowed: advisoryRules, "),
        ({"all": {"level": 1}}, "all has no setting 'level'. Allowed: enforcementLevel."),
        ({"quota": {"snapshot": "nowhere.yaml"}}, "quota.snapshot: nowhere.yaml: cannot be read: "),
        ({"quota": {"snapshot": {"project": "example-train"}}}, "quota.snapshot: the snapshot in the policy pack's"),
    ],
)
def test_what_is_wrong_is_said(config: dict[str, Any], said: str, pack: dict[str, Policy]) -> None:
    (sentence,) = wrong_settings(pack.values(), config)

    assert sentence.startswith(said)


def test_the_nearest_name_is_named(pack: dict[str, Policy]) -> None:
    found = wrong_settings(pack.values(), {"labls": {}, "labels": {"enviroment": "dev"}})

    assert [each.rpartition("Nearest: ")[2] for each in found] == ["labels", "environment"]


def test_a_right_config_is_taken(pack: dict[str, Policy], tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text(SNAPSHOT)
    config = {"all": {}, "labels": {"environment": "dev"}, "quota": {"snapshot": str(tmp_path / "limits.yaml")}}

    assert wrong_settings(pack.values(), config) == []


class Refused(Exception):
    """What a call was ended with."""


class Context:
    def abort(self, code: grpc.StatusCode, message: str) -> None:
        raise Refused(code, message)


def configure(name: str, pack: dict[str, Policy]) -> None:
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    request.policyConfig[name].enforcementLevel = analyzer_pb2.ADVISORY
    made = servicer(list(pack.values()))("p", "1.0.0", list(pack.values()), EnforcementLevel.MANDATORY)
    made.Configure(request, Context())  # type: ignore[no-untyped-call]


def test_the_engine_is_refused_a_config_with_a_wrong_name(pack: dict[str, Policy]) -> None:
    with pytest.raises(Refused, match="the policy config is wrong: there is no policy 'labls'"):
        configure("labls", pack)


def test_the_engine_may_configure_a_policy_that_the_pack_has(pack: dict[str, Policy]) -> None:
    configure("labels", pack)


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_the_config_of_each_environment_is_one_that_the_pack_takes(name: str, pack: dict[str, Policy]) -> None:
    config = json.loads((POLICIES / "config" / f"{name}.json").read_text())
    settings = {
        policy: each if isinstance(each, dict) else {"enforcementLevel": each} for policy, each in config.items()
    }
    levels = {each.pop("enforcementLevel") for each in settings.values() if "enforcementLevel" in each}

    assert wrong_settings(pack.values(), settings) == []
    assert levels <= LEVELS
    for policy, each in settings.items():
        known = pack[policy].config_schema
        assert known
        Draft7Validator({"type": "object", "properties": known.properties}).validate(each)


def test_an_advisory_rule_of_a_mandatory_policy_is_advice(tmp_path: Path) -> None:
    found = Run(tmp_path)(pool(size=9.0), disks={"advisoryRules": ["boot-disk-size"]})

    assert "disks" not in found
    assert any("Rule: boot-disk-size." in each for each in found["advice"])
