"""Custom roles that plans grant. The script from ``training-platform pipeline-accounts`` creates them in each project.

No plan creates a role: a principal that may both change and grant a role effectively has every permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

# Write and read curves in a TensorBoard, and nothing else of Vertex AI: no predefined role is as narrow. That Vertex
# AI's own uploader needs no more is (unverified). IAM has no such grant on a single TensorBoard.
# Source: Vertex AI, IAM permissions by REST method, read 2026-11-22.
TENSORBOARD_PERMISSIONS = (
    "aiplatform.tensorboards.get",
    *(f"aiplatform.tensorboardExperiments.{verb}" for verb in ("create", "get", "list", "update", "write")),
    *(f"aiplatform.tensorboardRuns.{verb}" for verb in ("batchCreate", "create", "get", "list", "update", "write")),
    *(
        f"aiplatform.tensorboardTimeSeries.{verb}"
        for verb in ("batchCreate", "batchRead", "create", "get", "list", "read", "update")
    ),
)
# Read managed data sets, and register models with their versions and evaluations. IAM has no grant on a single one: a
# member with this role sees those of all teams of the project. Nothing here deploys, exports or deletes.
# Source: Vertex AI, IAM permissions and predefined roles, read 2026-11-22.
REGISTRY_PERMISSIONS = (
    *(f"aiplatform.datasets.{verb}" for verb in ("get", "list")),
    *(f"aiplatform.{kind}.list" for kind in ("annotations", "dataItems")),
    *(f"aiplatform.{kind}.{verb}" for kind in ("annotationSpecs", "datasetVersions") for verb in ("get", "list")),
    *(f"aiplatform.models.{verb}" for verb in ("get", "list", "update", "upload")),
    *(f"aiplatform.modelEvaluations.{verb}" for verb in ("get", "import", "list")),
)
# Vertex AI's agent needs these for the attachment of a job or persistent resource; its own role has none of them.
# Source: Vertex AI docs, set up a Private Service Connect interface, as public repositories quote it; dumps of IAM's
# roles of 2026-08-22, read 2026-11-24.
ATTACHMENT_PERMISSIONS = (
    "compute.networkAttachments.get",
    "compute.networkAttachments.update",
    "compute.regionOperations.get",
)
# List and restart persistent resources. No role holds a permission called `reboot` or `update`; that Vertex AI requires
# the nearest one that writes is inferred (unverified).
# Source: dumps of IAM's roles of 2026-08-22, read 2026-11-24.
RESTART_PERMISSIONS = tuple(f"aiplatform.persistentResources.{verb}" for verb in ("create", "get", "list"))

# Look up the addresses of file systems, which `job submit` fills in on Vertex AI, and nothing else of them.
ADDRESS_PERMISSIONS = ("file.instances.get", "lustre.instances.get")

# See which jobs run on Vertex AI, and why one waits. IAM has no grant on a single job: a member with this role sees the
# specifications of all teams' jobs in the project, with their arguments and variables. Nothing here starts or ends one.
# Source: Vertex AI, IAM permissions by REST method, read 2026-11-22.
JOB_STATE_PERMISSIONS = tuple(
    f"aiplatform.{kind}.{verb}"
    for kind in ("customJobs", "hyperparameterTuningJobs", "trainingPipelines")
    for verb in ("get", "list")
)


class CustomRole(NamedTuple):
    """A role that a project defines."""

    title: str
    permissions: tuple[str, ...]


CustomRoleName = Literal["addresses", "job_states", "registry", "restarts", "tensorboard", "vertex_network"]

_PREFIX = "training_platform_"
CUSTOM_ROLES: Mapping[str, CustomRole] = {
    f"{_PREFIX}addresses": CustomRole("Reads addresses of file systems", ADDRESS_PERMISSIONS),
    f"{_PREFIX}job_states": CustomRole("Reads states of jobs on Vertex AI", JOB_STATE_PERMISSIONS),
    f"{_PREFIX}registry": CustomRole("Registers models, and reads data sets", REGISTRY_PERMISSIONS),
    f"{_PREFIX}restarts": CustomRole("Restarts persistent resources", RESTART_PERMISSIONS),
    f"{_PREFIX}tensorboard": CustomRole("Writes to TensorBoards", TENSORBOARD_PERMISSIONS),
    f"{_PREFIX}vertex_network": CustomRole("Uses network attachments for Vertex AI", ATTACHMENT_PERMISSIONS),
}
"""The roles, keyed by id."""


def custom_role(name: CustomRoleName, project: str) -> str:
    """Return the name of a project's role in policies."""
    return f"projects/{project}/roles/{_PREFIX}{name}"


def custom_permissions(role: str) -> frozenset[str] | None:
    """Return the permissions of a role by its name in a policy, or None if it is not one of these roles."""
    row = CUSTOM_ROLES.get(role.rpartition("/")[2]) if role.startswith("projects/") else None
    return frozenset(row.permissions) if row else None
