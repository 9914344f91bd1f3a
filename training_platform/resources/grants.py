"""The grants of a plan: which member gets which role on which resource, as IAM stores them.

A preview does not know the e-mail addresses of service accounts that the plan itself creates. They can be derived from
id and project, so grants contain them. Only Google knows a project's number, so it is written as the project id in
braces: ``service-{example-train}@``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from training_platform.resources import resource_types
from training_platform.resources.custom_roles import custom_permissions
from training_platform.resources.plan import Computed, Plan, Reference, Resource
from training_platform.resources.project import SERVICE_AGENT_NAMES
from training_platform.resources.stack_resource import UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A role of one member on one resource.

    - ``principal`` is written as an IAM member: ``group:vision@example.com``.
    - ``role`` is ``roles/storage.objectUser``, or ``projects/{project}/roles/{id}`` for a custom role.
    - ``resource`` is a relative name: ``projects/{project}``, ``projects/{project}/secrets/{id}``, or
      ``buckets/{name}`` for a bucket, whose name is globally unique. A part that is unknown before deployment is ``?``.
    - ``permissions`` are the permissions of a custom role if the role is one of ours or in the same plan, otherwise
      None.
    - ``condition`` is the expression of the grant's condition, empty if it has none.
    - ``planned_as`` is the resource of the plan.
    """

    principal: str
    role: str
    resource: str
    condition: str
    permissions: frozenset[str] | None
    planned_as: Resource


_RESOURCES: Mapping[str, str] = {
    resource_types.IAM_MEMBER: "projects/{project}",
    resource_types.BUCKET_MEMBER: "buckets/{bucket}",
    resource_types.REPOSITORY_MEMBER: "projects/{project}/locations/{location}/repositories/{repository}",
    resource_types.SECRET_MEMBER: "projects/{project}/secrets/{secret_id}",
    resource_types.SERVICE_ACCOUNT_MEMBER: "{service_account_id}",
    resource_types.LOG_VIEW_MEMBER: "{parent}/locations/{location}/buckets/{bucket}/views/{name}",
    resource_types.CRYPTO_KEY_MEMBER: "{crypto_key_id}",
}
"""The name of the resource that a grant is on, keyed by the type of single-member grants. Inputs are in braces."""


def is_grant(resource_type: str) -> bool:
    """Return True if resources of this type grant roles to members."""
    return resource_type.replace("Binding", "Member") in _RESOURCES


def plan_grants(plan: Plan) -> list[Grant]:
    """Return the grants of a plan, in the order of the plan."""
    resources = list(plan.resources())
    custom = {
        _custom_role_name(role): frozenset(role.inputs.get("permissions", ()))
        for role in resources
        if role.type == resource_types.CUSTOM_ROLE
    }
    return [grant for resource in resources for grant in _grants(resource, custom)]


def _grants(resource: Resource, custom: Mapping[str, frozenset[str]]) -> Iterator[Grant]:
    """Yield the grants of a resource: for a binding, one for each member."""
    template = _RESOURCES.get(resource.type.replace("Binding", "Member"))
    if template is None:
        return
    inputs = _resolved(resource.inputs)
    # An own resource may lack inputs, which other rules find: its project is the provider's then.
    fields = defaultdict[str, Any](lambda: "?")
    fields.update((name, value) for name, value in inputs.items() if value is not UNKNOWN)
    members: Iterable[str] = fields["members"] if "members" in fields else [fields["member"]]
    for member in members:
        yield Grant(
            principal=member,
            role=fields["role"],
            resource=template.format_map(fields),
            condition=(fields.get("condition") or {}).get("expression", ""),
            permissions=custom.get(fields["role"], custom_permissions(fields["role"])),
            planned_as=resource,
        )


def _resolved(value: Any) -> Any:
    """Return a value in which references to outputs are resolved, even to names of new accounts and roles.

    A preview does not know these names.
    """
    if isinstance(value, Mapping):
        return {key: _resolved(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_resolved(item) for item in value]
    if isinstance(value, Reference):
        return _output(value)
    if isinstance(value, Computed):
        arguments = [_resolved(argument) for argument in value.arguments]
        return UNKNOWN if UNKNOWN in arguments else value.function(*arguments)
    return value


def _output(reference: Reference) -> Any:
    """Return the output that a reference points to, derived from IAM's naming rules if possible.

    Otherwise, return it as a preview shows it.
    """
    resource = reference.resource
    path = reference.path
    inputs = defaultdict[str, Any](lambda: "?", resource.inputs)
    if resource.type == resource_types.SERVICE_ACCOUNT:
        email = f"{inputs['account_id']}@{inputs['project']}.iam.gserviceaccount.com"
        name = f"projects/{inputs['project']}/serviceAccounts/{email}"
        names = {"email": email, "member": f"serviceAccount:{email}", "name": name}
        return names.get(path[0], UNKNOWN)
    if resource.type == resource_types.SERVICE_IDENTITY and path == ("member",):
        agent = SERVICE_AGENT_NAMES.get(inputs["service"], "?")
        return f"serviceAccount:service-{{{inputs['project']}}}@{agent}.iam.gserviceaccount.com"
    if resource.type == resource_types.CUSTOM_ROLE and path in (("name",), ("id",)):
        return _custom_role_name(resource)
    return reference.preview


def _custom_role_name(role: Resource) -> str:
    return f"projects/{role.inputs.get('project', '?')}/roles/{role.inputs.get('role_id', '?')}"
