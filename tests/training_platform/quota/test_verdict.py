"""Demand by section, and findings where it exceeds limits or pools."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training_platform.quota.limits import UNLIMITED
from training_platform.catalog import GENERAL_QUOTAS
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check
from training_platform.quota.charges import Charge, Holder, quota_key
from training_platform.quota.demand import stack_demand, workspace_demand
from training_platform.quota.ledger import Held, Line, capacity_ledger, project_ledgers
from training_platform.quota.ledger_findings import capacity_findings, quota_findings
from training_platform.quota.quota_ids import is_guess
from training_platform.quota.snapshot import Snapshots

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
H100 = "GPUS-PER-GPU-FAMILY-per-project-region"
POOLS = """
    node_pools:
      h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 6}
      eval: {machine_type: a3-highgpu-8g, zone: us-central1-b, max_nodes: 2}
"""
LISTED = (
    UNLIMITED
    + """\
      SSD-TOTAL-GB-per-project-region: [{limit: -1}]
      LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region: [{limit: -1}]
      GPUS-ALL-REGIONS-per-project: [{limit: -1}]
      GPUS-PER-GPU-FAMILY-per-project-region: [{limit: %d, region: us-central1, gpu_family: NVIDIA_H100}]
"""
)


BESIDE = 2 * 100 + 200  # GB of disks: of eval, of the system pool, and of its upgrades


def verdict(workspace: Workspace, snapshots: Snapshots) -> list[Finding]:
    return quota_findings(project_ledgers(workspace_demand(workspace), snapshots).values(), workspace)


def test_demand_within_the_limit_is_no_finding(build: Build, limits: Limits) -> None:
    assert verdict(build(dev=POOLS), limits(LISTED % (8 * 8))) == []


@pytest.mark.parametrize(
    ("limit", "nearest"),
    [
        (16 + 8, "max_nodes 1 for h100; or request 64 GPUs (training-platform quota plan)"),
        (16 + 7, "request 64 GPUs (training-platform quota plan)"),
    ],
)
def test_nothing_fits_where_others_hold_the_limit_alone(build: Build, limits: Limits, limit: int, nearest: str) -> None:
    (finding,) = verdict(build(dev=POOLS), limits(LISTED % limit))

    assert finding.nearest == nearest
    nothing = f"{limit} GPUs; no max_nodes of h100 fits next to eval, which uses 16 GPUs"
    assert (finding.allowed == nothing) is nearest.startswith("request")


@pytest.mark.parametrize(
    ("gpus", "limit", "nearest"),
    [
        (64, 2000, f"boot_disk.size_gb {(2000 - BESIDE) // 6} for h100; or request "),
        (16 + 2 * 8, 2000, f"boot_disk.size_gb {(2000 - BESIDE) // 2} for h100; or request "),  # GPUs for 2 VMs
        (64, BESIDE + 6 * 99, "request "),  # not even the default of 100 GB
        (64, BESIDE + 3000, "max_nodes 1 for h100; or request "),
    ],
)
def test_a_disk_too_large_for_one_vm_is_named_and_not_the_number_of_vms(
    build: Build, limits: Limits, gpus: int, limit: int, nearest: str
) -> None:
    disk = "boot_disk: {type: pd-ssd, size_gb: 3000}"
    pools = POOLS.replace("max_nodes: 6", f"max_nodes: 6, {disk}").replace("1-b,", "1-b, boot_disk: {type: pd-ssd},")
    text = LISTED.replace(
        "SSD-TOTAL-GB-per-project-region: [{limit: -1}]", f"SSD-TOTAL-GB-per-project-region: [{{limit: {limit}}}]", 1
    )

    findings = verdict(build(dev=pools), limits(text % gpus))

    (nearest_of_pool,) = (
        finding.nearest for finding in findings if finding.nearest and finding.path.endswith("h100.max_nodes")
    )
    assert nearest_of_pool.startswith(nearest)


@pytest.mark.parametrize(("missing", "accused"), [(4, "h100"), (5, "a100")], ids=["enough", "one more"])
def test_a_pool_that_exceeds_its_own_limit_is_also_at_fault_for_a_shared_one_if_lowering_it_is_enough(
    build: Build, limits: Limits, missing: int, accused: str
) -> None:
    pools = """
        node_pools:
          a100: {machine_type: a2-highgpu-8g, zone: us-central1-a, max_nodes: 10}
          h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 4, upgrades: {max_surge: 0}}
    """
    workspace = build(dev=pools)
    instances = "INSTANCES-per-project-region"
    lines = next(iter(project_ledgers(workspace_demand(workspace), limits(UNLIMITED)).values())).lines
    (used,) = (line.used for line in lines if line.key.quota_id == instances)
    text = (LISTED % 8).replace(f"{instances}: [{{limit: -1}}]", f"{instances}: [{{limit: {int(used) - missing}}}]")

    findings = [finding for finding in verdict(workspace, limits(text)) if finding.message.startswith(instances)]

    assert [finding.path.split(".")[3] for finding in findings] == [accused]


def test_of_two_limits_that_a_pool_exceeds_the_one_on_gpus_leads(build: Build, limits: Limits) -> None:
    local_ssd = "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region"
    text = LISTED.replace(f"{local_ssd}: [{{limit: -1}}]", f"{local_ssd}: [{{limit: 0}}]")

    findings = [
        finding for finding in verdict(build(dev=POOLS), limits(text % 63)) if finding.path.endswith("h100.max_nodes")
    ]

    assert [finding.message.partition(" ")[0] for finding in findings if finding.follows is None] == [H100]


def test_nearest_never_falls_below_the_fields_own_minimum(build: Build, limits: Limits) -> None:
    pools = "node_pools: {h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, min_nodes: 2, max_nodes: 3}}"

    (finding,) = verdict(build(dev=pools), limits(LISTED % 8))

    assert finding.nearest == f"request {3 * 8} GPUs (training-platform quota plan)"


def test_unlisted_quota_is_an_error_once_for_each_id_and_stack(build: Build, limits: Limits) -> None:
    findings = verdict(build(dev=POOLS), limits((LISTED % 64).replace(H100, "SOMETHING-ELSE")))

    assert [(finding.rule, finding.severity) for finding in findings] == [("quota-unknown", "error")]
    assert H100 in findings[0].message
    assert "stacks/quotas/example-train.yaml" in findings[0].message
    assert findings[0].path == "clusters.main.node_pools.h100.max_nodes"


@pytest.mark.parametrize("spelling", ["quota_id", "dimensions"])
def test_a_spelling_that_nobody_has_verified_is_a_warning(build: Build, limits: Limits, spelling: str) -> None:
    disk = "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region"  # of which A3's id and dimension are inferred
    row = f"{disk}: [{{limit: 100, vm_family: A3X, region: us-central1}}]" if spelling == "dimensions" else ""
    text = (LISTED % 64).replace(f"{disk}: [{{limit: -1}}]", row)

    (finding,) = verdict(build(dev=POOLS), limits(text))

    assert finding.severity == "warning"
    assert finding.rule == {"quota_id": "quota-unknown", "dimensions": "quota-exceeded"}[spelling]
    assert "the name of this quota in the catalogue is not verified" in finding.message


def test_a_limit_that_the_snapshot_has_for_such_a_quota_is_held(build: Build, limits: Limits) -> None:
    disk = "LOCAL-SSD-TOTAL-STORAGE-PER-VM-FAMILY-per-project-region"
    row = f"{disk}: [{{limit: 100, vm_family: A3, region: us-central1}}]"

    (finding,) = verdict(build(dev=POOLS), limits((LISTED % 64).replace(f"{disk}: [{{limit: -1}}]", row)))

    assert (finding.rule, finding.severity) == ("quota-exceeded", "error")


def test_project_without_a_snapshot_is_one_error_for_each_stack(build: Build) -> None:
    team = "vertex: {persistent_resources: {t: {region: us-central1, machine_type: a2-highgpu-1g}}}"

    findings = verdict(build(dev=POOLS, dev_vision=team), Snapshots())

    assert [(finding.rule, finding.stack, finding.path) for finding in findings] == [
        ("quota-no-snapshot", "dev", "project"),
        ("quota-no-snapshot", "dev-vision", "environment"),
    ]
    assert [finding.position.line for finding in findings if finding.position] == [3, 3]


def capacity(build: Build, vision: int, nlp: int) -> list[Finding]:
    workspace = build(
        dev="node_pools: {v5e: {machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: 4x8, slices: 3}}",
        dev_vision=f"shares: {{main: {{tpu-v5e-4x8: {{nominal_quota: {vision}}}}}}}",
        dev_nlp=f"shares: {{main: {{tpu-v5e-4x8: {{nominal_quota: {nlp}}}}}}}",
    )
    return capacity_findings(capacity_ledger(workspace), workspace)


def test_shares_that_the_pools_hold_are_no_finding(build: Build) -> None:
    assert capacity(build, 2 * 32, 32) == []


def test_shares_over_capacity_are_found_at_every_team_that_could_lower_its(build: Build) -> None:
    findings = capacity(build, 2 * 32, 2 * 32)

    assert [(finding.rule, finding.stack) for finding in findings] == [
        ("capacity-exceeded", "dev-nlp"),
        ("capacity-exceeded", "dev-vision"),
    ]
    shares = (
        "is promised 128 google.com/tpu, of which nlp 64 and vision 64; its pools have 96"  # readable: a list follows
    )
    assert shares in findings[0].message
    assert findings[0].path == "shares.main.tpu-v5e-4x8.nominal_quota"
    assert findings[0].nearest == str(3 * 32 - 2 * 32)
    assert findings[0].position is not None


@pytest.mark.parametrize(
    ("vision", "nlp", "allowed"),
    [
        (64, 64, "nlp lowered by 32 to 32, or vision lowered by 32 to 32 (stacks/Pulumi.dev-vision.yaml:6)"),
        (96, 96, "nlp lowered by 96 to 0, or vision lowered by 96 to 0 (stacks/Pulumi.dev-vision.yaml:6)"),
        (128, 128, "shares lowered by 160 in total"),
    ],
)
def test_shares_over_capacity_are_told_which_to_lower_by_how_much(
    build: Build, vision: int, nlp: int, allowed: str
) -> None:
    assert capacity(build, vision, nlp)[0].allowed == f"{allowed}, or larger pools of tpu-v5e-4x8 (v5e)"


def test_what_fits_is_in_whole_slices(build: Build) -> None:
    over = [finding for finding in capacity(build, 96, 40) if finding.rule == "capacity-exceeded"]

    assert [finding.nearest for finding in over] == ["32", None]


@pytest.mark.parametrize(
    ("share", "nearest"), [(33, "32"), (48, "64"), (63, "64"), (31, "32"), (16, "32"), (15, "32"), (65, "64")]
)
def test_share_that_is_no_whole_number_of_slices_is_found(build: Build, share: int, nearest: str) -> None:
    (finding,) = capacity(build, share, 0)

    assert (finding.rule, finding.nearest) == ("share-not-whole-slices", nearest)
    assert finding.allowed == "a multiple of 32"


UPGRADING = " while upgrading"


def charges(workspace: Workspace, stack: str, *path: str) -> dict[str, Charge]:
    """Return a section's charges by quota id, those of its slices added up, without the room for its upgrades."""
    by_id: dict[str, Charge] = {}
    for charge in stack_demand(workspace.stacks[stack], workspace):
        if charge.holder.path == path and not charge.holder.label.endswith(UPGRADING):
            before = by_id.get(charge.key.quota_id)
            assert before is None or (before.keys, before.holder) == (charge.keys, charge.holder)
            amount = charge.amount + (before.amount if before else 0)
            by_id[charge.key.quota_id] = charge._replace(amount=amount)
    return by_id


def pool(build: Build, name: str, text: str) -> dict[str, Charge]:
    return charges(build(dev=f"node_pools:\n  {name}: {text}"), "dev", "clusters", "main", "node_pools", name)


@pytest.mark.parametrize(
    "damage",
    [
        "shares: {nowhere: {h100: {nominal_quota: 8}}}",
        "shares: {main: {nothing: {nominal_quota: 8}}}",
        "environment: prod",
        "directories: {data: {filestore: nowhere, size_gib: 1}}",
    ],
)
def test_a_team_that_names_what_is_not_there_is_still_counted(damage: str) -> None:
    environment_line = "environment: dev\n" if not damage.startswith("environment") else ""
    name = "name: vision\nproject: other-train\nmembers: [group:vision@example.com]\n"
    team = f"{damage}\n{environment_line}{name}{MACHINES}"
    environment = (
        "project: example-train\nclusters: {main: {location: us-central1, "
        "subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}}}"
    )
    sections = {"dev": ("environment", environment), "dev-vision": ("team", team)}
    stacks = {}
    for name, (kind, text) in sections.items():
        body = f"config:\n  training-platform:{kind}:\n{textwrap.indent(text, '    ')}\n"
        stacks[name] = parse_stack(name, parse_source(body, f"stacks/Pulumi.{name}.yaml"))
    workspace = cross_check(Workspace(Path(), stacks))
    stack = workspace.stacks["dev-vision"]

    assert stack.findings
    charged = {charge.key.quota_id: charge.amount for charge in stack_demand(stack, workspace)}
    assert charged["CustomModelTrainingA100GPUsPerProjectPerRegion"] == 1
    assert {charge.key.project for charge in stack_demand(stack, workspace)} == {"other-train"}


MACHINES = "vertex: {persistent_resources: {tuning: {region: us-central1, machine_type: a2-highgpu-1g}}}"


def test_every_slice_of_a_tpu_pool_is_counted(build: Build) -> None:
    text = "{machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: 2x4, slices: 3, min_slices: 2}"
    charged = pool(build, "v5e", text)
    chips = charged["TPU-LITE-PODSLICE-V5-per-project-region"]

    assert chips.amount == 3 * 8
    assert (chips.holder.field[-1], chips.holder.step, chips.holder.base) == ("slices", 8, 2)
    assert charged["INSTANCES-per-project-region"].amount == 3 * 2
    assert charged["SSD-TOTAL-GB-per-project-region"].amount == 3 * 2 * 100


def test_pool_without_a_zone_is_counted_in_three_zones(build: Build) -> None:
    charged = pool(build, "h100", "{machine_type: a3-highgpu-8g, max_nodes: 2}")

    assert charged["GPUS-ALL-REGIONS-per-project"].amount == 2 * 3 * 8


def test_boot_disk_without_a_type_is_balanced_where_the_machine_supports_it(build: Build) -> None:
    charged = pool(build, "a100", "{machine_type: a2-highgpu-1g, zone: us-central1-a}")

    assert charged["SSD-TOTAL-GB-per-project-region"].amount == 100


def test_managed_lustre_is_counted_in_its_zone() -> None:
    text = """\
config:
  training-platform:environment:
    project: example-train
    private_services_range: 10.200.0.0/20
    lustre:
      scratch: {location: us-central1-a, capacity_gib: 36000}
      more: {location: us-central1-a, capacity_gib: 18000}
"""
    stack = parse_stack("dev", parse_source(text, "stacks/Pulumi.dev.yaml"))
    lustre_charges = [
        charge for charge in stack_demand(stack, Workspace(Path(), {"dev": stack})) if "lustre" in charge.key.service
    ]

    assert {str(charge.key) for charge in lustre_charges} == {"Capacity in us-central1-a"}
    assert {charge.holder.label: charge.amount for charge in lustre_charges} == {"scratch": 36000, "more": 18000}
    assert lustre_charges[0].holder.field == ("lustre", "scratch", "capacity_gib")
    assert is_guess(lustre_charges[0].key, listed=True)  # a warning, whatever the snapshot lists


def test_filestore_and_one_address_for_each_region_are_counted() -> None:
    text = """\
config:
  training-platform:environment:
    project: example-train
    filestore:
      homes: {location: us-central1-a, capacity_gib: 1536}
    clusters:
      a: {location: us-central1, subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.0.16.0/20}}
      b: {location: us-central1-c, subnet: {nodes: 10.1.0.0/20, pods: 10.65.0.0/16, services: 10.1.16.0/20}}
      c: {location: us-west4, subnet: {nodes: 10.2.0.0/20, pods: 10.66.0.0/16, services: 10.2.16.0/20}}
"""
    stack = parse_stack("dev", parse_source(text, "stacks/Pulumi.dev.yaml"))
    charged = stack_demand(stack, Workspace(Path(), {"dev": stack}))
    totals: Counter[tuple[str, str]] = Counter()
    for charge in charged:
        totals[charge.key.quota_id, charge.key.location] += int(charge.amount)

    assert totals["EnterpriseStorageGibPerRegion", "us-central1"] == 1536
    assert totals["IN-USE-ADDRESSES-per-project-region", "us-central1"] == 1
    assert totals["IN-USE-ADDRESSES-per-project-region", "us-west4"] == 1


NETWORKED = """\
config:
  training-platform:environment:
    project: example-train
    nat_addresses: 2
    private_services_range: 10.200.0.0/20
    network_attachments: {us-west4: 10.30.0.0/24}
    lustre: {scratch: {location: us-central1-a, capacity_gib: 36000}}
    clusters:
      a:
        location: us-central1
        accelerator_networks: multi-network
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.0.16.0/20}
        node_pools:
          mega: {machine_type: a3-megagpu-8g, zone: us-central1-a}
          ultra: {machine_type: a3-ultragpu-8g, zone: us-central1-b}
      b: {location: us-west4, subnet: {nodes: 10.1.0.0/20, pods: 10.65.0.0/16, services: 10.1.16.0/20}}
"""


def test_parts_of_networks_are_counted_at_the_section_that_needs_them() -> None:
    stack = parse_stack("dev", parse_source(NETWORKED, "stacks/Pulumi.dev.yaml"))
    totals: Counter[tuple[str, str, str]] = Counter()
    for charge in stack_demand(stack, Workspace(Path(), {"dev": stack})):
        section = ".".join(map(str, charge.holder.path))
        totals[charge.key.quota_id.partition("-per-")[0], charge.holder.label, section] += int(charge.amount)

    kinds = {"ROUTERS", "FIREWALLS", "STATIC-ADDRESSES", "NETWORKS", "SUBNETWORKS"}
    fabric = ("GPU networks of a", "clusters.a.gpu_networks")
    assert {row: count for row, count in totals.items() if row[0] in kinds} == {
        ("NETWORKS", "network", ""): 1,
        ("NETWORKS", *fabric): 8 + 2,  # TCPXO has 8 VPCs; RDMA has its own, beside that of gVNIC
        ("SUBNETWORKS", *fabric): 8 + 8 + 1,
        ("SUBNETWORKS", "a", "clusters.a"): 1,
        ("SUBNETWORKS", "b", "clusters.b"): 1,
        ("SUBNETWORKS", "us-west4", "network_attachments.us-west4"): 1,
        ("FIREWALLS", "network", ""): 1,  # of Lustre
        ("FIREWALLS", *fabric): 8 + 1,  # none for RDMA
        ("FIREWALLS", "a", "clusters.a"): 1,  # of webhooks
        ("FIREWALLS", "b", "clusters.b"): 1,
        ("ROUTERS", "NAT of us-central1", "clusters.a"): 1,
        ("ROUTERS", "NAT of us-west4", "clusters.b"): 1,
        ("STATIC-ADDRESSES", "NAT of us-central1", "clusters.a"): 2,
        ("STATIC-ADDRESSES", "NAT of us-west4", "clusters.b"): 2,
    }


def test_auto_provisioning_may_add_what_the_pools_leave_of_its_limits(build: Build) -> None:
    workspace = build(
        dev="""\
auto_provisioning:
  cpu: 2000
  memory_gb: 20000
  accelerators: {nvidia-h100-mega-80gb: 40, nvidia-l4: 8}
  zones: [us-central1-a]
node_pools: {mega: {machine_type: a3-megagpu-8g, zone: us-central1-a, max_nodes: 2}}
"""
    )
    charged = [row for row in stack_demand(workspace.stacks["dev"], workspace) if "auto" in row.holder.label]

    section = ("clusters", "main", "auto_provisioning")
    assert {(row.key.quota_id, row.holder.field[-1]): row.amount for row in charged} == {
        (H100, "nvidia-h100-mega-80gb"): 40 - 2 * 8,
        ("GPUS-ALL-REGIONS-per-project", "nvidia-h100-mega-80gb"): 40 - 2 * 8,
        ("NVIDIA-L4-GPUS-per-project-region", "nvidia-l4"): 8,
        ("GPUS-ALL-REGIONS-per-project", "nvidia-l4"): 8,
    }
    assert {(row.holder.path, row.holder.label, row.holder.step) for row in charged} == {
        (section, "auto-provisioning of main", 1)
    }


def test_claims_of_teams_on_a_storage_class_are_counted_at_their_most(build: Build) -> None:
    workspace = build(dev="storage_classes: {shared: {tier: ZONAL, teams: {vision: 2048, nlp: 1024}}}")

    (charge,) = charges(workspace, "dev", "clusters", "main", "storage_classes", "shared").values()

    assert (charge.key.quota_id, charge.key.location) == ("EnterpriseStorageGibPerRegion", "us-central1")
    assert (charge.amount, charge.holder.field[-1]) == (2048 + 1024, "teams")


def test_a_gateway_takes_the_addresses_that_its_vms_have_ports_of_from_their_start(build: Build) -> None:
    def addresses(nodes: int) -> int:
        workspace = build(
            dev=f"node_pools:\n  gpu: {{machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: {nodes}}}"
        )
        charged = stack_demand(workspace.stacks["dev"], workspace)
        return int(
            sum(charge.amount for charge in charged if charge.key.quota_id == "IN-USE-ADDRESSES-per-project-region")
        )

    # With the system pool's 3: by 64 ports, of which an address has 64,512.
    assert [addresses(nodes) for nodes in (12, 1_005, 1_006)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("reserved", "limit", "severity"), [(0, 1, "warning"), (0, 2, None), (2, 1, "error"), (2, 2, None)]
)
def test_only_reserved_addresses_are_sure_to_count(reserved: int, limit: int, severity: str | None) -> None:
    key = quota_key("p", GENERAL_QUOTAS["in-use-addresses"], "us-central1")
    holder = Holder("dev", (), "NAT of us-central1", disputed=not reserved)
    line = Line(key=key, unit="addresses", limit=float(limit), holders=(Held(holder, 2.0),))

    assert (line.over, line.disputed) == (severity is not None, severity == "warning")


def persistent(build: Build, text: str) -> dict[str, Charge]:
    workspace = build(dev="", dev_vision=f"vertex: {{persistent_resources: {{tuning: {text}}}}}")
    return charges(workspace, "dev-vision", "vertex", "persistent_resources", "tuning")


def test_persistent_resource_is_counted_at_max_replicas(build: Build) -> None:
    charged = persistent(build, "{region: us-central1, machine_type: a2-highgpu-2g, replicas: 2, max_replicas: 5}")
    gpus = charged["CustomModelTrainingA100GPUsPerProjectPerRegion"]

    assert gpus.amount == 5 * 2
    assert (gpus.holder.field[-1], gpus.holder.step, gpus.holder.base) == ("max_replicas", 2, 2)
    assert charged["CustomModelTrainingPDSSDPerProjectPerRegion"].amount == 5 * 100


def test_persistent_resource_without_a_maximum_is_counted_at_its_replicas(build: Build) -> None:
    charged = persistent(build, "{region: us-central1, machine_type: a2-highgpu-2g, replicas: 3}")
    gpus = charged["CustomModelTrainingA100GPUsPerProjectPerRegion"]

    assert gpus.amount == 3 * 2
    assert gpus.holder.field[-1] == "replicas"


def test_gpus_that_are_attached_to_a_persistent_resource_are_counted(build: Build) -> None:
    charged = persistent(
        build,
        "{region: us-central1, machine_type: n1-standard-8, accelerator: t4, accelerator_count: 2, max_replicas: 3}",
    )

    assert charged["CustomModelTrainingT4GPUsPerProjectPerRegion"].amount == 3 * 2
    assert charged["CustomModelTrainingCPUsPerProjectPerRegion"].amount == 3 * 8


def test_every_pool_of_a_persistent_resource_is_counted_at_its_own_most(build: Build) -> None:
    pools = "{servers: {machine_type: a2-highgpu-1g, replicas: 1, max_replicas: 3}}"
    text = f"{{region: us-central1, machine_type: a2-highgpu-2g, replicas: 2, more_pools: {pools}}}"
    workspace = build(dev="", dev_vision=f"vertex: {{persistent_resources: {{tuning: {text}}}}}")
    gpus = [
        charge
        for charge in stack_demand(workspace.stacks["dev-vision"], workspace)
        if charge.key.quota_id == "CustomModelTrainingA100GPUsPerProjectPerRegion"
    ]

    assert [(charge.holder.label, charge.amount) for charge in gpus] == [("tuning", 2 * 2), ("tuning-servers", 3 * 1)]
    assert gpus[1].holder.field[-3:] == ("more_pools", "servers", "max_replicas")


def test_a_system_pool_has_one_vm_more_while_it_is_upgraded(build: Build) -> None:
    workspace = build(dev="")
    upgrade_charges = {
        charge.key.quota_id: charge.amount
        for charge in stack_demand(workspace.stacks["dev"], workspace)
        if charge.holder.label == f"main-system{UPGRADING}"
    }

    assert upgrade_charges["CPUS-per-project-region"] == 4
    assert upgrade_charges["SSD-TOTAL-GB-per-project-region"] == 50
    assert upgrade_charges["INSTANCES-per-project-region"] == 1


def test_a_share_that_a_change_adds_is_said_to_have_had_none_before(build: Build) -> None:
    pools = "node_pools: {small: {machine_type: a2-highgpu-1g, zone: us-central1-a, max_nodes: 1}}"
    share = "shares: {main: {a100-40: {nominal_quota: 1}}}"
    before = build(dev=pools, dev_vision=share)
    after = build(dev=pools, dev_vision=share, dev_nlp=share)

    (finding,) = capacity_findings(capacity_ledger(after), after, before)

    assert finding.stack == "dev-nlp"
    assert "; nlp had 0 before this change" in finding.message


def test_shares_that_a_change_of_the_pools_leaves_alone_are_not_compared_with_those_before(build: Build) -> None:
    def stacks(nodes: int) -> Workspace:
        pools = f"node_pools: {{h100: {{machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: {nodes}}}}}"
        share = "shares: {main: {h100: {nominal_quota: 8}}}"
        return build(dev=pools, dev_vision=share, dev_nlp=share)

    findings = capacity_findings(capacity_ledger(stacks(1)), stacks(1), stacks(2))

    assert {finding.stack for finding in findings} == {"dev-vision", "dev-nlp"}
    assert not any("before this change" in finding.message for finding in findings)
