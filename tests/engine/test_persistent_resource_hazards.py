"""What the released provider does wrong with persistent resources in the local cloud, and what our plan makes of it.

The plugin is asked by gRPC as the engine asks it, with the inputs and options that our program registers.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2

from local_google_cloud.api import CloudSettings, LocalCloud, Store, serve
from tests.training_platform.resources.persistent_resources import RESOURCE, deploy
from tests.violations.refusers import Provider, provider, struct
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.resources.stack_resource import StackResource

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

Json = dict[str, Any]
URN = f"urn:pulumi:prod-vision::training-platform::{RESOURCE}::vertex-tuning-persistent-resource"
NAME = "projects/example-vision/locations/us-central1/persistentResources/prod-vision-tuning"


class Deployed:
    """One resource: what the plugin is asked for it, and what the local cloud has."""

    def __init__(self, plugin: Provider, cloud: LocalCloud) -> None:
        self._stub = plugin.stub
        self.cloud = cloud
        self.outputs = struct_pb2.Struct()

    def create(self, plan: StackResource, seconds: float | None = None) -> None:
        properties = self._checked(plan)
        request = provider_pb2.CreateRequest(urn=URN, properties=properties, timeout=seconds or allowed(plan, "create"))
        self.outputs = self._stub.Create(request).properties

    def update(self, plan: StackResource) -> None:
        request = provider_pb2.UpdateRequest(
            id=NAME, urn=URN, olds=self.outputs, news=self._checked(plan), timeout=allowed(plan, "update")
        )
        self._stub.Update(request)

    def refresh(self) -> None:
        request = provider_pb2.ReadRequest(id=NAME, urn=URN, properties=self.outputs)
        self.outputs = self._stub.Read(request).properties

    def changes(self, plan: StackResource, ignored: list[str] | None = None) -> list[str]:
        """Return what a deployment would change."""
        request = provider_pb2.DiffRequest(
            id=NAME, urn=URN, olds=self.outputs, news=self._checked(plan), ignoreChanges=ignored
        )
        return sorted(self._stub.Diff(request).detailedDiff)

    def ask(self, verb: str, body: Json | None = None, **query: str) -> tuple[int, Json]:
        return self.cloud.handle("aiplatform", verb, f"v1/{NAME}", list(query.items()), body or {})

    def counts(self) -> list[Any]:
        return [pool["replicaCount"] for pool in self.ask("GET")[1]["resourcePools"]]

    def _checked(self, plan: StackResource) -> struct_pb2.Struct:
        request = provider_pb2.CheckRequest(
            urn=URN, news=struct(copy.deepcopy(dict(plan.inputs))), olds=struct_pb2.Struct(), randomSeed=b"0" * 32
        )
        checked = self._stub.Check(request)
        assert not checked.failures, checked.failures
        inputs: struct_pb2.Struct = checked.inputs
        return inputs


def planned(**fields: Any) -> StackResource:
    return deploy(machine_type="n1-standard-8", **fields).one(RESOURCE)


def allowed(plan: StackResource, step: str) -> float:
    """Return the seconds that our plan gives a step."""
    text = str(plan.options["customTimeouts"][step])
    assert text.endswith("m")
    return int(text[:-1]) * 60.0


@pytest.fixture
def deployed() -> Iterator[Deployed]:
    if shutil.which("pulumi-resource-gcp") is None:
        pytest.skip("pulumi-resource-gcp is not on PATH")
    cloud = judged_cloud(["example-vision"], store=Store(None), settings=CloudSettings(check_services=False))
    with serve(cloud) as port:
        endpoint = f"http://127.0.0.1:{port}/aiplatform/v1beta1/"
        with provider({"vertexAiCustomEndpoint": endpoint, "pollInterval": "200ms"}) as plugin:
            yield Deployed(plugin, cloud)


def test_a_change_in_place_is_a_put_that_fails_and_so_the_plan_replaces(deployed: Deployed) -> None:
    before = planned(replicas=1)
    after = planned(replicas=2)
    deployed.create(before)

    with pytest.raises(grpc.RpcError, match="404"):
        deployed.update(after)

    assert deployed.counts() == ["1"]
    assert "resourcePools[0].replicaCount" in deployed.changes(after)
    assert "resourcePools" in after.options["replaceOnChanges"]


def test_the_autoscalers_count_is_a_change_unless_it_is_ignored_as_the_plan_says(deployed: Deployed) -> None:
    plan = planned(replicas=1, max_replicas=4)
    deployed.create(plan)
    pools = deployed.ask("GET")[1]["resourcePools"]
    pools[0]["replicaCount"] = "3"
    assert deployed.ask("PATCH", {"resourcePools": pools}, updateMask="resourcePools.replicaCount")[0] == 200

    deployed.refresh()

    assert deployed.changes(plan) == ["resourcePools[0].replicaCount"]
    assert deployed.changes(plan, ["resourcePools[0].replicaCount"]) == []
    assert deployed.counts() == ["3"]
