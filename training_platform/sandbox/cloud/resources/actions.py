"""What every kind of resource has: create, get, list, change, delete, labels and policies."""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from training_platform.sandbox.cloud.requests.errors import ApiError, already_exists, conflict, failed_precondition
from training_platform.sandbox.cloud.requests.masks import apply_mask, mask_paths, merge
from training_platform.sandbox.cloud.resources import lists, refusals
from training_platform.sandbox.cloud.resources.defaults import fill_in
from training_platform.sandbox.cloud.resources.iam_policies import read_policy, write_policy
from training_platform.sandbox.cloud.resources.model import Call, Json, Kind
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Change, Style, Work

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
    refusals.check(call, record, old)
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
