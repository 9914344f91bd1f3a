"""A ValidatingAdmissionPolicy as plain data, and the CEL expressions that several policies share.

Policies apply in namespaces with a team's label. They can only refuse requests that roles allow, not grant anything.
Kubernetes evaluates them itself, so there is no webhook that can fail. Source: Kubernetes docs, validating admission
policy (stable since 1.30), read 2026-11.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from training_platform.resources.scope import TEAM_LABEL

API_VERSION = "admissionregistration.k8s.io/v1"
PODSET_LABEL = "kueue.x-k8s.io/podset"  # Kueue puts it on the pods of a job that it admits
JOB_KEY = "jobset.sigs.k8s.io/job-key"  # JobSet puts it on the pods of each of its Jobs
# Namespaces of the controllers that create a job's parts: Kubernetes' own, Kueue's, JobSet's and operators'. No team
# can have a namespace of these names. A service account of any other namespace is trusted no more than members are.
CONTROLLERS = ("kube-system", "kueue-system", "jobset-system", "kuberay-system", "kubeflow-system", "lws-system")
_ACCOUNTS = [f"system:serviceaccount:{namespace}:" for namespace in CONTROLLERS]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The name and the spec of a policy. ``validations`` maps each message to CEL that must be true."""

    name: str
    rules: Sequence[tuple[str, str, Sequence[str], Sequence[str]]]  # group, version, resources, operations
    validations: Mapping[str, str]
    variables: Mapping[str, str] | None = None
    conditions: Sequence[Mapping[str, str]] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of a ValidatingAdmissionPolicy, which refuses requests that it cannot evaluate."""
        rules = [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "resources": list(resources),
                "operations": list(operations),
            }
            for group, version, resources, operations in self.rules
        ]
        spec: dict[str, Any] = {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]},
                "resourceRules": rules,
            },
        }
        if self.conditions:
            spec["matchConditions"] = [dict(condition) for condition in self.conditions]
        if self.variables:
            spec["variables"] = [{"name": name, "expression": cel} for name, cel in self.variables.items()]
        spec["validations"] = [{"expression": cel, "message": message} for message, cel in self.validations.items()]
        return spec

    @property
    def binding(self) -> dict[str, Any]:
        """The spec of the policy's ValidatingAdmissionPolicyBinding."""
        return {"policyName": self.name, "validationActions": ["Deny", "Audit"]}


def literal(value: str | Sequence[str]) -> str:
    """Return a string or a list of strings as a CEL literal; CEL accepts JSON's escapes."""
    return json.dumps(value if isinstance(value, str) else list(value))


# The rules for people apply to everybody but the accounts above, and the one user of Kubernetes' own controllers if
# these do not each have an account in kube-system. Other users called system: do nothing in teams' namespaces that the
# rules refuse: kubelets and the scheduler delete pods, and the scheduler annotates claims. So a member that took a
# node's identity, by a pod on the node's network, gains nothing here, nor would somebody without an identity
# (system:anonymous). A member cannot become one of the exempt: roles grant no impersonation, no certificate, and no
# token outside of the team's pods; a Secret with a token is refused; GKE knows people and Google accounts by their
# addresses. tests/kube/test_attempts.py tries these. Source: Kubernetes docs, RBAC, default roles of controllers, and
# kube-controller-manager's --use-service-account-credentials, read 2026-11-23; which of both GKE has is (unverified).
FROM_PEOPLE = {
    "name": "not-by-a-controller",
    "expression": (
        "request.userInfo.username != 'system:kube-controller-manager' && "
        f"!{literal(_ACCOUNTS)}.exists(a, request.userInfo.username.startsWith(a))"
    ),
}


class ExclusiveNodes(NamedTuple):
    """Nodes, selected by labels, that JobSet assigns exclusively.

    All nodes with the same value of the label ``topology_key`` are assigned to one Job.
    """

    labels: Mapping[str, str]
    topology_key: str


class Bounds(NamedTuple):
    """The maximum grace period of teams' pods, the environment's priorities, and nodes that jobs do not share."""

    grace_seconds: int = 900
    priorities: Mapping[str, int] = {}
    exclusive: Sequence[ExclusiveNodes] = ()
