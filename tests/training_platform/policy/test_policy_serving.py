"""The pack's servicer, asked as the engine asks: the same verdict as the SDK's own, for fewer readings of resources."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel, policy
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from tests.training_platform.policy.pack_run import Given, pool, urn
from training_platform.policy import serving
from training_platform.policy.evaluation import planned
from training_platform.policy.pack import Pack, ResourcePolicy
from training_platform.policy.serving import CheckedServicer
from training_platform.resources.planned import UNKNOWN

Said = list[tuple[str, str, str]]
BUCKET: Given = ("gcp:storage/bucket:Bucket", "data", {"name": "example-data", "location": "us-central1"})
NETWORK: Given = ("gcp:compute/network:Network", "network", {"autoCreateSubnetworks": True})
SUBNETS: tuple[Given, ...] = tuple(
    ("gcp:compute/subnetwork:Subnetwork", name, {"network": "network", "ipCidrRange": "10.0.0.0/20", "name": name})
    for name in ("west", "east")
)
RESOURCES = (pool(most=40.0, size=9.0), BUCKET, NETWORK, *SUBNETS)


def asked(kind: str, given: Given) -> Any:
    token, name, inputs = given
    made = getattr(analyzer_pb2, kind)(type=token, name=name, urn=urn(token, name, "dev"))
    json_format.ParseDict(inputs, made.properties)
    return made


def servicer(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Pack]:
    pack = Pack(None)
    monkeypatch.setattr(CheckedServicer, "pack", pack, raising=False)
    return kind("p", "1.0.0", pack.policies, EnforcementLevel.MANDATORY), pack


def verdict(answers: Any) -> Said:
    return [(each.policyName, each.urn, each.message) for answer in answers for each in answer.diagnostics]


def test_what_is_said_is_what_the_sdks_own_servicer_says(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Said] = []
    for kind in (CheckedServicer.__bases__[0], CheckedServicer):
        asks, _ = servicer(kind, monkeypatch)
        single = [asks.Analyze(asked("AnalyzeRequest", each), None) for each in RESOURCES]
        stack = analyzer_pb2.AnalyzeStackRequest(resources=[asked("AnalyzerResource", each) for each in RESOURCES])
        said.append(verdict([*single, asks.AnalyzeStack(stack, None)]))

    assert said[0] == said[1]
    assert {"addresses", "advice"} <= {name for name, _, _ in said[1]}


def reads(module: Any, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the list to which is added what a module reads of messages from now on."""
    read: list[dict[str, Any]] = []

    def to_dict(message: Any) -> Any:
        read.append(json_format.MessageToDict(message))
        return read[-1]

    monkeypatch.setattr(module, "json_format", type("counted", (), {"MessageToDict": staticmethod(to_dict)}))
    return read


def test_a_resource_is_read_once_for_the_policies_that_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    asks, pack = servicer(CheckedServicer, monkeypatch)
    ours, the_sdks = reads(serving, monkeypatch), reads(policy, monkeypatch)
    request = asked("AnalyzeRequest", BUCKET)
    asks.Analyze(request, None)

    single = [each for each in pack.policies if isinstance(each, ResourcePolicy)]
    concerned = [each for each in single if each.concerns(request.type, request.urn)]
    assert ours == [BUCKET[2]]
    assert not any(the_sdks)  # nothing is left in the request
    assert len(the_sdks) == len(concerned) + 1 < len(single) / 2  # and for the advice that these leave


def test_a_stacks_resources_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asks, _ = servicer(CheckedServicer, monkeypatch)
    asks.Analyze(asked("AnalyzeRequest", BUCKET), None)
    ours, the_sdks = reads(serving, monkeypatch), reads(policy, monkeypatch)
    other: Given = ("random:index/randomPet:RandomPet", "pet", {"length": 2.0})
    stack = analyzer_pb2.AnalyzeStackRequest(resources=[asked("AnalyzerResource", each) for each in (BUCKET, other)])
    asks.AnalyzeStack(stack, None)

    assert (ours, the_sdks) == ([other[2]], [])


def test_each_policy_judges_by_its_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    asks, _ = servicer(CheckedServicer, monkeypatch)
    config = analyzer_pb2.ConfigureAnalyzerRequest()
    config.policyConfig["protection"].properties.update({"production": True})
    asks.Configure(config, None)
    cluster: Given = ("gcp:container/cluster:Cluster", "main", {"name": "c", "deletionProtection": False})
    said = {name: message for name, _, message in verdict([asks.Analyze(asked("AnalyzeRequest", cluster), None)])}

    assert "Rule: cluster-deletion-protection." in said["protection"]
    assert "labels is not decided: environment is not known" in said["advice"]


def test_a_resource_that_is_asked_for_again_is_judged_by_its_new_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    asks, _ = servicer(CheckedServicer, monkeypatch)
    said = [asks.Analyze(asked("AnalyzeRequest", pool(size=size)), None) for size in (9.0, 200.0)]

    assert ["disks" in {name for name, _, _ in verdict([answer])} for answer in said] == [True, False]


def test_what_is_unknown_or_secret_is_read_as_by_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "example-data"}
    given = {"name": secret, "location": UNKNOWN_STRING_VALUE, "labels": [UNKNOWN_STRING_VALUE, {"a": secret}]}
    read = []
    for kind in (CheckedServicer.__bases__[0], CheckedServicer):
        asks, pack = servicer(kind, monkeypatch)
        request = asked("AnalyzeRequest", (BUCKET[0], BUCKET[1], given))
        request.options.protect = True
        asks.Analyze(request, None)
        read.append(pack.evaluation.seen[request.urn])

    options = dict(read[1].options)
    assert options.pop("secrets") == ("example-data", "example-data")
    assert (read[0].inputs, read[0].options) == (read[1].inputs, options)
    assert read[1].inputs == {
        "name": "example-data", "location": UNKNOWN, "labels": [UNKNOWN, {"a": "example-data"}]
    }  # fmt: skip
    assert read[0].options == {"protect": True}


def test_what_a_resource_depends_on_is_read_with_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    asks, pack = servicer(CheckedServicer, monkeypatch)
    resources = [asked("AnalyzerResource", each) for each in (NETWORK, *SUBNETS)]
    resources[1].dependencies.extend([resources[0].urn, "urn:pulumi:dev::p::a:b:C::elsewhere"])
    kept: list[Any] = []
    monkeypatch.setattr(pack.evaluation, "read_stacks", kept.extend)
    asks.AnalyzeStack(analyzer_pb2.AnalyzeStackRequest(resources=resources), None)

    assert [planned(each).options for each in kept] == [{}, {"dependsOn": [NETWORK[:2]]}, {}]


@pytest.mark.parametrize("level", [analyzer_pb2.MANDATORY, analyzer_pb2.REMEDIATE])
def test_a_resource_is_put_right_where_a_level_says_so(level: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for kind in (CheckedServicer.__bases__[0], CheckedServicer):
        asks, _ = servicer(kind, monkeypatch)
        config = analyzer_pb2.ConfigureAnalyzerRequest()
        config.policyConfig["labels"].enforcementLevel = level
        config.policyConfig["labels"].properties.update({"environment": "dev"})
        asks.Configure(config, None)
        said.append(asks.Remediate(asked("AnalyzeRequest", BUCKET), None))

    assert said[0] == said[1]
    assert [each.policyName for each in said[1].remediations] == ["labels"] * (level == analyzer_pb2.REMEDIATE)
