"""Calls to a real API server, which impersonate members of a team and controllers."""

from __future__ import annotations

import time
from typing import Any

import httpx

Json = dict[str, Any]
PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "LimitRange": "/api/v1/namespaces/{}/limitranges",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
}
MEMBER = {"Impersonate-User": "ada@example.com", "Impersonate-Group": "vision@example.com"}
JOB_CONTROLLER = {"Impersonate-User": "system:serviceaccount:kube-system:job-controller"}
JOBSET_CONTROLLER = {"Impersonate-User": "system:serviceaccount:jobset-system:jobset-controller"}
KUEUE = {"Impersonate-User": "system:serviceaccount:kueue-system:kueue-controller-manager"}


class Server:
    """Calls to the API server, as somebody; ``ask`` returns the refusal, or an empty text."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def ask(self, kind: str, obj: Json, who: dict[str, str] | None = None, *, keep: bool = False) -> str:
        """Create an object, as a dry run unless it is to stay."""
        options = {} if keep else {"dryRun": "All"}
        path = PLURALS[kind].format(obj["metadata"].get("namespace", ""))
        return self._answer("POST", path, obj, who or {}, options)

    def change(self, kind: str, obj: Json, patch: Json, who: dict[str, str]) -> str:
        """Patch an existing object, as a dry run."""
        path = f"{PLURALS[kind].format(obj['metadata']['namespace'])}/{obj['metadata']['name']}"
        headers = {**who, "Content-Type": "application/merge-patch+json"}
        return self._answer("PATCH", path, patch, headers, {"dryRun": "All"})

    def end(self, kind: str, obj: Json, options: Json, who: dict[str, str]) -> str:
        """Delete an object with options, as a dry run."""
        path = f"{PLURALS[kind].format(obj['metadata']['namespace'])}/{obj['metadata']['name']}"
        return self._answer("DELETE", path, {**options, "dryRun": ["All"]}, who, {})

    def may(self, verb: str, resource: str, namespace: str, who: dict[str, str]) -> bool:
        """Whether roles allow a verb on ``pods/log`` or ``jobs.batch``, in all namespaces if none is named."""
        name, _, part = resource.partition("/")
        plain, _, group = name.partition(".")
        attributes = {"verb": verb, "resource": plain, "subresource": part, "group": group, "namespace": namespace}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self._http.post(path, json={**review, "spec": {"resourceAttributes": attributes}}, headers=who)
        assert answer.is_success, answer.text
        return bool(answer.json()["status"]["allowed"])

    def read(self, kind: str, namespace: str) -> list[Json]:
        """Return the objects of a kind in a namespace."""
        return list(self._http.get(PLURALS[kind].format(namespace)).json()["items"])

    def wait_for_quota(self, namespace: str, seconds: float) -> None:
        """Wait until a controller has counted what a namespace with one quota holds: nothing is refused before."""
        deadline = time.monotonic() + seconds
        (quota,) = self.read("ResourceQuota", namespace)
        while quota["status"].get("used", {}).keys() != quota["spec"]["hard"].keys():
            assert time.monotonic() < deadline, "the quota is not counted"
            time.sleep(0.2)
            (quota,) = self.read("ResourceQuota", namespace)

    def run(self, pod: Json, container: str, who: dict[str, str], *, attach: bool = False) -> str:
        """Run a command in a container, or attach to it; without a container's name the request has none."""
        part = "attach" if attach else "exec"
        path = f"{PLURALS['Pod'].format(pod['metadata']['namespace'])}/{pod['metadata']['name']}/{part}"
        options = {"stdout": "true"}
        if not attach:
            options["command"] = "true"
        if container:
            options["container"] = container
        return self._answer("POST", path, None, who, options)

    def delete(self, kind: str, obj: Json) -> None:
        """Delete an object."""
        path = f"{PLURALS[kind].format(obj['metadata'].get('namespace', ''))}/{obj['metadata']['name']}"
        self._answer("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}, {}, {})

    def _answer(self, method: str, path: str, body: Json | None, headers: dict[str, str], options: Json) -> str:
        answer = self._http.request(method, path, json=body, headers=headers, params=options)
        return "" if answer.is_success else str(answer.json()["message"])
