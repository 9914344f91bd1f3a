"""Cloud Resource Manager: projects are there, and have a number and a policy; none is made or deleted here."""

from __future__ import annotations

from training_platform.sandbox.cloud.resources.iam_policies import read_policy, write_policy
from training_platform.sandbox.cloud.resources.model import Call, Json, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.projects import number
from training_platform.sandbox.cloud.state.store import Record


def project_record(cloud: Cloud, project: str) -> Record:
    """Return a project as a resource, which holds its policy."""
    name = f"cloudresourcemanager/projects/{project}"
    found = cloud.store.get(name)
    if found is None:
        found = Record(name=name, project=project, body={"createTime": cloud.time()})
        cloud.store.put(found)
    return found


def _get(cloud: Cloud, call: Call) -> Json:
    record = project_record(cloud, call.project)
    if call.api.version == "v1":
        return {
            "projectNumber": number(call.project),
            "projectId": call.project,
            "lifecycleState": "ACTIVE",
            "name": call.project,
            "createTime": record.body["createTime"],
        }
    return {
        "name": f"projects/{number(call.project)}",
        "projectId": call.project,
        "state": "ACTIVE",
        "displayName": call.project,
        "createTime": record.body["createTime"],
    }


def _get_policy(cloud: Cloud, call: Call) -> Json:
    return read_policy(project_record(cloud, call.project))


def _set_policy(cloud: Cloud, call: Call) -> Json:
    return write_policy(cloud, project_record(cloud, call.project), call.body.get("policy", {}))


def _test(_cloud: Cloud, call: Call) -> Json:
    return {"permissions": call.body.get("permissions", [])}


SERVICE = Service(
    name="cloudresourcemanager",
    needs_enabling=False,  # the provider asks it about a project before it enables anything there
    handlers={
        "projects.get": _get,
        "projects.getIamPolicy": _get_policy,
        "projects.setIamPolicy": _set_policy,
        "projects.testIamPermissions": _test,
    },
)
