"""Faults planted in the grants of stacks: predicted from the planned grants, and refused by the local cloud.

A request is allowed by the grants of the examples' stacks. Then what allows it is taken away, exchanged for a role of
something else, limited to the past, or moved to another project; in custom roles a permission is dropped. Every fault
must be found by ``rights`` on the planned grants, and refused by the local cloud, with the same permission named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import pytest

from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.authorization import Caller, resource_of
from local_google_cloud.state.questions import Judge
from tests.local_google_cloud.policies import cloud_of, grants_of
from tests.support.places import ROOT
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace
from training_platform.resources.rights import PolicyGrant, Requirement, Rights, lacking, requirements
from training_platform.rules.rights import RIGHTS, rights_findings

PROD = "example-train-prod"
LAB = "example-train-lab"
HOST = "example-network-host"
KEYS = "example-keys"
PROJECTS: Final = (PROD, LAB, HOST, KEYS, "example-elsewhere")
BUCKET = f"{PROD}-prod-vision-checkpoints"
TEAM = "group:vision@example.com"
ADMINS = "group:ml-platform@example.com"
JOBS = f"serviceAccount:prod-vision-jobs@{PROD}.iam.gserviceaccount.com"
NODES = f"serviceAccount:prod-gke-nodes@{PROD}.iam.gserviceaccount.com"
METRICS = f"serviceAccount:prod-metrics@{PROD}.iam.gserviceaccount.com"
HUB = f"serviceAccount:prod-us-central1-hub@{PROD}.iam.gserviceaccount.com"
POD = f"serviceAccount:{PROD}.svc.id.goog[vision/training]"
DEPLOYER = "serviceAccount:deploy@example-elsewhere.iam.gserviceaccount.com"
REGION = "locations/us-central1"
KEY = f"projects/{KEYS}/{REGION}/keyRings/training/cryptoKeys/data"
SUBNET = f"projects/{HOST}/regions/us-central1/subnetworks/nodes"
PAST = 'request.time < timestamp("2020-01-01T00:00:00Z")'


class Step(NamedTuple):
    """A request of a principal, and the permission that a fault takes away from it."""

    member: str
    verb: str
    path: str
    method: str
    permission: str
    body: dict[str, Any] = {}
    quota_project: str = ""


def job(project: str, attachment: str) -> dict[str, Any]:
    spec = {"machineSpec": {"machineType": "n2-standard-4"}, "replicaCount": "1", "containerSpec": {"imageUri": "x"}}
    psc = {"networkAttachment": f"projects/{project}/regions/us-central1/networkAttachments/{attachment}"}
    return {"displayName": "one", "jobSpec": {"workerPoolSpecs": [spec], "pscInterfaceConfig": psc}}


CREATE_JOB = "aiplatform.projects.locations.customJobs.create"
CREATE_CLUSTER = "container.projects.locations.clusters.create"
STEPS: Final = (
    Step(TEAM, "GET", f"storage/v1/b/{BUCKET}/o", "storage.objects.list", "storage.objects.list"),
    Step(TEAM, "POST", f"storage/v1/b/{BUCKET}/o", "storage.objects.insert", "storage.objects.create"),
    Step(TEAM, "GET", f"container/v1/projects/{PROD}/{REGION}/clusters", "container.projects.locations.clusters.list",
         "container.clusters.list"),
    Step(TEAM, "POST", f"secretmanager/v1/projects/{PROD}/secrets/prod-vision-hugging-face:addVersion",
         "secretmanager.projects.secrets.addVersion", "secretmanager.versions.add", {"payload": {"data": "eA=="}}),
    Step(ADMINS, "GET", f"iam/v1/projects/{PROD}/serviceAccounts", "iam.projects.serviceAccounts.list",
         "iam.serviceAccounts.list"),
    Step(ADMINS, "GET", f"cloudquotas/v1/projects/{PROD}/locations/global/services/compute.googleapis.com/quotaInfos",
         "cloudquotas.projects.locations.services.quotaInfos.list", "cloudquotas.quotas.get", {}, PROD),
    Step(JOBS, "GET", f"storage/v1/b/{BUCKET}", "storage.buckets.get", "storage.buckets.get"),
    Step(JOBS, "POST", f"storage/v1/b/{BUCKET}/o", "storage.objects.insert", "storage.objects.create"),
    Step(JOBS, "POST", f"monitoring/v3/projects/{PROD}/timeSeries", "monitoring.projects.timeSeries.create",
         "monitoring.timeSeries.create"),
    Step(POD, "GET", f"storage/v1/b/{BUCKET}/o", "storage.objects.list", "storage.objects.list"),
    Step(NODES, "POST", f"monitoring/v3/projects/{PROD}/timeSeries", "monitoring.projects.timeSeries.create",
         "monitoring.timeSeries.create"),
    Step(METRICS, "GET", f"monitoring/v3/projects/{PROD}/metricDescriptors",
         "monitoring.projects.metricDescriptors.list", "monitoring.metricDescriptors.list"),
    Step(HUB, "GET", f"secretmanager/v1/projects/{PROD}/secrets/prod-jupyterhub-oauth/versions/1:access",
         "secretmanager.projects.secrets.versions.access", "secretmanager.versions.access"),
    *(Step(DEPLOYER, "POST", f"aiplatform/v1/projects/{project}/{REGION}/customJobs", CREATE_JOB, permission,
           job(home, "vertex"))
      for project, home in ((PROD, PROD), (LAB, HOST))
      for permission in
      ("compute.networkAttachments.get", "compute.networkAttachments.update", "compute.regionOperations.get")),
    *(Step(DEPLOYER, "POST", f"container/v1/projects/{LAB}/{REGION}/clusters", CREATE_CLUSTER, permission,
           {"cluster": {"name": "one", "subnetwork": SUBNET}})
      for permission in ("compute.subnetworks.use", "container.hostServiceAgent.use")),
    Step(DEPLOYER, "POST", f"storage/v1/b?project={PROD}", "storage.buckets.insert",
         "cloudkms.cryptoKeyVersions.useToEncrypt", {"name": "new", "encryption": {"defaultKmsKeyName": KEY}}),
    Step(DEPLOYER, "POST", f"file/v1/projects/{PROD}/{REGION}/instances?instanceId=new",
         "file.projects.locations.instances.create", "cloudkms.cryptoKeyVersions.useToEncrypt", {"kmsKeyName": KEY}),
)  # fmt: skip


def planned_as_policies() -> list[PolicyGrant]:
    """Return the planned grants of the examples' stacks and those of a deployer."""
    roles = ("roles/aiplatform.user", "roles/container.admin", "roles/storage.admin", "roles/owner")
    return [
        *_of_examples(),
        *(PolicyGrant(DEPLOYER, role, f"projects/{project}") for project in (PROD, LAB) for role in roles),
    ]


@cache
def _of_examples() -> tuple[PolicyGrant, ...]:
    return tuple(grants_of(ROOT / "docs" / "reference" / "examples", PROJECTS))


@dataclass(frozen=True)
class Fault:
    """Grants that lack a permission for a step because of a fault."""

    name: str
    step: Step
    grants: Sequence[PolicyGrant]


def faults() -> Iterator[Fault]:
    for step in STEPS:
        grants = planned_as_policies()
        for kind in ("removed", "another role", "ended", "elsewhere", "permission dropped"):
            spoiled = grants
            while (guilty := _giver(step, spoiled)) is not None:
                changed = _spoiled(guilty, kind, step.permission)
                if changed is None:
                    break
                spoiled = [*(grant for grant in spoiled if grant is not guilty), *changed]
            else:
                yield Fault(f"{step.member} {step.permission} {kind}", step, spoiled)


def _spoiled(grant: PolicyGrant, kind: str, permission: str) -> list[PolicyGrant] | None:
    """Return the rest of a grant after a fault; None if the fault does not apply to it."""
    if kind == "removed":
        return []
    if kind == "another role":
        return [grant._replace(role="roles/iap.httpsResourceAccessor", permissions=None)]
    if kind == "ended":
        return [grant._replace(condition=PAST)]
    if kind == "elsewhere":
        return [grant._replace(resource="projects/example-elsewhere")]
    if grant.permissions is None:
        return None
    return [grant._replace(permissions=frozenset(grant.permissions) - {permission})]


def _giver(step: Step, grants: Sequence[PolicyGrant]) -> PolicyGrant | None:
    """Return a grant that gives a step's permission; None if no grant gives it."""
    rights = _rights(grants)
    for need in _needs(step):
        if need.permission == step.permission:
            who = _agent(step, need.agent) if need.agent else step.member
            grant = rights.grant_of(who, need.permission, need.resource)
            if grant is not None:
                return next(candidate for candidate in grants if candidate is grant)
    return None


def _rights(grants: Sequence[PolicyGrant]) -> Rights:
    return Rights(grants=grants, groups={}, project_of=lambda bucket: PROD if bucket == BUCKET else "")


def _needs(step: Step) -> list[Requirement]:
    service, path = step.path.partition("?")[0].split("/", 1)
    below = path.split("/", 1)[1].partition(":")[0]
    resource = resource_of(planned_cloud([]), service, below, PROD)
    return list(requirements(step.method, resource, step.body))


def _agent(step: Step, name: str) -> str:
    project = LAB if LAB in step.path else PROD
    emails = {
        "aiplatform": "service-{}@gcp-sa-aiplatform.iam.gserviceaccount.com",
        "container": "service-{}@container-engine-robot.iam.gserviceaccount.com",
        "cloudservices": "{}@cloudservices.gserviceaccount.com",
        "storage": "service-{}@gs-project-accounts.iam.gserviceaccount.com",
        "file": "service-{}@cloud-filer.iam.gserviceaccount.com",
    }
    return f"serviceAccount:{emails[name].format(Judge().project_number(project))}"


def planned_cloud(grants: Sequence[PolicyGrant]) -> LocalCloud:
    """Return a local cloud with these grants and the team's bucket."""
    return cloud_of(grants, PROJECTS, {BUCKET: PROD})


def answer(step: Step, grants: Sequence[PolicyGrant]) -> tuple[int, str]:
    """Return the code and the message of the local cloud's answer to a step."""
    service, path_and_query = step.path.split("/", 1)
    path, _, query = path_and_query.partition("?")
    pairs = [tuple(pair.split("=")) for pair in query.split("&") if pair]
    caller = Caller(step.member, step.quota_project)
    code, body = planned_cloud(grants).handle(service, step.verb, path, pairs, step.body, caller=caller)  # type: ignore[arg-type]
    return code, str(body.get("error", {}).get("message", ""))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step.path} {step.member} {step.permission}")
def test_every_step_is_allowed_without_a_fault(step: Step) -> None:
    code, message = answer(step, planned_as_policies())

    assert code != 403, message
    assert "does not know the permissions" not in message


def test_every_fault_is_predicted_and_refused_with_the_same_permission() -> None:
    planted = list(faults())
    wrong = []
    for fault in planted:
        told = [need.permission for _, need in lacking_for(fault)]
        code, message = answer(fault.step, fault.grants)
        # A grant that is gone may lack several: the local cloud names the first.
        if fault.step.permission not in told or code != 403 or told[0] not in message:
            wrong.append((fault.name, told, code, message))

    assert len(planted) >= 40
    assert wrong == []


UNPROMISED: Final = frozenset({ADMINS, METRICS, HUB})
"""Whose rights no section of a stack file promises, so that check cannot tell that they are missing."""


def promised(step: Step) -> bool:
    """Whether a stack file says that the step works: of Google's accounts, those of attachments of its own network."""
    attaches = step.method == CREATE_JOB and PROD in step.path
    return step.member not in UNPROMISED and (step.member != DEPLOYER or attaches)


def test_check_finds_every_fault_in_what_stack_files_promise() -> None:
    planted = [fault for fault in faults() if promised(fault.step)]
    silent = []
    for fault in planted:
        messages = [finding.message for finding in findings_with(fault.grants)]
        names = [need.permission for _, need in lacking_for(fault)]
        # A connection is promised as a whole: its promise names another permission of the same grant.
        if not any(name in message for name in [*names, "container.clusters.get"] for message in messages):
            silent.append((fault.name, messages))

    assert findings_with(planned_as_policies()) == []
    assert len(planted) >= 40
    assert silent == []


def findings_with(grants: Sequence[PolicyGrant]) -> list[Finding]:
    """Return the findings of check on rights if the stacks of the examples planned these grants."""
    workspace = read_workspace(ROOT / "docs" / "reference" / "examples")
    named = [grant._replace(principal=_by_project(grant.principal)) for grant in grants]
    for name in workspace.stacks:
        workspace.once(("grants", name), lambda: named)
    return [finding for finding in rights_findings(workspace) if finding.rule == RIGHTS.id]


def _by_project(principal: str) -> str:
    """Return a member with the id of a project in braces for its number, as plans name agents."""
    for project in PROJECTS:
        principal = principal.replace(Judge().project_number(project), f"{{{project}}}")
    return principal


def lacking_for(fault: Fault) -> Iterator[tuple[str, Requirement]]:
    step = fault.step
    return lacking(_rights(fault.grants), step.member, _needs(step), lambda name: _agent(step, name))


def test_a_grant_to_somebody_else_is_a_fault_too() -> None:
    step = STEPS[0]
    moved = [grant._replace(principal=grant.principal.replace("vision@", "nlp@")) for grant in planned_as_policies()]

    assert answer(step, moved)[0] == 403
