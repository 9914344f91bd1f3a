"""Days of a researcher and an admin: the commands of the pages, with the person's token and a quota project.

The local cloud refuses what the planned grants do not allow. What it does not serve, such as a registry's protocol, is
judged by the same grants. The deployer's day is `tests/engine/test_samples.py`, which needs the engine.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from local_google_cloud import local_cloud
from local_google_cloud.http.server import serve
from local_google_cloud.services import projects
from local_google_cloud.state.authorization import Caller, authorize
from local_google_cloud.state.cloud import Cloud
from local_google_cloud.state.questions import Access
from tests.kube.offline import Offline, namespace_objects, refused_requests
from tests.local_google_cloud.policies import cloud_of, planned_grants
from tests.parts.jobs.runs.api_stub import ApiStub, served, write_kubeconfig
from tests.support.lab import ENVIRONMENT, QUOTAS, TODAY, VISION, write_lab
from tests.support.plans import planned_stacks
from training_platform.catalog.operations import principals
from training_platform.catalog.permissions import permissions
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.quota.snapshot import read_snapshots
from training_platform.resources.rights import Rights, lacking, requirements

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")

LAB = "example-lab"
OWN = "example-vision"
IN_CLUSTER = {"Impersonate-User": "ada@example.com", "Impersonate-Group": "vision@example.com"}
RESEARCHER = "group:vision@example.com"
SUBMITTER = "serviceAccount:submit@example-ci.iam.gserviceaccount.com"
ADMIN = "group:ml-platform@example.com"
ADMINS = f"    project: {LAB}\n    admins: [{ADMIN}]\n    images: {{location: us-central1}}\n"
SUBMITS = f"    project: {OWN}\n    vertex:\n      members_submit: true\n"
ON_GKE = """\
environment: lab
source: {file: train.py, image: "registry.example.com/train:1"}
output: checkpoints
gke: {cluster: gpus, flavor: h100, nodes: 2}
"""
ON_VERTEX = """\
environment: lab
source: {file: train.py}
output: checkpoints
vertex: {region: us-central1, machine_type: n1-standard-16}
"""
PODS = "/api/v1/namespaces/vision/pods"
# In place of programs that commands start with the person's rights: each says how it was called.
PROGRAMS = {
    "kubectl": '#!/bin/sh\necho "$@" >> "$CALLED"\ncase "$*" in *nvidia-smi*) echo "0, 97, 61440, 81559" ;; esac\n',
    "docker": '#!/bin/sh\necho "$@" >> "$CALLED"\ncase "$1" in inspect) printf "train@sha256:%064d" 0 ;; esac\n',
}
QUEUES = "/apis/kueue.x-k8s.io/v1beta2/namespaces/vision"
NOT_SERVED = {
    "artifactregistry.images.pull": "projects/example-lab/locations/us-central1/repositories/lab-images",
    "artifactregistry.images.push": "projects/example-lab/locations/us-central1/repositories/lab-vision-images",
    "gke.endpoint.connect": "projects/example-lab/locations/us-central1/clusters/lab-gpus",
}
"""Calls of a day that are no requests to the local cloud, each with the resource that it concerns."""


class Office:
    """The repository, a local cloud with the policies of its stacks, and an API server that answers from a table."""

    def __init__(self, root: Path, api: ApiStub, kubeconfig: Path) -> None:
        self.root = root
        self.api = api
        self.kubeconfig = kubeconfig
        workspace = read_workspace(root)
        ((_, vision),) = planned_stacks(workspace, [workspace.stacks["lab-vision"]])
        self.namespace = Offline(namespace_objects(vision, "share-gpus", "vision"), [], {})
        self.grants = list(planned_grants(workspace, (LAB, OWN)))
        buckets = {f"{home}-lab-vision-{key}": home for home in (LAB, OWN) for key in ("checkpoints", "far")}
        self.cloud = cloud_of(self.grants, (LAB, OWN), buckets, read_snapshots(root, TODAY).by_project)
        self.called: set[str] = set()
        self.port = 0

    def authorized(self, cloud: Cloud, caller: Caller | None, access: Access) -> None:
        """Record a person's call, and let IAM decide; anybody may test their own permissions."""
        if caller and not access.method.endswith(".testIamPermissions"):
            self.called.add(access.method)
        authorize(cloud, caller, access)

    def runs(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> Result:
        """Run a command against the local cloud; none of its requests may be refused."""
        where = ["--root", str(self.root), "--local-cloud", f"http://127.0.0.1:{self.port}"]
        if arguments[0] == "image":
            where = where[:2]
        if arguments[:2] == ("trace", "pull") or (arguments[0] == "job" and arguments[1] != "usage"):
            where += ["--kubeconfig", str(self.kubeconfig)]
        if arguments[:2] == ("quota", "pull"):
            where[2:] = ["--endpoint", f"http://127.0.0.1:{self.port}/cloudquotas/"]
        result = CliRunner().invoke(app, [*arguments, *where])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code in codes, result.output
        assert "denies access" not in result.output
        assert "denied" not in result.output
        return result

    def may(self, member: str, method: str) -> bool:
        """Whether a member may make a call that the local cloud does not serve."""
        rights = Rights(grants=self.grants, groups={}, project_of=lambda _: LAB)
        return not list(lacking(rights, member, list(requirements(method, NOT_SERVED[method], {})), lambda _: ""))


@pytest.fixture
def office(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    vision = re.sub(r"      tpus:\n(        .*\n)+", "", VISION)  # whose cluster no kubeconfig here has
    vision = vision.replace("    vertex:\n", SUBMITS) if getattr(request, "param", "") == "own" else vision
    root = write_lab(tmp_path / "lab", lab=ENVIRONMENT.replace(f"    project: {LAB}\n", ADMINS), lab_vision=vision)
    (root / "train.py").write_text("print()\n")
    (root / "stacks" / "quotas" / f"{OWN}.yaml").write_text(QUOTAS.replace(LAB, OWN))
    (root / "jobs" / "vision" / "first.yaml").write_text(ON_GKE)
    (root / "jobs" / "vision" / "second.yaml").write_text(ON_VERTEX)
    stub = ApiStub()
    with served(stub) as address:
        office = Office(root, stub, write_kubeconfig(tmp_path / "config", address, "lab-gpus"))
        for module in (local_cloud, projects):
            monkeypatch.setattr(module, "authorize", office.authorized)
        with serve(office.cloud) as office.port:
            yield office


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put stand-ins of programs on PATH, and return the file that records their calls."""
    file = tmp_path / "called"
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLED", str(file))
    return file


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function that runs further commands as a member whose credentials have a quota project."""

    def become(member: str, project: str) -> None:
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", f"as:{member}")
        monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", project)

    return become


def queued(office: Office) -> None:
    """Give the cluster the team's queue and the submitted runs."""
    queue = {"metadata": {"name": "vision"}, "status": {"conditions": [{"type": "Active", "status": "True"}]}}
    sets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/vision/jobsets"
    office.api.lists = {f"{QUEUES}/localqueues": [queue], f"{QUEUES}/workloads": [], sets: office.api.created}
    office.api.lists[PODS] = []
    office.api.lists["/api/v1/namespaces/vision/events"] = []
    office.api.lists["/apis/autoscaling.x-k8s.io/v1/namespaces/vision/provisioningrequests"] = []


def asks(office: Office, verb: str, path: str, body: Any = None) -> None:
    """Send a request that a researcher's other programs send."""
    service, _, service_path = path.partition("/")
    code, answer = office.cloud.handle(service, verb, service_path, [], body, caller=Caller(RESEARCHER, LAB))
    assert code != 403, answer


def running(office: Office) -> None:
    """Give the first submitted run a pod."""
    (submitted,) = office.api.created
    (part,) = submitted["spec"]["replicatedJobs"]
    spec = part["template"]["spec"]["template"]["spec"]
    office.api.lists[PODS] = [{"metadata": {"name": "pod-0"}, "spec": spec, "status": {"phase": "Running"}}]


def unwritten(office: Office, principal: str) -> set[str]:
    """Return the day's calls that need a permission but are no operations of the principal in operations.yaml."""
    methods = permissions().methods
    return {method for method in office.called - principals()[principal].methods if methods.get(method, ("?",))}


def test_a_researchers_day_on_gke(office: Office, person: Callable[[str, str], None], called: Path) -> None:
    person(RESEARCHER, LAB)
    queued(office)
    (office.root / "Dockerfile").write_text("FROM scratch\n")
    image = ("image", "build", str(office.root), "--environment", "lab", "--team", "vision")
    built = office.runs(*image, "--name", "train", "--tag", "1", "--with", "docker").stdout
    office.runs("job", "debug", str(office.root / "jobs" / "vision" / "first.yaml"))
    office.api.created.clear()
    run = office.runs("job", "submit", str(office.root / "jobs" / "vision" / "first.yaml")).stdout.strip()
    office.api.created[0]["metadata"] |= {"uid": "1", "creationTimestamp": "2026-11-22T10:00:00Z"}

    listed = office.runs("job", "list", "--team", "vision")
    office.runs("job", "why", run)
    office.runs("job", "wait", run, "--timeout", "0.1", codes=(3,))
    running(office)
    office.runs("job", "exec", run, "hostname")
    office.runs("job", "port-forward", run, "6006")
    busy = office.runs("job", "top", run, "--format", "json")
    office.runs("trace", "pull", "--team", "vision")
    office.runs("job", "cancel", run)
    office.api.created.clear()
    office.api.lists[PODS] = []
    office.runs("job", "logs", run, codes=(0, 2))  # of a run that is gone: Cloud Logging knows none
    bucket = f"{LAB}-lab-vision-checkpoints"
    asks(office, "GET", f"storage/v1/b/{bucket}/o")
    asks(office, "GET", f"storage/v1/b/{bucket}/o/{run}")
    secret = f"secretmanager/v1/projects/{LAB}/secrets/lab-vision-token"
    asks(office, "POST", f"{secret}:addVersion", {"payload": {"data": "eA=="}})

    assert "us-central1-docker.pkg.dev/example-lab/lab-vision-images/train@sha256:" in built
    subcommands = [line.split()[6] for line in called.read_text().splitlines() if line.startswith("--kubeconfig")]
    assert subcommands == ["exec", "port-forward", "exec"]
    assert json.loads(busy.stdout)[0]["busy_percent"] == "97"
    inside = [f"POST {PODS}/pod-0/{part}" for part in ("exec", "portforward")]  # what kubectl sends
    assert refused_requests(office.namespace, [*office.api.requests, *inside], IN_CLUSTER) == []
    assert run in listed.stdout
    assert "Runs on Vertex AI are not listed" not in listed.stderr
    assert {
        "storage.objects.insert", "storage.objects.get", "storage.objects.list", "logging.entries.list",
        "secretmanager.projects.secrets.addVersion",
    } <= office.called  # fmt: skip
    assert [method for method in NOT_SERVED if not office.may(RESEARCHER, method)] == []
    assert unwritten(office, "members") == set()


def test_a_refused_submission_to_vertex_ai_says_who_may_submit(
    office: Office, person: Callable[[str, str], None]
) -> None:
    person(RESEARCHER, LAB)
    where = ["--root", str(office.root), "--local-cloud", f"http://127.0.0.1:{office.port}"]

    refused = CliRunner().invoke(app, ["job", "submit", str(office.root / "jobs" / "vision" / "second.yaml"), *where])

    assert refused.exit_code == 2
    *_, error = refused.stderr.splitlines()
    assert "Members of vision may not start jobs on Vertex AI in example-lab" in error
    assert "serviceAccount:submit@example-ci.iam.gserviceaccount.com submits job files from main" in error


def test_a_submitters_day_and_what_members_see_of_it(office: Office, person: Callable[[str, str], None]) -> None:
    views = f"v2/projects/{LAB}/locations/global/buckets/_Default/views"
    lines = {"filter": 'resource.type="ml_job"'}
    assert office.cloud.handle("logging", "POST", views, [("viewId", "lab-vertex-jobs")], lines)[0] == 200
    person(SUBMITTER, "")  # the credentials of a pipeline have no quota project
    run = office.runs("job", "submit", str(office.root / "jobs" / "vision" / "second.yaml")).stdout.strip()
    office.runs("job", "logs", run)
    assert {"aiplatform.projects.locations.customJobs.create", "logging.entries.list"} <= office.called
    assert unwritten(office, "submitters") == set()

    person(RESEARCHER, LAB)
    listed = office.runs(
        "job", "list", "--team", "vision", "--format", "json", codes=(2,)
    )  # no cluster has answers here
    status = office.runs("job", "status", run, "--format", "json")

    assert run in [row["name"] for row in json.loads(listed.stdout)]
    assert json.loads(status.stdout)[0]["name"] == run
    where = ["--root", str(office.root), "--local-cloud", f"http://127.0.0.1:{office.port}"]
    refused = CliRunner().invoke(app, ["job", "logs", run, *where])
    assert refused.exit_code == 2
    assert "Cloud Logging denies access in" in refused.stderr


@pytest.mark.parametrize("office", ["own"], indirect=True)
def test_a_researchers_day_on_vertex_ai_in_a_project_of_the_team(
    office: Office, person: Callable[[str, str], None]
) -> None:
    person(RESEARCHER, OWN)
    run = office.runs("job", "submit", str(office.root / "jobs" / "vision" / "second.yaml")).stdout.strip()

    listed = office.runs("job", "list", "--team", "vision", "--format", "json", codes=(0, 2))
    office.runs("job", "status", run)
    office.runs("job", "why", run)
    office.runs("job", "cancel", run)

    assert [row["name"] for row in json.loads(listed.stdout)] == [run]
    assert "aiplatform.projects.locations.customJobs.create" in office.called
    assert unwritten(office, "members") == set()


def test_an_admins_day(office: Office, person: Callable[[str, str], None]) -> None:
    machine = {"machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1}
    body = {"resourcePools": [{"machineSpec": machine, "replicaCount": "1"}]}
    place = f"v1/projects/{LAB}/locations/us-central1/persistentResources"
    query = [("persistentResourceId", "lab-vision-tuning")]
    assert office.cloud.handle("aiplatform", "POST", place, query, body)[0] == 200
    person(ADMIN, LAB)

    usage = office.runs("job", "usage", "--environment", "lab", codes=(2,))
    assert "query is not implemented by the local cloud" in usage.output  # which asks IAM before it says so
    office.runs("quota", "pull", LAB, codes=(0, 1))
    office.runs("persistent-resource", "list", "lab-vision", codes=(0, 1))
    office.runs("persistent-resource", "reboot", "lab-vision", "tuning")
    office.runs("adopt", LAB, "--stack", "lab", "--dry-run", codes=(0, 1))
    stages = [f"--stage={name}" for name in ("project", "pools", "storage", "tenancy")]  # others also try to write
    verified = office.runs("verify", "lab", "--yes", *stages, codes=(1,))
    office.runs("verify", "lab", "--facts", codes=(0, 1, 2))

    assert "aiplatform.projects.locations.persistentResources.reboot" in office.called
    assert "cloudquotas.projects.locations.services.quotaInfos.list" in office.called
    assert re.search(r"project-rights +proven", verified.output)
    assert re.search(r"tenancy-grants +proven", verified.output)
    assert "cluster gpus-cluster does not exist" in verified.output
    assert office.may(ADMIN, "gke.endpoint.connect")
    assert unwritten(office, "admins") == set()
