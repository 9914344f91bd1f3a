"""Views of networks, accounts and volumes, from the inputs of pulumi-gcp and pulumi-kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.adapters.gke_settings import ACCOUNT, NETWORK
from training_platform.rules.adapters.inputs import Resource, either, last_part
from training_platform.rules.views.network import (
    Account,
    Firewall,
    Network,
    RoleGrant,
    StorageClass,
    Subnet,
    VolumeClaim,
)
from training_platform.rules.views.view import View

EVERY_PORT = "0-65535"


def network(resource: Resource) -> Iterator[View]:
    """Yield the view of a VPC."""
    inputs = resource.inputs
    yield Network(
        **resource.head,
        project=resource.project,
        network=inputs.text("name"),
        mtu=inputs.whole("mtu"),
        profile=last_part(inputs.text("networkProfile")),
    )


def subnet(resource: Resource) -> Iterator[View]:
    """Yield the view of a subnet."""
    inputs = resource.inputs
    rows = [(each.text("rangeName"), each.text("ipCidrRange")) for each in inputs.items("secondaryIpRanges")]
    yield Subnet(
        **resource.head,
        project=resource.project,
        region=resource.place("region"),
        subnetwork=inputs.text("name"),
        network=resource.reference(inputs.text("network"), NETWORK),
        cidr=inputs.text("ipCidrRange"),
        ranges=UNKNOWN if any(UNKNOWN in row for row in rows) else dict(rows),  # type: ignore[arg-type]
    )


def firewall(resource: Resource) -> Iterator[View]:
    """Yield the view of a firewall rule."""
    inputs = resource.inputs
    inward = inputs.text("direction") in (None, "INGRESS") and not inputs.flag("disabled", default=False)
    ports: list[Any] = []
    for allow in inputs.items("allows") if inward else ():
        if allow.text("protocol") in ("tcp", "all", "6"):
            named = allow.texts("ports")
            ports.extend([UNKNOWN] if named is UNKNOWN else named or (EVERY_PORT,))
    yield Firewall(
        **resource.head,
        network=resource.reference(inputs.text("network"), NETWORK),
        ports=UNKNOWN if UNKNOWN in ports else tuple(ports),  # type: ignore[arg-type]
    )


def account(resource: Resource) -> Iterator[View]:
    """Yield the view of a service account: its e-mail follows from its id and project."""
    name = resource.inputs.text("accountId")
    email = UNKNOWN if name is UNKNOWN else f"{name}@{resource.project}.iam.gserviceaccount.com"
    yield Account(**resource.head, project=resource.project, email=email)


def role_grant(resource: Resource) -> Iterator[View]:
    """Yield a view for every member that is given a role in a project."""
    inputs = resource.inputs
    members = (inputs.text("member"),) if inputs.get("member") is not None else inputs.texts("members")
    for member in (UNKNOWN,) if members is UNKNOWN else members:
        name = member.removeprefix("serviceAccount:") if isinstance(member, str) else member
        yield RoleGrant(
            **resource.head,
            project=resource.project,
            role=inputs.text("role"),
            account=resource.reference(name, ACCOUNT),
        )


def storage_class(resource: Resource) -> Iterator[View]:
    """Yield the view of a StorageClass."""
    inputs = resource.inputs
    yield StorageClass(
        **resource.head,
        class_name=inputs.text("metadata", "name"),
        provisioner=inputs.text("provisioner"),
        parameters=either(inputs.labels("parameters"), {}),
    )


def volume_claim(resource: Resource) -> Iterator[View]:
    """Yield the view of a claim."""
    yield VolumeClaim(**resource.head, class_name=resource.inputs.text("spec", "storageClassName"))


def opens(ports: str, port: int) -> bool:
    """Whether a port is among ``8443`` or ``8000-9000``."""
    low, _, high = ports.partition("-")
    return low.isdecimal() and int(low) <= port <= int(high or low)
