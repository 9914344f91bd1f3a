"""A model server on a real node of the sample cluster, as many pods as its load needs and the team's quota admits.

The pods' program is a stub that answers one request at a time. The test reads their metric as Managed Prometheus does,
as often as planned, and gives it to a stub of Cloud Monitoring, which the real adapter queries for the autoscaler.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from tests.containers.nodes import IMAGE, NODE, bridge, node, on_this_machine, outfit, python_image
from tests.kube.api_servers import ApiServer
from tests.kube.clusters import NEEDED
from tests.kube.deployed import CLUSTER, FLAVOR, GPU, GPU_TAINT, NO_GPUDIRECT, TEAM, without_nodes
from tests.kube.metrics_adapter import Cloud, adapter_program, running_adapter
from tests.kube.model_servers import Servers
from tests.kube.queues import PATHS, Json, until
from training_platform.resources.metrics_adapter import GROUP, NAME, NAMESPACE, VERSIONS

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(900)]

SECONDS = 120.0
RBAC = "rbac.authorization.k8s.io"
SAMPLE = re.compile(r"^vllm:num_requests_waiting\{.*\} (.*)$", re.MULTILINE)
PROGRAM = """\
import os, signal, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
model = threading.Lock()
requests = set()
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        text = ""
        if self.path == "/metrics":
            text = 'vllm:num_requests_waiting{model_name="chat"} %.1f' % max(0, len(requests) - 1)
        elif self.path != "/health":
            requests.add(self)
            with model:
                time.sleep(0.2)
            requests.discard(self)
            text = os.environ["HOSTNAME"]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *_): pass
ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""
SERVER: Json = {
    "flavor": FLAVOR, "image": IMAGE, "command": ["python3", "-u", "-c", PROGRAM], "chips": 4, "max_replicas": 3,
}  # fmt: skip
SERVING = ("        notebooks:\n", "        serving: true\n        notebooks:\n")
CHAT = (NO_GPUDIRECT[0], f"    serving: {json.dumps({CLUSTER: {'chat': SERVER}})}\n")
AUTOSCALER = f"{PATHS['HorizontalPodAutoscaler'].format(TEAM)}/serve-chat"
PODS = f"/api/v1/namespaces/{TEAM}/pods"
GATE = {"name": "kueue.x-k8s.io/admission"}


class Chat(Servers):
    """A cluster with a model server, the last samples of its pods, and clients that send requests."""

    def __init__(self, server: ApiServer, client: httpx.Client) -> None:
        super().__init__(client)
        self._server = server
        self.samples: dict[str, float] = {}
        self.answered: set[str] = set()  # pods

    def names(self, *, running: bool = True) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.pods(TEAM, running=running)}

    def gated(self) -> set[str]:
        """Return the names of the pods at Kueue's gate."""
        return {pod["metadata"]["name"] for pod in self.pods(TEAM) if GATE in pod["spec"].get("schedulingGates", ())}

    def answering(self, count: int) -> None:
        """Wait until exactly ``count`` pods run, and all of them have answered requests."""
        until(lambda: (self.names(), self.answered), lambda now: len(now[0]) == count and now[0] <= now[1], SECONDS)

    @contextmanager
    def scraped(self) -> Iterator[None]:
        """Read the pods' metric as the planned PodMonitoring asks, while the block runs."""
        spec = self.get(f"{PATHS['PodMonitoring'].format(TEAM)}/serve-chat")["spec"]
        (endpoint,) = spec["endpoints"]
        seconds = float(endpoint["interval"].removesuffix("s"))
        selector = ",".join(f"{key}={value}" for key, value in spec["selector"]["matchLabels"].items())

        def scrape(client: httpx.Client, ended: Event) -> None:
            while not ended.wait(seconds):
                samples = {}
                for pod in client.get(f"{PODS}?labelSelector={selector}").json()["items"]:
                    name = pod["metadata"]["name"]
                    page = client.get(f"{PODS}/{name}:{_port(pod, endpoint['port'])}/proxy/metrics")
                    if page.is_success:
                        (value,) = SAMPLE.findall(page.text)
                        samples[name] = float(value)
                for name in self.samples.keys() - samples.keys():
                    del self.samples[name]
                self.samples.update(samples)

        with self._threads(scrape, 1):
            yield

    @contextmanager
    def load(self, clients: int) -> Iterator[None]:
        """Send requests through the server's Service while the block runs, at most 1,000 of each client."""
        self.answered.clear()

        def send(client: httpx.Client, ended: Event) -> None:
            for _ in range(1000):
                if ended.is_set():
                    return
                answer = client.get(f"/api/v1/namespaces/{TEAM}/services/serve-chat:serve/proxy/v1/completions")
                if answer.is_success:
                    self.answered.add(answer.text)

        with self._threads(send, clients):
            yield

    @contextmanager
    def _threads(self, target: Callable[[httpx.Client, Event], None], count: int) -> Iterator[None]:
        """Run a function in threads while the block runs; each has its own client."""
        ended = Event()

        def run() -> None:
            with self._server.client() as client:
                target(client, ended)

        threads = [Thread(target=run, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def _port(pod: Json, name: str) -> int:
    """Return the number of a pod's port, which the API server's proxy needs."""
    ports = {port["name"]: port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]}
    return int(ports[name])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chat]:
    image = python_image()
    adapter_program()
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    folder = tmp_path_factory.mktemp("servers")
    (folder / "share").mkdir()
    change = on_this_machine(folder)
    with ExitStack() as stack:
        dev = without_nodes(folder / "dev", SERVING, NEEDED, vision=CHAT, kubelets=True, change=change)
        lab = stack.enter_context(dev)
        server = lab.kueue.server
        chat = Chat(server, lab.kueue.client)
        cloud = stack.enter_context(Cloud(chat.samples))
        port = stack.enter_context(running_adapter(server, cloud, folder))
        route_to_adapter(server, port)
        stack.enter_context(bridge())
        stack.enter_context(node(server, NODE, image, programs=programs, logs=folder / NODE))
        outfit(server, NODE, lab.node_labels(), {GPU: 16})
        server.merge(f"/api/v1/nodes/{NODE}", {"spec": {"taints": [GPU_TAINT]}})
        stack.enter_context(chat.scraped())
        yield chat


def route_to_adapter(server: ApiServer, port: int) -> None:
    """Put the adapter's process in the place of its pods.

    The API server has no certificate with which it could forward the autoscaler's name, so that the adapter sees an
    anonymous user.
    """
    server.merge(f"{PATHS['Deployment'].format(NAMESPACE)}/{NAME}", {"spec": {"replicas": 0}})
    local = {"type": "ExternalName", "externalName": "localhost", "selector": None}
    server.merge(f"/api/v1/namespaces/{NAMESPACE}/services/{NAME}", {"spec": local})
    for version in VERSIONS:
        path = f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{GROUP}"
        server.merge(path, {"spec": {"service": {"port": port}}})
    user = {"apiGroup": RBAC, "kind": "User", "name": "system:anonymous"}
    for name in ("system:discovery", "system:controller:horizontal-pod-autoscaler"):
        body = {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"anonymous:{name}"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}, "subjects": [user],
        }  # fmt: skip
        server.apply(f"/apis/{RBAC}/v1/clusterrolebindings/anonymous:{name}", body)


@pytest.fixture(autouse=True)
def _ended(cluster: Chat) -> Iterator[None]:
    """Delete a test's job, of this cluster."""
    yield
    cluster.delete(f"/apis/batch/v1/namespaces/{TEAM}/jobs")


def test_pods_that_run_follow_their_load_within_the_teams_share(cluster: Chat) -> None:
    until(cluster.names, lambda names: len(names) == 1, SECONDS)
    cluster.submit(TEAM, "train", 8)
    cluster.runs(TEAM, "train", FLAVOR)

    with cluster.load(8):  # seven wait for one pod, and six for two, each of which is to have five
        cluster.answering(2)
        cluster.runs(TEAM, "train", FLAVOR)
    with cluster.load(40):
        cluster.answering(3)  # max_replicas
        cluster.waits(TEAM, "train")
        cluster.change(AUTOSCALER, {"spec": {"maxReplicas": 9}})  # the share has 16 GPUs, and the quota 28
        cluster.answering(4)
        until(cluster.gated, lambda names: len(names) == 3, SECONDS)
        assert cluster.names(running=False) == cluster.names() | cluster.gated()

    cluster.change(
        AUTOSCALER, {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}}
    )  # else 5 minutes
    until(lambda: cluster.names(running=False), lambda names: len(names) == 1, SECONDS)
    cluster.runs(TEAM, "train", FLAVOR)
