"""All services, keyed by short name, with what we add to Google's discovery documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from local_google_cloud.resources.resource_kinds import Service
from local_google_cloud.services.compute import COMPUTE
from local_google_cloud.services.file_systems import BACKUP_DR, FILESTORE, LUSTRE
from local_google_cloud.services.gke import GKE
from local_google_cloud.services.identity import (
    CLOUD_KMS,
    IAM,
    POLICY_TROUBLESHOOTER,
    SECRET_MANAGER,
)
from local_google_cloud.services.monitoring import LOGGING, MONITORING
from local_google_cloud.services.networking import DNS, SERVICE_NETWORKING
from local_google_cloud.services.projects import BILLING_BUDGETS, RESOURCE_MANAGER, SERVICE_USAGE
from local_google_cloud.services.storage import ARTIFACT_REGISTRY, STORAGE
from local_google_cloud.services.vertex import VERTEX

SERVICES: Final[Mapping[str, Service]] = {
    service.name: service
    for service in (
        ARTIFACT_REGISTRY, BACKUP_DR, BILLING_BUDGETS, CLOUD_KMS, COMPUTE, DNS, FILESTORE, GKE, IAM, LOGGING, LUSTRE,
        MONITORING, POLICY_TROUBLESHOOTER, RESOURCE_MANAGER, SECRET_MANAGER, SERVICE_NETWORKING, SERVICE_USAGE,
        STORAGE, VERTEX,
    )
}  # fmt: skip
