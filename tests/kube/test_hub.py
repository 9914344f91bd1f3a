"""JupyterHub with the values that we render: its own KubeSpawner makes notebooks on the real API server, under Kueue.

``TRAINING_PLATFORM_HUB`` names the folder of programs of a Python environment with what the image of the hub has
(jupyterhub, jupyterhub-kubespawner, jupyterhub-idle-culler, oauthenticator, pycurl), ``TRAINING_PLATFORM_HUB_CHART``
the folder of Zero to JupyterHub's chart, whose own configuration the hub reads, ``TRAINING_PLATFORM_HUB_PROXY`` the
program configurable-http-proxy. Nobody signs in: a service of the hub starts notebooks, as its API allows.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import yaml

from tests.kube.api_servers import ApiServer, free_port
from tests.kube.clusters import NEEDED
from tests.kube.deployed import FLAVOR, GPU, TEAM, Deployed, deployed
from tests.kube.queues import Json, Queues, until
from tests.kube.server import role_objects
from tests.kube.tied_process import TiedProcess
from training_platform.catalog import CHARTS
from training_platform.resources.notebooks import HUB_NAMESPACE

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

PROGRAMS, CHART, PROXY = (f"TRAINING_PLATFORM_HUB{name}" for name in ("", "_CHART", "_PROXY"))
NOTEBOOKS = (
    "          allowed_domain: example.com\n",
    "          allowed_domain: example.com\n          teams: {vision: {users: [ada@example.com], pools: [a100]}}\n",
)
TOKEN = secrets.token_hex(16)
ACCOUNT = {"kind": "ServiceAccount", "name": "hub", "namespace": HUB_NAMESPACE}
# What the chart grants the hub in its own namespace: z2jh 4.4.0, templates/hub/rbac.yaml, read 2026-11-22.
OF_THE_CHART = [
    {
        "apiGroups": [""],
        "resources": ["pods", "persistentvolumeclaims", "secrets", "services"],
        "verbs": ["get", "watch", "list", "create", "delete"],
    },
    {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "watch", "list"]},
]
ADDRESS = "127.0.0.2"  # of notebooks' pods, where one answers
PROFILE = "team-vision-pool-a100"
GATE = "kueue.x-k8s.io/admission"


class Hub(Queues):
    """A cluster with a hub, by whose API people's notebooks start and stop."""

    def __init__(self, client: httpx.Client, api: httpx.Client) -> None:
        super().__init__(client)
        self._http = client
        self._api = api

    def start(self, user: str, **choice: str) -> httpx.Response:
        """Ask for a notebook, by the form of its profile."""
        self._api.post(f"/users/{user}")
        return self._api.post(f"/users/{user}/server", json=choice)

    def stop(self, *users: str) -> None:
        """End people's notebooks, and wait until the hub and the cluster have none."""

        def left() -> list[Any]:
            for user in users:
                self._api.delete(f"/users/{user}/server")
            return [
                *self.pods(TEAM),
                *self.pods(HUB_NAMESPACE),
                *(server for user in users for server in self.servers(user)),
            ]

        until(left, lambda pods: not pods)

    def servers(self, user: str) -> dict[str, Json]:
        """Return what the hub says of a user's notebooks."""
        answer = self._api.get(f"/users/{user}", params={"include_stopped_servers": "1"})
        servers = answer.json().get("servers", {}) if answer.is_success else {}
        return {name: server for name, server in servers.items() if server["ready"] or server["pending"]}

    def progress(self, user: str) -> str:
        """Return what the hub tells a person of the start."""
        return self._api.get(f"/users/{user}/server/progress").text

    def ready(self, user: str, namespace: str) -> Json:
        """Wait until the hub says that a user's notebook answers, and return its pod."""

        def found() -> Json:
            pod = self.pod(namespace)
            return pod if any(server["ready"] for server in self.servers(user).values()) else {}

        return until(found, bool)

    def pods(self, namespace: str) -> list[Json]:
        """Return a namespace's pods, after what a kubelet does: those with a node run, and those deleted go."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        pods = self.get(path)["items"]
        for pod in pods:
            name = pod["metadata"]["name"]
            if pod["metadata"].get("deletionTimestamp"):
                self._http.request("DELETE", f"{path}/{name}", json={"gracePeriodSeconds": 0})
            elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "PodScheduled")]
                containers = [
                    {
                        "name": container["name"],
                        "ready": True,
                        "restartCount": 0,
                        "image": "",
                        "imageID": "",
                        "state": {"running": {}},
                    }
                    for container in pod["spec"]["containers"]
                ]
                status = {"phase": "Running", "podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}], "conditions": ready}
                self.change(f"{path}/{name}/status", {"status": {**status, "containerStatuses": containers}})
        return list(pods)

    def pod(self, namespace: str) -> Json:
        """Return the only notebook of a namespace, or an empty mapping before it exists."""
        pods = self.pods(namespace)
        return pods[0] if pods else {}

    def gates(self) -> list[str] | None:
        """Return the gates that the team's notebook waits at; None without a notebook."""
        pod = self.pod(TEAM)
        return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])] if pod else None

    def bind(self, namespace: str) -> None:
        """Say that claims are bound to the volumes that they name, as no controller does here."""
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        for claim in self.get(path)["items"]:
            bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
            self.change(f"{path}/{claim['metadata']['name']}", bound)


class Notebook(BaseHTTPRequestHandler):
    """Answers as a single user's server does while it starts: the hub asks for nothing but an answer."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def merged(first: Any, second: Any) -> Any:
    """Return values of a chart as Helm lays others over them."""
    if not (isinstance(first, Mapping) and isinstance(second, Mapping)):
        return second
    return {**first, **{key: merged(first.get(key), value) for key, value in second.items()}}


def files_of_the_hub(folder: Path, chart: Path, values: Json) -> None:
    """Write what the chart mounts into the hub: its programs, names, and the Secret with all values."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    whole = merged({key: value for key, value in defaults.items() if value is not None}, values)
    whole["Chart"] = {"Name": about["name"], "Version": CHARTS["jupyterhub"].version}
    whole["Release"] = {"Name": "jupyterhub", "Namespace": HUB_NAMESPACE, "Service": "Helm"}
    whole["hub"]["services"] = {"tests": {}}
    whole["hub"]["loadRoles"] = {"tests": {"scopes": ["admin:users", "admin:servers"], "services": ["tests"]}}
    texts = {
        "config/hub": "localhost",
        "config/proxy-api": "127.0.0.1",
        "secret/values.yaml": json.dumps(whole),
        "secret/hub.services.tests.apiToken": TOKEN,
        "secret/hub.config.JupyterHub.cookie_secret": secrets.token_hex(32),
        "secret/hub.config.CryptKeeper.keys": secrets.token_hex(32),
        **{file.name: file.read_text() for file in (chart / "files" / "hub").glob("*.py")},
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def run_hub(stack: ExitStack, folder: Path, cluster: Deployed) -> httpx.Client:
    """Start the proxy and the hub with an ``/usr/local/etc`` of its own, and return a client of the hub's API."""
    programs = Path(os.environ[PROGRAMS])
    chart = Path(os.environ[CHART])
    ports = {name: free_port() for name in ("hub", "proxy", "api")}
    files_of_the_hub(folder / "etc", chart, cluster.values("notebooks"))
    config = folder / "kubeconfig"
    config.write_text(kubeconfig_of_the_hub(cluster.kueue.server), encoding="utf-8")
    token = secrets.token_hex(16)
    on_loopback = [f"--{name}=127.0.0.1" for name in ("ip", "api-ip")]
    on_ports = [f"--port={ports['proxy']}", f"--api-port={ports['api']}"]
    proxy = ["env", f"CONFIGPROXY_AUTH_TOKEN={token}", os.environ[PROXY], *on_loopback, *on_ports]
    variables = {
        "CONFIGPROXY_AUTH_TOKEN": token, "OAUTH_CLIENT_SECRET": "secret", "KUBECONFIG": config,
        "POD_NAMESPACE": HUB_NAMESPACE, "HOME": folder, "LOCALHOST_SERVICE_PORT": ports["hub"],
        "127.0.0.1_SERVICE_PORT": ports["api"], "PATH": f"{programs}:{os.environ['PATH']}",
    }  # fmt: skip
    place = "/usr/local/etc/jupyterhub"
    script = f'mount -t tmpfs tmpfs /usr/local/etc && cp -r "$0" {place} && exec "$@"'
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(folder / "etc")]
    told = ["env", "-C", str(folder), *(f"{name}={value}" for name, value in variables.items())]
    # It listens to every address in its pod.
    url = f"http://127.0.0.1:{ports['hub']}"
    hub = ["jupyterhub", f"--config={place}/jupyterhub_config.py", f"--JupyterHub.hub_bind_url={url}"]
    for name, command in (("proxy", proxy), ("hub", [*inside, *told, *hub])):
        stack.callback(TiedProcess(command, folder / f"{name}.log").close)
    headers = {"Authorization": f"token {TOKEN}"}
    api = stack.enter_context(httpx.Client(base_url=f"{url}/hub/api", headers=headers, trust_env=False, timeout=60))
    until(partial(answers, api), bool)
    return api


def answers(api: httpx.Client) -> bool:
    try:
        return api.get("/users").is_success
    except httpx.TransportError:
        return False


def kubeconfig_of_the_hub(server: ApiServer) -> str:
    """Return how the hub reaches the API server, with the rights of its service account and no others."""
    config = json.loads(server.kubeconfig(account=f"system:serviceaccount:{HUB_NAMESPACE}:hub"))
    for user in config["users"]:
        del user["user"]["as-groups"]
    return json.dumps(config)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    if missing := [name for name in (PROGRAMS, CHART, PROXY) if name not in os.environ]:
        pytest.skip(f"not named by settings: {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("hub")
    with ExitStack() as stack:
        cluster_of_hub = stack.enter_context(deployed(folder, NOTEBOOKS, NEEDED))
        rights = Queues(cluster_of_hub.kueue.client)
        for body in role_objects("hub", HUB_NAMESPACE, OF_THE_CHART, ACCOUNT):
            kind = f"{body['kind'].lower()}s"
            rights.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{HUB_NAMESPACE}/{kind}", body)
        server = HTTPServer((ADDRESS, 8888), Notebook)
        stack.callback(server.server_close)
        Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        hub = Hub(cluster_of_hub.kueue.client, run_hub(stack, folder, cluster_of_hub))
        for namespace in (TEAM, HUB_NAMESPACE):
            hub.bind(namespace)
        yield hub


@pytest.fixture
def hub(cluster: Hub) -> Iterator[Hub]:
    yield cluster
    cluster.delete(f"/apis/batch/v1/namespaces/{TEAM}/jobs")
    cluster.stop("ada", "grace")


def test_a_notebook_of_a_team_waits_for_quota_and_starts_when_it_is_there(hub: Hub) -> None:
    hub.claim(TEAM, "data-set.corpora")  # that the team's own deployment made
    hub.submit(TEAM, "train", 16)
    hub.runs(TEAM, "train", FLAVOR)

    assert hub.start("ada", profile=PROFILE, gpus="gpus-8").is_success

    until(hub.gates, lambda gates: gates is not None and GATE in gates)
    hub.waits(TEAM, "jupyter-ada")
    hub.delete(f"/apis/batch/v1/namespaces/{TEAM}/jobs/train")
    pod = hub.ready("ada", TEAM)
    assert pod["spec"]["nodeName"].startswith("gpu-")
    assert pod["spec"]["containers"][0]["resources"]["limits"][GPU] == "8"
    assert pod["spec"]["serviceAccountName"] == "training"
    mounts = {mount["mountPath"]: mount.get("subPath") for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts == {"/home/jovyan": "vision/ada", "/data/corpora": None}
    assert hub.pods(HUB_NAMESPACE) == []


def test_a_notebook_that_a_job_takes_the_place_of_is_gone_for_the_hub_too(hub: Hub) -> None:
    hub.start("ada", profile=PROFILE, gpus="gpus-8")
    hub.ready("ada", TEAM)

    hub.submit(TEAM, "train", 16)

    hub.runs(TEAM, "train", FLAVOR)
    until(lambda: hub.pods(TEAM), lambda pods: "jupyter-ada" not in {pod["metadata"]["name"] for pod in pods})
    until(lambda: hub.servers("ada"), lambda now: now == {})


def test_a_notebook_without_accelerators_runs_in_the_hubs_namespace(hub: Hub) -> None:
    assert hub.start("grace", profile="cpu").is_success

    pod = hub.ready("grace", HUB_NAMESPACE)
    assert pod["spec"]["nodeName"] == "other"
    assert "schedulingGates" not in pod["spec"]


def test_who_is_not_of_the_team_gets_none_of_its_notebooks(hub: Hub) -> None:
    hub.start("grace", profile=PROFILE, gpus="gpus-8")

    until(lambda: hub.progress("grace"), lambda progress: "No such profile" in progress)
    assert [*hub.pods(TEAM), *hub.pods(HUB_NAMESPACE)] == []
