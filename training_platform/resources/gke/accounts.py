"""The account that an environment's nodes run as, and what it may do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training_platform.resources import gcp
from training_platform.resources.cloud_names import account_id
from training_platform.resources.declared import Declared
from training_platform.resources.register import IAM_MEMBER, SERVICE_ACCOUNT
from training_platform.resources.scope import Scope

# What a node needs to pull images from the project's repositories, to join, log and report, and to stream images:
# without the last, it falls back to whole pulls and says nothing. Pods have accounts of their own by Workload Identity.
# Sources: GKE docs on hardening, least-privilege node accounts; on image streaming, troubleshooting.
NODE_ROLES = (
    "roles/artifactregistry.reader",
    "roles/container.defaultNodeServiceAccount",
    "roles/serviceusage.serviceUsageConsumer",
)


def node_account(name: str, scope: Scope) -> Declared:
    """Return the account of all nodes of an environment; ``name`` is the component's."""
    inputs = gcp.service_account(
        project=scope.project,
        account_id=account_id(scope.environment, "gke-nodes"),
        display_name=f"GKE nodes of {scope.environment}",
    )
    return Declared(type=SERVICE_ACCOUNT, name=f"{name}-account", inputs=inputs)


def node_roles(name: str, scope: Scope, member: Any) -> Iterator[Declared]:
    """Yield what that account may do: no more than nodes need."""
    for role in NODE_ROLES:
        inputs = gcp.iam_member(project=scope.project, role=role, member=member)
        yield Declared(type=IAM_MEMBER, name=f"{name}-{role.removeprefix('roles/')}", inputs=inputs)
