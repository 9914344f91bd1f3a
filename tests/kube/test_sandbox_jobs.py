"""Jobs in the sandbox as a person types them: real controllers, and nodes from the pools of its local cloud."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from local_google_cloud.api import Record, Store
from tests.kube.api_servers import ApiServer
from tests.kube.clusters import SCHEMAS, needed_binaries
from tests.kube.queues import until
from tests.kube.sandboxes import CLUSTER, FILES, api_folder, serving_with_api_servers
from tests.local_google_cloud.kubernetes import client as plugin
from tests.parts.sandbox.run.repositories import without_stacks
from tests.support.plans import planned_stacks
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.parts.sandbox.run.folder import SandboxFolder
from training_platform.resources.stack_resource import UNKNOWN

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

CONTEXT = "gke_example-lab_us-central1-a_lab-gpus"
# As the local cloud has the pool once it is up.
POOL: dict[str, Any] = {
    "status": "RUNNING", "locations": ["us-central1-a"], "autoscaling": {"enabled": True, "minNodeCount": 2},
    "config": {
        "machineType": "g2-standard-8",
        "labels": {"training-platform/flavor": "l4"},
        "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
    },
}  # fmt: skip
RELEASE = "kubernetes:helm.sh/v3:Release"
KINDS = (  # in an order in which each has what it needs
    RELEASE, "ResourceFlavor", "WorkloadPriorityClass", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding", "Namespace", "ServiceAccount", "LimitRange", "ClusterQueue", "LocalQueue",
)  # fmt: skip


@dataclass
class Sandbox:
    """A repository with a job, whose environment and team are up in its sandbox."""

    root: Path
    cloud: int
    provider: plugin.Client

    @property
    def kubeconfig(self) -> Path:
        return api_folder(SandboxFolder(self.root, self.root / ".sandbox")) / "kubeconfig"

    def job(self, command: str, *arguments: str) -> str:
        """Run ``training-platform job``, and return its output."""
        where = ("--root", str(self.root), "--kubeconfig", str(self.kubeconfig))
        cloud = ("--local-cloud", f"http://127.0.0.1:{self.cloud}")
        result = CliRunner().invoke(app, ["job", command, *arguments, *where, *cloud])
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    def states(self) -> dict[str, str]:
        """Return the state of each run of the team."""
        rows = json.loads(self.job("list", "--team", "vision", "--format", "json"))
        return {row["name"]: row["state"] for row in rows}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    needed_binaries(("kueue", "jobset", "controller_manager", "scheduler"))
    if not SCHEMAS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    root = tmp_path_factory.mktemp("jobs") / "repository"
    folder = without_stacks(root).folder
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    folder.prepare()
    cloud = Store(folder.cloud)
    cloud.put(Record(name=f"container/{CLUSTER}/nodePools/l4", project="example-lab", body=POOL))
    cloud.flush()
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(plugin, "WAIT_SECONDS", 120)
        servers = stack.enter_context(serving_with_api_servers(folder, read_workspace(root), [SCHEMAS]))
        provider = stack.enter_context(plugin.connect(servers.kubernetes))
        provider.configure(clusterIdentifier=CLUSTER)
        deploy(root, provider)
        yield Sandbox(root, servers.cloud, provider)
    assert [command for command in commands() if str(folder.path) in command] == []


def deploy(root: Path, provider: plugin.Client) -> None:
    """Put what both stacks have in the cluster there, as the engine does."""
    workspace = read_workspace(root)
    plans = [plan for _, plan in planned_stacks(workspace, list(workspace.stacks.values()))]
    for kind in KINDS:
        for resource in (
            planned
            for plan in plans
            for planned in plan.resources
            if kind in (planned.type, planned.inputs.get("kind"))
        ):
            inputs, _ = provider.check(resource.type, resource.name, known(resource.inputs))
            provider.create(resource.type, resource.name, inputs)


def known(value: Any) -> Any:
    """Return inputs with the values that a deployment fills in: the team's namespace and its account."""
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [known(item) for item in value]
    return "vision" if value is UNKNOWN else value


def commands() -> Iterator[str]:
    """Yield the command line of every process."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_text()
        except OSError:  # it has just ended
            continue


@pytest.fixture
def ask(sandbox: Sandbox) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Return a function that reads a path of the cluster's API, by the kubeconfig that people are given."""
    config = json.loads(sandbox.kubeconfig.read_text())
    (cluster,) = config["clusters"]
    (user,) = config["users"]
    place = cluster["cluster"]
    server = ApiServer(place["server"], user["user"]["token"], Path(place["certificate-authority"]))
    with server.client() as client:
        yield lambda path: dict(client.get(path).raise_for_status().json())


def test_two_jobs_exceed_a_queue_and_the_second_starts_when_the_first_is_cancelled(
    sandbox: Sandbox, ask: Callable[[str], dict[str, Any]]
) -> None:
    nodes = until(
        lambda: {node["metadata"]["name"] for node in ask("/api/v1/nodes")["items"]}, lambda names: len(names) == 2
    )
    first = sandbox.job("submit", str(sandbox.root / "jobs/vision/train.yaml"))
    until(sandbox.states, lambda states: states == {first: "starting"})
    second = sandbox.job("submit", str(sandbox.root / "jobs/vision/train.yaml"))
    until(sandbox.states, lambda states: states == {first: "starting", second: "waiting"})

    reason = until(lambda: sandbox.job("why", second), lambda text: "Team vision holds 2 of its 2" in text)

    assert reason.startswith(f"{second} waits for quota in queue vision of gpus.")
    assert "more needed" in reason
    assert f"Runs of the team that use this quota: {first}" in reason
    until(lambda: placed(ask), lambda used_nodes: used_nodes == nodes)

    sandbox.job("cancel", first)

    until(sandbox.states, lambda states: states == {second: "starting"})
    sandbox.job("cancel", second)
    until(lambda: ask("/api/v1/namespaces/vision/pods")["items"], lambda pods: not pods)


def placed(ask: Callable[[str], dict[str, Any]]) -> set[str]:
    """Return the nodes that the team's pods were put on."""
    return {pod["spec"].get("nodeName", "") for pod in ask("/api/v1/namespaces/vision/pods")["items"]}


def test_the_context_is_called_as_gcloud_calls_it(sandbox: Sandbox) -> None:
    assert json.loads(sandbox.kubeconfig.read_text())["current-context"] == CONTEXT


def test_a_team_ends_with_its_running_jobs(sandbox: Sandbox, ask: Callable[[str], dict[str, Any]]) -> None:
    """Last of all: the namespace waits for pods, pods for their jobs, and the policies for how jobs are deleted."""
    sandbox.job("submit", str(sandbox.root / "jobs/vision/train.yaml"))
    until(lambda: placed(ask), lambda used_nodes: len(used_nodes) == 2)

    sandbox.provider.delete("kubernetes:core/v1:Namespace", "vision", "vision")

    namespaces = {namespace["metadata"]["name"] for namespace in ask("/api/v1/namespaces")["items"]}
    assert "vision" not in namespaces
