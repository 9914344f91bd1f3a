"""GPUDirect: the folders and devices of a node that pods need for the network between GPUs.

A pod mounts folders of its node and runs a daemon next to the training container. The daemons of TCPX and TCPXO have
NET_ADMIN and the devices from GKE's device injector, and are not privileged. They run as root, and the node's /sys and
/proc/sys are writable for them, as in every upstream manifest, including the newest of both kinds (98c85a6 and
16434ec). No page says whether fewer permissions would work. Admission in team namespaces therefore accepts exactly
these containers, before the training container, and no others with such permissions.

Sources: GoogleCloudPlatform/container-engine-accelerators 992db81, nccl-test-unprivileged-without-hostnetwork.yaml in
gpudirect-tcpx and gpudirect-tcpxo, nccl-test*.yaml in gpudirect-rdma, nri_device_injector; read 2026-11-22 and -24.
None of this was tested on GKE. Mounting libraries read-only is our own choice (unverified).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from training_platform.config.expansion import ExpandedPool, Flavor
from training_platform.config.gpu_fabric import fabric_name

LIBRARIES: Final = "/usr/local/nvidia/lib64"  # the driver's, and the plugin that the installer copies beside it
TCPX_SOCKETS: Final = "/run/tcpx"
APERTURES: Final = "/dev/aperture_devices"
DEVICES_ANNOTATION: Final = "devices.gke.io/container."  # and the name of the container that gets devices

_NODE = "/home/kubernetes/bin"
_READY = "/run/health-check"  # the name may hold no underscore
_LIBRARY_PATH = [{"name": "LD_LIBRARY_PATH", "value": LIBRARIES}]
_GPU_DEVICES = (*(f"/dev/nvidia{number}" for number in range(8)), "/dev/nvidiactl", "/dev/nvidia-uvm")


@dataclass(frozen=True, kw_only=True)
class NodeAccess:
    """What a pod needs from its node. ``mounts`` and ``capabilities`` belong to the container that trains.

    ``devices`` are the node's devices, keyed by the name of the daemon that gets them.
    """

    volumes: tuple[dict[str, Any], ...]
    mounts: tuple[dict[str, Any], ...]
    capabilities: tuple[str, ...] = ()
    daemons: tuple[dict[str, Any], ...] = ()
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations that request the devices from the device injector, as YAML."""
        return {
            f"{DEVICES_ANNOTATION}{name}": "".join(f"- path: {path}\n" for path in paths)
            for name, paths in self.devices.items()
        }

    @property
    def host_paths(self) -> tuple[str, ...]:
        """Folders of the node that the pod mounts."""
        return tuple(volume["hostPath"]["path"] for volume in self.volumes if "hostPath" in volume)


def access(kind: str, images: Mapping[str, str]) -> NodeAccess:
    """Return what pods with ``TCPX``, ``TCPXO`` or ``RDMA`` need; ``images`` are keyed by catalogue name."""
    return _ACCESS[kind](images)


def pod_fabric(pool: ExpandedPool) -> str | None:
    """Return the name of the network between GPUs that a pool's pods use, or None if they use none.

    Pods that share a GPU need no such network. Pools that GKE creates have one only with DRANET.
    """
    has_networks = bool(pool.gke_pools or pool.network_devices)
    return fabric_name(pool) if has_networks and pool.places_per_gpu == 1 else None


def kinds_of(flavors: Iterable[Flavor]) -> tuple[str, ...]:
    """Return the kinds of GPUDirect that jobs on these flavors may use."""
    pools = (pool for flavor in flavors for pool in flavor.pools if pod_fabric(pool))
    return tuple(sorted({pool.machine.gpudirect or "" for pool in pools}))


def _tcpx(images: Mapping[str, str]) -> NodeAccess:
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
    return NodeAccess(
        volumes=(*_HOST_VOLUMES, {"name": "tcpx-sockets", "emptyDir": {}}, _SHARED),
        mounts=(_read_only("libraries", LIBRARIES), sockets, _SHARED_MOUNT),
        capabilities=("IPC_LOCK",),
        daemons=(_sidecar(daemon, ("NET_ADMIN",), sockets),),
        devices={"tcpx-daemon": _GPU_DEVICES},
    )


def _tcpxo(images: Mapping[str, str]) -> NodeAccess:
    entry = "/fts/entrypoint_rxdm_container.sh"
    daemon = {
        "name": "tcpxo-daemon",
        "image": images["node-tcpxo-daemon"],
        "command": ["/bin/sh", "-c", f"chmod 755 {entry} && exec {entry} --num_hops=2"],
        "env": [*_LIBRARY_PATH, {"name": "HEALTH_CHECK_LOG_FILE", "value": _READY}],
        # It takes about 30 s, and training starts after it; a fault of the host shows as a restarting daemon.
        "startupProbe": {"exec": {"command": ["cat", _READY]}, "periodSeconds": 5, "failureThreshold": 24},
    }
    return NodeAccess(
        volumes=(*_HOST_VOLUMES, _host("apertures", APERTURES), _SHARED),
        mounts=(_read_only("libraries", LIBRARIES), _mount("apertures", APERTURES), _SHARED_MOUNT),
        daemons=(_sidecar(daemon, ("NET_ADMIN", "NET_BIND_SERVICE")),),
        devices={"tcpxo-daemon": (*_GPU_DEVICES, "/dev/dmabuf_import_helper")},
    )


def _rdma(_images: Mapping[str, str]) -> NodeAccess:
    return NodeAccess(
        volumes=(_host("nvidia", f"{_NODE}/nvidia"), _host("gib", f"{_NODE}/gib"), _SHARED),
        mounts=(_read_only("nvidia", "/usr/local/nvidia"), _read_only("gib", "/usr/local/gib"), _SHARED_MOUNT),
        capabilities=("IPC_LOCK",),  # the sample for A4X has it, those for A3 Ultra and A4 do without (unverified)
    )


def _sidecar(daemon: dict[str, Any], capabilities: tuple[str, ...], *mounts: dict[str, Any]) -> dict[str, Any]:
    """Return a sidecar, which starts before the training and ends with it: an init container that always restarts."""
    node_mounts = (_mount("libraries", LIBRARIES), _mount("sys", "/hostsysfs"), _mount("proc-sys", "/hostprocsysfs"))
    rights = {"capabilities": {"add": list(capabilities)}}
    return {**daemon, "restartPolicy": "Always", "securityContext": rights, "volumeMounts": [*node_mounts, *mounts]}


def _host(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path}}


def _mount(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path}


def _read_only(name: str, path: str) -> dict[str, Any]:
    """Return a read-only mount of a folder of the node, which all pods on the node share."""
    return {**_mount(name, path), "readOnly": True}


_HOST_VOLUMES = (_host("libraries", f"{_NODE}/nvidia/lib64"), _host("sys", "/sys"), _host("proc-sys", "/proc/sys"))
_SHARED = {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}  # as large as the node's memory for pods
_SHARED_MOUNT = _mount("shared-memory", "/dev/shm")  # noqa: S108 # the pod's own
_ACCESS = {"TCPX": _tcpx, "TCPXO": _tcpxo, "RDMA": _rdma}
