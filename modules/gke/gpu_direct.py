"""What makes the networks between GPUs usable by pods: objects that name them, and the software on the nodes.

A pod asks for them by the annotation ``networking.gke.io/interfaces``, by the names of the Network objects.
Sources: GKE docs, GPUDirect and multi-networking; GoogleCloudPlatform/gke-networking-api 34c617f (2025-12-12), the
types of both objects, with which every field written here was compared, and a test holds the names;
GoogleCloudPlatform/container-engine-accelerators, the installers in gpudirect-tcpx, gpudirect-tcpxo and
gpudirect-rdma; read 2026-11-21. None of it was seen to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from modules.gke.gpu_installers import device_injector, installer
from modules.manifest import metadata
from training_platform.catalog import IMAGES
from training_platform.config.gpu_fabric import GpuFabric
from training_platform.resources.gpu_access import access
from training_platform.resources.scope import Scope

API_VERSION = "networking.gke.io/v1"
PARAMETERS = "GKENetworkParamSet"


@dataclass(frozen=True, kw_only=True)
class GpuDirectArgs:
    """Which networks; ``networks`` and ``subnetworks`` are their names in Google Cloud, ``images`` the stack file's."""

    scope: Scope
    fabric: GpuFabric
    networks: Mapping[str, pulumi.Input[str]]
    subnetworks: Mapping[str, pulumi.Input[str]]
    images: Mapping[str, str]


class GpuDirect(pulumi.ComponentResource):
    """The Kubernetes side of one kind of GPUDirect in one cluster."""

    def __init__(self, name: str, args: GpuDirectArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:gke:GpuDirect", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        for vpc in args.fabric.vpcs:
            mode = "NetDevice" if vpc.profile is None else "RDMA"
            for nic in vpc.nics:
                logical = f"{name}{nic.name.removeprefix(args.fabric.name)}"
                spec = {"vpc": args.networks[vpc.name], "vpcSubnet": args.subnetworks[nic.name], "deviceMode": mode}
                parameters = CustomResource(
                    f"{logical}-parameters",
                    api_version=API_VERSION,
                    kind=PARAMETERS,
                    metadata=metadata(args.scope, nic.name),
                    spec=spec,
                    opts=child,
                )
                reference = {"group": "networking.gke.io", "kind": PARAMETERS, "name": nic.name}
                CustomResource(
                    f"{logical}-network",
                    api_version=API_VERSION,
                    kind="Network",
                    metadata=metadata(args.scope, nic.name),
                    spec={"type": "Device", "parametersRef": reference},
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[parameters]),
                )
        images = {**IMAGES, **args.images}
        with_devices = bool(access(args.fabric.gpudirect, images).devices)
        for label in args.fabric.labels:
            installer(
                f"{name}-{label}",
                args.scope,
                gpudirect=args.fabric.gpudirect,
                gpu=label,
                images=images,
                opts=child,
            )
            if with_devices:
                device_injector(f"{name}-{label}", args.scope, gpu=label, images=images, opts=child)
        self.register_outputs({})
