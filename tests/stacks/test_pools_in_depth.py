"""Pools of every nature as a stack file says them: what is planned of them, and what is found wrong, with the fix."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.demand_of_model import model_demand, planned_demand
from tests.places import ORGANISATION
from tests.plans import PlannedStack, planned_stack
from tests.stack_files import workspace_of
from training_platform.catalog import IMAGES
from training_platform.config.model.stack import Stack, parse_stack
from training_platform.config.names import Locator
from training_platform.config.pools import flavors
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.quota.charges import Charge
from training_platform.quota.demand import demand_of_views, stack_demand
from training_platform.resources.gke import maintenance_policy
from training_platform.resources.plan import PlanError
from training_platform.rules import evaluate, program, views_of_plan

NODE_POOL = "gcp:container/nodePool:NodePool"
KUBERNETES_NETWORK = "kubernetes:networking.gke.io/v1:Network"
PARAMETERS = "kubernetes:networking.gke.io/v1:GKENetworkParamSet"
ALERTS = {"emails": ["ml-platform@example.com"]}
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/14", "services": "10.10.16.0/20"}
T4 = {"machine_type": "n1-standard-16", "accelerator": "t4", "accelerator_count": 2, "zone": "us-central1-a"}
A100 = {"machine_type": "a2-highgpu-8g", "zone": "us-central1-a", "max_nodes": 3}
H100 = {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 3}
V5E = {"machine_type": "ct5lp-hightpu-4t", "zone": "us-central1-a", "topology": "4x8"}
IRONWOOD = {
    "machine_type": "tpu7x-standard-4t",
    "zone": "us-central1-c",
    "topology": "4x4x4",
    "capacity": "reservation",
    "reservation": "seven",
}


def stack_of(pool: dict[str, Any], **fields: Any) -> Stack:
    return stack_of_pools({"train": pool}, **fields)


def stack_of_pools(pools: dict[str, Any], **fields: Any) -> Stack:
    cluster = {"location": "us-central1", "version": "1.35", "subnet": RANGES, "node_pools": pools, **fields}
    return _stack(json.dumps({"project": "example-pools", "alerts": ALERTS, "clusters": {"west": cluster}}))


@cache
def _stack(section: str) -> Stack:
    return workspace_of({"dev": {"environment": json.loads(section)}}).stacks["dev"]


def plan_of(stack: Stack) -> PlannedStack:
    """Return the plan of a stack, which tests share: nobody changes it."""
    if id(stack) not in _PLANS:
        _PLANS[id(stack)] = (stack, planned_stack(stack, Workspace(Path(), {"dev": stack})))
    return _PLANS[id(stack)][1]


_PLANS: dict[int, tuple[Stack, PlannedStack]] = {}  # by the ids of the stacks, which stay theirs: stacks are kept here


def planned(pool: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the inputs of the GKE node pool that a pool becomes."""
    pools = [each for each in plan_of(stack_of(pool, **fields)).of(NODE_POOL) if "train" in each.name]
    return dict(pools[0].inputs)


def found(pool: dict[str, Any], **fields: Any) -> list[Finding]:
    """Return what is wrong with a stack of one pool."""
    return judged(stack_of(pool, **fields))


def judged(stack: Stack) -> list[Finding]:
    """Return what is wrong with a stack: by the model if it rejects the file, else by the plan."""
    if stack.section is None:
        return list(stack.findings)
    views = views_of_plan(plan_of(stack).resources, Locator(stack.section))
    return evaluate(program(views, stack="dev", environment="dev", team=None, production=False), file=stack)


def kernel(sysctls: dict[str, str], **settings: Any) -> dict[str, Any]:
    """Return settings of the nodes' kernel, which a pool has no fields for."""
    return {"provider_inputs": {"node_config": {"linux_node_config": {"sysctls": sysctls, **settings}}}}


CONFIDENTIAL = {
    "provider_inputs": {"node_config": {"confidential_nodes": {"enabled": True, "confidential_instance_type": "TDX"}}}
}
NATURES: dict[str, dict[str, Any]] = {
    "T4": {**T4, "max_nodes": 5},
    "V100 by flex-start": {
        "machine_type": "n1-highmem-8", "accelerator": "v100", "zone": "us-central1-a", "capacity": "flex-start",
    },
    "GPUDirect-TCPX": H100,
    "GPUDirect-TCPXO": {**H100, "machine_type": "a3-megagpu-8g"},
    "RDMA": {"machine_type": "a3-ultragpu-8g", "zone": "us-central1-b", "capacity": "spot", "max_nodes": 4},
    "without GPUDirect": {**H100, "gpu_direct": False},
    "compact": {**A100, "compact": True},
    "partitioned": {**A100, "partition": "1g.5gb"},
    "shared": {**A100, "sharing": {"strategy": "mps", "max_clients": 4}},
    "latest driver": {**A100, "driver": "latest"},
    "block SSD": {**A100, "local_ssd": {"count": 8, "use": "block"}},
    "preloaded": {**A100, "preload_images": ["projects/example/global/images/torch"]},
    "confidential": {
        "machine_type": "a3-highgpu-1g", "zone": "us-central1-a", "capacity": "spot", **CONFIDENTIAL,
    },
    "more pods and a taint": {**A100, "max_pods": 64, "taints": {"team": {"value": "vision"}}},
    "kernel settings": {**A100, **kernel({"net.core.somaxconn": "4096"}, hugepages_config={"hugepage_size1g": 4})},
    "TPU 7x": IRONWOOD,
}  # fmt: skip


@pytest.mark.parametrize("nature", NATURES)
def test_no_rule_refuses_a_pool_of_this_nature(nature: str) -> None:
    assert [str(each) for each in found(NATURES[nature]) if each.severity == "error"] == []


@pytest.mark.parametrize("nature", NATURES)
def test_a_pool_of_this_nature_is_charged_what_its_file_says(nature: str) -> None:
    stack = stack_of(NATURES[nature])

    of_file = model_demand(stack, Workspace(Path(), {"dev": stack}))
    assert charged(of_file) == charged(planned_demand(plan_of(stack).resources))


def charged(charges: Any) -> dict[Any, float]:
    total: dict[Any, float] = {}
    for charge in charges:
        total[charge.keys] = total.get(charge.keys, 0) + charge.amount
    return total


def test_kernel_settings_reach_the_nodes_as_they_are_written() -> None:
    node = planned(NATURES["kernel settings"])["nodeConfig"]

    settings = {"sysctls": {"net.core.somaxconn": "4096"}, "hugepagesConfig": {"hugepageSize1g": 4}}
    assert node["linuxNodeConfig"] == settings
    assert "linuxNodeConfig" not in planned(A100)["nodeConfig"]


@pytest.mark.parametrize(
    ("inputs", "refused"),
    [
        (
            {"node_config": {"machine_type": "a2-highgpu-8g", "spot": True}},
            ["node_config.machine_type", "node_config.spot"],
        ),
        ({"nodeConfig": {"linux_node_config": {}}}, ["nodeConfig"]),
        ({"name": "other"}, ["name"]),
    ],
)
def test_an_input_that_is_planned_already_is_refused_at_its_line(inputs: dict[str, Any], refused: list[str]) -> None:
    with pytest.raises(PlanError) as refusal:
        plan_of(stack_of({**A100, "provider_inputs": inputs}))

    assert str(refusal.value).startswith(", ".join(f"provider_inputs.{name}" for name in refused))
    assert ".".join(map(str, refusal.value.path)).endswith(f"train.provider_inputs.{refused[0]}")


def test_attached_gpus_are_asked_of_gke_and_charged() -> None:
    stack = stack_of({**T4, "max_nodes": 5})
    inputs = planned({**T4, "max_nodes": 5})
    charges = stack_demand(stack, Workspace(Path(), {"dev": stack}))
    amounts = {charge.key.quota_id: charge.amount for charge in charges if charge.holder.label == "train"}

    (gpus,) = inputs["nodeConfig"]["guestAccelerators"]
    assert (gpus["type"], gpus["count"]) == ("nvidia-tesla-t4", 2)
    assert inputs["nodeConfig"]["machineType"] == "n1-standard-16"
    assert inputs["nodeConfig"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert amounts["NVIDIA-T4-GPUS-per-project-region"] == 5 * 2
    assert amounts["GPUS-ALL-REGIONS-per-project"] == 5 * 2
    assert amounts["CPUS-per-project-region"] == 5 * 16


@pytest.mark.parametrize(
    ("pool", "flavor", "places", "smallest"),
    [
        (T4, "t4", 2, 2),
        (A100, "a100-40", 3 * 8, 8),
        ({**A100, "partition": "1g.5gb", "capacity": "spot"}, "a100-40-1g-5gb-spot", 3 * 8 * 7, 1),
        ({**A100, "sharing": {"max_clients": 4}}, "a100-40-time-sharing-4", 3 * 8 * 4, 1),
        (
            {**A100, "partition": "3g.20gb", "sharing": {"max_clients": 2}},
            "a100-40-3g-20gb-time-sharing-2",
            3 * 8 * 2 * 2,
            1,
        ),
    ],
)
def test_kueue_counts_the_places_that_nodes_offer(
    pool: dict[str, Any], flavor: str, places: int, smallest: int
) -> None:
    environment = stack_of(pool).environment
    assert environment is not None
    found_flavors = flavors("west", environment.clusters["west"])

    assert list(found_flavors) == [flavor]
    assert found_flavors[flavor].capacity_chips == places
    assert found_flavors[flavor].chips_per_slice == smallest


def test_further_cards_are_in_networks_that_kubernetes_knows_by_name() -> None:
    plan = plan_of(stack_of(H100))
    (pool,) = [each for each in plan.of(NODE_POOL) if each.name == "west-train-pool"]
    parameters = plan.of(PARAMETERS)
    cards = pool.inputs["networkConfig"]["additionalNodeNetworkConfigs"]

    assert cards == [{"network": f"dev-west-tcpx-{n}", "subnetwork": f"dev-west-tcpx-{n}"} for n in (1, 2, 3, 4)]
    assert {each.inputs["spec"]["vpc"] for each in parameters} == {card["network"] for card in cards}
    assert {each.inputs["spec"]["deviceMode"] for each in parameters} == {"NetDevice"}
    referred = {
        each.inputs["spec"]["parametersRef"]["name"] for each in plan.of("kubernetes:networking.gke.io/v1:Network")
    }
    assert referred == {each.inputs["metadata"]["name"] for each in parameters}
    installer, injector = plan.of("kubernetes:apps/v1:DaemonSet")
    template = installer.inputs["spec"]["template"]["spec"]
    assert template["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    assert template["initContainers"][-1]["image"] == IMAGES["node-tcpx"]
    template = injector.inputs["spec"]["template"]["spec"]
    assert template["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    assert [each["image"] for each in template["containers"]] == [IMAGES["node-device-injector"]]
    assert {each["hostPath"]["path"] for each in template["volumes"]} == {"/dev", "/var/run/nri"}


def test_a_pool_goes_with_its_cards_subnets_by_the_cluster_s_name() -> None:
    """Not by ``networkConfig``: the provider (10.2.0) ends in a panic where the engine asks with that unknown."""
    (pool,) = [each for each in plan_of(stack_of(H100)).of(NODE_POOL) if each.name == "west-train-pool"]
    subnets = {("gcp:compute/subnetwork:Subnetwork", f"west-gpu-networks-tcpx-{n}-subnet") for n in (1, 2, 3, 4)}

    assert "networkConfig" not in pool.inputs_from
    assert subnets <= set(pool.inputs_from["cluster"])


def test_a_rule_of_gpus_goes_with_its_vpc() -> None:
    """To the provider its network is an update, and Google keeps a VPC that a rule is in."""
    rules = [each for each in plan_of(stack_of(H100)).of("gcp:compute/firewall:Firewall") if "gpu-net" in each.name]

    assert [each.options["replaceOnChanges"] for each in rules] == [["network"]] * 4


def test_rdma_takes_no_firewall_rule_and_its_devices_say_so() -> None:
    plan = plan_of(stack_of(NATURES["RDMA"]))
    networks = {each.name: each.inputs for each in plan.of("gcp:compute/network:Network")}
    firewalls = [each.name for each in plan.of("gcp:compute/firewall:Firewall") if "gpu-networks" in each.name]
    modes = [
        each.inputs["spec"]["deviceMode"] for each in plan.of("kubernetes:networking.gke.io/v1:GKENetworkParamSet")
    ]

    profile = networks["west-gpu-networks-rdma-us-central1-b-vpc"]["networkProfile"]
    assert profile == "projects/example-pools/global/networkProfiles/us-central1-b-vpc-roce"
    assert firewalls == ["west-gpu-networks-rdma-us-central1-b-gvnic-internal"]
    assert sorted(modes) == ["NetDevice"] + ["RDMA"] * 8


def test_rdma_wants_no_devices_beside_its_gpus() -> None:
    names = [each.name for each in plan_of(stack_of(NATURES["RDMA"])).of("kubernetes:apps/v1:DaemonSet")]

    assert names != []
    assert not any("injector" in name for name in names)


def test_a_workload_policy_joins_a_slice_of_tpu_7x() -> None:
    plan = plan_of(stack_of(IRONWOOD))
    (policy,) = plan.of("gcp:compute/resourcePolicy:ResourcePolicy")
    (pool,) = [each for each in plan.of(NODE_POOL) if "train" in each.name]

    assert policy.inputs["workloadPolicy"] == {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4x4"}
    assert pool.inputs["placementPolicy"] == {
        "type": "COMPACT", "tpuTopology": "4x4x4", "policyName": policy.inputs["name"],
    }  # fmt: skip
    assert "placementPolicy" in pool.options["ignoreChanges"]


def test_maintenance_exclusions_reach_the_cluster() -> None:
    maintenance = {
        "exclusions": {"deadline": {"start": "2026-12-01T00:00:00Z", "end": "2026-12-20T00:00:00Z"}},
        "upgrade_freeze": False,
    }
    (cluster,) = plan_of(stack_of(A100, maintenance=maintenance)).of("gcp:container/cluster:Cluster")

    assert cluster.inputs["maintenancePolicy"]["maintenanceExclusions"] == [
        {
            "exclusionName": "deadline",
            "startTime": "2026-12-01T00:00:00Z",
            "endTime": "2026-12-20T00:00:00Z",
            "exclusionOptions": {"scope": "NO_UPGRADES"},
        }
    ]


def test_nodes_with_accelerators_are_not_upgraded_until_their_support_ends() -> None:
    frozen = stack_of(A100)
    (cluster,) = plan_of(frozen).of("gcp:container/cluster:Cluster")

    assert cluster.inputs["maintenancePolicy"]["maintenanceExclusions"] == [
        {
            "exclusionName": "upgrade-freeze",
            "startTime": "2026-01-03T06:00:00Z",
            "exclusionOptions": {
                "scope": "NO_MINOR_OR_NODE_UPGRADES",
                "endTimeBehavior": "UNTIL_END_OF_SUPPORT",
            },
        }
    ]
    assert found(A100) == []


@pytest.mark.parametrize(
    ("pools", "said", "frozen"),
    [
        (1, {}, True),
        (0, {}, False),
        (0, {"upgrade_freeze": True}, True),
        (1, {"upgrade_freeze": False}, False),
    ],
)
def test_a_freeze_is_for_accelerators_unless_the_file_says_otherwise(
    pools: int, said: dict[str, bool], frozen: bool
) -> None:
    environment = stack_of(A100, maintenance=said, **({} if pools else {"node_pools": {}})).environment
    assert environment is not None

    policy = maintenance_policy(environment.clusters["west"])
    assert bool(policy["maintenance_exclusions"]) is frozen


def test_a_flavors_pods_tolerate_the_taints_of_its_pools() -> None:
    (flavor,) = plan_of(stack_of(NATURES["more pods and a taint"])).of(
        "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
    )

    own = {"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}
    assert own in flavor.inputs["spec"]["tolerations"]


def test_512_slices_are_one_line_and_as_many_pools() -> None:
    ranges = {**RANGES, "nodes": "10.16.0.0/17", "pods": "100.64.0.0/12"}
    stack = stack_of({**V5E, "topology": "8x16", "slices": 512}, subnet=ranges)
    plan = plan_of(stack)
    made = [each for each in plan.of(NODE_POOL) if "train" in each.name]
    found_in_it = judged(stack)

    assert len(made) == 512
    assert sum(each.inputs["autoscaling"]["maxNodeCount"] for each in made) * 4 == 512 * 8 * 16
    assert [each.rule for each in found_in_it if each.severity != "note"] == ["cluster-nodes"]  # 16,384 VMs


MODEL = "stack-model"
BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str, str, str]] = {
    "a shape with the right product": ({**V5E, "topology": "2x16"}, {}, "tpu-topology", "topology", "4x8"),
    "no slices": ({**V5E, "slices": 0}, {}, "stack-model", "slices", "at least 1"),
    "a letter too few": ({**H100, "machine_type": "a3-higpu-8g"}, {}, "stack-model", "machine_type", "a3-highgpu-8g"),
    "a zone without the machine": ({**H100, "zone": "us-central1-f"}, {}, "machine-zone", "zone", "us-central1-a"),
    "hyperdisk on a2": (
        {**A100, "boot_disk": {"type": "hyperdisk-balanced"}}, {}, "boot-disk-type", "boot_disk.type", "pd-balanced",
    ),
    "blue-green and compact": (
        {**A100, "compact": True, "upgrades": {"strategy": "blue-green"}}, {}, "placement-one-zone",
        "upgrades.strategy", "surge",
    ),
    "blue-green of a slice": (
        {**V5E, "upgrades": {"strategy": "blue-green"}}, {}, "placement-one-zone", "upgrades.strategy", "surge",
    ),
    "compact on n1": ({**T4, "compact": True}, {}, "placement-machine", "compact", "no placement policy"),
    "compact by flex-start": (
        {**A100, "compact": True, "capacity": "flex-start"}, {}, "placement-capacity", "compact", "no placement policy",
    ),
    "surge by flex-start": (
        {**A100, "capacity": "flex-start", "upgrades": {"max_surge": 1}}, {}, "flex-start-upgrades", "upgrades",
        'ignore_changes=["upgradeSettings"]',
    ),
    "repair by flex-start": (
        {**A100, "capacity": "flex-start", "upgrades": {"auto_repair": True}}, {}, "flex-start-repair",
        "upgrades.auto_repair", "false",
    ),
    "no upgrades in a channel": (
        {**A100, "upgrades": {"auto_upgrade": False}}, {}, "channel-upgrades", "upgrades.auto_upgrade", "true",
    ),
    "the taint of GPUs once more": (
        {**A100, "taints": {"nvidia.com/gpu": {"value": "present"}}}, {}, "node-taints", "taints", "other keys",
    ),
    "an image by its name alone": (
        {**A100, "preload_images": ["torch"]}, {}, "stack-model", "preload_images[0]", "projects/example/global/images",
    ),
    "any reservation of what is never on demand": (
        {"machine_type": "a4-highgpu-8g", "zone": "us-central1-b", "capacity": "reservation", "reservation": "any"}, {},
        "capacity-offered", "capacity", "which a pool with any reservation falls back to",
    ),
    "any reservation of TPUs": (
        {**V5E, "capacity": "reservation", "reservation": "any"}, {}, "tpu-reservation-name", "reservation",
        "the reservation's name",
    ),
    "a limit below one machine": (
        H100, {"auto_provisioning": {"cpu": 99_999, "memory_gb": 99_999, "accelerators": {"nvidia-b200": 7}}},
        "auto-provisioning-limits", "auto_provisioning.accelerators.nvidia-b200", "8",
    ),
    "a limit that the pools use up": (
        H100, {"auto_provisioning": {"cpu": 207, "memory_gb": 99_999}}, "auto-provisioning-room",
        "auto_provisioning.cpu", "at least",
    ),
    "3 T4": ({**T4, "accelerator_count": 3}, {}, "gpu-fixed-pair", "accelerator_count", "2"),
    "T4 on a2": ({**A100, "accelerator": "t4"}, {}, "stack-model", "accelerator", "which includes GPUs"),
    "n1 without GPUs": ({**T4, "accelerator": None}, {}, "stack-model", "accelerator", "t4, v100"),
    "H100 attached": ({**T4, "accelerator": "h100"}, {}, "stack-model", "accelerator", "t4, v100"),
    "GPU fields on TPUs": ({**V5E, "partition": "1g.5gb"}, {}, "stack-model", "partition", "which has TPUs"),
    "a partition of another GPU": ({**A100, "partition": "1g.10gb"}, {}, "gpu-sharing", "partition", "1g.5gb"),
    "a partition of L4": (
        {"machine_type": "g2-standard-8", "zone": "us-central1-a", "partition": "1g.5gb"}, {}, "gpu-sharing",
        "partition", "none",
    ),
    "49 pods on a GPU": ({**A100, "sharing": {"max_clients": 49}}, {}, "gpu-sharing", "sharing.max_clients", "48"),
    "1 pod on a shared GPU": ({**A100, "sharing": {"max_clients": 1}}, {}, "gpu-sharing", "sharing.max_clients", "2"),
    "3 local SSDs": ({**A100, "local_ssd": {"count": 3}}, {}, "local-ssd-count", "local_ssd.count", "8"),
    "fewer than bundled": ({**H100, "local_ssd": {"count": 8}}, {}, "local-ssd-count", "local_ssd.count", "16"),
    "TDX on eight H100": (
        {**H100, **CONFIDENTIAL}, {}, "confidential-gpu",
        "provider_inputs.node_config.confidential_nodes.confidential_instance_type", "none",
    ),
    "257 pods": ({**A100, "max_pods": 257}, {}, "max-pods", "max_pods", "256"),
    "GPU networks in the cluster's range": (
        H100, {"gpu_networks": {"range": "10.64.0.0/16"}}, "gpu-network-range", "gpu_networks.range",
        "a range that overlaps no range of nodes, pods or services",
    ),
    "GPU networks too small": (
        {**H100, "max_nodes": 5}, {"gpu_networks": {"range": "192.168.0.0/22"}}, "gpu-network-room",
        "gpu_networks.range", "192.168.0.0/28",
    ),
    "a kernel parameter that GKE does not set": (
        {**A100, **kernel({"net.core.somaxcon": "4096"})}, {}, "node-sysctls",
        "provider_inputs.node_config.linux_node_config.sysctls", "net.core.somaxconn",
    ),
    "an input that the provider does not have": (
        {**A100, "provider_inputs": {"node_config": {"linux_node_conf": {}}}}, {}, "document-unknown-field",
        "provider_inputs.node_config.linux_node_conf", "linux_node_config",
    ),
    "an input of another type": (
        {**A100, "provider_inputs": {"node_config": {"min_cpu_platform": ["Intel Ice Lake"]}}}, {}, "document-type",
        "provider_inputs.node_config.min_cpu_platform", "",
    ),
    "a window of an hour": (
        A100, {"maintenance": {"end": "2026-01-03T07:00:00Z"}}, "maintenance-window", "maintenance", "4 hours",
    ),
    "no upgrades for a quarter": (
        A100,
        {"maintenance": {"exclusions": {"q": {"start": "2026-10-01T00:00:00Z", "end": "2027-01-01T00:00:00Z"}}}},
        "maintenance-exclusion", "maintenance.exclusions", "end 2026-12-30T00:00:00Z",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def bad_pools() -> list[Finding]:
    """Return what is wrong with all bad pools of a plain cluster that the model takes."""
    pools = {name_of(case): pool for case, (pool, fields, rule, _, _) in BAD.items() if not fields and rule != MODEL}
    return judged(stack_of_pools(pools))


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_finding_at_its_field_with_the_fix(case: str, bad_pools: list[Finding]) -> None:
    pool, fields, rule, at, fix = BAD[case]
    alone = bool(fields) or rule == MODEL
    name = "train" if alone else name_of(case)
    section = "clusters.west" if fields else f"clusters.west.node_pools.{name}"
    findings = [each for each in (found(pool, **fields) if alone else bad_pools) if each.path.startswith(section)]
    one = next((each for each in findings if each.rule == rule), None)

    assert one is not None, [str(each) for each in findings]
    assert one.path == f"{section}.{at}".rstrip(".")
    assert fix in f"{one.nearest} {one.allowed} {one.message}"
    assert one.position is not None


def name_of(case: str) -> str:
    return f"pool-{list(BAD).index(case):02}"  # of which none begins another


KUEUE = "kubernetes:kueue.x-k8s.io/v1beta2"
TEXT = """\
config:
  training-platform:environment:
    project: example-ways
    alerts: {emails: [ml-platform@example.com]}
    nat_addresses: 2
    production: false
    clusters:
      c:
        location: us-central1
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 3, max_nodes: 3}
        node_pools:
          queued: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: queued-provisioning, max_run_hours: 24}
          spot: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: spot}
          any: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: reservation, reservation: any}
          block:
            machine_type: a3-highgpu-8g
            zone: us-central1-a
            capacity: reservation
            reservation: {name: h100, project: example-shared, block: block-1, sub_block: sub-1}
          future:
            machine_type: ct5lp-hightpu-4t
            zone: us-central1-a
            topology: 4x4
            capacity: reservation
            reservation: {name: v5e, starts: "2027-03-01", ends: "2027-03-28"}
        auto_provisioning:
          cpu: 4000
          memory_gb: 40000
          accelerators: {nvidia-h100-80gb: 64, tpu-v5-lite-podslice: 32}
          zones: [us-central1-a]
        compute_classes:
          best:
            priorities:
              - node_pools: [spot]
              - {machine_type: a3-highgpu-8g, capacity: flex-start, max_wait_minutes: 30}
          slices:
            priorities:
              - {machine_type: ct5lp-hightpu-4t, topology: 4x4, capacity: reservation, reservation: v5e}
              - machine_type: ct5lp-hightpu-4t
                topology: 4x4
                capacity: spot
                zones: [us-central1-a]
                max_run_hours: 24
"""


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    found = cross_check(
        Workspace(ORGANISATION, {"ways": parse_stack("ways", parse_source(TEXT, "stacks/Pulumi.ways.yaml"))})
    )
    assert not [str(finding) for finding in found.stacks["ways"].findings]
    return found


@pytest.fixture(scope="module")
def plan(workspace: Workspace) -> PlannedStack:
    return planned_stack(workspace.stacks["ways"], workspace)


def totals(charges: list[Charge]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for charge in charges:
        key = (charge.key.quota_id, charge.key.location)
        found[key] = found.get(key, 0) + charge.amount
    return found


def test_no_rule_objects_to_any_of_them(workspace: Workspace, plan: PlannedStack) -> None:
    section = workspace.stacks["ways"].section
    assert section is not None
    views = views_of_plan(plan.resources, Locator(section))
    whole = program(views, stack="ways", environment="ways", team=None, production=False)
    found = [finding for finding in evaluate(whole, file=workspace.stacks["ways"]) if finding.severity != "note"]
    assert [f"{finding.rule}: {finding.message}" for finding in found] == []


def test_both_sums_of_demand_are_equal_with_what_auto_provisioning_may_add(
    workspace: Workspace, plan: PlannedStack
) -> None:
    model = totals(model_demand(workspace.stacks["ways"], workspace))
    views = views_of_plan(plan.resources)

    # 64 in all, of which the pools hold 4 VMs with 8 each; those of the pools are preemptible and on-demand ones.
    assert model["GPUS-PER-GPU-FAMILY-per-project-region", "us-central1"] == (64 - 4 * 8) + 2 * 8
    assert model["TPU-LITE-PODSLICE-V5-per-project-region", "us-central1"] == 32 - 16
    assert totals(demand_of_views(views)[0]) == model


def test_queued_nodes_have_a_check_and_a_class_has_an_object(plan: PlannedStack) -> None:
    kinds = [resource.type for resource in plan.resources]

    assert kinds.count(f"{KUEUE}:AdmissionCheck") == 1
    assert kinds.count(f"{KUEUE}:ProvisioningRequestConfig") == 1
    assert kinds.count("kubernetes:cloud.google.com/v1:ComputeClass") == 2
