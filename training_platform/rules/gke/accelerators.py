"""Rules about machines with GPUs or TPUs: number and type of accelerators, slice topologies, networks between GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from training_platform.catalog import ACCELERATORS
from training_platform.catalog.attachments import gpu_counts, is_without_gpus
from training_platform.catalog.locations import is_zone
from training_platform.catalog.topologies import legal_for, nearest_topology, other_machine, topologies_text
from training_platform.catalog.types import MachineType, chips_in
from training_platform.config.expansion import GPU_DIRECT_LABEL, GPU_DIRECT_OFF, NETWORK_DRIVER_LABEL
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.finding import Severity
from training_platform.resources.node_pools import NETWORK_PROFILE
from training_platform.rules.gke.clusters import DATAPLANE_V2
from training_platform.rules.network import RESERVED_ADDRESSES, network_of, prefix_with, subnet_named, subnet_of
from training_platform.views.cluster import VmView, cluster_of
from training_platform.views.network import FirewallView, NetworkView, SubnetView
from training_platform.views.node_pool import NodePoolView
from training_platform.views.whole_stack import Program


@rule(
    "gpu-fixed-pair",
    ruleset="gpu",
    source="GKE cluster-autoscaler 7d25050, ValidateGpuForMachineType; Compute docs, accelerator-optimized machines",
)
def gpu_fixed_pair(vm: NodePoolView | VmView) -> Iterator[Draft]:
    """Find GPUs other than the machine type's own, and GPUs on a machine type that supports none.

    A pool that does not name the GPUs of its machine type causes a warning. A VM or a reservation has them anyway.
    """
    machine = vm.machine
    kind = vm.accelerator_type
    count = vm.accelerator_count
    if count == 0 and (machine is None or machine.kind != "gpu"):
        kind = None  # a block of none
    if machine is None:
        if kind is not None and is_without_gpus(vm.machine_type):
            yield _no_gpus(vm, kind)
        return
    if machine.kind != "gpu" or machine.accelerator is None:
        if kind is not None:
            yield from _not_attached(vm, machine, kind, count)
        return
    label = machine.accelerator.gke_label
    pair = f"{machine.chips} of {label}"
    if kind is None:
        # GKE fills them in: terraform-docs-samples 77df39c, gke/standard/zonal/dws, has a flex-start pool without.
        if isinstance(vm, NodePoolView):
            message = f"GKE chooses the GPUs of {machine.name} and their driver, and may choose another driver later"
            yield finding(vm, "accelerator_type", message, allowed=pair, nearest=pair, severity="warning")
    elif kind != label:
        yield finding(vm, "accelerator_type", f"{machine.name} has no {kind}", allowed=pair, nearest=label)
    elif count != machine.chips:
        message = f"{machine.name} has {machine.chips} GPUs, but {count} are requested"
        yield finding(vm, "accelerator_count", message, allowed=pair, nearest=machine.chips)


def _not_attached(vm: NodePoolView | VmView, machine: MachineType, kind: str, count: int | None) -> Iterator[Draft]:
    """Find GPUs that cannot be attached to a machine type at all, or not in this number."""
    accelerator = next((row for row in ACCELERATORS.values() if row.gke_label == kind), None)
    if accelerator is None and machine.name.startswith("n1-") and kind.startswith("nvidia-"):
        message = f"{kind} is not in the catalogue, so its count is not checked"
        yield finding(vm, "accelerator_type", message, allowed="GPUs in the catalogue", severity="warning")
        return
    counts = gpu_counts(machine, accelerator) if accelerator else ()
    if not counts:
        yield _no_gpus(vm, kind)
    elif count not in counts:
        nearest = min(counts, key=lambda fitting: abs(fitting - (count or 0)))
        message = f"{machine.name} does not support {count} of {kind}"
        yield finding(vm, "accelerator_count", message, allowed=", ".join(map(str, counts)), nearest=nearest)


def _no_gpus(vm: NodePoolView | VmView, kind: str) -> Draft:
    message = f"{vm.machine_type} does not support GPUs, but {kind} is requested"
    return finding(vm, "accelerator_type", message, allowed="none")


@rule(
    "vm-local-ssds",
    ruleset="disks",
    source="Compute docs, accelerator-optimized machines; Cluster Toolkit v1.95.0, disk_definitions.tf",
)
def vm_local_ssds(vm: VmView) -> Iterator[Draft]:
    """Find a number of local SSDs that the machine type, which has TPUs or GPUs, does not support.

    This applies to VMs and reservations. Bundled local SSDs may be left out.
    """
    machine = vm.machine
    if machine is None or machine.accelerator is None or not vm.local_ssds:
        return
    bundled = machine.local_ssd.bundled
    allowed = (bundled,) if bundled else machine.local_ssd.allowed
    if vm.local_ssds not in allowed:
        nearest = min(allowed, key=lambda fitting: abs(fitting - vm.local_ssds), default=0)
        message = f"{machine.name} does not support {vm.local_ssds} local SSDs"
        yield finding(vm, "local_ssds", message, allowed=", ".join(map(str, allowed)) or "none", nearest=nearest)


@rule(
    "vm-migration",
    ruleset="consumption",
    when="on_host_maintenance",
    source="Compute docs, GPU VMs and host maintenance: they stop, and cannot be moved (general knowledge)",
)
def vm_migration(vm: VmView) -> Iterator[Draft]:
    """Find VMs with GPUs or TPUs that are set to migrate during host maintenance. Such VMs can only stop."""
    if vm.on_host_maintenance == "MIGRATE" and vm.machine is not None and vm.machine.accelerator is not None:
        message = f"{vm.machine.name} does not support live migration, but onHostMaintenance is MIGRATE"
        yield finding(vm, "on_host_maintenance", message, allowed="TERMINATE", nearest="TERMINATE")


_DEPLOYED_WITH_TOPOLOGY = frozenset({"tpu-v6e", "tpu-7x"})
_XPK = "xpk 367c838, nodepool.py and system_characteristics.py, read 2026-06-25"


@rule("tpu-topology", ruleset="tpu", spoils=True, source=f"{_XPK}; Vertex AI docs, configure compute, read 2026-08-22")
def tpu_topology(pool: NodePoolView) -> Iterator[Draft]:
    """Find a topology that is not valid for the machine type, on one VM or on several VMs."""
    machine = pool.machine
    topology = pool.tpu_topology
    if topology is None:
        return
    if is_without_gpus(pool.machine_type) or (machine is not None and machine.kind != "tpu"):
        yield finding(
            pool, "tpu_topology", f"{pool.machine_type} has no TPUs, so it cannot have a topology", allowed="none"
        )
    elif machine is not None and not legal_for(machine, topology):
        yield illegal(pool, machine, topology)


@rule(
    "tpu-single-host-placement",
    ruleset="tpu",
    source=f"{_XPK}; xpk #825; daily tests of Cluster Toolkit at 104708037, which deploy v6e 2x2 and 7x 2x2x1 with a "
    f"topology",
)
def tpu_single_host_placement(pool: NodePoolView) -> Iterator[Draft]:
    """Find a topology on a pool of single-host slices. Sources disagree about v6e and 7x."""
    machine = pool.machine
    topology = pool.tpu_topology
    if machine is None or topology is None or machine.kind != "tpu":
        return
    if chips_in(topology) == machine.chips:
        disputed = machine.accelerator is not None and machine.accelerator.name in _DEPLOYED_WITH_TOPOLOGY
        verdict = "sources disagree on whether GKE refuses" if disputed else "GKE refuses"
        message = f"one {machine.name} is the whole slice {topology}, and {verdict} a TPU topology for it"
        allowed = "no placement policy: GKE labels these nodes with the topology itself"
        severity: Severity | None = "warning" if disputed else None
        yield finding(pool, "tpu_topology", message, allowed=allowed, nearest="no placement_policy", severity=severity)


@rule(
    "tpu-slice-nodes",
    ruleset="tpu",
    source=f"{_XPK}; xpk #751; terraform-provider-google-beta 93c65b2, autoscaling",
)
def tpu_slice_nodes(pool: NodePoolView) -> Iterator[Draft]:
    """Find a multi-host pool whose size is neither 0 nor all hosts of its slice, which scales only as a whole."""
    machine = pool.machine
    hosts = pool.hosts
    if machine is None or machine.kind != "tpu" or hosts == 1:
        return
    allowed = f"0 or {hosts}, the hosts of one {pool.tpu_topology}"
    for field in ("node_count", "initial_nodes", "min_nodes"):
        count = getattr(pool, field)
        if count not in (None, 0, hosts):
            yield finding(pool, field, f"{field.replace('_', ' ')} is {count}", allowed=allowed, nearest=hosts)
    if pool.max_nodes not in (None, hosts):
        message = f"max nodes is {pool.max_nodes}"
        yield finding(pool, "max_nodes", message, allowed=f"{hosts}, the hosts of one slice", nearest=hosts)
    for field in ("total_min_nodes", "total_max_nodes"):
        if getattr(pool, field) is not None:
            message = f"{field.replace('_', ' ')} counts nodes of all zones, which GKE refuses for a slice"
            yield finding(pool, field, message, allowed=f"counts for each zone: 0 and {hosts}")


@rule(
    "placement-one-zone",
    ruleset="tpu",
    when="placement_type",
    source="Cluster Toolkit v1.95.0, gke-node-pool main.tf, preconditions, read 2026-06-25",
)
def placement_one_zone(pool: NodePoolView) -> Iterator[Draft]:
    """Find compact placement in several zones, or together with blue-green upgrades."""
    if pool.placement_type != "COMPACT":
        return
    if pool.zone_count != 1:
        message = f"compact placement needs one zone, but the pool is in {pool.zone_count}"
        yield finding(pool, "zones", message, allowed="exactly one zone", nearest=next(iter(pool.zones), None))
    if pool.upgrade_strategy == "BLUE_GREEN":
        message = "compact placement does not support blue-green upgrades"
        yield finding(pool, "upgrade_strategy", message, allowed="surge", nearest="surge")


def illegal(pool: NodePoolView, machine: MachineType, topology: str) -> Draft:
    """Return the finding about a topology that is not valid for the machine type."""
    message = f"{topology!r} is not a valid topology for {machine.name}"
    nearest = []
    if shape := nearest_topology(machine, topology):
        nearest.append(shape)
    if other := other_machine(machine, topology):
        nearest.append(f"machine type {other} for {topology}")
    return finding(pool, "tpu_topology", message, allowed=topologies_text(machine), nearest=nearest or None)


_TOOLKIT = "Cluster Toolkit v1.95.0, gpu_direct.tf and network modules, read 2026-06-25"
ROCE = "vpc-roce"
METAL = "vpc-roce-metal"


@rule("gpudirect-interfaces", ruleset="fabric", severity="warning", source=_TOOLKIT)
def gpudirect_interfaces(pool: NodePoolView) -> Iterator[Draft]:
    """Find a pool of several VMs that lacks some of the GPUDirect interfaces.

    Training across VMs is then several times slower. A pool passes if its label opts out, or if its network profile
    adds the interfaces.
    """
    machine = pool.machine
    if machine is None or machine.gpudirect is None or pool.network_profile is not None:
        return
    if not pool.nics and (pool.most_vms == 1 or pool.node_labels.get(GPU_DIRECT_LABEL) == GPU_DIRECT_OFF):
        return
    additional = machine.nics - 1
    if len(pool.nics) < additional:
        uses = f"GPUDirect-{machine.gpudirect} of {machine.name} uses {additional} more interfaces"
        message = f"{uses}, but {len(pool.nics)} are configured"
        yield finding(pool, "nics", message, allowed=f"{additional} additional node networks", nearest=additional)


@rule("gpudirect-own-networks", ruleset="fabric", severity="warning", source=_TOOLKIT)
def gpudirect_own_networks(pool: NodePoolView) -> Iterator[Draft]:
    """Find two GPUDirect interfaces in one VPC. Each of them needs its own VPC."""
    machine = pool.machine
    if machine is None or machine.gpudirect is None or machine.rdma_nics:
        return
    networks = [nic.network for nic in pool.nics if isinstance(nic.network, str)]
    twice = sorted({name for name in networks if networks.count(name) > 1})
    if twice:
        message = f"several interfaces of each {machine.name} are in {twice[0]}"
        yield finding(pool, "nics", message, allowed="a VPC for each interface")


@rule("accelerator-network-profile", ruleset="fabric", source=f"{_TOOLKIT}; xpk 367c838")
def accelerator_network_profile(pool: NodePoolView) -> Iterator[Draft]:
    """Find an accelerator network profile that is unknown, set together with networks, or not supported by the pool."""
    profile = pool.network_profile
    machine = pool.machine
    if profile is None:
        return
    if profile != NETWORK_PROFILE:
        message = f"accelerator network profile {profile} is unknown"
        yield finding(pool, "network_profile", message, allowed=NETWORK_PROFILE, nearest=NETWORK_PROFILE)
    if pool.nics:
        message = (
            "an accelerator network profile creates its networks itself, but other networks are configured as well"
        )
        yield finding(pool, "nics", message, allowed="no additional node networks")
    if machine is not None and "dranet" not in machine.minimum_gke:
        message = f"{machine.name} does not support accelerator network profiles"
        yield finding(pool, "network_profile", message, allowed="none")
    if len(pool.zones) > 1 or (not pool.zones and pool.location is not None and not is_zone(pool.location)):
        message = "an accelerator network profile creates networks in one zone, but the pool has several zones"
        yield finding(pool, "zones", message, allowed="one zone")


@rule(
    "network-driver-label",
    ruleset="fabric",
    when="network_profile",
    severity="warning",
    source=f"{_TOOLKIT}; xpk 367c838",
)
def network_driver_label(pool: NodePoolView) -> Iterator[Draft]:
    """Find an accelerator network profile on nodes without the label that installs its driver."""
    if pool.network_profile is not None and pool.node_labels.get(NETWORK_DRIVER_LABEL) != "true":
        message = f"label {NETWORK_DRIVER_LABEL} is missing, so the driver of the profile's networks is not installed"
        label = f"{NETWORK_DRIVER_LABEL}: true"
        yield finding(pool, "network_profile", message, allowed=label, nearest=label)


@rule("rdma-network", ruleset="fabric-networks", across=True, source=_TOOLKIT)
def rdma_network(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find RDMA interfaces in a VPC of this program whose profile, zone, MTU or subnets do not support RDMA."""
    machine = pool.machine
    if machine is None or not pool.nics or machine.gpudirect_mtu is None:
        return
    by_name = program.once(_network_indices)
    indices = {index for nic in pool.nics if isinstance(nic.network, str) for index in by_name.get(nic.network, ())}
    networks = [program.all(NetworkView)[index] for index in sorted(indices)]
    for network in networks:
        rdma = bool(machine.rdma_nics) and network.profile is not None
        if network.mtu != machine.gpudirect_mtu and (rdma or not machine.rdma_nics):
            mtu = f"has an MTU of {network.mtu}" if network.mtu else "has no MTU set"
            message = f"VPC {network.name} {mtu}, but GPUDirect-{machine.gpudirect} needs {machine.gpudirect_mtu}"
            # Another MTU is refused for RDMA, and only slower without it. No source says what a profile's default is.
            severity: Severity | None = None if rdma and network.mtu else "warning"
            allowed = machine.gpudirect_mtu
            yield finding(pool, "nics", message, allowed=allowed, nearest=allowed, severity=severity)
        if rdma:
            yield from _profile_misfits(pool, network, program)
    all_declared = len({nic.network for nic in pool.nics}) == len(networks)
    if machine.rdma_nics and all_declared and not any(network.profile for network in networks):
        message = f"no VPC of {machine.name} uses a network profile for RDMA"
        yield finding(pool, "nics", message, allowed=f"a VPC with profile {_zone(pool) or 'ZONE'}-{ROCE}")


@rule("rdma-firewall", ruleset="fabric-networks", across=True, source=_TOOLKIT)
def rdma_firewall(rule_: FirewallView, program: Program) -> Iterator[Draft]:
    """Find a firewall rule on an RDMA VPC, which does not support firewall rules."""
    for network in program.once(_profiled):
        if network.is_meant(rule_.network, "network"):
            message = f"firewall rule {rule_.name} is on VPC {network.name}, which is for RDMA"
            yield finding(rule_, "network", message, allowed="none")


@rule("rdma-metal-subnets", ruleset="fabric-networks", across=True, source=_TOOLKIT)
def rdma_metal_subnets(subnet: SubnetView, program: Program) -> Iterator[Draft]:
    """Find a subnet in a VPC whose network profile creates the subnets itself."""
    for network in program.once(_profiled):
        if (network.profile or "").endswith(METAL) and network.is_meant(subnet.network, "network"):
            message = f"subnet {subnet.name} is in VPC {network.name}, whose network profile creates its own subnets"
            yield finding(subnet, "network", message, allowed="none")


@rule(
    "gpu-network-room",
    ruleset="fabric-networks",
    across=True,
    source="Compute docs, subnets: four addresses of the primary range are reserved; each NIC needs one",
)
def gpu_network_room(subnet: SubnetView, program: Program) -> Iterator[Draft]:
    """Find a subnet for additional interfaces that is too small for the maximum number of VMs of its pools."""
    by_name = program.once(_vms_by_subnet)
    vms = sum(by_name.get(name, 0) for name in {subnet.name, subnet.subnetwork or subnet.name})
    room = network_of(subnet.cidr) if vms else None
    if room is not None and vms > room.num_addresses - RESERVED_ADDRESSES:
        addresses = max(0, room.num_addresses - RESERVED_ADDRESSES)
        prefix = prefix_with(vms + RESERVED_ADDRESSES)
        message = f"subnet {subnet.name} ({room}) has {addresses:,} addresses for {vms:,} VMs with one interface each"
        larger = f"{room.network_address}/{prefix}"
        yield finding(subnet, "cidr", message, allowed=f"a subnet of /{prefix} or larger", nearest=larger)


@rule(
    "gpu-network-range",
    ruleset="fabric-networks",
    when="nics",
    across=True,
    source="GKE docs, multi-network support for pods: the ranges of a node's networks do not overlap (general "
    "knowledge)",
)
def gpu_network_range(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find an additional interface whose subnet overlaps an address range of the same cluster."""
    cluster = cluster_of(pool, program) if pool.nics else None
    cluster_subnet = subnet_of(cluster, program) if cluster else None
    if cluster is None or cluster_subnet is None:
        return
    taken = [room for room in map(network_of, (cluster_subnet.cidr, *cluster_subnet.ranges.values())) if room]
    for nic in pool.nics:
        subnet = subnet_named(nic.subnetwork, program)
        room = network_of(subnet.cidr) if subnet else None
        clash = next((other for other in taken if room is not None and room.overlaps(other)), None)
        if subnet is not None and clash is not None:
            message = f"{room} of {subnet.name} overlaps {clash} of cluster {cluster.name}"
            yield finding(
                subnet, "cidr", message, allowed="a range that does not overlap the ranges of nodes, pods and Services"
            )
            return


@rule("dranet-cluster", ruleset="together", across=True, source=_TOOLKIT)
def dranet_cluster(pool: NodePoolView, program: Program) -> Iterator[Draft]:
    """Find an accelerator network profile or additional interfaces in a cluster that does not support them."""
    if pool.network_profile is None and not pool.nics:
        return
    cluster = cluster_of(pool, program)
    if cluster is not None and cluster.datapath != DATAPLANE_V2:
        message = f"additional node networks need Dataplane V2, which {cluster.name} does not have"
        yield finding(pool, "nics", message, allowed="datapath_provider ADVANCED_DATAPATH, at creation")
    elif cluster is not None and pool.nics and not cluster.multi_networking:
        message = f"additional node networks need multi-networking, which {cluster.name} does not have"
        # The Toolkit refuses it; a test of the provider (93c65b2) creates a queued pool with it.
        severity: Severity | None = "warning" if pool.queued else None
        yield finding(pool, "nics", message, allowed="enable_multi_networking, at creation", severity=severity)
    if cluster is not None and pool.network_profile is not None and cluster.name in program.once(_with_nics):
        message = f"other pools of {cluster.name} have additional node networks, which exclude network profiles"
        # By reports of GKE's page alone (read 2026-11-28).
        yield finding(pool, "network_profile", message, allowed="only one of the two in a cluster", severity="warning")


def _with_nics(program: Program) -> set[str]:
    """Return the names of clusters that have pools with additional interfaces."""
    clusters = (cluster_of(pool, program) for pool in program.all(NodePoolView) if pool.known("nics") and pool.nics)
    return {cluster.name for cluster in clusters if cluster is not None}


def _vms_by_subnet(program: Program) -> dict[str, int]:
    """Return the maximum total number of VMs of the pools on each subnet, keyed by the subnet's name."""
    vms: dict[str, int] = defaultdict(int)
    for pool in program.all(NodePoolView):
        if not pool.known("nics"):
            continue
        for nic in pool.nics:
            if isinstance(nic.subnetwork, str):
                vms[nic.subnetwork] += pool.most_vms
    return vms


def _network_indices(program: Program) -> dict[str, list[int]]:
    """Return the indices of a program's networks, keyed by logical name and by name in Google Cloud.

    Two networks may have the same name.
    """
    indices: dict[str, list[int]] = defaultdict(list)
    for index, network in enumerate(program.all(NetworkView)):
        for name in {network.name, network.network if network.known("network") else None} - {None}:
            indices[str(name)].append(index)
    return indices


def _profiled(program: Program) -> list[NetworkView]:
    return [network for network in program.all(NetworkView) if network.profile is not None]


def _profile_misfits(pool: NodePoolView, network: NetworkView, program: Program) -> Iterator[Draft]:
    zone = _zone(pool)
    profile = network.profile or ""
    if zone and profile != f"{zone}-{ROCE}" and not profile.endswith(METAL):
        message = f"VPC {network.name} has profile {profile}, but the nodes are in {zone}"
        yield finding(pool, "nics", message, allowed=f"{zone}-{ROCE}", nearest=f"{zone}-{ROCE}")
    machine = pool.machine
    subnets = [subnet for subnet in program.all(SubnetView) if network.is_meant(subnet.network, "network")]
    if machine is not None and not profile.endswith(METAL) and 0 < len(subnets) < machine.rdma_nics:
        message = (
            f"VPC {network.name} has {len(subnets)} subnets, and {machine.name} has {machine.rdma_nics} RDMA interfaces"
        )
        yield finding(pool, "nics", message, allowed=f"{machine.rdma_nics} subnets", nearest=machine.rdma_nics)


def _zone(pool: NodePoolView) -> str | None:
    return pool.zones[0] if len(pool.zones) == 1 else None
