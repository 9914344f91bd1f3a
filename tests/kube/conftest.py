"""A real API server with what prod's cluster in us-central1 has for admission, and two teams' namespaces as planned."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import pytest
import yaml

from tests.examples.jobs.conftest import EXAMPLES
from tests.examples.jobs.job_files import GKE
from tests.kube.api_servers import ControlPlanes
from tests.kube.clusters import SCHEMAS
from tests.kube.controller_programs import run_controllers
from tests.kube.offline import Offline, admission_objects, namespace_objects
from tests.kube.server import Json, Server
from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack, planned_stacks
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import job_files
from training_platform.parts.jobs.render import render_job
from training_platform.resources.tenancy import namespace_labels
from training_platform.rules.documents.definitions import read_definitions

START_SECONDS = 30.0
# In the order in which the next needs them; team vision has flavors with GPUDirect there, and nlp only TPUs here.
NAMESPACES = {"prod-vision": "share-us-central1", "prod-nlp": "share-us-west4"}
CONTROLLERS = ("jobset-system:jobset-controller", "kueue-system:kueue-controller-manager")


@pytest.fixture(scope="session")
def plans() -> dict[str, PlannedStack]:
    workspace = read_workspace(ORGANISATION)
    planned = [workspace.stacks[name] for name in ("prod", *NAMESPACES)]
    return {stack.name: plan for stack, plan in planned_stacks(workspace, planned)}


@pytest.fixture(scope="session")
def jobset_crd() -> list[Json]:
    folder = SCHEMAS / "jobset"
    if not folder.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return read_definitions(folder)


@pytest.fixture(scope="session")
def server(
    plans: dict[str, PlannedStack], jobset_crd: list[Json], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("admission")
    binaries = Path(os.environ["KUBEBUILDER_ASSETS"])
    manager = {"controller_manager": binaries / "kube-controller-manager"}
    with ExitStack() as stack:
        api_server = stack.enter_context(ControlPlanes(binaries, folder, quotas=True)).server("prod-us-central1")
        stack.enter_context(run_controllers(api_server, manager, folder / "controllers", jobset_crd, {}))
        admission_server = Server(stack.enter_context(api_server.client()))
        for body in (*map(administrator, CONTROLLERS), *_planned(plans)):
            assert admission_server.ask(body["kind"], body, keep=True) == "", body["metadata"]
        _wait_for_policies(admission_server)
        for team_stack in NAMESPACES:
            admission_server.wait_for_quota(team_stack.removeprefix("prod-"), START_SECONDS)
        yield admission_server


@pytest.fixture(scope="session")
def offline(plans: dict[str, PlannedStack]) -> Offline:
    """The policies and roles that the server has, without a server."""
    return Offline(
        _planned(plans), [*CONTROLLERS, "kube-system:job-controller"], {"low": 100, "normal": 500, "high": 1000}
    )


def _planned(plans: dict[str, PlannedStack]) -> Iterator[Json]:
    for stack, parent in NAMESPACES.items():
        yield from namespace_objects(plans[stack], parent, stack.removeprefix("prod-"))
    labels = namespace_labels("confined", (), confined=True)
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "confined", "labels": labels}}
    about = {"name": "default", "namespace": "confined"}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}
    yield from admission_objects(plans["prod"], "us-central1")


def administrator(account: str) -> Json:
    """Return a binding by which a service account may do anything, so that only admission refuses anything."""
    namespace, name = account.split(":")
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def _wait_for_policies(server: Server) -> None:
    """Wait until the server evaluates the policies that it was just given, the last one as well."""
    plain: Json = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain", "namespace": "vision"},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }  # fmt: skip
    spoiled = {
        "nodeName": "some", "hostPID": True, "volumes": [{"name": "v", "nfs": {"server": "10.0.0.2", "path": "/"}}],
    }  # fmt: skip
    deadline = time.monotonic() + START_SECONDS
    for field, value in spoiled.items():
        pod = {**plain, "spec": {**plain["spec"], field: value}}
        while "ValidatingAdmissionPolicy" not in server.ask("Pod", pod):
            assert time.monotonic() < deadline, f"a pod with {field} is still let in"
            time.sleep(0.2)


def example_file(example: str, team: str) -> str:
    """Return where an example's job file is once its team has copied it."""
    return f"jobs/{team}/{example.replace('_', '-')}.yaml"


JOBS_ON_GKE = [
    *(path.relative_to(ORGANISATION).as_posix() for path in job_files(ORGANISATION)),
    *(example_file(example, team) for example, team in GKE.items()),
]


@pytest.fixture(scope="session")
def organisation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tests' organisation, with every example for GKE among the jobs of its team."""
    root = tmp_path_factory.mktemp("organisation")
    for name in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / name, root / name)
    shutil.copy(ORGANISATION / "Pulumi.yaml", root)
    for example, team in GKE.items():
        shutil.copy(EXAMPLES / example / "job.yaml", root / example_file(example, team))
    return root


@pytest.fixture(scope="session")
def rendered(organisation: Path) -> Callable[[str], Json]:
    """Return a function that renders a job of the samples, or an example, for GKE."""

    def render(file: str) -> Json:
        rendered_job = render_job(organisation / file, organisation, "gke", date(2026, 11, 21))
        loaded: Json = yaml.safe_load(rendered_job.text)
        return loaded

    return render
