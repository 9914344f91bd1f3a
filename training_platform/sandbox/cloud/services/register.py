"""What each service has beyond its discovery document, one file a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from training_platform.sandbox.cloud.resources.model import Service
from training_platform.sandbox.cloud.services import (
    artifactregistry,
    backupdr,
    billingbudgets,
    cloud_logging,
    cloudkms,
    cloudresourcemanager,
    iam,
    monitoring,
    secretmanager,
    serviceusage,
    storage,
)
from training_platform.sandbox.cloud.services.compute import service as compute
from training_platform.sandbox.cloud.services.file_systems import file, lustre
from training_platform.sandbox.cloud.services.gke import service as container
from training_platform.sandbox.cloud.services.networking import dns, servicenetworking
from training_platform.sandbox.cloud.services.vertex import service as vertex
from training_platform.sandbox.cloud.services.vertex import workbench

SERVICES: Final[Mapping[str, Service]] = {
    each.name: each
    for each in (
        vertex.SERVICE,
        artifactregistry.SERVICE,
        backupdr.SERVICE,
        billingbudgets.SERVICE,
        cloudkms.SERVICE,
        cloud_logging.SERVICE,
        cloudresourcemanager.SERVICE,
        compute.SERVICE,
        container.SERVICE,
        dns.SERVICE,
        file.SERVICE,
        iam.SERVICE,
        lustre.SERVICE,
        monitoring.SERVICE,
        secretmanager.SERVICE,
        servicenetworking.SERVICE,
        serviceusage.SERVICE,
        storage.SERVICE,
        workbench.SERVICE,
    )
}
