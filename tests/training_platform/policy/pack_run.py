"""The pack's policies, called as pulumi_policy calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from pulumi_policy import (
    Policy,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.policy import PolicyCustomTimeouts
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from training_platform.config.model.stack import PROJECT
from training_platform.policy.pack import policies
from training_platform.resources.stack_resource import UNKNOWN

OPTIONS = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
DATA_NETWORKS = [{"network": f"data-{number}", "subnetwork": f"data-{number}"} for number in range(4)]
NODE_POOL = "gcp:container/nodePool:NodePool"

Given = tuple[str, str, dict[str, Any]]  # type, name, inputs
SNAPSHOT = """\
project: example-train
taken: "2026-11-01"
limits:
  compute.googleapis.com:
    INSTANCES-per-project-region: [{limit: -1}]
    IN-USE-ADDRESSES-per-project-region: [{limit: -1}]
    N2-CPUS-per-project-region: [{limit: -1}]
    CPUS-ALL-REGIONS-per-project: [{limit: -1}]
    SSD-TOTAL-GB-per-project-region: [{limit: -1}]
    LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region: [{limit: -1}]
    TPU-LITE-PODSLICE-V5-per-project-region: [{limit: -1}]
    GPUS-ALL-REGIONS-per-project: [{limit: -1}]
    GPUS-PER-GPU-FAMILY-per-project-region: [{limit: 64, region: us-central1, gpu_family: NVIDIA_H100}]
"""


def urn(resource_type: str, name: str, stack: str, project: str = PROJECT) -> str:
    return f"urn:pulumi:{stack}::{project}::{resource_type}::{name}"


def pool(name: str = "main-h100-pool", max_nodes: Any = 4.0, size: Any = 200.0, **config: Any) -> Given:
    node = {
        "machineType": "a3-highgpu-8g",
        "bootDisk": {"sizeGb": size, "diskType": "pd-ssd"},
        "guestAccelerators": [{"type": "nvidia-h100-80gb", "count": 8.0}],
        "ephemeralStorageLocalSsdConfig": {"localSsdCount": 16.0},
        "resourceLabels": {"environment": "dev"},
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "serviceAccount": "nodes@example-train.iam.gserviceaccount.com",
        **config,
    }
    inputs = {
        "project": "example-train",
        "cluster": "main",
        "location": "us-central1-a",
        "nodeConfig": node,
        "autoscaling": {"maxNodeCount": max_nodes},
        "upgradeSettings": {"maxSurge": 0.0, "maxUnavailable": 1.0},
        "networkConfig": {"enablePrivateNodes": True, "additionalNodeNetworkConfigs": DATA_NETWORKS},
    }
    return NODE_POOL, name, inputs


def marked(value: Any) -> Any:
    """Return inputs with the engine's mark where a value is not known."""
    if isinstance(value, dict):
        return {key: marked(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [marked(entry) for entry in value]
    return UNKNOWN_STRING_VALUE if value is UNKNOWN else value


class Run:
    """One run of the pack: every resource is validated, then the whole stack."""

    def __init__(self, root: Path | None, stack: str = "dev", project: str = PROJECT) -> None:
        self.policies: dict[str, Policy] = {policy.name: policy for policy in policies(root)}
        self.stack = stack
        self.project = project
        self.messages: dict[str, list[str]] = {}
        self.urns: list[str | None] = []

    def __call__(self, *resources: Given, state: Any = None, **config: Any) -> dict[str, list[str]]:
        """Return every message by policy; ``config`` is by policy too."""
        for resource in resources:
            self._run(ResourceValidationPolicy, partial(self._resource, resource), config)
        states = list(self._states(resources, state))
        self._run(StackValidationPolicy, lambda settings: StackValidationArgs(states, settings), config)
        return self.messages

    def _resource(self, planned: Given, config: dict[str, Any] | None) -> ResourceValidationArgs:
        kind, name, inputs = planned
        where = urn(kind, name, self.stack, self.project)
        return ResourceValidationArgs(kind, unknown_checking_proxy(inputs), where, name, OPTIONS, None, config)

    def _states(self, resources: Iterable[Given], state: Any) -> Iterable[PolicyResource]:
        for kind, name, inputs in resources:
            props = unknown_checking_proxy(inputs if state is None else state)
            where = urn(kind, name, self.stack, self.project)
            yield PolicyResource(kind, props, where, name, OPTIONS, None, None, [], {})

    def _run(self, kind: type[Policy], args: Callable[[Any], Any], config: dict[str, Any]) -> None:
        for name, policy in self.policies.items():
            if isinstance(policy, kind):
                assert isinstance(policy, (ResourceValidationPolicy, StackValidationPolicy))
                policy.validate(args(config.get(name)), partial(self._report, name))

    def _report(self, policy: str, message: str, where: str | None) -> None:
        self.messages.setdefault(policy, []).append(message)
        self.urns.append(where)
