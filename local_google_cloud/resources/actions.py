"""The actions that all kinds of resources share: create, get, list, change, delete, and IAM policies.

The cloud's ``Judge`` refuses resources that are valid by the discovery documents, but that Google refuses.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from local_google_cloud.requests.errors import (
    Refusal,
    already_exists,
    conflict,
    failed_precondition,
    invalid,
)
from local_google_cloud.requests.validation import camel_case
from local_google_cloud.resources import lists
from local_google_cloud.resources.resource_kinds import Call, ResourceKind
from local_google_cloud.state.authorization import held_permissions, resource_of
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.operation import StateChange, Style, Work
from local_google_cloud.state.store import Record
from training_platform.catalog.types import Json
from training_platform.config.reading.finding import Finding
from training_platform.rules.documents.api_defaults import fill_in

Action = Callable[[Cloud, ResourceKind, Call], Json]
_VERSIONS: Final = ("etag", "fingerprint", "labelFingerprint")


def create(cloud: Cloud, kind: ResourceKind, call: Call) -> Json:
    """Create a resource."""
    body = copy.deepcopy(call.body.get(kind.wrapper, {}) if kind.wrapper else call.body)
    id_ = call.parameters.get(kind.id_in) or call.body.get(kind.id_in) or body.get(kind.id_in)
    if kind.id_in and not id_:
        raise Refusal(400, f"Required field '{kind.id_in}' is missing or empty")
    if id_ and not re.fullmatch(kind.id_form, id_):
        form = f"Must be a match of regex '(?:{kind.id_form})'"
        raise Refusal(400, f"Invalid value for field 'resource.{kind.id_in}': '{id_}'. {form}")
    record = Record(name=f"{call.name}/{id_ or cloud.number()}", project=call.project, body=body)
    if record.name in cloud.store:
        raise already_exists(record.path)
    if kind.parent:
        cloud.existing(call.name.rpartition("/")[0])
    if kind.style == "longrunning":
        record.body["createTime"] = cloud.time()
    if kind.style == "longrunning" or not kind.id_in:
        record.body["name"] = f"{call.path}/{record.id}"
    _complete(cloud, kind, call, record, None)
    kind.after_create(cloud, call, record)
    return _answer(cloud, kind, call, record, operation=("insert", "CREATE"), state=1)


def get(cloud: Cloud, kind: ResourceKind, call: Call) -> Json:
    """Read a resource."""
    return _shown(cloud, kind, cloud.existing(call.name))


def list_all(cloud: Cloud, kind: ResourceKind, call: Call) -> Json:
    """List a collection, in pages if the method supports them."""
    items = [_shown(cloud, kind, record) for record in cloud.store.children(call.name)]
    return lists.page(call, items, kind.schema)


def patch(cloud: Cloud, kind: ResourceKind, call: Call) -> Json:
    """Change the fields that the update mask names. Without a mask, change the fields that the body contains."""
    mask = call.parameters.get("updateMask")
    if mask is None:
        return change(cloud, kind, call, merge)
    paths = mask_paths(mask)
    properties = call.properties(kind.schema)
    for path in paths:
        if path != "*" and path.partition(".")[0] not in properties:
            raise Refusal(400, f"Invalid field mask path: {path}")
    return change(cloud, kind, call, lambda old, new: apply_mask(old, new, paths))


def update(cloud: Cloud, kind: ResourceKind, call: Call) -> Json:
    """Replace all fields except output-only ones."""
    if "updateMask" in call.parameters:
        return patch(cloud, kind, call)
    read_only = call.output_only(kind.schema)
    return change(cloud, kind, call, lambda old, new: {**{k: v for k, v in old.items() if k in read_only}, **new})


def change(cloud: Cloud, kind: ResourceKind, call: Call, compute: Callable[[Json, Json], Json]) -> Json:
    """Call ``compute`` with a resource's body and the request's body, and store the result as the new body."""
    old = cloud.existing(call.name)
    check_versions(old, call.body)
    new = {key: value for key, value in call.body.items() if key not in _VERSIONS}
    body = compute(copy.deepcopy(old.body), new)
    body.update({key: old.body[key] for key in ("name", "id", "selfLink", "kind") if key in old.body})
    record = Record(name=old.name, project=old.project, body=body, meta=old.meta)
    _complete(cloud, kind, call, record, old)
    return _answer(cloud, kind, call, record, operation=(call.method.action, "UPDATE"), state=3)


def delete(cloud: Cloud, kind: ResourceKind, call: Call) -> Json:
    """Delete a resource. Its quota is released at the end of the operation."""
    record = cloud.existing(call.name)
    check_versions(record, call.parameters)
    if record.body.get(kind.protection):
        raise failed_precondition(f"The instance '{call.path}' is protected against deletion.")
    kind.check_delete(cloud, call, record)
    if kind.style is None:
        cloud.store.delete(record.name)
        kind.clean_up(cloud, call, record)
        return {}
    kind.clean_up(cloud, call, record)
    if kind.states:
        record.body[kind.states[0]] = kind.states[4]
        cloud.store.put(record)
    deletion = StateChange(target=record.name, delete=True)
    return _start(cloud, kind, call, record, ("delete", "DELETE"), changes=[deletion], response={})


def get_policy(cloud: Cloud, _kind: ResourceKind, call: Call) -> Json:
    """Read a resource's IAM policy."""
    return read_policy(cloud.existing(call.name))


def set_policy(cloud: Cloud, _kind: ResourceKind, call: Call) -> Json:
    """Replace a resource's IAM policy."""
    return write_policy(cloud, cloud.existing(call.name), call.body.get("policy", {}))


def answer_permissions(cloud: Cloud, _kind: ResourceKind, call: Call) -> Json:
    """Return which of the requested permissions the caller has on an existing resource."""
    cloud.existing(call.name)
    return caller_permissions(cloud, call)


def caller_permissions(cloud: Cloud, call: Call) -> Json:
    """Return which of the requested permissions the caller has."""
    names = call.body.get("permissions") or call.parameters.get("permissions") or []
    resource = resource_of(cloud, call.service, call.path, call.project)
    return {"permissions": held_permissions(cloud, call.caller, resource, names)}


ACTIONS: Final[Mapping[str, Action]] = {
    "create": create,
    "insert": create,
    "get": get,
    "list": list_all,
    "patch": patch,
    "update": update,
    "delete": delete,
    "getIamPolicy": get_policy,
    "setIamPolicy": set_policy,
    "testIamPermissions": answer_permissions,
}


def check_versions(record: Record, versions: Mapping[str, Any]) -> None:
    """Raise Refusal if a request has a stale etag or fingerprint."""
    for name in _VERSIONS:
        held = record.body.get(name)
        if versions.get(name) and held and versions[name] != held:
            if name == "etag":
                raise conflict("The etag is stale.")
            raise conflict("Supplied fingerprint does not match current metadata fingerprint.", code=412)


def etag(cloud: Cloud) -> str:
    """Return a new etag or fingerprint."""
    return base64.b64encode(cloud.store.serial().to_bytes(8, "big")).decode()


def _complete(cloud: Cloud, kind: ResourceKind, call: Call, record: Record, old: Record | None) -> None:
    """Fill in the computed fields of a resource, check it, charge quota, and store it. Raises Refusal."""
    fill_in(record.body, f"{call.service}.{kind.collection}")
    kind.fill(cloud, call, record, old.body if old else {})
    if old is None and record.name in cloud.store:  # the service has named it
        raise already_exists(record.path)
    if kind.etag:
        record.body[kind.etag] = etag(cloud)
    kind.check_write(cloud, call, record)
    refuse(cloud, record, old)
    cloud.quota.charge(record)
    cloud.store.put(record)


def _shown(cloud: Cloud, kind: ResourceKind, record: Record) -> Json:
    """Return a resource in the format of the API."""
    return kind.show(cloud, record) if kind.show else record.body


def _answer(
    cloud: Cloud, kind: ResourceKind, call: Call, record: Record, *, operation: tuple[str, str], state: int
) -> Json:
    """Return the response to a change: the resource itself, or the operation that changes it."""
    if kind.style is None:
        return _shown(cloud, kind, record)
    changes = []
    if kind.states:
        field = kind.states[0]
        ready = kind.states[2]
        record.body[field] = kind.states[state]
        changes = [StateChange(target=record.name, fields={field: ready})]
    schema = f"{call.definition.package}.{call.api.version}.{kind.schema}"
    return _start(cloud, kind, call, record, operation, changes=changes, schema=schema)


def start_operation(cloud: Cloud, call: Call, collection: str, **work: Any) -> Json:
    """Start a google.longrunning operation for a custom method, by default on the resource in the path.

    ``collection`` determines its duration. ``work`` contains further fields of ``Work``.
    """
    fields = {"project": call.project, "target": call.name, "type": call.method.action, **work}
    seconds = cloud.settings.seconds(f"{call.service}.{collection}")
    return cloud.operations.start(Work(style="longrunning", service=call.service, seconds=seconds, **fields))


def _start(
    cloud: Cloud, kind: ResourceKind, call: Call, record: Record, operation: tuple[str, str], **work: Any
) -> Json:
    """Start an operation on a resource.

    ``operation`` contains the operation type in Compute Engine, and the first word of the type in GKE.
    """
    upper = "".join(f"_{letter}" if letter.isupper() else letter for letter in kind.collection).upper()
    describe = call.definition.metadata
    return cloud.operations.start(
        Work(
            style=cast(Style, kind.style),
            service=call.service,
            project=record.project,
            target=record.name,
            type=f"{operation[1]}_{upper.removesuffix('S')}" if kind.style == "container" else operation[0],
            seconds=cloud.settings.seconds(f"{call.service}.{kind.collection}"),
            metadata=describe(cloud, call, kind, record) if describe else {},
            **work,
        )
    )


# Changes of a part of a resource: update masks, and JSON merge


def mask_paths(mask: str) -> list[str]:
    """Return the paths of an update mask in camelCase. The mask may use snake_case."""
    return [camel_case(part.strip()) for part in mask.split(",") if part.strip()]


def apply_mask(old: Json, new: Json, paths: list[str]) -> Json:
    """Return ``old`` with the fields at the paths copied from ``new``, or removed if missing there. ``*`` means all."""
    if "*" in paths:
        return {**old, **new}
    result = copy.deepcopy(old)
    for path in paths:
        _set_path(result, path.split("."), new)
    return result


def _set_path(body: Json, path: list[str], new: Any) -> None:
    """Copy the field at a path from ``new``. Entries of a list are matched by their index."""
    first, *path_below = path
    value = new.get(first) if isinstance(new, dict) else None
    if path_below and isinstance(body.get(first), list):
        for entry, new_entry in zip(body[first], value or (), strict=False):
            _set_path(entry, path_below, new_entry)
    elif path_below:
        if not isinstance(body.get(first), dict):
            body[first] = {}
        _set_path(body[first], path_below, value)
    elif value is None:
        body.pop(first, None)
    else:
        body[first] = copy.deepcopy(value)


def merge(old: Json, new: Json) -> Json:
    """Return ``old`` with ``new`` merged into it as in a JSON merge patch: maps are merged, other values replaced."""
    result = copy.deepcopy(old)
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


# Refusals of a body


def refuse(cloud: Cloud, record: Record, old: Record | None) -> None:
    """Raise Refusal with every finding of the ``Judge`` about a resource. A change is refused only for new findings."""
    before = {(finding.rule, finding.message) for finding in _findings(cloud, old)} if old else set()
    messages = []
    for finding in _findings(cloud, record):
        if (finding.rule, finding.message) not in before:
            allowed = f" Allowed: {finding.allowed}." if finding.allowed else ""
            messages.append(f"{finding.path}: {finding.message}.{allowed}")
    if messages:
        raise Refusal(400, "; ".join(messages))


def _findings(cloud: Cloud, record: Record) -> list[Finding]:
    return cloud.judge.findings(record.kind, record.body, project=record.project, name=record.path)


# IAM policies

_NO_POLICY: Final = {"version": 1, "etag": "ACAB"}  # Google's own etag of a policy that was never set
_MEMBER: Final = re.compile(
    r"(allUsers|allAuthenticatedUsers)\Z"
    r"|(user|serviceAccount|group|domain|projectOwner|projectEditor|projectViewer|deleted:\w+|principal|principalSet):.+"
)
_ROLE: Final = re.compile(r"(roles/[\w.]+|(projects|organizations)/[^/]+/roles/[\w.]+)\Z")
_OWN_ACCOUNT: Final = re.compile(r"serviceAccount:([^@]+)@([a-z0-9-]+)\.iam\.gserviceaccount\.com\Z")
_POOL: Final = re.compile(r"serviceAccount:([a-z0-9-]+)\.svc\.id\.goog\[[^\]/]+/[^\]/]+\]\Z")


def read_policy(record: Record) -> Json:
    """Return a resource's IAM policy."""
    return dict(record.meta.get("policy", _NO_POLICY))


def write_policy(cloud: Cloud, record: Record, policy: Json) -> Json:
    """Replace a resource's IAM policy. Raises Refusal for a stale etag, and for invalid members and roles."""
    current_etag = read_policy(record)["etag"]
    if policy.get("etag", current_etag) != current_etag:
        raise conflict(
            "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff."
        )
    bindings = [binding for binding in policy.get("bindings", ()) if binding.get("members")]
    for binding in bindings:
        if not _ROLE.match(binding.get("role", "")):
            raise invalid(f"Role {binding.get('role')} is not supported for this resource.")
        for member in binding["members"]:
            _check_member(cloud, member)
    record.meta["policy"] = {
        "version": 3 if any("condition" in binding for binding in bindings) else 1,
        "etag": base64.b64encode(f"policy-{cloud.store.serial()}".encode()).decode(),
        "bindings": bindings,
    }
    if policy.get("auditConfigs"):
        record.meta["policy"]["auditConfigs"] = policy["auditConfigs"]
    cloud.store.put(record)
    return read_policy(record)


def _check_member(cloud: Cloud, member: str) -> None:
    if not _MEMBER.match(member):
        raise invalid(f"Invalid member '{member}': the type of the identity is missing or unknown.")
    projects = cloud.projects.ids()
    account = _OWN_ACCOUNT.match(member)
    if account and account[2] in projects:
        email = member.partition(":")[2]
        if f"iam/projects/{account[2]}/serviceAccounts/{email}" not in cloud.store:
            raise invalid(f"Service account {email} does not exist.")
    pool = _POOL.match(member)
    # The first cluster with Workload Identity creates the project's identity pool, for good.
    if pool and pool[1] in projects and f"iam/projects/{pool[1]}/identityPool" not in cloud.store:
        raise invalid(f"Identity Pool does not exist ({pool[1]}.svc.id.goog).")
