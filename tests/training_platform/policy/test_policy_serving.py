"""The pack's servicer, asked as the engine asks: the same verdict as the SDK's own, for fewer readings of resources."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel, policy

from tests.training_platform.policy.pack_run import Given, pool, urn
from training_platform.policy.pack import Pack
from training_platform.policy.resource_policy import ResourcePolicy
from training_platform.policy.serving import CheckedServicer

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
    monkeypatch.setattr(CheckedServicer, "seen", pack.seen)
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


def test_a_resource_is_read_for_the_policies_that_it_concerns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asks, pack = servicer(CheckedServicer, monkeypatch)
    request, read = asked("AnalyzeRequest", BUCKET), []

    def to_dict(message: Any) -> Any:
        read.append(message)
        return json_format.MessageToDict(message)

    monkeypatch.setattr(policy, "json_format", type("counted", (), {"MessageToDict": staticmethod(to_dict)}))
    asks.Analyze(request, None)

    single = [each for each in pack.policies if isinstance(each, ResourcePolicy)]
    concerned = [each for each in single if each.concerns(request.type, request.urn)]
    assert len(read) == len(concerned) + 1 < len(single) / 2  # and for the advice that these leave


def test_a_stacks_resources_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asks, _ = servicer(CheckedServicer, monkeypatch)
    asks.Analyze(asked("AnalyzeRequest", BUCKET), None)
    other: Given = ("random:index/randomPet:RandomPet", "pet", {"length": 2.0})
    stack = analyzer_pb2.AnalyzeStackRequest(resources=[asked("AnalyzerResource", each) for each in (BUCKET, other)])
    asks.AnalyzeStack(stack, None)

    assert [bool(each.properties.fields) for each in stack.resources] == [False, True]
