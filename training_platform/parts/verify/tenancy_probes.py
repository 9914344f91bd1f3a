"""Probes of isolation: the permissions of a member of a test group, tested by impersonation.

Read permissions are tested by access reviews, since a successful read would show a real Secret. Writes are dry runs.
``attempts.yaml`` contains both; the tests try the same rows on a local API server.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import LOCAL_QUEUES, MEMBER, ApiKind, ClusterApi, ClusterError
from training_platform.parts.verify.cluster_probes import short_name
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.probes import Answer, Platform, proven, refuted, undecided
from training_platform.resources.scope import MANAGED_BY, TEAM_LABEL

_RBAC: Final = "apis/rbac.authorization.k8s.io/v1"
_REVIEWS: Final = ApiKind("apis/authorization.k8s.io/v1", "selfsubjectaccessreviews")
_SELF: Final = ApiKind("apis/authentication.k8s.io/v1", "selfsubjectreviews")
EVERY_DAY: Final = "every day"
_NO_POD: Final = "verify-no-such-pod"


class Right(NamedTuple):
    """A permission: a verb on ``pods/log`` or ``jobs.batch``, in the ``own`` namespace, an ``other`` one, or all."""

    verb: str
    resource: str
    namespace: str

    @classmethod
    def parse(cls, text: str) -> Iterator[Right]:
        """Yield the permissions in a row such as ``get,list secrets in other``, or ``get nodes`` for all namespaces."""
        resource_part, _, namespace = text.partition(" in ")
        verbs, resources = resource_part.split()
        for verb, resource in product(verbs.split(","), resources.split(",")):
            yield cls(verb, resource, namespace)

    def attributes(self, namespaces: Mapping[str, str]) -> Json:
        """Return the resource attributes of an access review."""
        qualified_name, _, subresource = self.resource.partition("/")
        resource, _, group = qualified_name.partition(".")
        return {
            "verb": self.verb,
            "resource": resource,
            "subresource": subresource,
            "group": group,
            "namespace": namespaces.get(self.namespace, self.namespace),
        }


class Write(NamedTuple):
    """A write that a policy refuses: what a member could gain and how, the object, and words in the refusal."""

    gain: str
    way: str
    kind: ApiKind
    body: Json
    policy: str
    says: tuple[str, ...]


def rights() -> Mapping[str, list[Right]]:
    """Return the permissions that no member may have, keyed by what they allow. ``every day`` has those they need."""
    by_gain: dict[str, list[Right]] = {}
    for gain, rows in table(__file__, "attempts.yaml")["rights"].items():
        by_gain[gain] = [right for row in rows for right in Right.parse(row)]
    return by_gain


def writes(namespace: str, queue: str) -> Iterator[Write]:
    """Yield the writes that a member tries in the team's namespace. ``queue`` is its LocalQueue."""
    attempts = table(__file__, "attempts.yaml")["writes"]
    for gain, rows in attempts["refused"].items():
        for row in rows:
            body = _merged(copy.deepcopy(attempts["objects"][row["object"]]), row.get("with", {}))
            metadata = body["metadata"]
            metadata["namespace"] = namespace
            labels = metadata.get("labels", {})
            metadata["labels"] = {key: queue if value == "QUEUE" else value for key, value in labels.items()}
            kind = ApiKind(*attempts["paths"][body["kind"]])
            yield Write(
                gain, row["way"], kind=kind, body=body, policy=f"{MANAGED_BY}-{row['by']}", says=tuple(row["says"])
            )


class ProbeCommand(NamedTuple):
    """A command in a pod that a policy refuses: what a member could gain and how, and words in the refusal."""

    gain: str
    way: str
    container: str
    policy: str
    says: tuple[str, ...]


def commands() -> Iterator[ProbeCommand]:
    """Yield the commands that a member tries in a pod of the team."""
    for row in table(__file__, "attempts.yaml")["commands"]:
        policy = f"{MANAGED_BY}-{row['by']}"
        yield ProbeCommand(row["gain"], row["way"], container=row["container"], policy=policy, says=tuple(row["says"]))


def _merged(body: Any, change: Any) -> Any:
    """Return an object with a JSON merge patch applied."""
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
    """A member of the test group in a cluster, with the namespaces of its ``own`` team and of an ``other`` team."""

    api: ClusterApi
    namespaces: Mapping[str, str]
    queue: str
    cluster: str

    def may(self, right: Right) -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": right.attributes(self.namespaces)},
        }
        return bool(self.api.create(_REVIEWS, "", review, dry_run=False)["status"]["allowed"])


def _members(platform: Platform) -> Iterator[_Member | Answer]:
    """Yield a member in each cluster after granting impersonation, or a verdict with the reason why there is none."""
    group = platform.options["group"]
    for cluster, api in platform.clusters.items():
        teams = _team_namespaces(platform, cluster)
        group_teams = [namespace for namespace in _namespaces_of_group(platform, cluster, group) if namespace in teams]
        if not group_teams:
            yield undecided(f"{group} has no role in {short_name(cluster)}", "name a group of a team's members")
            continue
        team = group_teams[0]
        other_team = next((name for name in teams if name != team), "default")
        queues = [queue["metadata"]["name"] for queue in api.objects(LOCAL_QUEUES, team)]
        _grant_impersonation(platform, cluster, group)
        member = _Member(
            api=api.as_member(group),
            namespaces={"own": team, "other": other_team},
            queue=queues[0] if queues else team,
            cluster=cluster,
        )
        wait_for(partial(_is_granted, member), platform.seconds)
        yield member


def _team_namespaces(platform: Platform, cluster: str) -> list[str]:
    names: list[str] = []
    for match in platform.existing_objects("core/v1:Namespace"):
        if match.path.startswith(f"{cluster}/"):
            metadata = (match.body or {})["metadata"]
            if TEAM_LABEL in metadata.get("labels", {}):
                names.append(metadata["name"])
    return sorted(names)


def _namespaces_of_group(platform: Platform, cluster: str, group: str) -> Iterator[str]:
    """Yield the namespaces of a cluster in which the group has a role."""
    for match in platform.existing_objects("rbac.authorization.k8s.io/v1:RoleBinding"):
        subjects = match.planned.inputs.get("subjects", ())
        if match.path.startswith(f"{cluster}/") and any(subject.get("name") == group for subject in subjects):
            yield str(match.planned.inputs["metadata"]["namespace"])


def _is_granted(member: _Member) -> bool:
    try:
        member.may(Right("get", "pods", namespace="own"))
    except ClusterError as error:
        if error.status == 403:
            return False
        raise
    return True


def _grant_impersonation(platform: Platform, cluster: str, group: str) -> None:
    """Allow the caller to impersonate the group, and a user without permissions, while the run's objects exist."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    response = platform.clusters[cluster].create(_SELF, "", review, dry_run=False)
    caller = response["status"]["userInfo"]["username"]
    name = platform.maker.name("impersonate")
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    rules = [
        {"apiGroups": [""], "resources": [kind], "verbs": ["impersonate"], "resourceNames": [resource_name]}
        for kind, resource_name in (("groups", group), ("users", MEMBER))
    ]
    platform.maker.make(cluster, ApiKind(_RBAC, "clusterroles"), {**about, "kind": "ClusterRole", "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": caller}
    binding = {**about, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]}
    platform.maker.make(cluster, ApiKind(_RBAC, "clusterrolebindings"), binding)


def tenancy_rights(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on each permission, from an access review.

    A group without the permissions that members need every day proves nothing.
    """
    for member in _members(platform):
        if isinstance(member, Answer):
            yield member
            continue
        by_gain = dict(rights())
        missing = [right for right in by_gain.pop(EVERY_DAY) if not member.may(right)]
        if missing:
            evidence = ", ".join(f"{right.verb} {right.resource}" for right in missing)
            yield undecided("the group does not have the rights for daily work, so refusals prove nothing", evidence)
            continue
        for gain, no_rights in by_gain.items():
            allowed = [right for right in no_rights if member.may(right)]
            for right in allowed:
                namespace = member.namespaces.get(right.namespace, right.namespace) or "all namespaces"
                says = f"a member may {right.verb} {right.resource} in {namespace}: to {gain}"
                yield refuted(says, member.cluster)
            if not allowed:
                yield proven(f"a member has none of {len(no_rights)} rights to {gain}", member.cluster)


def tenancy_writes(platform: Platform) -> Iterator[Answer]:
    """Yield a verdict on each write, tried as a dry run, and on each command, tried in a pod that does not exist."""
    for member in _members(platform):
        if isinstance(member, Answer):
            yield member
            continue
        namespace = member.namespaces["own"]
        attempts: list[Write | ProbeCommand] = [*writes(namespace, member.queue), *commands()]
        refused = 0
        for attempt in attempts:
            try:
                _try(member, namespace, attempt)
            except ClusterError as error:
                if any(words in str(error) for words in attempt.says):
                    refused += 1
                    continue
                passed_policies = isinstance(attempt, ProbeCommand) and error.status == 404  # for the pod
                if not passed_policies:
                    yield undecided(f"{attempt.way}: refused for another reason", str(error))
                    continue
            yield refuted(f"a member may {attempt.way}", f"{attempt.policy} allowed it in {namespace}")
        if refused:
            yield proven(f"{refused} attempts are refused by the policy meant for them", member.cluster)


def _try(member: _Member, namespace: str, attempt: Write | ProbeCommand) -> None:
    """Request a write or a command as a member. Raises ClusterError."""
    if isinstance(attempt, Write):
        member.api.create(attempt.kind, namespace, attempt.body, dry_run=True)
    else:
        member.api.run(namespace, _NO_POD, attempt.container)
