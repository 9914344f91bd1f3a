"""The endpoint settings with which Pulumi's gcp provider sends its requests to a local cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Prefix of a service's paths, by the provider's setting without gcp: and CustomEndpoint.
_PATHS: Final[Mapping[str, str]] = {
    "artifactRegistry": "artifactregistry/v1/",
    "backupDr": "backupdr/v1/",
    "billingBudgets": "billingbudgets/v1/",
    "cloudBilling": "cloudbilling/v1/",
    "cloudQuotas": "cloudquotas/v1beta/",
    "cloudResourceManager": "cloudresourcemanager/v1/",
    "compute": "compute/beta/",
    "container": "container/v1beta1/",
    "dns": "dns/v1beta2/",
    "filestore": "file/v1beta1/",
    "iam": "iam/v1/",
    "iamBeta": "iam/v1/",
    "kms": "cloudkms/v1/",
    "logging": "logging/v2/",
    "lustre": "lustre/v1/",
    "monitoring": "monitoring/",
    "resourceManager": "cloudresourcemanager/v1/",
    "resourceManagerV3": "cloudresourcemanager/v3/",
    "secretManager": "secretmanager/v1/",
    "serviceNetworking": "servicenetworking/v1/",
    "serviceUsage": "serviceusage/v1beta1/",
    "storage": "storage/v1/",
    "vertexAi": "aiplatform/v1beta1/",
}


def endpoints(port: int) -> dict[str, str]:
    """Return the provider's settings, such as ``gcp:computeCustomEndpoint``, for a server on the given port."""
    return {f"gcp:{name}CustomEndpoint": f"http://127.0.0.1:{port}/{path}" for name, path in _PATHS.items()}
