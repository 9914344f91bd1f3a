"""Service Usage: which APIs a project has enabled, and the accounts that Google's services act under."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from training_platform.sandbox.cloud.requests.errors import ApiError, failed_precondition, invalid
from training_platform.sandbox.cloud.resources import lists
from training_platform.sandbox.cloud.resources.model import Call, Json, Service
from training_platform.sandbox.cloud.state.cloud import Cloud
from training_platform.sandbox.cloud.state.projects import number
from training_platform.sandbox.cloud.state.store import Record
from training_platform.sandbox.cloud.state.work import Work

# The domains of service agents differ from the APIs' names. Source: service agents, Google's IAM reference,
# general knowledge.
_AGENTS: Final = {
    "container": "container-engine-robot",
    "compute": "compute-system",
    "file": "cloud-filer",
    "cloudservices": "cloudservices",
}
_HOST: Final = re.compile(r"[a-z][a-z0-9.-]*\.googleapis\.com\Z")
_BATCH: Final = 20  # services that one batchEnable takes


def agent(api: str, project: str) -> str:
    """Return the email of an API's service agent in a project."""
    short = api.partition(".")[0]
    return f"service-{number(project)}@{_AGENTS.get(short, f'gcp-sa-{short}')}.iam.gserviceaccount.com"


def service_body(project: str, api: str, state: str) -> Json:
    """Return a service as the API shows it."""
    parent = f"projects/{number(project)}"
    return {"name": f"{parent}/services/{api}", "config": {"name": api, "title": api}, "state": state, "parent": parent}


def enable(cloud: Cloud, project: str, apis: Iterable[str]) -> list[Json]:
    """Enable APIs in a project."""
    bodies = []
    for api in apis:
        if not _HOST.match(api):
            raise invalid(f"Service {api} is not found or permission denied.")
        record = Record(
            name=f"serviceusage/projects/{project}/services/{api}",
            project=project,
            body=service_body(project, api, "ENABLED"),
        )
        if cloud.store.get(record.name) is None:
            cloud.store.put(record)
        bodies.append(record.body)
    return bodies


def _enable(cloud: Cloud, call: Call) -> Json:
    found = enable(cloud, call.project, [call.path.rpartition("/")[2]])
    return _operation(cloud, call, "enable", {"service": found[0]}, "EnableServiceResponse")


def _batch_enable(cloud: Cloud, call: Call) -> Json:
    apis = call.body.get("serviceIds", [])
    if not 0 < len(apis) <= _BATCH:
        raise invalid(f"service_ids has {len(apis)} services; allowed: 1 to {_BATCH}", field="service_ids")
    found = enable(cloud, call.project, apis)
    return _operation(cloud, call, "batchEnable", {"services": found}, "BatchEnableServicesResponse")


def _disable(cloud: Cloud, call: Call) -> Json:
    api = call.path.rpartition("/")[2]
    if cloud.store.get(call.name) is None:
        raise failed_precondition(f"Service {api} is not enabled.")
    cloud.store.delete(call.name)
    body = {"service": service_body(call.project, api, "DISABLED")}
    return _operation(cloud, call, "disable", body, "DisableServiceResponse")


def _get(cloud: Cloud, call: Call) -> Json:
    record = cloud.store.get(call.name)
    return record.body if record else service_body(call.project, call.path.rpartition("/")[2], "DISABLED")


def _list(cloud: Cloud, call: Call) -> Json:
    return lists.page(call, [each.body for each in cloud.store.children(call.name)], "GoogleApiServiceusageV1Service")


def _batch_get(cloud: Cloud, call: Call) -> Json:
    names = call.parameters.get("names", [])
    apis = [name.rpartition("/")[2] for name in names]
    held = {each.id for each in cloud.store.children(call.name)}
    return {"services": [service_body(call.project, api, "ENABLED" if api in held else "DISABLED") for api in apis]}


def _identity(cloud: Cloud, call: Call) -> Json:
    api = call.path.rpartition("/")[2]
    if cloud.settings.check_services and cloud.store.get(call.name) is None:
        raise ApiError(400, f"Service {api} is not enabled in project {call.project}.", status="FAILED_PRECONDITION")
    email = agent(api, call.project)
    body = {"email": email, "uniqueId": f"1{abs(hash_of(email)):020d}"[:21]}
    return _operation(cloud, call, "generateServiceIdentity", body, "ServiceIdentity")


def hash_of(text: str) -> int:
    """Return a number that is always the same for a text."""
    return int.from_bytes(text.encode()[-8:], "big")


def _operation(cloud: Cloud, call: Call, verb: str, response: Json, schema: str) -> Json:
    work = Work(
        style="longrunning", service=call.service, project=call.project, target=call.name, type=verb,
        seconds=cloud.settings.seconds("serviceusage.services"), response=response,
        schema=f"google.api.serviceusage.{call.api.version}.{schema}", where="",
        metadata={
            "@type": f"type.googleapis.com/google.api.serviceusage.{call.api.version}.OperationMetadata",
            "resourceNames": [call.path],
        },
    )  # fmt: skip
    return cloud.operations.start(work)


SERVICE = Service(
    name="serviceusage",
    needs_enabling=False,  # every project has it, or nothing could ever be enabled
    handlers={
        "services.enable": _enable,
        "services.batchEnable": _batch_enable,
        "services.disable": _disable,
        "services.get": _get,
        "services.list": _list,
        "services.batchGet": _batch_get,
        "services.generateServiceIdentity": _identity,
    },
)
