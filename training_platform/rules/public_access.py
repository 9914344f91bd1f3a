"""Access for everybody, and roles that allow everything: all users, all addresses, no authentication, owners, editors.

Every check reports open access, not only the check of the change that opens it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.section import listed
from training_platform.config.reading.unknown import is_list
from training_platform.resources.kubernetes_objects import object_type
from training_platform.resources.resource_types import FIREWALL, FORWARDING_RULES
from training_platform.rules.gke.clusters import BROAD_ROLES
from training_platform.views.inputs import at, rows
from training_platform.views.whole_stack import ObjectView

PUBLIC_ACCESS = "public-access"
_EVERYBODY = {
    "allUsers": "anybody on the internet",
    "allAuthenticatedUsers": "anybody with a Google account",
    "system:anonymous": "anybody who can reach the API server",
    "system:unauthenticated": "anybody who can reach the API server",
    "system:authenticated": "anybody with a Google account",  # which GKE authenticates: GKE docs, RBAC best practices
}
_IN_POLICY = re.compile(r'"(allUsers|allAuthenticatedUsers)"')  # of the JSON of a whole policy
_LARGE_RANGE = re.compile(r"[0-9a-f.:]+/([0-9]|1[0-5])")
_LONGEST_LARGE = {4: 8, 6: 16}  # prefixes by version of IP: a range this large or smaller may have one owner
# Words in paths of ranges that let nobody in: where something may connect to, what is routed, mirrored or advertised.
_OUTWARD = frozenset({
    "advertised", "dest", "destination", "egress", "except", "export", "filter", "filters", "nat", "nats", "route",
    "routes", "selectors",
})  # fmt: skip
_WORD = re.compile(r"[A-Z]?[a-z]+")
_PUBLIC_ACLS = ("publicRead", "publicReadWrite", "authenticatedRead")
_SWITCHES: Mapping[tuple[str, str], str] = {
    ("cloudrunv2/service:Service", "invokerIamDisabled"): "is true, so anybody may call it without a role",
}
_EXTERNAL = ("EXTERNAL", "EXTERNAL_MANAGED")
_SERVICE = object_type("v1", "Service")
_INTERNAL = ("networking.gke.io/load-balancer-type", "cloud.google.com/load-balancer-type")


@rule(
    PUBLIC_ACCESS,
    ruleset="access",
    owner="house",
    source="house rule: somebody is responsible for everything that is public; IAM docs, allUsers; Compute docs, "
    "firewall rules",
)
def public_access(resource: ObjectView) -> Iterator[Draft]:
    """Find access for everybody: a grant to all users, a range of all addresses, or a switch for public access.

    A range that only limits outgoing connections opens nothing.
    """
    inputs = resource.inputs
    inward = not _lets_nobody_in(resource.type, inputs)
    for path, value in _texts(inputs, ""):
        last = value.rpartition(":")[2] if value.startswith(("READER:", "WRITER:", "OWNER:")) else value
        members = [last] if last in _EVERYBODY else _IN_POLICY.findall(value)
        if members:
            role = inputs.get("role")
            message = f"{members[0]} is {_EVERYBODY[members[0]]}{f', who gets {role}' if isinstance(role, str) else ''}"
            yield finding(resource, path, message, allowed="only the members that need access")
        elif inward and (addresses := _public_addresses(value)) and not _is_outward(path):
            message = f"{value} admits {addresses}{_ports(resource.type, inputs)}"
            yield finding(resource, path, message, allowed="only the ranges that need access")
        elif value in _PUBLIC_ACLS and path.endswith("predefinedAcl"):
            yield finding(resource, path, f"{value} lets everybody read", allowed="no public list", nearest="private")
    for (kind, name), problem in _SWITCHES.items():
        if resource.type.partition(":")[2] == kind and inputs.get(name) is True:
            yield finding(resource, name, f"{name} {problem}", allowed="false", nearest="false")
    if resource.type == _SERVICE and _is_public_service(inputs):
        message = "a Service of type LoadBalancer has a public address that can be reached from the whole internet"
        allowed = f"the annotation {_INTERNAL[0]}: Internal, or loadBalancerSourceRanges"
        yield finding(resource, "spec.type", message, allowed=allowed)
    if resource.type in FORWARDING_RULES and inputs.get("loadBalancingScheme") in _EXTERNAL:
        message = "an external load balancer has a public address, so only its backends control access"
        yield finding(
            resource, "loadBalancingScheme", message, allowed="an internal scheme, or an exemption", severity="warning"
        )


@rule(
    "broad-role",
    ruleset="access",
    severity="warning",
    owner="house",
    source="house rule: roles must give only the necessary access; IAM docs, basic roles (general knowledge, not read)",
)
def broad_role(resource: ObjectView) -> Iterator[Draft]:
    """Find an owner or editor role, which may change everything in a project, a folder or an organisation."""
    role = resource.inputs.get("role")
    if isinstance(role, str) and role in BROAD_ROLES:
        member = resource.inputs.get("member") or resource.inputs.get("members")
        message = f"{role} lets {_named(member)} change everything in this resource"
        yield finding(resource, "role", message, allowed="narrower roles")


def _named(member: Any) -> str:
    if isinstance(member, str):
        return member
    return listed([name for name in rows(member) if isinstance(name, str)], 2) or "its members"


def _public_addresses(value: str) -> str:
    """Return the number of public addresses in a very large range, as text; empty for any other value."""
    if not _LARGE_RANGE.fullmatch(value):
        return ""
    try:
        network = ip_network(value, strict=False)
    except ValueError:
        return ""
    if network.prefixlen >= _LONGEST_LARGE[network.version] or not network.is_global or network.is_multicast:
        return ""
    return f"{network.num_addresses:,} addresses" if network.prefixlen else "every address"


def _lets_nobody_in(token: str, inputs: Mapping[str, Any]) -> bool:
    """Return True if a firewall rule is for outgoing traffic, denies traffic, or is disabled."""
    denies = inputs.get("action") == "deny" or (token == FIREWALL and not inputs.get("allows"))
    return denies or inputs.get("direction") == "EGRESS" or inputs.get("disabled") is True


def _is_outward(path: str) -> bool:
    return any(word.lower() in _OUTWARD for word in _WORD.findall(path))


def _ports(token: str, inputs: Mapping[str, Any]) -> str:
    """Return the protocols and ports of a firewall rule, as the end of a sentence; empty for any other resource."""
    if token != FIREWALL:
        return ""
    named = []
    for row in rows(inputs.get("allows")):
        ports = at(row, ("ports",))
        numbers = f" {', '.join(map(str, ports))}" if is_list(ports) and ports else ""
        named.append(f"{at(row, ('protocol',))}{numbers}")
    return f": {'; '.join(named)}" if named else ""


def _is_public_service(inputs: Mapping[str, Any]) -> bool:
    if at(inputs, ("spec", "type")) != "LoadBalancer" or at(inputs, ("spec", "loadBalancerSourceRanges")):
        return False
    annotations = at(inputs, ("metadata", "annotations")) or {}
    return not any(at(annotations, (key,)) == "Internal" for key in _INTERNAL)


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield all strings in inputs with their paths: ``bindings[0].members[1]``."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}" if path else str(key))
    elif is_list(value):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{index}]")
