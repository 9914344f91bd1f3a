"""What the pods of a job need for GPUDirect: network cards, folders of the node, and a daemon beside the training.

The network between GPUs serves jobs of several VMs; the GPUs of one VM are joined by NVLink, so a job of one needs
none of it. The daemon of TCPX and TCPXO runs privileged: without that it would want GKE's device injector on the nodes.
Sources: GoogleCloudPlatform/container-engine-accelerators, nccl-test*.yaml in gpudirect-tcpx, gpudirect-tcpxo and
gpudirect-rdma, and gpudirect-tcpxo/best-practice.md, read 2026-11-21. None of it was seen to run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training_platform.catalog import IMAGES
from training_platform.config.expansion.flavors import Flavor
from training_platform.config.expansion.gpu_fabric import fabric_name, gpu_fabrics
from training_platform.config.expansion.pools import ExpandedPool
from training_platform.jobs.nccl import APERTURES, LIBRARIES, TCPX_SOCKETS, settings
from training_platform.jobs.resolve import ResolvedJob

DEFAULT_INTERFACE = "networking.gke.io/default-interface"
INTERFACES = "networking.gke.io/interfaces"

_NODE = "/home/kubernetes/bin"
_READY = "/run/health-check"  # the name may hold no underscore
_LIBRARY_PATH = [{"name": "LD_LIBRARY_PATH", "value": LIBRARIES}]


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a pod sees of its node; ``mounts`` and ``capabilities`` are those of the container that trains."""

    volumes: tuple[dict[str, Any], ...]
    mounts: tuple[dict[str, Any], ...]
    capabilities: tuple[str, ...] = ()
    daemons: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class GpuDirect:
    """The parts of a pod; ``variables`` are those of the container that trains."""

    annotations: Mapping[str, str]
    variables: Mapping[str, str]
    access: Access


def fabric_of(flavor: Flavor, nodes: int) -> str | None:
    """Return the networks between GPUs that a job of ``nodes`` VMs uses: of its flavor's, those with the most VMs.

    None for a job of one VM, and where pools have none, or take jobs that have a VM's GPUs in part.
    """
    vms: Counter[str] = Counter()
    for pool in flavor.pools if nodes > 1 else ():
        if name := _fabric(pool):
            vms[name] += pool.max_nodes
    return max(vms, key=vms.__getitem__, default=None)


def usable_pools(flavor: Flavor, nodes: int) -> tuple[ExpandedPool, ...]:
    """Return the pools that a job of ``nodes`` VMs can run in: pods name their networks, and go where these are."""
    fabric = fabric_of(flavor, nodes)
    return tuple(pool for pool in flavor.pools if fabric in (None, _fabric(pool)))


def gpu_direct(job: ResolvedJob) -> GpuDirect | None:
    """Return what a job's pods need, None where they need nothing. ``node_images`` of the environment wins."""
    gke, flavor = job.spec.gke, job.flavor
    if gke is None or flavor is None or (name := fabric_of(flavor, gke.nodes or 1)) is None:
        return None
    fabric = gpu_fabrics(gke.cluster, job.environment.clusters[gke.cluster])[name]
    pool = next(pool for pool in flavor.pools if _fabric(pool) == name)
    cards = {
        f"eth{number}": nic.name
        for number, (vpc, nic) in enumerate(fabric.nics(pool), start=1)
        if fabric.gpudirect != "RDMA" or vpc.profile  # its second gVNIC stays the node's
    }
    return GpuDirect(
        annotations={DEFAULT_INTERFACE: "eth0", INTERFACES: _interfaces(cards)},
        variables=settings(fabric.gpudirect, list(cards)),
        access=_ACCESS[fabric.gpudirect]({**IMAGES, **job.environment.node_images}),
    )


def _fabric(pool: ExpandedPool) -> str | None:
    """Return a pool's networks; those that GKE makes by itself have none, and a shared GPU's pods need none."""
    return fabric_name(pool) if pool.gke_pools and pool.places_per_gpu == 1 else None


def _interfaces(cards: Mapping[str, str]) -> str:
    every = {"eth0": "default", **cards}
    return json.dumps([{"interfaceName": name, "network": network} for name, network in every.items()])


def _tcpx(images: Mapping[str, str]) -> Access:
    sockets = _mount("tcpx-sockets", TCPX_SOCKETS)
    daemon = {
        "name": "tcpx-daemon",
        "image": images["node-tcpx-daemon"],
        "command": ["/tcpgpudmarxd/build/app/tcpgpudmarxd"],
        "args": [
            *("--gpu_nic_preset", "a3vm", "--gpu_shmem_type", "fd", "--uds_path", TCPX_SOCKETS),
            *("--setup_param", "--verbose 128 2 0"),
        ],
        "env": _LIBRARY_PATH,
    }
    return Access(
        volumes=(*_HOST_VOLUMES, {"name": "tcpx-sockets", "emptyDir": {}}, _SHARED),
        mounts=(_mount("libraries", LIBRARIES), sockets, _SHARED_MOUNT),
        capabilities=("IPC_LOCK",),
        daemons=(_sidecar(daemon, sockets),),
    )


def _tcpxo(images: Mapping[str, str]) -> Access:
    entry = "/fts/entrypoint_rxdm_container.sh"
    daemon = {
        "name": "tcpxo-daemon",
        "image": images["node-tcpxo-daemon"],
        "command": ["/bin/sh", "-c", f"chmod 755 {entry} && exec {entry} --num_hops=2"],
        "env": [*_LIBRARY_PATH, {"name": "HEALTH_CHECK_LOG_FILE", "value": _READY}],
        # It takes about 30 s, and training starts after it; a fault of the host's shows as a daemon that restarts.
        "startupProbe": {"exec": {"command": ["cat", _READY]}, "periodSeconds": 5, "failureThreshold": 24},
    }
    return Access(
        volumes=(*_HOST_VOLUMES, _host("apertures", APERTURES), _SHARED),
        mounts=(_mount("libraries", LIBRARIES), _mount("apertures", APERTURES), _SHARED_MOUNT),
        daemons=(_sidecar(daemon),),
    )


def _rdma(_images: Mapping[str, str]) -> Access:
    return Access(
        volumes=(_host("nvidia", f"{_NODE}/nvidia"), _host("gib", f"{_NODE}/gib"), _SHARED),
        mounts=(_mount("nvidia", "/usr/local/nvidia"), _mount("gib", "/usr/local/gib"), _SHARED_MOUNT),
        capabilities=("IPC_LOCK",),  # the sample for A4X has it, those for A3 Ultra and A4 do without (unverified)
    )


def _sidecar(daemon: dict[str, Any], *mounts: dict[str, Any]) -> dict[str, Any]:
    """Return a container that starts before the training and ends with it: an init container that always restarts."""
    own = (_mount("libraries", LIBRARIES), _mount("sys", "/hostsysfs"), _mount("proc-sys", "/hostprocsysfs"))
    privileged = {"securityContext": {"privileged": True}, "volumeMounts": [*own, *mounts]}
    return {**daemon, "restartPolicy": "Always", **privileged}


def _host(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path}}


def _mount(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path}


_HOST_VOLUMES = (_host("libraries", f"{_NODE}/nvidia/lib64"), _host("sys", "/sys"), _host("proc-sys", "/proc/sys"))
_SHARED = {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}  # as large as the node's memory for pods
_SHARED_MOUNT = _mount("shared-memory", "/dev/shm")  # noqa: S108 # the pod's own
_ACCESS = {"TCPX": _tcpx, "TCPXO": _tcpxo, "RDMA": _rdma}
