"""A cluster's admission policies and roles, evaluated without an API server.

Common Expression Language is evaluated by Google's own library. It lacks Kubernetes' ``quantity``, which is a number of
its own here. Objects are taken as they are sent: of what the API server fills in, the priority of a pod's class and the
mount of its account's token are here, which policies read. Quotas and Pod Security are left to a real API server.
"""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from tests.kube.server import PLURALS, Json
from tests.support.plans import PlannedStack
from training_platform.resources.admission_policy import Policy
from training_platform.resources.scope import TEAM_LABEL

_VARIABLES: Final = ("object", "oldObject", "request", "namespaceObject", "variables")
_NUMBER: Final = cel.Type.DOUBLE
_QUANTITY: Final = cel.CelExtension(
    "quantity",
    [
        cel.FunctionDecl("quantity", [cel.Overload("quantity", _NUMBER, [cel.Type.STRING], False, float)]),
        cel.FunctionDecl(
            "isGreaterThan", [cel.Overload("is_greater_than", cel.Type.BOOL, [_NUMBER, _NUMBER], True, operator.gt)]
        ),
    ],
)
_SUM: Final = cel.CelExtension(
    "sum",
    [cel.FunctionDecl("sum", [cel.Overload("sum_of_list", cel.Type.INT, [cel.Type.List(cel.Type.DYN)], True, sum)])],
)
_ENV: Final = cel.NewEnv(
    variables=dict.fromkeys(_VARIABLES, cel.Type.DYN),
    extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings(), _QUANTITY, _SUM],
)
_OF_TEAMS: Final = (
    "Namespace", "ServiceAccount", "Role", "RoleBinding", "LimitRange", "ResourceQuota", "NetworkPolicy",
)  # fmt: skip
_ADMISSION: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_REQUEST: Final = re.compile(
    r"(?P<verb>\w+) /(?:api|apis/(?P<group>[^/]+))/v\w+/namespaces/(?P<namespace>[^/]+)"
    r"/(?P<resource>[^/]+)(?P<name>/[^/]+)?(?P<part>/[^/]+)?"
)
_TOKEN: Final = {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def namespace_objects(plan: PlannedStack, component: str, team: str) -> Iterator[Json]:
    """Yield the objects of a team's namespace, by the component of its share of a cluster, as they are deployed."""
    planned = [resource for resource in plan.resources if resource.name.startswith(f"{component}-tenancy")]
    for kind in _OF_TEAMS:
        for resource in planned:
            if resource.inputs.get("kind") != kind:
                continue
            body: Json = copy.deepcopy(dict(resource.inputs))
            if kind == "ServiceAccount":
                del body["metadata"]["annotations"]  # the account's address, which a deployment tells
            if "namespace" in body["metadata"]:
                body["metadata"]["namespace"] = team
            yield body


def admission_objects(plan: PlannedStack, cluster: str) -> Iterator[Json]:
    """Yield the policies of a cluster and their bindings, by the plan of its environment."""
    planned = [resource for resource in plan.resources if resource.name.startswith(f"{cluster}-admission-")]
    for kind in _ADMISSION:
        yield from (dict(resource.inputs) for resource in planned if resource.inputs.get("kind") == kind)


def judging(
    policies: Iterable[Policy],
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    controllers: Sequence[str] = (),
) -> Offline:
    """Return a cluster with the namespace of team vision and these policies, and without roles."""
    all_labels = {TEAM_LABEL: "vision", **(labels or {})}
    about = {"name": "vision", "labels": all_labels, "annotations": dict(annotations or {})}
    objects: list[Json] = [{"kind": "Namespace", "metadata": about}]
    objects += [
        {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": policy.name}, "spec": policy.spec}
        for policy in policies
    ]
    return Offline(objects, controllers, {})


def refused_requests(cluster: Offline, requests: Iterable[str], who: dict[str, str]) -> list[str]:
    """Return the requests, such as ``GET /apis/...``, that roles refuse; everybody may ask for their own user name."""
    refused = []
    for request in requests:
        match = _REQUEST.fullmatch(request)
        if match is None:
            if not request.endswith("/selfsubjectreviews"):
                refused.append(request)
            continue
        verbs = {"GET": "get" if match["name"] else "list", "POST": "create"}
        resource = f"{match['resource']}.{match['group'] or ''}".rstrip(".") + (match["part"] or "")
        verb = verbs.get(match["verb"], match["verb"].lower())
        if not cluster.may(verb, resource, match["namespace"], who):
            refused.append(request)
    return refused


class NotEvaluatedError(Exception):
    """An expression that has no value for a request, or is none of the library's."""


class OfflinePolicy:
    """A ValidatingAdmissionPolicy, by its object."""

    def __init__(self, policy: Json) -> None:
        self.name = policy["metadata"]["name"]
        spec = policy["spec"]
        self._match = spec["matchConstraints"]
        self._conditions = [_ENV.compile(row["expression"]) for row in spec.get("matchConditions", ())]
        self._variables = {row["name"]: _ENV.compile(row["expression"]) for row in spec.get("variables", ())}
        self._validations = {row["message"]: _ENV.compile(row["expression"]) for row in spec["validations"]}

    def refusals(self, request: Json, data: Mapping[str, Any]) -> Iterator[str]:
        """Yield the messages of validations that are false, or have no value."""
        if not self._matches(request, data["namespaceObject"]["metadata"].get("labels", {})):
            return
        if not all(_value(condition, data) for condition in self._conditions):
            return
        variables: Json = {}
        for name, expression in self._variables.items():
            variables[name] = _value(expression, {**data, "variables": variables})
        for message, expression in self._validations.items():
            if not _value(expression, {**data, "variables": variables}):
                yield message

    def _matches(self, request: Json, labels: Mapping[str, str]) -> bool:
        selector = self._match["namespaceSelector"]["matchExpressions"]
        if any(row["operator"] != "Exists" or row["key"] not in labels for row in selector):
            return False
        kind = request["resource"]
        resource = "/".join(filter(None, (kind["resource"], request["subResource"])))
        return any(
            kind["group"] in row["apiGroups"]
            and kind["version"] in row["apiVersions"]
            and resource in row["resources"]
            and request["operation"] in row["operations"]
            for row in self._match["resourceRules"]
        )


def _value(expression: Any, data: Mapping[str, Any]) -> Any:
    value = expression.eval(data={"variables": {}, **data})
    if value.type().name() == "ERROR":
        raise NotEvaluatedError(str(value.value()))
    return value.plain_value()


class Offline:
    """The same calls as those of a server; a refusal names each policy that refuses, a line for each message."""

    def __init__(self, objects: Iterable[Json], controllers: Sequence[str], priorities: Mapping[str, int]) -> None:
        """Take a cluster's objects; ``controllers`` are accounts without limits, ``priorities`` values of classes."""
        held = list(objects)
        self.policies = [OfflinePolicy(obj) for obj in held if obj["kind"] == "ValidatingAdmissionPolicy"]
        self._namespaces = {obj["metadata"]["name"]: obj for obj in held if obj["kind"] == "Namespace"}
        self._roles = {
            (obj["metadata"]["namespace"], obj["metadata"]["name"]): obj["rules"]
            for obj in held
            if obj["kind"] == "Role"
        }
        self._bindings = [obj for obj in held if obj["kind"] == "RoleBinding"]
        self._unlimited = {*(f"system:serviceaccount:{account}" for account in controllers)}
        self._priorities = {**_PRIORITIES, **priorities}
        self._kept: dict[tuple[str, str, str], Json] = {}

    def ask(self, kind: str, obj: Json, who: dict[str, str] | None = None, *, keep: bool = False) -> str:
        """Create an object, which stays only with ``keep``."""
        filled = self._filled(kind, obj)
        refusal = self._admit("CREATE", kind, who or {}, new=filled)
        if keep and not refusal:
            self._kept[_key(kind, obj)] = filled
        return refusal

    def change(self, kind: str, obj: Json, patch: Json, who: dict[str, str]) -> str:
        """Change an existing object, as a dry run."""
        before = self._kept[_key(kind, obj)]
        return self._admit("UPDATE", kind, who, new=_merged(before, patch), before=before)

    def end(self, kind: str, obj: Json, options: Json, who: dict[str, str]) -> str:
        """Delete an object with options, which stays."""
        return self._admit("DELETE", kind, who, before=self._kept[_key(kind, obj)], options=options)

    def may(self, verb: str, resource: str, namespace: str, who: dict[str, str]) -> bool:
        """Whether roles let somebody do something; those of the whole cluster are not among the objects."""
        if who.get("Impersonate-User", "admin") in {"admin", "system:kube-controller-manager", *self._unlimited}:
            return True
        name, _, part = resource.partition("/")
        plain, _, group = name.partition(".")
        names = {who["Impersonate-User"], who.get("Impersonate-Group", "")}
        bound = (
            self._roles[namespace, binding["roleRef"]["name"]]
            for binding in self._bindings
            if binding["metadata"]["namespace"] == namespace
            and names & {subject["name"] for subject in binding["subjects"]}
        )
        full_name = "/".join(filter(None, (plain, part)))
        return any(
            group in rule["apiGroups"] and full_name in rule["resources"] and verb in rule["verbs"]
            for rules in bound
            for rule in rules
        )

    def run(self, pod: Json, container: str, who: dict[str, str], *, attach: bool = False) -> str:
        """Run a command in a container of an existing pod, or attach to it."""
        options = {"container": container} if container else {}
        return self._admit("CONNECT", "Pod", who, part="attach" if attach else "exec", new=options, namespace=pod)

    def delete(self, kind: str, obj: Json) -> None:
        """Forget an object."""
        del self._kept[_key(kind, obj)]

    def _admit(
        self,
        operation: str,
        kind: str,
        who: Mapping[str, str],
        *,
        part: str = "",
        new: Json | None = None,
        before: Json | None = None,
        options: Json | None = None,
        namespace: Json | None = None,
    ) -> str:
        about = (namespace or new or before or {})["metadata"]
        path = PLURALS[kind].removeprefix("/").split("/")
        group, version = (path[1], path[2]) if path[0] == "apis" else ("", path[1])
        verb = {"CONNECT": "create"}.get(operation, operation.lower())
        named = "/".join(filter(None, (".".join(filter(None, (path[-1], group))), part)))
        if not self.may(verb, named, about["namespace"], dict(who)):
            return f"forbidden: {who['Impersonate-User']} cannot {verb} resource {named}"
        request = {
            "operation": operation,
            "resource": {"group": group, "version": version, "resource": path[-1]},
            "subResource": part,
            "userInfo": {"username": who.get("Impersonate-User", "admin")},
            "options": options or {},
        }
        data = {
            "object": new,
            "oldObject": before,
            "request": request,
            "namespaceObject": self._namespaces[about["namespace"]],
        }
        return "\n".join(
            f"ValidatingAdmissionPolicy '{policy.name}' with binding '{policy.name}' denied request: {message}"
            for policy in self.policies
            for message in policy.refusals(request, data)
        )

    def _filled(self, kind: str, obj: Json) -> Json:
        """Return an object with what the API server fills in before admission judges it."""
        filled = copy.deepcopy(obj)
        if kind == "Pod":
            spec = filled["spec"]
            spec["volumes"] = [*spec.get("volumes", ()), {"name": _TOKEN["name"], "projected": {}}]
            spec.setdefault("priority", self._priorities.get(spec.get("priorityClassName", ""), 0))
            for container in (*spec["containers"], *spec.get("initContainers", ())):
                container["volumeMounts"] = [*container.get("volumeMounts", ()), _TOKEN]
        return filled


def _key(kind: str, obj: Json) -> tuple[str, str, str]:
    return kind, obj["metadata"]["namespace"], obj["metadata"]["name"]


def _merged(body: Any, patch: Any) -> Any:
    """Return an object with a JSON merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(body) if isinstance(body, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
