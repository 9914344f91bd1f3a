"""StorageClasses for claims that make a Filestore instance of their own."""

from __future__ import annotations

import pulumi
from pulumi_kubernetes import storage

from modules.register import resource_options
from training_platform.resources.declared import Declared


class FilestoreClass(pulumi.ComponentResource):
    """A StorageClass of one Filestore tier, as ``resources.filestore.classes`` declares it.

    GKE's own classes (``zonal-rwx`` and so on) make instances in the VPC called default, which nodes here cannot reach.
    """

    class_name: str

    def __init__(self, name: str, declared: Declared, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:filestore:FilestoreClass", name, {}, opts)
        inputs = declared.inputs
        self.class_name = inputs["metadata"]["name"]
        storage.v1.StorageClass(
            declared.name,
            metadata=inputs["metadata"],
            provisioner=inputs["provisioner"],
            parameters=inputs["parameters"],
            volume_binding_mode=inputs["volumeBindingMode"],
            allow_volume_expansion=inputs["allowVolumeExpansion"],
            reclaim_policy=inputs["reclaimPolicy"],
            opts=resource_options(declared, self, ()),
        )
        self.register_outputs({"class_name": self.class_name})
