"""How VMs of Vertex AI reach an environment's VPC: a network attachment in a region, on a subnet of its own."""

from __future__ import annotations

from typing import Any

from training_platform.config.model.team import OWN_ATTACHMENT
from training_platform.config.names import declared_name
from training_platform.resources import gcp
from training_platform.resources.cloud_names import NAME_LIMIT, short_name
from training_platform.resources.declared import Declared, Options
from training_platform.resources.register import NETWORK_ATTACHMENT, SUBNETWORK
from training_platform.resources.scope import Scope


def attachment_subnet(region: str, addresses: str, scope: Scope, network: Any) -> Declared:
    """Return the subnet whose addresses VMs of Vertex AI have in the VPC."""
    inputs = gcp.subnetwork(
        project=scope.project,
        region=region,
        name=attachment_id(region, scope),
        network=network,
        ip_cidr_range=addresses,
        private_ip_google_access=True,
    )
    # Names and ranges are taken until the old subnet is gone.
    options = Options(delete_before_replace=True)
    return Declared(
        type=SUBNETWORK, name=f"{declared_name('network_attachments', region)}-subnet", inputs=inputs, options=options
    )


def network_attachment(region: str, scope: Scope, subnet: Any) -> Declared:
    """Return the attachment; ``subnet`` is its subnet's link.

    Vertex AI's agent adds the project of its VMs to those that are accepted, and no other comes in. Source: Vertex AI
    docs, set up a Private Service Connect interface, read 2026-08-22; that the agent's own role suffices in the project
    of the attachment is (unverified).
    """
    inputs = gcp.network_attachment(
        name=attachment_id(region, scope),
        project=scope.project,
        region=region,
        description=f"Vertex AI in the network of environment {scope.environment}",
        connection_preference="ACCEPT_MANUAL",
        subnetworks=[subnet],
    )
    options = Options(
        # Persistent resources and jobs name it.
        protect=scope.deletion_protection,
        # The name is fixed, and taken until the old attachment is gone.
        delete_before_replace=True,
        # A subnet that it names is not deleted: one that is replaced takes the attachment with it.
        replace_on_changes=("subnetworks",),
        # The agent writes it.
        ignore_changes=("producerAcceptLists",),
    )
    name = f"{declared_name('network_attachments', region)}-attachment"
    return Declared(type=NETWORK_ATTACHMENT, name=name, inputs=inputs, options=options)


def attachment_id(region: str, scope: Scope) -> str:
    """Return the name of the attachment in a region, and of its subnet: ``{environment}-vertex-{region}``.

    ``scope`` is the environment's or that of a team in the same project.
    """
    return short_name(f"{scope.environment}-vertex-{region}", NAME_LIMIT)


def attachment(written: str | None, region: str, scope: Scope) -> str | None:
    """Return the full name of an attachment as a file writes it: ``environment``, its full name, or nothing."""
    if written != OWN_ATTACHMENT:
        return written
    return f"projects/{scope.project}/regions/{region}/networkAttachments/{attachment_id(region, scope)}"
