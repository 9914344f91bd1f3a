"""Networks between GPUs for pods: the Kubernetes objects for them, and the software on the nodes.

A pod requests a network by the name of its Network object, in the annotation ``networking.gke.io/interfaces``. A
DaemonSet runs the image that installs the software and then waits. Jobs on A3 High and A3 Mega also run their own
daemon next to the training container, which is not installed here.

Sources, read 2026-11-21:

- GKE docs, GPUDirect and multi-networking.
- GoogleCloudPlatform/gke-networking-api 34c617f (2025-12-12): the types of both objects. Every field written
  here was compared with them, and a test checks the names.
- GoogleCloudPlatform/container-engine-accelerators: the installers in gpudirect-tcpx, gpudirect-tcpxo and
  gpudirect-rdma, and what each image expects of its node.

None of this was tested on GKE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training_platform.catalog import IMAGES, MACHINE_TYPES
from training_platform.config.gpu_fabric import GpuFabric
from training_platform.resources.gpu_direct import access
from training_platform.resources.gpu_networks import GpuNetworks
from training_platform.resources.kubernetes_objects import DAEMON_SET, kubernetes_object, object_type
from training_platform.resources.plan import Alias, Component, Resource
from training_platform.resources.scope import Scope

API_VERSION = "networking.gke.io/v1"
PARAMETERS = "GKENetworkParamSet"


def gpu_network_objects(into: Component, scope: Scope, fabric: GpuFabric, networks: GpuNetworks) -> None:
    """Add the Kubernetes objects for the networks of one kind of GPUDirect in one cluster."""
    for vpc in fabric.vpcs:
        mode = "NetDevice" if vpc.profile is None else "RDMA"
        for nic in vpc.nics:
            logical = f"{into.name}{nic.name.removeprefix(fabric.name)}"
            spec = {
                "vpc": networks.networks[vpc.name],
                "vpcSubnet": networks.subnetworks[nic.name],
                "deviceMode": mode,
            }
            kind = object_type(API_VERSION, PARAMETERS)
            parameters = into.add(kubernetes_object(kind, f"{logical}-parameters", scope, nic.name, {"spec": spec}))
            reference = {"group": "networking.gke.io", "kind": PARAMETERS, "name": nic.name}
            fields = {"spec": {"type": "Device", "parametersRef": reference}}
            kind = object_type(API_VERSION, "Network")
            into.add(kubernetes_object(kind, f"{logical}-network", scope, nic.name, fields), [parameters])


def add_installers(levels: Mapping[GpuFabric, Component], scope: Scope, images: Mapping[str, str]) -> None:
    """Add an installer for each GPU model in a cluster, which all zones share; ``images`` are from the stack file.

    ``levels`` maps each kind of network between GPUs to the component of its networks. The installer's name contains no
    zone, so moving a pool to another zone does not change the installer.
    """
    images = {**IMAGES, **images}
    levels_of_gpu: dict[str, list[tuple[GpuFabric, Component]]] = {}
    for fabric, level in levels.items():
        for gpu in fabric.labels:
            levels_of_gpu.setdefault(gpu, []).append((fabric, level))
    for gpu, of_gpu in levels_of_gpu.items():
        fabric, level = of_gpu[0]
        name = f"{fabric.component.removesuffix(fabric.name)}{gpu}"
        daemons = [installer(name, scope, gpudirect=fabric.gpudirect, gpu=gpu, images=images)]
        if access(fabric.gpudirect, images).devices:
            daemons.append(device_injector(name, scope, gpu=gpu, images=images))
        for daemon in daemons:
            role = daemon.name.removeprefix(name)
            daemon.aliases = [Alias(name=f"{former.name}-{gpu}{role}") for _, former in of_gpu]
            level.add(daemon)


NAMESPACE = "kube-system"
SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}  # nodes are added and removed, and no deployment waits for new ones
ENTRY = "/scripts/container_entry.sh"
# Images in the catalogue, and the suffix of those for Arm.
SHELL = "node-shell"
PAUSE = "node-pause"
ARM = "-arm64"
# TCPXO talks to its NICs through their PCI memory, which containers see below /dev only if it is mounted there. The
# module and the rule for TCP belong to the host, so the shell enters its namespaces.
_APERTURES = """
set -e
iptables -C INPUT -p tcp -j ACCEPT 2>/dev/null || iptables -I INPUT -p tcp -j ACCEPT
modprobe import-helper
for device in $(lspci -D -d 1ae0:0084 | cut -d ' ' -f 1); do
  place=/dev/aperture_devices/$device
  mkdir -p "$place"
  mountpoint -q "$place" || mount --bind "$(readlink -f "/sys/bus/pci/devices/$device")" "$place"
  chmod a+rw "$place"/resource*
done
"""


@dataclass(frozen=True, kw_only=True)
class _Software:
    """The installer for a kind of GPUDirect: folders of the node mounted in the container, and the files to copy."""

    image: str  # name in the catalogue
    folders: Mapping[str, tuple[str, str]]  # volume -> path on the node, path in the container
    copies: tuple[tuple[str, str], ...]  # from, to, both in the container
    prepare: str | None = None  # run on the host first


_NODE_LIBRARIES = {"lib": ("/var/lib", "/var/lib"), "bin": ("/home/kubernetes/bin", "/usr/local")}
_GIB = "/usr/local/home/kubernetes/bin"
_SOFTWARE: Mapping[str, _Software] = {
    "TCPX": _Software(
        image="node-tcpx", folders=_NODE_LIBRARIES, copies=(("/var/lib/tcpx/lib64", "/usr/local/nvidia/lib64"),)
    ),
    "TCPXO": _Software(
        image="node-tcpxo",
        folders=_NODE_LIBRARIES,
        copies=(("/var/lib/tcpxo/lib64", "/usr/local/nvidia/lib64"),),
        prepare=_APERTURES,
    ),
    "RDMA": _Software(
        image="node-gib",
        folders={
            "libraries": ("/home/kubernetes/bin/nvidia/lib64", f"{_GIB}/nvidia/lib64"),
            "gib": ("/home/kubernetes/bin/gib", f"{_GIB}/gib"),
        },
        copies=(("/var/lib/gib/lib64", f"{_GIB}/nvidia/lib64"), ("/var/lib/gib", f"{_GIB}/gib")),
    ),
}
_ARM_HOSTS = frozenset(
    machine.accelerator.gke_label
    for machine in MACHINE_TYPES.values()
    if machine.accelerator and machine.architecture == "arm64"
)


def installer(
    name: str,
    scope: Scope,
    *,
    gpudirect: str,
    gpu: str,
    images: Mapping[str, str],
) -> Resource:
    """Return the installer for nodes with one GPU model, selected by GKE's node label."""
    software = _SOFTWARE[gpudirect]
    called = f"nccl-{gpudirect.lower()}-installer-{gpu.removeprefix('nvidia-')}"
    image = images[software.image + (ARM if gpu in _ARM_HOSTS else "")]
    return _on_every_node(f"{name}-installer", scope, called, pod(software, gpu, image, images))


def device_injector(name: str, scope: Scope, *, gpu: str, images: Mapping[str, str]) -> Resource:
    """Return the DaemonSet that injects the devices in a pod's annotation into the pod.

    It injects any device; the admission policies limit which devices pods may request.

    Source: container-engine-accelerators 992db81, nri_device_injector, read 2026-11-22.
    """
    called = f"nri-device-injector-{gpu.removeprefix('nvidia-')}"
    folders = {"dev": "/dev", "nri": "/var/run/nri"}
    container = {
        "name": "injector",
        "image": images["node-device-injector"],
        "securityContext": {"privileged": True},
        "resources": resources("150m", "64Mi", "500m", "256Mi"),
        "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in folders.items()],
    }
    spec = {
        **_every_node(gpu),
        "volumes": [{"name": volume, "hostPath": {"path": path}} for volume, path in folders.items()],
        "containers": [container],
    }
    return _on_every_node(f"{name}-device-injector", scope, called, spec)


def _on_every_node(name: str, scope: Scope, called: str, pod_spec: dict[str, Any]) -> Resource:
    selector = {"training-platform/installer": called}
    spec: Any = {
        "selector": {"matchLabels": selector},
        # A second run of the installer overwrites libraries that jobs have open, so changes apply to new nodes only.
        "updateStrategy": {"type": "OnDelete"},
        "template": {
            "metadata": {"labels": {**scope.kubernetes_labels, **selector}},
            "spec": pod_spec,
        },
    }
    return kubernetes_object(
        DAEMON_SET, name, scope, called, {"spec": spec}, namespace=NAMESPACE, annotations=SKIP_AWAIT
    )


def pod(software: _Software, gpu: str, image: str, images: Mapping[str, str]) -> dict[str, Any]:
    """Return the installer's pod for nodes with these GPUs: init containers install, then one container only waits."""
    folders = software.folders.items()
    steps = ["set -e", f"chmod 755 {ENTRY}", f"{ENTRY} install --install-nccl"]
    steps += [f"mkdir -p {target} && cp -r {source}/. {target}" for source, target in software.copies]
    install = {
        "name": "install",
        "image": image,
        "command": [
            "/bin/sh",
            "-c",
            "\n".join(steps),
        ],
        "securityContext": {"privileged": True},
        "resources": resources("150m", "64Mi", "1", "1Gi"),
        "volumeMounts": [{"name": volume, "mountPath": inside} for volume, (_, inside) in folders],
    }
    return {
        **_every_node(gpu),
        "volumes": [
            {"name": volume, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for volume, (path, _) in folders
        ],
        "initContainers": [*_preparing(software.prepare, images[SHELL]), install],
        "containers": [{"name": "wait", "image": images[PAUSE], "resources": resources("1m", "8Mi", "50m", "32Mi")}],
    }


def resources(cpu: str, memory: str, most_cpu: str, most_memory: str) -> dict[str, dict[str, str]]:
    """Return a container's requests and limits; the values are estimates, not measured."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": most_cpu, "memory": most_memory}}


def _every_node(gpu: str) -> dict[str, Any]:
    """Return the pod settings that run a DaemonSet on every node with these GPUs.

    The pod has the highest priority and tolerates all taints.
    """
    return {
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"cloud.google.com/gke-accelerator": gpu},
        "tolerations": [{"operator": "Exists"}],  # of GPUs, of Arm, and of the pools themselves
        "automountServiceAccountToken": False,  # nothing here calls the API server
        "hostNetwork": True,
        "hostPID": True,
    }


def _preparing(script: str | None, image: str) -> list[dict[str, Any]]:
    """Return the container that runs a script, if any, in the host's namespaces. Its image must have ``nsenter``."""
    if script is None:
        return []
    command = ["nsenter", "--target", "1", "--all", "--", "sh", "-c", script]
    return [
        {
            "name": "prepare",
            "image": image,
            "command": command,
            "securityContext": {"privileged": True},
            "resources": resources("10m", "16Mi", "500m", "128Mi"),
        },
    ]
