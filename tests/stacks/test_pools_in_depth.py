"""Pools of every nature as a stack file says them: what is planned of them, and where the file is found wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.stacks.pools import (
    A100,
    CONFIDENTIAL,
    EVERY_WAY,
    H100,
    NODE_POOL,
    PARAMETERS,
    RDMA,
    T4,
    kernel,
    plan_of,
    stack_of,
    stack_of_pools,
)
from tests.support.places import ORGANISATION
from tests.support.plans import planned_stack
from training_platform.catalog import IMAGES
from training_platform.config.expansion import flavors
from training_platform.config.model.stack import Stack, parse_stack
from training_platform.config.names import Locator
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.resources.gke import maintenance_policy
from training_platform.resources.plan import PlanError
from training_platform.rules import evaluate, program, views_of_plan


def judged(stack: Stack) -> list[Finding]:
    """Return what rules find wrong with the plan of a stack."""
    assert stack.section is not None
    views = views_of_plan(plan_of(stack).resources, Locator(stack.section))
    return evaluate(program(views, stack="dev", environment="dev", team=None, production=False), file=stack)


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

    named = re.findall(r"provider_inputs\.([\w.]+) is (?:planned|not the Python name)", str(refusal.value))
    assert named == refused
    assert ".".join(map(str, refusal.value.path)).endswith(f"train.provider_inputs.{refused[0]}")


@pytest.mark.parametrize(
    ("pool", "flavor", "places", "smallest"),
    [
        (A100, "a100-40", 3 * 8, 8),
        ({**A100, "partition": "1g.5gb", "capacity": "spot"}, "a100-40-1g-5gb-spot", 3 * 8 * 7, 1),
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
    (pool,) = [node_pool for node_pool in plan.of(NODE_POOL) if node_pool.name == "west-train-pool"]
    parameters = plan.of(PARAMETERS)
    cards = pool.inputs["networkConfig"]["additionalNodeNetworkConfigs"]

    assert cards == [{"network": f"dev-west-tcpx-{n}", "subnetwork": f"dev-west-tcpx-{n}"} for n in (1, 2, 3, 4)]
    assert {parameter.inputs["spec"]["vpc"] for parameter in parameters} == {card["network"] for card in cards}
    assert len({parameter.inputs["spec"]["vpcSubnet"] for parameter in parameters}) == len(parameters)
    assert {parameter.inputs["spec"]["deviceMode"] for parameter in parameters} == {"NetDevice"}
    referred = {
        network.inputs["spec"]["parametersRef"]["name"]
        for network in plan.of("kubernetes:networking.gke.io/v1:Network")
    }
    assert referred == {parameter.inputs["metadata"]["name"] for parameter in parameters}
    installer, injector = plan.of("kubernetes:apps/v1:DaemonSet")
    template = installer.inputs["spec"]["template"]["spec"]
    assert template["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    assert template["initContainers"][-1]["image"] == IMAGES["node-tcpx"]
    template = injector.inputs["spec"]["template"]["spec"]
    assert template["nodeSelector"] == {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    assert [container["image"] for container in template["containers"]] == [IMAGES["node-device-injector"]]
    assert {volume["hostPath"]["path"] for volume in template["volumes"]} == {"/dev", "/var/run/nri"}


def test_a_pool_goes_with_its_cards_subnets_by_the_cluster_s_name() -> None:
    """Not by ``networkConfig``: the provider (10.2.0) ends in a panic where the engine asks with that unknown."""
    (pool,) = [node_pool for node_pool in plan_of(stack_of(H100)).of(NODE_POOL) if node_pool.name == "west-train-pool"]
    subnets = {("gcp:compute/subnetwork:Subnetwork", f"west-gpu-networks-tcpx-{n}-subnet") for n in (1, 2, 3, 4)}

    assert "networkConfig" not in pool.inputs_from
    assert subnets <= set(pool.inputs_from["cluster"])


def test_a_rule_of_gpus_goes_with_its_vpc() -> None:
    """To the provider its network is an update, and Google keeps a VPC that a rule is in."""
    rules = [
        firewall
        for firewall in plan_of(stack_of(H100)).of("gcp:compute/firewall:Firewall")
        if "gpu-net" in firewall.name
    ]

    assert [rule.options["replaceOnChanges"] for rule in rules] == [["network"]] * 4


def test_rdma_takes_no_firewall_rule_and_no_injector_and_its_devices_say_so() -> None:
    plan = plan_of(stack_of(RDMA, accelerator_networks="multi-network"))
    networks = {network.name: network.inputs for network in plan.of("gcp:compute/network:Network")}
    firewalls = [
        firewall.name for firewall in plan.of("gcp:compute/firewall:Firewall") if "gpu-networks" in firewall.name
    ]
    modes = [resource.inputs["spec"]["deviceMode"] for resource in plan.of(PARAMETERS)]
    installers = [resource.name for resource in plan.of("kubernetes:apps/v1:DaemonSet")]

    profile = networks["west-gpu-networks-rdma-us-central1-b-vpc"]["networkProfile"]
    assert profile == "projects/example-train/global/networkProfiles/us-central1-b-vpc-roce"
    assert firewalls == ["west-gpu-networks-rdma-us-central1-b-gvnic-internal"]
    assert sorted(modes) == ["NetDevice"] + ["RDMA"] * 8
    assert installers
    assert not any("injector" in name for name in installers)


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


@pytest.mark.parametrize(
    ("pools", "maintenance", "frozen"),
    [
        (1, {}, True),
        (0, {}, False),
        (0, {"upgrade_freeze": True}, True),
        (1, {"upgrade_freeze": False}, False),
    ],
)
def test_a_freeze_is_for_accelerators_unless_the_file_says_otherwise(
    pools: int, maintenance: dict[str, bool], frozen: bool
) -> None:
    fields: dict[str, Any] = {"maintenance": maintenance}
    if not pools:
        fields["node_pools"] = {}
    environment = stack_of(A100, **fields).environment
    assert environment is not None

    policy = maintenance_policy(environment.clusters["west"])
    assert bool(policy["maintenance_exclusions"]) is frozen


def test_a_flavors_pods_tolerate_the_taints_of_its_pools() -> None:
    (flavor,) = plan_of(stack_of({**A100, "taints": {"team": {"value": "vision"}}})).of(
        "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
    )

    toleration = {"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}
    assert toleration in flavor.inputs["spec"]["tolerations"]


def test_the_nearest_valid_upgrades_of_flex_start_are_words_of_the_stack_file() -> None:
    stack = stack_of({**A100, "capacity": "flex-start", "upgrades": {"max_surge": 1}})

    (finding,) = [finding for finding in judged(stack) if finding.rule == "flex-start-upgrades"]
    assert finding.nearest == "leave out strategy, max_surge and max_unavailable"


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    # the pool, fields of its cluster; the rule, and the field that its finding names
    "compact on n1": ({**T4, "compact": True}, {}, "placement-machine", "compact"),
    "surge by flex-start": (
        {**A100, "capacity": "flex-start", "upgrades": {"max_surge": 1}}, {}, "flex-start-upgrades", "upgrades",
    ),
    "repair by flex-start": (
        {**A100, "capacity": "flex-start", "upgrades": {"auto_repair": True}}, {}, "flex-start-repair",
        "upgrades.auto_repair",
    ),
    "no upgrades in a channel": (
        {**A100, "upgrades": {"auto_upgrade": False}}, {}, "channel-upgrades", "upgrades.auto_upgrade",
    ),
    "the taint of GPUs once more": (
        {**A100, "taints": {"nvidia.com/gpu": {"value": "present"}}}, {}, "node-taints", "taints",
    ),
    "3 T4": ({**T4, "accelerator_count": 3}, {}, "gpu-fixed-pair", "accelerator_count"),
    "a partition of another GPU": ({**A100, "partition": "1g.10gb"}, {}, "gpu-sharing", "partition"),
    "49 pods on a GPU": ({**A100, "sharing": {"max_clients": 49}}, {}, "gpu-sharing", "sharing.max_clients"),
    "3 local SSDs": ({**A100, "local_ssd": {"count": 3}}, {}, "local-ssd-count", "local_ssd.count"),
    "TDX on eight H100": (
        {**H100, **CONFIDENTIAL}, {}, "confidential-gpu",
        "provider_inputs.node_config.confidential_nodes.confidential_instance_type",
    ),
    "257 pods": ({**A100, "max_pods": 257}, {}, "max-pods", "max_pods"),
    "a kernel parameter that GKE does not set": (
        {**A100, **kernel({"net.core.somaxcon": "4096"})}, {}, "node-sysctls",
        "provider_inputs.node_config.linux_node_config.sysctls",
    ),
    "a soak of 8 days": (
        {
            **A100, "upgrades": {"strategy": "blue-green"},
            "provider_inputs": {"upgrade_settings": {"blue_green_settings": {"node_pool_soak_duration": "691200s"}}},
        },
        {}, "blue-green-settings", "provider_inputs.upgrade_settings.blue_green_settings.node_pool_soak_duration",
    ),
    "an input that the provider does not have": (
        {**A100, "provider_inputs": {"node_config": {"linux_node_conf": {}}}}, {}, "document-unknown-field",
        "provider_inputs.node_config.linux_node_conf",
    ),
    "an input of another type": (
        {**A100, "provider_inputs": {"node_config": {"min_cpu_platform": ["Intel Ice Lake"]}}}, {}, "document-type",
        "provider_inputs.node_config.min_cpu_platform",
    ),
    "a limit below one machine": (
        H100, {"auto_provisioning": {"cpu": 99_999, "memory_gb": 99_999, "accelerators": {"nvidia-b200": 7}}},
        "auto-provisioning-limits", "auto_provisioning.accelerators.nvidia-b200",
    ),
    "a limit that the pools use up": (
        H100, {"auto_provisioning": {"cpu": 207, "memory_gb": 99_999}}, "auto-provisioning-room",
        "auto_provisioning.cpu",
    ),
    "GPU networks in the cluster's range": (
        H100, {"gpu_networks": {"range": "10.64.0.0/16"}}, "gpu-network-range", "gpu_networks.range",
    ),
    "GPU networks too small": (
        {**H100, "max_nodes": 5}, {"gpu_networks": {"range": "192.168.0.0/22"}}, "gpu-network-room",
        "gpu_networks.range",
    ),
    "a window of an hour": (
        A100, {"maintenance": {"end": "2026-01-03T07:00:00Z"}}, "maintenance-window", "maintenance",
    ),
    "no upgrades for a quarter": (
        A100,
        {"maintenance": {"exclusions": {"q": {"start": "2026-10-01T00:00:00Z", "end": "2027-01-01T00:00:00Z"}}}},
        "maintenance-exclusion", "maintenance.exclusions",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def bad_pools() -> list[Finding]:
    """Return what is wrong with the bad pools of a plain cluster, all in one."""
    return judged(stack_of_pools({name_of(case): pool for case, (pool, fields, _, _) in BAD.items() if not fields}))


def name_of(case: str) -> str:
    return f"pool-{list(BAD).index(case):02}"  # of which none begins another


@pytest.mark.parametrize("case", BAD)
def test_a_finding_of_a_rule_names_the_field_of_the_file(case: str, bad_pools: list[Finding]) -> None:
    pool, fields, rule, field = BAD[case]
    section = "clusters.west" if fields else f"clusters.west.node_pools.{name_of(case)}"
    findings = judged(stack_of(pool, **fields)) if fields else bad_pools

    of_rule = [finding for finding in findings if finding.rule == rule and finding.path.startswith(section)]
    assert {finding.path for finding in of_rule} == {f"{section}.{field}"}
    assert of_rule[0].position is not None


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    checked = cross_check(
        Workspace(ORGANISATION, {"ways": parse_stack("ways", parse_source(EVERY_WAY, "stacks/Pulumi.ways.yaml"))})
    )
    assert not [str(finding) for finding in checked.stacks["ways"].findings]
    return checked


def test_no_rule_refuses_a_provisioning_model(workspace: Workspace) -> None:
    stack = workspace.stacks["ways"]
    assert stack.section is not None
    views = views_of_plan(planned_stack(stack, workspace).resources, Locator(stack.section))
    whole = program(views, stack="ways", environment="ways", team=None, production=False)
    findings = [finding for finding in evaluate(whole, file=stack) if finding.severity != "note"]
    assert [f"{finding.rule}: {finding.message}" for finding in findings] == []
