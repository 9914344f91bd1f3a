"""Probes of isolation: what a member of a test group may do, asked of the API server by impersonation.

Rights are asked by access reviews, which open nothing: a read that were let in would show a real Secret. Writes are dry
runs. ``attempts.yaml`` has both; the tests try the same rows on a local API server.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import LOCAL_QUEUES, MEMBER, ApiKind, ClusterApi, ClusterError
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.probes import Answer, Platform, proven, refuted, undecided
from training_platform.resources.scope import MANAGED_BY, TEAM_LABEL

_RBAC: Final = "apis/rbac.authorization.k8s.io/v1"
_REVIEWS: Final = ApiKind("apis/authorization.k8s.io/v1", "selfsubjectaccessreviews")
_SELF: Final = ApiKind("apis/authentication.k8s.io/v1", "selfsubjectreviews")
EVERY_DAY: Final = "every day"
_NO_POD: Final = "verify-no-such-pod"


class Right(NamedTuple):
    """A right: a verb on ``pods/log`` or ``jobs.batch``, in the group's ``own`` namespace, an ``other`` one, or all."""

    verb: str
    resource: str
    namespace: str

    @classmethod
    def parse(cls, text: str) -> Iterator[Right]:
        """Yield the rights of a row, ``get,list secrets in other``; without a namespace for all of them."""
        verbs, resources, *place = text.split()
        for verb, resource in product(verbs.split(","), resources.split(",")):
            yield cls(verb, resource, place[1] if place else "")

    def spec(self, places: Mapping[str, str]) -> Json:
        """Return what an access review asks."""
        name, _, part = self.resource.partition("/")
        plain, _, group = name.partition(".")
        namespace = places.get(self.namespace, self.namespace)
        return {"verb": self.verb, "resource": plain, "subresource": part, "group": group, "namespace": namespace}


class Write(NamedTuple):
    """A write that a policy refuses: the gain, the way, where the object is posted, the policy, words of a refusal."""

    gain: str
    way: str
    kind: ApiKind
    body: Json
    by: str
    says: tuple[str, ...]


def rights() -> Mapping[str, list[Right]]:
    """Return the rights that no member has, by what each would gain; ``every day`` are those that members need."""
    return {
        gain: [right for row in rows for right in Right.parse(row)]
        for gain, rows in table(__file__, "attempts.yaml")["rights"].items()
    }


def writes(own: str, queue: str) -> Iterator[Write]:
    """Yield the writes of a member of the team ``own``, whose LocalQueue is ``queue``."""
    rows = table(__file__, "attempts.yaml")["writes"]
    for gain, row in ((gain, row) for gain, ways in rows["refused"].items() for row in ways):
        body = _merged(copy.deepcopy(rows["objects"][row["object"]]), row.get("with", {}))
        body["metadata"]["namespace"] = own
        labels = body["metadata"].get("labels", {})
        body["metadata"]["labels"] = {key: queue if value == "QUEUE" else value for key, value in labels.items()}
        kind = ApiKind(*rows["paths"][body["kind"]])
        yield Write(gain, row["way"], kind, body, f"{MANAGED_BY}-{row['by']}", tuple(row["says"]))


class Command(NamedTuple):
    """A command that a policy refuses: the gain, the way, the container that is named, the policy, its words."""

    gain: str
    way: str
    container: str
    by: str
    says: tuple[str, ...]


def commands() -> Iterator[Command]:
    """Yield the commands of a member in a pod of the team."""
    for row in table(__file__, "attempts.yaml")["commands"]:
        by = f"{MANAGED_BY}-{row['by']}"
        yield Command(row["gain"], row["way"], row["container"], by, tuple(row["says"]))


def _merged(body: Any, change: Any) -> Any:
    """Return an object with a change, as a JSON merge patch has it."""
    if not isinstance(change, Mapping):
        return change
    merged = dict(body) if isinstance(body, Mapping) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


class _Member(NamedTuple):
    """A member of the test group in one cluster, and the namespaces of its own team and of another."""

    api: ClusterApi
    places: Mapping[str, str]
    queue: str
    path: str

    def may(self, right: Right) -> bool:
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        asked = {**review, "spec": {"resourceAttributes": right.spec(self.places)}}
        return bool(self.api.create(_REVIEWS, "", asked, dry_run=False)["status"]["allowed"])


def _members(platform: Platform) -> Iterator[_Member | Answer]:
    """Grant the impersonation in each cluster, and yield the member there, or why it could not be asked."""
    group = platform.options["group"]
    for path, api in platform.clusters.items():
        namespaces = platform.objects("core/v1:Namespace")
        bodies = [match.body or {} for match in namespaces if match.path.startswith(f"{path}/")]
        teams = sorted(body["metadata"]["name"] for body in bodies if TEAM_LABEL in body["metadata"].get("labels", {}))
        bindings = platform.objects("rbac.authorization.k8s.io/v1:RoleBinding")
        of_group = (
            str(match.planned.inputs["metadata"]["namespace"])
            for match in bindings
            if match.path.startswith(f"{path}/")
            and any(one.get("name") == group for one in match.planned.inputs.get("subjects", ()))
        )
        own = next((namespace for namespace in of_group if namespace in teams), "")
        if not own:
            yield undecided(f"{group} has no role in {path.rpartition('/')[2]}", "name a group of a team's members")
            continue
        other = next((team for team in teams if team != own), "default")
        queues = [row["metadata"]["name"] for row in api.objects(LOCAL_QUEUES, own)]
        _grant(platform, path, group)
        member = _Member(api.as_member(group), {"own": own, "other": other}, (queues or [own])[0], path)
        wait_for(partial(_is_granted, member), platform.seconds)
        yield member


def _is_granted(member: _Member) -> bool:
    try:
        member.may(Right("get", "pods", "own"))
    except ClusterError as error:
        if error.status == 403:
            return False
        raise
    return True


def _grant(platform: Platform, cluster: str, group: str) -> None:
    """Let whoever runs this impersonate the group and a user of no rights; the run's end withdraws it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    me = platform.clusters[cluster].create(_SELF, "", review, dry_run=False)["status"]["userInfo"]["username"]
    name = platform.maker.name("impersonate")
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    rules = [
        {"apiGroups": [""], "resources": [kind], "verbs": ["impersonate"], "resourceNames": [only]}
        for kind, only in (("groups", group), ("users", MEMBER))
    ]
    platform.maker.make(cluster, ApiKind(_RBAC, "clusterroles"), {**about, "kind": "ClusterRole", "rules": rules})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": me}
    binding = {**about, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": [subject]}
    platform.maker.make(cluster, ApiKind(_RBAC, "clusterrolebindings"), binding)


def tenancy_rights(platform: Platform) -> Iterator[Answer]:
    """Answer for each right by an access review; a group without any right proves nothing, so that is undecided."""
    for member in _members(platform):
        if isinstance(member, Answer):
            yield member
            continue
        gains = dict(rights())
        missing = [right for right in gains.pop(EVERY_DAY) if not member.may(right)]
        if missing:
            lacks = ", ".join(f"{right.verb} {right.resource}" for right in missing)
            yield undecided("the group lacks rights of every day, so that it is refused proves nothing", lacks)
            continue
        for gain, rows in gains.items():
            let_in = [right for right in rows if member.may(right)]
            for right in let_in:
                place = member.places.get(right.namespace, right.namespace) or "all namespaces"
                yield refuted(f"a member may {right.verb} {right.resource} in {place}: to {gain}", member.path)
            if not let_in:
                yield proven(f"none of {len(rows)} rights to {gain}", member.path)


def tenancy_writes(platform: Platform) -> Iterator[Answer]:
    """Answer for each write by a dry run, which creates nothing, and for each command in a pod that does not exist."""
    for member in _members(platform):
        if isinstance(member, Answer):
            yield member
            continue
        own = member.places["own"]
        attempts: list[tuple[Write | Command, Callable[[], object]]] = [
            (write, partial(member.api.create, write.kind, own, write.body, dry_run=True))
            for write in writes(own, member.queue)
        ]
        attempts += [(each, partial(member.api.run, own, _NO_POD, each.container)) for each in commands()]
        refused = 0
        for attempt, ask in attempts:
            try:
                ask()
            except ClusterError as error:
                if any(words in str(error) for words in attempt.says):
                    refused += 1
                    continue
                if not (
                    isinstance(attempt, Command) and error.status == 404
                ):  # for the pod, which nothing kept it from
                    yield undecided(f"{attempt.way}: refused for another reason", str(error))
                    continue
            yield refuted(f"a member may {attempt.way}", f"{attempt.by} let it in, in {own}")
        if refused:
            yield proven(f"{refused} attempts are refused by the policy that is about them", member.path)
