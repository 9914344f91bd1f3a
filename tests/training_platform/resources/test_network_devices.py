"""Networks that GKE creates for GPUs and TPUs: which pools have them, and how the pods of a team claim devices."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support import stack_files
from tests.support.plans import PlannedStack, planned_stack
from tests.support.stack_files import RANGES, environment, shares, team, workspace_of
from training_platform.config.expansion import cluster_pools
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.workspace import Workspace
from training_platform.resources.compute_classes import compute_class
from training_platform.resources.plan import Resource
from training_platform.resources.stack_plan import stack_plan

TEMPLATE = "kubernetes:resource.k8s.io/v1:ResourceClaimTemplate"
POLICY = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
RELEASE = "kubernetes:helm.sh/v3:Release"
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
RESERVED = {"capacity": "reservation", "reservation": "any"}
H200 = {"machine_type": "a3-ultragpu-8g", "zone": "us-central1-b", "capacity": "spot", "max_nodes": 4}
B200 = {"machine_type": "a4-highgpu-8g", "zone": "us-central1-b", "capacity": "spot", "max_nodes": 4}
GB200 = {"machine_type": "a4x-highgpu-4g", "zone": "us-central1-a", **RESERVED, "max_nodes": 4}
MEGA = {"machine_type": "a3-megagpu-8g", "zone": "us-central1-b", "max_nodes": 4}
V6E = {"machine_type": "ct6e-standard-4t", "zone": "us-central1-b", "topology": "4x4", "slices": 2}


def section(networks: str | None, pools: dict[str, Any]) -> dict[str, Any]:
    fields = {"accelerator_networks": networks} if networks else {}
    return stack_files.cluster("us-central1", node_pools=pools, **fields)


def cluster(networks: str | None, **pools: dict[str, Any]) -> ClusterSpec:
    return ClusterSpec.model_validate(section(networks, pools))


def devices(networks: str | None, **pools: dict[str, Any]) -> dict[str, tuple[str, int] | None]:
    expanded = cluster_pools("main", cluster(networks, **pools))
    return {
        pool.name: (pool.network_devices.device_class, pool.network_devices.count) if pool.network_devices else None
        for pool in expanded
    }


def lab(networks: str | None, **pools: dict[str, Any]) -> Workspace:
    """Return the environment ``lab`` with its team ``lab-vision``, which has shares of all flavors."""
    home = {"environment": environment({"main": section(networks, pools)})}
    flavors = workspace_of({"lab": home}).flavors("lab", "main")
    quotas = shares(**{name: flavor.queue_chips for name, flavor in flavors.items()})
    return workspace_of({"lab": home, "lab-vision": {"team": team("lab", shares=quotas)}})


def plan(stack: str, networks: str | None, **pools: dict[str, Any]) -> PlannedStack:
    workspace = lab(networks, **pools)
    return planned_stack(workspace.stacks[stack], workspace)


def test_the_word_decides_for_pools_with_both_networks_by_default() -> None:
    assert devices("multi-network", mega=MEGA, ultra=H200) == {"mega": None, "ultra": None}
    assert devices(None, mega={**MEGA, "gpu_direct": False}, ultra=H200)["ultra"]
    assert devices(None, slices=V6E, ultra=H200)["slices"] is None  # without a VPC of ours, it is in nobody's way


def test_a_team_has_a_template_with_an_exact_count_for_each_kind_of_its_vms() -> None:
    templates = plan("lab-vision", "dranet", ultra=H200, four=B200, grace=GB200, slices=V6E).of(TEMPLATE)

    requests = {row.inputs["metadata"]["name"]: row.inputs["spec"]["spec"]["devices"]["requests"] for row in templates}
    assert {name: request["exactly"] for name, (request,) in requests.items()} == {
        "mrdma-8": {"deviceClassName": "mrdma.google.com", "allocationMode": "ExactCount", "count": 8},
        "mrdma-4": {"deviceClassName": "mrdma.google.com", "allocationMode": "ExactCount", "count": 4},
        "netdev-2": {"deviceClassName": "netdev.google.com", "allocationMode": "ExactCount", "count": 2},
    }
    assert plan("lab-vision", "multi-network", ultra=H200).of(TEMPLATE) == []


@pytest.mark.parametrize(("networks", "claims"), [(None, True), ("multi-network", False)])
def test_only_a_cluster_with_network_devices_has_jobs_with_claims(networks: str | None, claims: bool) -> None:
    environment = plan("lab", networks, ultra=H200)
    (release,) = [row for row in environment.of(RELEASE) if row.inputs["chart"].endswith("kueue")]
    values = release.inputs["values"]
    configuration = yaml.safe_load(values["managerConfig"]["controllerManagerConfigYaml"])
    names = {policy.inputs["metadata"]["name"] for policy in environment.of(POLICY)}

    assert ("KueueDRARejectWorkloadsWhenDRADisabled" in configuration.get("featureGates", {})) is claims
    assert ("training-platform-claims" in names) is claims


def test_gke_creates_the_networks_and_the_platform_none() -> None:
    def networks(word: str | None) -> tuple[int, int, set[str]]:
        environment = plan("lab", word, ultra=H200)
        kinds = {row.type.rpartition(":")[2] for row in environment.resources}
        vpcs = environment.of("gcp:compute/network:Network")
        subnets = environment.of("gcp:compute/subnetwork:Subnetwork")
        return len(vpcs), len(subnets), kinds & {"GKENetworkParamSet", "Network", "DaemonSet"}

    assert networks("multi-network") == (1 + 2, 1 + 9, {"GKENetworkParamSet", "Network", "DaemonSet"})
    assert networks(None) == (1, 1, {"Network", "DaemonSet"})  # the environment's own VPC; NCCL's plugin


def test_the_pools_of_two_zones_share_one_installer_of_their_gpu() -> None:
    elsewhere = {**H200, "zone": "us-central1-c"}

    def installer(**pools: dict[str, Any]) -> Resource:
        workspace = lab("multi-network", **pools)
        environment = stack_plan(workspace.stacks["lab"], workspace)
        assert environment is not None
        (daemon,) = [row for row in environment.resources() if row.type == DAEMON_SET]
        return daemon

    alone = installer(ultra=H200)
    moved = installer(ultra=elsewhere)
    in_both = installer(ultra=H200, more=elsewhere)

    assert alone.name == moved.name == in_both.name == "main-gpu-networks-nvidia-h200-141gb-installer"
    assert alone.inputs["metadata"]["name"] == in_both.inputs["metadata"]["name"]
    assert {alias.name for alias in in_both.aliases} >= {
        f"main-gpu-networks-rdma-us-central1-{zone}-pods-nvidia-h200-141gb-installer" for zone in "bc"
    }


def test_a_class_creates_pools_with_the_networks_of_its_cluster() -> None:
    def spec(networks: str) -> dict[str, Any]:
        priority = {"machine_type": "a3-ultragpu-8g", "capacity": "flex-start", "zones": ("us-central1-b",)}
        fields = {"location": "us-central1", "subnet": RANGES, "accelerator_networks": networks}
        whole = ClusterSpec.model_validate({**fields, "compute_classes": {"best": {"priorities": (priority,)}}})
        return compute_class(whole.compute_classes["best"], whole, {}, "nodes@example.com")

    assert spec("dranet")["priorities"][0]["acceleratorNetworkProfile"] == "auto"
    assert spec("dranet")["nodePoolConfig"]["dra"] == {"networking": {"enabled": True}}
    assert "acceleratorNetworkProfile" not in spec("multi-network")["priorities"][0]
    assert "dra" not in spec("multi-network")["nodePoolConfig"]
