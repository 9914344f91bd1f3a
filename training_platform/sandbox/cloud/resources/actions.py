"""What every kind of resource has: create, get, list, change, delete, labels and policies."""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from training_platform.catalog.types import Json
from training_platform.config.reading.finding import Finding
from training_platform.resources.spelling import camel_case
from training_platform.rules import RULES, evaluate, program
from training_platform.sandbox.cloud.requests.errors import (
    ApiError,
    already_exists,
    conflict,
    failed_precondition,
    invalid,
)
from training_platform.sandbox.cloud.resources import lists
from training_platform.sandbox.cloud.resources.model import Call, Kind, fill_in
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.operations import Change, Style, Work
from training_platform.sandbox.cloud.state.store import Record
from training_platform.views.adapters import views_of_rest

Action = Callable[[Cloud, Kind, Call], Json]


def create(cloud: Cloud, kind: Kind, call: Call) -> Json:
    """Make a resource."""
    body = copy.deepcopy(call.body.get(kind.wrapper, {}) if kind.wrapper else call.body)
    given = call.parameters.get(kind.id_in) or call.body.get(kind.id_in) or body.get(kind.id_in)
    if kind.id_in and not given:
        raise ApiError(400, f"Required field '{kind.id_in}' is missing or empty")
    if given and not re.fullmatch(kind.id_form, given):
        form = f"Must be a match of regex '(?:{kind.id_form})'"
        raise ApiError(400, f"Invalid value for field 'resource.{kind.id_in}': '{given}'. {form}")
    record = Record(name=f"{call.name}/{given or cloud.number()}", project=call.project, body=body)
    if record.name in cloud.store:
        raise already_exists(shown_name(record.name))
    if kind.parent:
        cloud.existing(call.name.rpartition("/")[0])
    if kind.style == "longrunning":
        record.body["createTime"] = cloud.time()
    if kind.style == "longrunning" or not kind.id_in:
        record.body["name"] = f"{call.path}/{record.id}"
    fill_in(record.body, f"{call.service}.{kind.collection}")
    kind.fill(cloud, call, record, {})
    if record.name in cloud.store:  # the service gave it another name
        raise already_exists(shown_name(record.name))
    touch(cloud, kind, record)
    admit(cloud, kind, call, record, None)
    cloud.store.put(record)
    kind.made(cloud, call, record)
    return _answer(cloud, kind, call, record, ("insert", f"CREATE_{_upper(kind)}"), at=1)


def get(cloud: Cloud, kind: Kind, call: Call) -> Json:
    """Read a resource."""
    return shown(cloud, kind, cloud.existing(call.name))


def list_all(cloud: Cloud, kind: Kind, call: Call) -> Json:
    """List a collection, a page at a time where the method has pages."""
    found = [shown(cloud, kind, each) for each in cloud.store.children(call.name)]
    return lists.page(call, found, kind.schema)


def patch(cloud: Cloud, kind: Kind, call: Call) -> Json:
    """Change the fields that the mask names, or those that are sent where there is no mask."""
    mask = call.parameters.get("updateMask")
    if mask is None:
        return change(cloud, kind, call, merge)
    paths = mask_paths(mask)
    known = call.properties(kind.schema)
    wrong = [path for path in paths if path != "*" and path.partition(".")[0] not in known]
    if wrong:
        raise ApiError(400, f"Invalid field mask path: {wrong[0]}")
    return change(cloud, kind, call, lambda old, new: apply_mask(old, new, paths))


def update(cloud: Cloud, kind: Kind, call: Call) -> Json:
    """Replace what a client may write; what only the API writes stays."""
    if "updateMask" in call.parameters:
        return patch(cloud, kind, call)
    read_only = call.output_only(kind.schema)
    return change(cloud, kind, call, lambda old, new: {**{k: v for k, v in old.items() if k in read_only}, **new})


def change(cloud: Cloud, kind: Kind, call: Call, compute: Callable[[Json, Json], Json]) -> Json:
    """Change a resource to what ``compute`` makes of its body and the request's."""
    record = cloud.existing(call.name)
    check_versions(record, call.body)
    old = copy.deepcopy(record.body)
    new = {key: value for key, value in call.body.items() if key not in _VERSIONS}
    changed = Record(name=record.name, project=record.project, body=compute(record.body, new), meta=record.meta)
    changed.body.update({key: old[key] for key in ("name", "id", "selfLink", "kind") if key in old})
    fill_in(changed.body, f"{call.service}.{kind.collection}")
    kind.fill(cloud, call, changed, old)
    touch(cloud, kind, changed)
    admit(cloud, kind, call, changed, record)
    cloud.store.put(changed)
    return _answer(cloud, kind, call, changed, (call.method.action, f"UPDATE_{_upper(kind)}"), at=3)


def delete(cloud: Cloud, kind: Kind, call: Call) -> Json:
    """Delete a resource; what was charged for it is free once the operation is done."""
    record = cloud.existing(call.name)
    check_versions(record, call.parameters)
    if record.body.get(kind.protection):
        raise failed_precondition(f"The instance '{call.path}' is protected against deletion.")
    kind.removable(cloud, call, record)
    if kind.style is None:
        cloud.store.delete(record.name)
        kind.gone(cloud, call, record)
        return {}
    kind.gone(cloud, call, record)
    if kind.states:
        record.body[kind.states[0]] = kind.states[4]
        cloud.store.put(record)
    change = Change(target=record.name, delete=True)
    return _started(cloud, kind, call, record, ("delete", f"DELETE_{_upper(kind)}"), changes=[change], response={})


def get_policy(cloud: Cloud, kind: Kind, call: Call) -> Json:  # noqa: ARG001 # an action is given the kind
    """Read a resource's policy."""
    return read_policy(cloud.existing(call.name))


def set_policy(cloud: Cloud, kind: Kind, call: Call) -> Json:  # noqa: ARG001 # an action is given the kind
    """Replace a resource's policy."""
    return write_policy(cloud, cloud.existing(call.name), call.body.get("policy", {}))


def permissions(cloud: Cloud, kind: Kind, call: Call) -> Json:  # noqa: ARG001 # an action is given the kind
    """Answer that the caller may do all it asks for: the local cloud knows no callers."""
    cloud.existing(call.name)
    asked = call.body.get("permissions") or call.parameters.get("permissions") or []
    return {"permissions": asked}


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
    "testIamPermissions": permissions,
}
_VERSIONS: Final = ("etag", "fingerprint", "labelFingerprint")


def check_versions(record: Record, given: Mapping[str, Any]) -> None:
    """Raise ApiError where a request names an etag or fingerprint that is not the resource's any more."""
    for name in _VERSIONS:
        held = record.body.get(name)
        if given.get(name) and held and given[name] != held:
            stale = name != "etag"
            raise conflict(
                "Supplied fingerprint does not match current metadata fingerprint." if stale else "The etag is stale.",
                code=412 if stale else 409,
            )


def admit(cloud: Cloud, kind: Kind, call: Call, record: Record, old: Record | None) -> None:
    """Refuse what Google refuses, then charge quota. Raises ApiError."""
    kind.admit(cloud, call, record)
    refuse(call, record, old)
    cloud.charge(call.service, record)


def touch(cloud: Cloud, kind: Kind, record: Record) -> None:
    """Give a resource that is written a new etag."""
    if kind.etag:
        record.body[kind.etag] = etag(cloud)


def etag(cloud: Cloud) -> str:
    """Return an etag or fingerprint that was never used."""
    return base64.b64encode(cloud.store.serial().to_bytes(8, "big")).decode()


def shown(cloud: Cloud, kind: Kind, record: Record) -> Json:
    """Return a resource as the API answers it."""
    return kind.show(cloud, record) if kind.show else record.body


def shown_name(name: str) -> str:
    """Return a store name as error messages have it."""
    return name.partition("/")[2]


def _answer(cloud: Cloud, kind: Kind, call: Call, record: Record, types: tuple[str, str], *, at: int) -> Json:
    """Return what a change answers: the resource, or the operation at whose end it is ready."""
    if kind.style is None:
        return shown(cloud, kind, record)
    changes = []
    if kind.states:
        record.body[kind.states[0]] = kind.states[at]
        changes = [Change(target=record.name, fields={kind.states[0]: kind.states[2]})]
    schema = f"{call.definition.package}.{call.api.version}.{kind.schema}"
    return _started(cloud, kind, call, record, types, changes=changes, schema=schema)


def _started(cloud: Cloud, kind: Kind, call: Call, record: Record, types: tuple[str, str], **work: Any) -> Json:
    """Start an operation on a resource; ``types`` are what Compute Engine calls it, and what GKE does."""
    describe = call.definition.metadata
    return cloud.operations.start(
        Work(
            style=cast(Style, kind.style),
            service=call.service,
            project=record.project,
            target=record.name,
            type=types[1] if kind.style == "container" else types[0],
            seconds=cloud.settings.seconds(f"{call.service}.{kind.collection}"),
            metadata=describe(cloud, call, kind, record) if describe else {},
            **work,
        )
    )


def _upper(kind: Kind) -> str:
    word = "".join(f"_{each}" if each.isupper() else each for each in kind.collection).upper()
    return word.removesuffix("S")


# Rules of Google's that no single request breaks: what is left to a default is taken, and costs something later.
_NOT_REFUSED: Final = frozenset({"vertex-boot-disk-written"})
_RULES: Final = tuple(
    each
    for each in RULES.values()
    if (each.owner, each.severity) == ("google", "error") and not (each.whole or each.across or each.id in _NOT_REFUSED)
)


def refuse(call: Call, record: Record, old: Record | None) -> None:
    """Raise ApiError with every rule that the resource breaks and, where it is changed, did not break before."""
    before = {(each.rule, each.message) for each in _findings(call, old)} if old else set()
    found = [each for each in _findings(call, record) if (each.rule, each.message) not in before]
    if found:
        raise ApiError(400, "; ".join(_sentence(each) for each in found))


def _findings(call: Call, record: Record) -> list[Finding]:
    collection = f"{call.service}.{record.name.split('/')[-2]}"
    views = views_of_rest(collection, record.body, project=record.project, name=record.name.partition("/")[2])
    if not views:
        return []
    whole = program(views, stack="", environment="", team=None, production=False)
    return [each for each in evaluate(whole, _RULES) if each.severity == "error"]


def _sentence(found: Finding) -> str:
    allowed = f" Allowed: {found.allowed}." if found.allowed else ""
    return f"{found.path}: {found.message}.{allowed}"


_NO_POLICY: Final = {"version": 1, "etag": "ACAB"}  # Google's own etag of a policy that was never set
_MEMBER: Final = re.compile(
    r"(allUsers|allAuthenticatedUsers)\Z"
    r"|(user|serviceAccount|group|domain|projectOwner|projectEditor|projectViewer|deleted:\w+|principal|principalSet):.+"
)
_ROLE: Final = re.compile(r"(roles/[\w.]+|(projects|organizations)/[^/]+/roles/[\w.]+)\Z")
_OWN_ACCOUNT: Final = re.compile(r"serviceAccount:([^@]+)@([a-z0-9-]+)\.iam\.gserviceaccount\.com\Z")
_POOL: Final = re.compile(r"serviceAccount:([a-z0-9-]+)\.svc\.id\.goog\[[^\]/]+/[^\]/]+\]\Z")


def read_policy(record: Record) -> Json:
    """Return a resource's policy."""
    return dict(record.meta.get("policy", _NO_POLICY))


def write_policy(cloud: Cloud, record: Record, policy: Json) -> Json:
    """Replace a resource's policy. Raises ApiError for a stale etag, and for members and roles that cannot be."""
    held = read_policy(record)
    if policy.get("etag", held["etag"]) != held["etag"]:
        raise conflict(
            "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff."
        )
    bindings = [each for each in policy.get("bindings", ()) if each.get("members")]
    for binding in bindings:
        if not _ROLE.match(binding.get("role", "")):
            raise invalid(f"Role {binding.get('role')} is not supported for this resource.")
        for member in binding["members"]:
            _check_member(cloud, member)
    etag = base64.b64encode(f"policy-{cloud.store.serial()}".encode()).decode()
    version = max([1, *(3 for each in bindings if "condition" in each)])
    record.meta["policy"] = {"version": version, "etag": etag, "bindings": bindings}
    if policy.get("auditConfigs"):
        record.meta["policy"]["auditConfigs"] = policy["auditConfigs"]
    cloud.store.put(record)
    return read_policy(record)


def _check_member(cloud: Cloud, member: str) -> None:
    if not _MEMBER.match(member):
        raise invalid(f"Invalid member '{member}': the type of the identity is missing or unknown.")
    account = _OWN_ACCOUNT.match(member)
    if account and account[2] in cloud.projects.ids():
        email = member.partition(":")[2]
        if cloud.store.get(f"iam/projects/{account[2]}/serviceAccounts/{email}") is None:
            raise invalid(f"Service account {email} does not exist.")
    pool = _POOL.match(member)
    if pool and pool[1] in cloud.projects.ids() and not cloud.store.get(f"iam/projects/{pool[1]}/identityPool"):
        raise invalid(f"Identity Pool does not exist ({pool[1]}.svc.id.goog).")


def mask_paths(mask: str) -> list[str]:
    """Return the paths of a mask, in camelCase whichever way they are spelt."""
    return [camel_case(part.strip()) for part in mask.split(",") if part.strip()]


def apply_mask(old: Json, new: Json, paths: list[str]) -> Json:
    """Return ``old`` with the values of ``new`` at the paths; what ``new`` lacks there is cleared. ``*`` is all."""
    if "*" in paths:
        return {**old, **new}
    result = copy.deepcopy(old)
    for path in paths:
        _set_path(result, path.split("."), new)
    return result


def merge(old: Json, new: Json) -> Json:
    """Return ``old`` with ``new`` merged into it, as a JSON merge patch does: maps by key, all else replaced."""
    result = copy.deepcopy(old)
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _set_path(body: Json, path: list[str], new: Any) -> None:
    """Set a field to that of ``new``; below a list, of each entry to that of the entry at its place."""
    first, *rest = path
    value = new.get(first) if isinstance(new, dict) else None
    if rest and isinstance(body.get(first), list):
        for entry, given in zip(body[first], value or (), strict=False):
            _set_path(entry, rest, given)
    elif rest:
        if not isinstance(body.get(first), dict):
            body[first] = {}
        _set_path(body[first], rest, value)
    elif value is None:
        body.pop(first, None)
    else:
        body[first] = copy.deepcopy(value)
