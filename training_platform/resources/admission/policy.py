"""ValidatingAdmissionPolicies as plain data: what every one of ours has, and CEL from Python's values.

They hold in namespaces with a team's label and refuse more than roles do; nothing here grants anything. Kubernetes
evaluates them itself, so there is no webhook that could be down.
Source: Kubernetes docs, validating admission policy (stable since 1.30), read 2026-11; each tried on API server 1.36.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training_platform.resources.scope import MANAGED_BY, TEAM_LABEL

API_VERSION = "admissionregistration.k8s.io/v1"
ALLOW_LABEL = (
    f"{MANAGED_BY}/allow-"  # and tcpx, tcpxo, rdma or host-network: what a team's namespace may, beside baseline
)
HOST_NETWORK = "host-network"
# On a namespace: the claims, by commas, on shares that other teams mount as well; each team has a folder of its name.
SHARED_CLAIMS = f"{MANAGED_BY}/shared-claims"
# Whose controllers make a job's parts: Kubernetes' own, Kueue's, JobSet's, and those of operators. No team can have a
# namespace of these names; a service account of any other, another team's as well, is trusted no more than members are.
CONTROLLERS = ("kube-system", "kueue-system", "jobset-system", "kuberay-system", "kubeflow-system", "lws-system")
_ACCOUNTS = [f"system:serviceaccount:{namespace}:" for namespace in CONTROLLERS]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy's name and spec; ``validations`` are message and CEL, all of which have to be true."""

    name: str
    rules: Sequence[tuple[str, str, Sequence[str], Sequence[str]]]  # group, version, resources, operations
    validations: Mapping[str, str]
    variables: Mapping[str, str] | None = None
    conditions: Sequence[Mapping[str, str]] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of a ValidatingAdmissionPolicy; what cannot be evaluated is refused."""
        rules = [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "resources": list(resources),
                "operations": list(operations),
            }
            for group, version, resources, operations in self.rules
        ]
        return {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]},
                "resourceRules": rules,
            },
            **({"matchConditions": [dict(each) for each in self.conditions]} if self.conditions else {}),
            **(
                {"variables": [{"name": k, "expression": v} for k, v in self.variables.items()]}
                if self.variables
                else {}
            ),
            "validations": [{"expression": cel, "message": message} for message, cel in self.validations.items()],
        }

    @property
    def binding(self) -> dict[str, Any]:
        """The spec of its ValidatingAdmissionPolicyBinding."""
        return {"policyName": self.name, "validationActions": ["Deny", "Audit"]}


def literal(value: str | Sequence[str]) -> str:
    """Return a text or a list of texts as CEL, whose strings take JSON's escapes."""
    return json.dumps(value if isinstance(value, str) else list(value))


def allowed(what: str) -> str:
    """Return CEL that is true where the namespace may use something beside baseline."""
    return f"{literal(ALLOW_LABEL + what.lower())} in namespaceObject.metadata.labels"


FROM_PEOPLE = {
    "name": "not-by-a-controller",
    "expression": f"!{literal(_ACCOUNTS)}.exists(a, request.userInfo.username.startsWith(a))",
}
