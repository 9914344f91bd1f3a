"""GPUDirect for the pods of a job: network cards, NCCL's settings, and access to their node.

Jobs with several VMs use the network between GPUs. The GPUs of one VM are connected by NVLink, so a job with one VM
needs none of these. Sources: GoogleCloudPlatform/container-engine-accelerators, nccl-test*.yaml in gpudirect-tcpx,
gpudirect-tcpxo and gpudirect-rdma, and gpudirect-tcpxo/best-practice.md, read 2026-11-21. None of this was tested on
real VMs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from training_platform.catalog import IMAGES
from training_platform.catalog.reading import table
from training_platform.config.expansion import ExpandedPool, Flavor
from training_platform.config.gpu_fabric import gpu_fabrics
from training_platform.config.reading.declaration import Draft, finding
from training_platform.parts.jobs.gke.gke_job import GkeJob
from training_platform.parts.jobs.job_rules import gke_rule
from training_platform.resources.gpu_direct import APERTURES, LIBRARIES, TCPX_SOCKETS, NodeAccess, access, pod_fabric

DEFAULT_INTERFACE = "networking.gke.io/default-interface"
INTERFACES = "networking.gke.io/interfaces"
SCRIPTS: Final[Mapping[str, str]] = {"RDMA": "/usr/local/gib/scripts/set_nccl_env.sh"}
"""Shell scripts that the installers put on nodes. Each contains NCCL's settings for the machine."""
_NCCL: Mapping[str, Mapping[str, str]] = table(__file__, "nccl.yaml")


@dataclass(frozen=True, kw_only=True)
class GpuDirect:
    """What GPUDirect adds to a pod. ``variables`` and the variables that ``script`` sets are for its container."""

    annotations: Mapping[str, str]
    variables: Mapping[str, str]
    access: NodeAccess
    script: str = ""


JOB_NCCL = gke_rule(
    "job-nccl",
    "Find a variable of a job that hides the platform's settings for GPUDirect.",
    severity="warning",
)
_AWAY_FROM_FABRIC: Final = frozenset({"NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME"})


def nccl_findings(job: GkeJob) -> Iterator[Draft]:
    """Find variables that make NCCL ignore the networks between GPUs. They override those of the platform."""
    direct = gpu_direct(job)
    if direct is None:
        return
    for name, value in job.spec.env.items():
        setting = direct.variables.get(name)
        if setting != value and (setting is not None or name in _AWAY_FROM_FABRIC):
            message = "hides the platform's setting for GPUDirect: VMs may use the ordinary, many times slower network"
            nearest = f"{name}: {setting}" if setting else None
            yield finding(job, ("env", name), message, rule=JOB_NCCL, allowed="the variable left out", nearest=nearest)


def fabric_of(flavor: Flavor, nodes: int) -> str | None:
    """Return the kind of networks between GPUs for a job of ``nodes`` VMs: the kind of most VMs in its flavor.

    The result is None for a job with one VM, and for pools without such networks or with VMs that jobs share.
    """
    if nodes <= 1:
        return None
    vms: Counter[str] = Counter()
    for pool in flavor.pools:
        if name := pod_fabric(pool):
            vms[name] += pool.max_nodes
    return max(vms, key=vms.__getitem__, default=None)


def usable_pools(flavor: Flavor, nodes: int) -> tuple[ExpandedPool, ...]:
    """Return the pools in which a job of ``nodes`` VMs can run: those that have the networks its pods request."""
    fabric = fabric_of(flavor, nodes)
    return tuple(pool for pool in flavor.pools if fabric in (None, pod_fabric(pool)))


def gpu_direct(job: GkeJob) -> GpuDirect | None:
    """Return what GPUDirect adds to a job's pod, or None without GPUDirect. ``node_images`` override our images."""
    name = fabric_of(job.flavor, job.nodes)
    if name is None:
        return None
    fabric = gpu_fabrics(job.gke.cluster, job.cluster)[name]
    pool = next(pool for pool in job.flavor.pools if pod_fabric(pool) == name)
    seen = access(fabric.gpudirect, {**IMAGES, **job.environment.node_images})
    annotations: dict[str, str] = {}
    if pool.network_devices:
        # DRANET leaves gVNICs their names of the node. Source: GKE cluster-autoscaler 7d25050, dranet.go.
        cards = [f"eth{number}" for number in range(1, pool.network_devices.count + 1)]
    else:
        networks = {
            f"eth{number}": nic.name
            for number, (vpc, nic) in enumerate(fabric.nics(pool), start=1)
            if fabric.gpudirect != "RDMA" or vpc.profile  # its second gVNIC belongs to the node
        }
        cards = list(networks)
        rows = [{"interfaceName": name, "network": net} for name, net in {"eth0": "default", **networks}.items()]
        annotations = {DEFAULT_INTERFACE: "eth0", INTERFACES: json.dumps(rows)}
    names = {"LIBRARIES": LIBRARIES, "TCPX_SOCKETS": TCPX_SOCKETS, "APERTURES": APERTURES, "cards": ",".join(cards)}
    return GpuDirect(
        annotations={**annotations, **seen.annotations},
        variables={variable: value.format(**names) for variable, value in _NCCL[fabric.gpudirect].items()},
        access=seen,
        script=SCRIPTS.get(fabric.gpudirect, ""),
    )
