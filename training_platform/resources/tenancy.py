"""Who may do what in a team's namespace, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_ALL = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_READ = ("get", "list", "watch")


class Rule(NamedTuple):
    """A rule of a Role."""

    api_group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


class Subject(NamedTuple):
    """Whom a Role is bound to."""

    kind: str
    name: str


# No right to create pods or anything but Jobs that makes them: Kueue lets those start without quota.
MEMBER_RULES = (
    Rule("batch", ("jobs",), _ALL),
    Rule("jobset.x-k8s.io", ("jobsets",), _ALL),
    Rule("jobset.x-k8s.io", ("jobsets/status",), _READ),
    Rule("", ("pods",), (*_READ, "delete")),
    Rule("", ("pods/log",), _READ),
    # kubectl speaks to these through a web socket, which starts with a GET.
    Rule("", ("pods/exec", "pods/portforward"), ("get", "create")),
    Rule("", ("persistentvolumeclaims", "configmaps", "secrets"), _ALL),
    Rule("", ("events",), _READ),
    Rule("kueue.x-k8s.io", ("localqueues", "workloads"), _READ),
)


def subjects(members: Iterable[str]) -> list[Subject]:
    """Return IAM members as Kubernetes knows them; a service account is a user there, by its email address.

    A group is known only in a cluster with Google Groups for RBAC, and only if it is a member of that cluster's
    ``gke-security-groups@`` group. ``domain:`` has no counterpart and is left out: such members get no access here.
    """
    kinds = {"group": "Group", "user": "User", "serviceAccount": "User"}
    split = (member.partition(":") for member in members)
    return [Subject(kinds[kind], name) for kind, _, name in split if kind in kinds]
