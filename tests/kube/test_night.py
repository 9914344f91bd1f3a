"""A night on a real API server: what breaks, what members and the person on call see of it, and how it ends.

Two VMs run a job of team vision, and a second one waits. In each test something breaks for real (no clock is moved),
and at its end the first job has its pods, the second waits for it, and a third can be submitted. Programs are started
again, and certificates renewed, as a kubelet and Kueue's own rotation do it on GKE. Nodes are objects, whose pods run
as soon as they have one. Alerts are played by promtool over what the controllers said when they were broken, as if it
stayed so; series of programs that do not run here, such as GKE's system metrics, are none.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from tests.alerts.promtool import Scenario, play, program
from tests.kube.api_servers import ApiServer, ControlPlanes
from tests.kube.clusters import KINDS, folder_of, needed_binaries
from tests.kube.controller_programs import (
    PROGRAMS,
    Host,
    Launch,
    launch_kueue,
    run_controllers,
)
from tests.kube.heads import Heads
from tests.kube.jobs_on_nodes import node
from tests.kube.metrics_api import SAMPLE
from tests.kube.queues import Json, planned, until
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.resources.kueue import configuration
from training_platform.resources.monitoring import alert_rules
from training_platform.rules.documents.definitions import read_definitions

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

CLUSTER = "projects/example-lab/locations/us-central1-a/clusters/lab-gpus"
ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    clusters:
      gpus:
        location: us-central1-a
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        node_pools:
          l4: {machine_type: g2-standard-8, min_nodes: 2, max_nodes: 4}
"""
TEAM = """\
config:
  training-platform:team:
    environment: lab
    name: vision
    members: ["group:vision@example.com"]
    shares:
      gpus:
        l4: {nominal_quota: 2}
"""
JOB = """\
environment: lab
image: registry.example.com/train:1
command: [python, -m, train]
gke: {cluster: gpus, flavor: l4, nodes: 2}
"""
FILES = {"stacks/Pulumi.lab.yaml": ENVIRONMENT, "stacks/Pulumi.lab-vision.yaml": TEAM, "jobs/vision/train.yaml": JOB}
KUBERNETES = ("controller_manager", "scheduler")
JOBSET = ("jobset",)
KUEUES = ("kueue-a", "kueue-b")
UNITS: Mapping[str, tuple[str, ...]] = {"kubernetes": KUBERNETES, "jobset": JOBSET, **dict.fromkeys(KUEUES, ("kueue",))}
RUNS = "train-runs"
WAITS = "train-waits"


def elected(host: Host, settings: Any) -> Launch:
    """Start Kueue as in a cluster: one of two replicas leads."""
    launch = launch_kueue(host, settings)
    election = {**settings["leaderElection"], "resourceNamespace": "kueue-system"}
    return launch._replace(settings={**launch.settings, "leaderElection": election})


class Night:
    """The cluster, and what runs in it: programs that a test ends and starts again."""

    def __init__(self, root: Path, server: ApiServer, binaries: Mapping[str, Path], queues: Heads) -> None:
        self.root = root
        self.server = server
        self.queues = queues
        self._binaries = binaries
        self._running: dict[str, ExitStack] = {}
        self._metrics: dict[str, str] = {}
        self._starts = 0

    def start(self, *units: str) -> None:
        """Start programs; the webhooks of a controller's last replica are registered."""
        for unit in units:
            self._starts += 1
            programs = {name: self._binaries[name] for name in UNITS[unit]}
            stack = self._running[unit] = ExitStack()
            folder = self.root / "programs" / f"{self._starts}-{unit}"
            settings = configuration(["on-demand"])
            self._metrics[unit] = stack.enter_context(run_controllers(self.server, programs, folder, [], settings))

    def kill(self, *units: str) -> None:
        """End programs without a warning."""
        for unit in units:
            for name in UNITS[unit]:
                for process in processes(self._binaries[name], self.folder(unit)):
                    os.kill(process, signal.SIGKILL)
            if unit in self._running:
                self._running.pop(unit).close()

    def close(self) -> None:
        """End what runs."""
        for stack in self._running.values():
            stack.close()

    def folder(self, unit: str) -> Path:
        """Return the folder of a unit's last start."""
        return max(self.root.glob(f"programs/*-{unit}"), key=lambda path: int(path.name.partition("-")[0]))

    def add_nodes(self) -> None:
        """Add the VMs of the job's pool."""
        flavor = read_workspace(self.root).flavors("lab", "gpus")["l4"]
        for index in range(2):
            node(self.queues, flavor, index, "l4-0")

    def tend(self) -> None:
        """Start again what has ended by itself, as a kubelet does."""
        for unit in UNITS:
            if not self.alive(unit):
                self.kill(unit)
                self.start(unit)

    def alive(self, unit: str) -> bool:
        return any(processes(self._binaries[name], self.folder(unit)) for name in UNITS[unit])

    def job(self, command: str, *arguments: str) -> str:
        """Return what ``training-platform job`` says."""
        kubeconfig = self.root / "api-servers" / "kubeconfig"
        where = ("--root", str(self.root), "--kubeconfig", str(kubeconfig), "--local-cloud", "http://127.0.0.1:1")
        team = () if command == "submit" else ("--team", "vision")
        result = CliRunner().invoke(app, ["job", command, *arguments, *team, *where])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.output.strip()

    def submit(self, run: str) -> str:
        """Submit a run, and return the output that a member sees."""
        return self.job("submit", str(self.root / "jobs/vision/train.yaml"), "--run", run)

    def pods(self, run: str) -> set[str]:
        """Return the pods of a run that run."""
        self.queues.reap("vision")
        return {str(pod["metadata"]["uid"]) for pod in self.queues.pods(run) if pod["spec"].get("nodeName")}

    def restarts(self, run: str) -> int:
        job_set = self.queues.get(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/vision/jobsets/{run}")
        return int(job_set["status"].get("restarts", 0))

    def rings(self, minutes: int = 90) -> set[str]:
        """Return the alerts that would be open if it stayed for so long as controllers say now."""
        series: dict[str, float] = {f'up{{cluster="prod-us-west4",job="{job}"}}': 2 for job in ("kueue", "jobset")}
        for unit in (*KUEUES, "jobset"):
            job = unit.partition("-")[0]
            target = f'cluster="prod-us-central1",job="{job}",instance="{unit}:metrics"'
            series[f"up{{{target}}}"] = int(self.alive(unit))
            for name, labels, value in self._scraped(unit):
                series[f"{name}{{{target},{labels}}}"] = value
        pods = self.queues.get("/api/v1/pods")["items"] if self.answers() else []
        for pod in pods:
            reasons = {row.get("reason") for row in pod["status"].get("conditions", ())}
            labels = f'cluster="prod-us-central1",namespace="vision",pod="{pod["metadata"]["name"]}"'
            series[f"kube_pod_status_unschedulable{{{labels}}}"] = int("Unschedulable" in reasons)
        values = {key: f"{value:f}+0x{minutes}" for key, value in series.items()}
        told = Scenario("night", values, {f"{minutes}m": []})
        needs = ("kueue", "jobset-controller", "pod")
        rules = {name: rule for name, rule in alert_rules().items() if rule.needs in needs}
        return {name for name, rule in rules.items() if play(name, rule, [told])}

    def _scraped(self, unit: str) -> Iterator[tuple[str, str, float]]:
        if not unit.startswith("kueue") or not self.alive(unit):
            return
        for line in self.server.http.get(self._metrics[unit]).raise_for_status().text.splitlines():
            if (sample := SAMPLE.match(line)) and isfinite(value := float(line.rpartition(" ")[2])):
                yield sample[1], sample[2], value

    def answers(self) -> bool:
        """Whether the API server is ready."""
        try:
            return self.server.http.get("/readyz").is_success
        except httpx.TransportError:
            return False


def processes(binary: Path, folder: Path) -> list[int]:
    """Return the processes of a program whose command line names a file in a folder."""
    process_ids = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = file.read_text().split("\0")
        except OSError:  # it has just ended
            continue
        if command[0] == str(binary) and any(f"{folder}/" in word for word in command):
            process_ids.append(int(file.parent.name))
    return process_ids


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    if program() is None:
        pytest.skip("no promtool is named")
    binaries = needed_binaries(("kueue", "controller_manager", "scheduler", "jobset"))
    root = tmp_path_factory.mktemp("night")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "Pulumi.yaml").write_text("name: training-platform\nruntime: python\nstackConfigDir: stacks\n")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setitem(PROGRAMS, "kueue", PROGRAMS["kueue"]._replace(launch=elected))
        planes = stack.enter_context(ControlPlanes(Path(os.environ["KUBEBUILDER_ASSETS"]), root / "api-servers"))
        server = planes.server(CLUSTER)
        server.define([definition for kind in KINDS for definition in read_definitions(folder_of(kind))])
        server.ensure_namespace("kueue-system")
        cluster = Night(root, server, binaries, Heads(stack.enter_context(server.client())))
        stack.callback(cluster.close)
        cluster.start(*UNITS)
        cluster.queues.deploy_all(planned(read_workspace(root), "lab", "gpus"))
        cluster.add_nodes()
        cluster.queues.node("system", {}, "example.com/none", 1)
        cluster.submit(RUNS)
        until(lambda: cluster.pods(RUNS), lambda pods: len(pods) == 2)
        cluster.submit(WAITS)
        yield cluster


@pytest.fixture(autouse=True)
def as_before(night: Night) -> Iterator[None]:
    """The cluster is well after each test: one job runs, one waits, and a third can be submitted."""
    yield
    night.tend()
    third = "train-third"
    until(lambda: night.pods(RUNS), lambda pods: len(pods) == 2)
    until(lambda: night.submit(third), lambda output: output.endswith(third))
    for run in (WAITS, third):
        until(lambda run=run: night.job("why", run), lambda output: "waits for quota in queue vision" in output)  # type: ignore[misc]
    night.job("cancel", third)
    until(lambda: night.job("status", third), lambda output: "does not exist" in output)


@contextmanager
def untouched(night: Night) -> Iterator[None]:
    """Check that the job that runs keeps its pods."""
    before = night.pods(RUNS), night.restarts(RUNS)
    yield
    assert (night.pods(RUNS), night.restarts(RUNS)) == before


def plain_job(name: str, namespace: str) -> tuple[str, Json]:
    """Return a Job without a queue, of software that is not a team's, and where it is created."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "registry.example.com/a:1"}]}
    body = {"metadata": {"name": name}, "spec": {"template": {"spec": pod}}}
    return f"/apis/batch/v1/namespaces/{namespace}/jobs", body


def pods_in(night: Night, namespace: str) -> list[Json]:
    pods = night.queues.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def test_nothing_rings_while_a_job_runs_and_another_waits(night: Night) -> None:
    """Kueue counts the use of a job some seconds after its pods have started."""
    assert until(night.rings, lambda rings: not rings) == set()


def test_kueue_is_killed_in_both_replicas(night: Night) -> None:
    with untouched(night):
        night.kill(*KUEUES)

        output = night.submit("train-refused")
        assert "failed calling webhook" in output
        assert "train-refused" not in night.job("list")
        assert "waits for quota" in night.job("why", WAITS)
        assert night.rings() == {"KueueControllerDown", "KueueReplicaDown"}
        for namespace in ("default", "kube-system"):
            night.queues.create(*plain_job("of-others", namespace))
            until(lambda namespace=namespace: pods_in(night, namespace), bool)  # type: ignore[misc]

        night.start(*KUEUES)


def test_jobset_is_killed(night: Night) -> None:
    with untouched(night):
        night.kill("jobset")

        assert "failed calling webhook" in night.submit("train-refused")
        assert night.rings() == {"JobSetControllerDown"}

        night.start("jobset")


def test_kubernetes_own_controllers_and_scheduler_are_killed(night: Night) -> None:
    """Google runs them on GKE, and no alert of ours sees them: jobs are taken, and their pods come late."""
    with untouched(night):
        night.kill("kubernetes")

        assert night.submit("train-late").endswith("\ntrain-late")
        until(lambda: night.job("why", "train-late"), lambda output: "waits for quota" in output)
        assert night.rings() == set()

        night.start("kubernetes")
    night.job("cancel", "train-late")


def test_everything_is_away_and_all_nodes_are_drained(night: Night) -> None:
    """Nothing waits for another in a circle: the pods of Kueue and JobSet start before their webhooks answer."""
    systems = {"kueue-system": "kueue-controller-manager", "jobset-system": "jobset-controller", "kube-system": "dns"}
    for namespace, name in systems.items():
        night.server.ensure_namespace(namespace)
        night.server.apply(*deployment(name, namespace))
        until(lambda namespace=namespace: pods_in(night, namespace), lambda pods: len(pods) >= 2)  # type: ignore[misc]
    night.kill(*UNITS)
    cordon(night, unschedulable=True)
    for pod in night.queues.get("/api/v1/pods")["items"]:
        drain(night, pod)
    assert not any(pods_in(night, namespace) for namespace in ("vision", *systems))

    night.start("kubernetes")
    for namespace in systems:
        until(lambda namespace=namespace: pods_in(night, namespace), lambda pods: len(pods) >= 2)  # type: ignore[misc]
    assert "failed calling webhook" in night.submit("train-refused")
    assert pods_in(night, "vision") == []

    night.start("jobset", *KUEUES)
    cordon(night, unschedulable=False)
    # Kubernetes' controller of Jobs tries again after a minute at most.
    until(lambda: night.pods(RUNS), lambda pods: len(pods) == 2, seconds=150)


def cordon(night: Night, *, unschedulable: bool) -> None:
    for vm in night.queues.nodes():
        night.queues.change(f"/api/v1/nodes/{vm['metadata']['name']}", {"spec": {"unschedulable": unschedulable}})


def drain(night: Night, pod: Json) -> None:
    """Evict a pod, and end it as its kubelet does."""
    about = {key: pod["metadata"][key] for key in ("name", "namespace")}
    path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"
    night.queues.create(f"{path}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about})
    if pod["spec"].get("nodeName"):
        night.queues.change(f"{path}/status", {"status": {"phase": "Failed"}})
        night.queues.delete(path, gracePeriodSeconds=0)


def deployment(name: str, namespace: str) -> tuple[str, Json]:
    """Return a Deployment of two pods, as a chart has its controller, and its path."""
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "registry.example.com/a:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}", body
