"""JupyterHub on this machine, with the chart's own configuration and the planned values, for notebooks on a real node.

``TRAINING_PLATFORM_JUPYTERHUB`` names a folder: ``chart``, the chart's files; ``venv``, the packages of its hub's
image; ``image.tar``, an archive written by ``docker save`` of an image with jupyterhub, jupyter-server and ipykernel.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.containers.names import names
from tests.containers.nodes import ADDRESS, NODE, bridge, node, on_this_machine, outfit
from tests.kube.api_servers import ApiServer, free_port, wait_until_ready, write_private
from tests.kube.clusters import NEEDED
from tests.kube.deployed import GPU, GPU_TAINT, Deployed, without_nodes
from tests.kube.queues import Json, Queues, until
from tests.kube.tied_process import TiedProcess
from training_platform.resources.notebooks import HUB_ACCOUNT, HUB_NAMESPACE, HUB_PORT

_VARIABLE: Final = "TRAINING_PLATFORM_JUPYTERHUB"
_PROXY: Final = "configurable-http-proxy"
_RBAC: Final = "rbac.authorization.k8s.io"
_NETWORK: Final = "discovery.k8s.io"
_CONFIGURATION: Final = "/usr/local/etc/jupyterhub"
SPEED: Final = 100
"""By which the test's times are shorter than those in a cluster."""


def hub_files() -> Path:
    """Return the folder with what a hub needs; skips the test where none is named."""
    folder = os.environ.get(_VARIABLE)
    if folder is None or shutil.which(_PROXY) is None:
        pytest.skip(f"no folder with JupyterHub is named by {_VARIABLE}, or {_PROXY} is not on PATH")
    return Path(folder)


@contextmanager
def notebook_node(folder: Path, dev: tuple[str, str], image: Path) -> Iterator[Deployed]:
    """Run the sample cluster with an edit of its stack file, and a node of 16 GPUs with an image, while the block runs.

    Filestore is ``folder / "share"``.
    """
    programs = Path(os.environ["TRAINING_PLATFORM_CONTAINERS"])
    (folder / "share").mkdir()
    with ExitStack() as stack:
        change = on_this_machine(folder)
        lab = stack.enter_context(without_nodes(folder / "dev", dev, NEEDED, kubelets=True, change=change))
        stack.enter_context(bridge())
        server = lab.kueue.server
        stack.enter_context(node(server, NODE, image, programs=programs, logs=folder / NODE))
        outfit(server, NODE, lab.node_labels(), {GPU: 16})
        jobs = "/apis/batch/v1/namespaces/default/jobs"
        ended = Queues(lab.kueue.client)
        until(lambda: [job["status"].get("succeeded") for job in ended.get(jobs)["items"]], all)
        server.merge(f"/api/v1/nodes/{NODE}", {"spec": {"taints": [GPU_TAINT]}})
        yield lab


@contextmanager
def running_hub(lab: Deployed, folder: Path) -> Iterator[httpx.Client]:
    """Run the hub and its proxy while the block runs, and yield a client that may start servers and reach them.

    The hub has the chart's configuration and account, and its own /etc/hosts in place of kube-dns. All its times are
    shorter by ``SPEED``.
    """
    files = hub_files()
    server = lab.kueue.server
    kubeconfig = folder / "kubeconfig"
    write_private(kubeconfig, _kubeconfig(server))
    public = free_port()
    api = free_port()
    proxy_token = secrets.token_hex(32)
    client_token = secrets.token_hex(32)
    values = _values(files / "chart", lab.values("notebooks"))
    mounted = folder / "etc" / "jupyterhub"
    texts = {
        "secret/values.yaml": yaml.safe_dump(values),
        "secret/hub.config.JupyterHub.cookie_secret": secrets.token_hex(32),
        "secret/hub.config.CryptKeeper.keys": secrets.token_hex(32),
        "secret/hub.services.tests.apiToken": client_token,
        "config/hub": "hub",
        "config/proxy-api": "proxy-api",
        **{file.name: file.read_text() for file in (files / "chart" / "files" / "hub").iterdir()},
    }
    for name, text in texts.items():
        path = mounted / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, text)
    hosts = folder / "hosts"
    hosts.write_text(f"{ADDRESS} hub.{HUB_NAMESPACE} hub localhost\n127.0.0.1 proxy-api\n")
    script = f'mount --bind {mounted.parent} /usr/local/etc && mount --bind {hosts} /etc/hosts && exec "$@"'
    variables = {
        "CONFIGPROXY_AUTH_TOKEN": proxy_token, "HUB_SERVICE_PORT": HUB_PORT, "PROXY_API_SERVICE_PORT": api,
        "POD_NAMESPACE": HUB_NAMESPACE, "OAUTH_CLIENT_SECRET": "secret", "KUBECONFIG": kubeconfig,
        "PATH": f"{files / 'venv' / 'bin'}:{os.environ['PATH']}",
    }  # fmt: skip
    pod = ["env", f"--chdir={folder}", *(f"{name}={value}" for name, value in variables.items())]
    pod += ["unshare", "--mount", "sh", "-c", script, "pod"]
    proxy = [_PROXY, "--ip=127.0.0.1", f"--port={public}", "--api-ip=127.0.0.1", f"--api-port={api}"]
    proxy += [f"--default-target=http://hub:{HUB_PORT}"]
    hub = ["jupyterhub", "--config", f"{_CONFIGURATION}/jupyterhub_config.py"]
    with ExitStack() as stack:
        stack.enter_context(names(lab.kueue.client))
        stack.enter_context(closing(TiedProcess([*pod, *proxy], folder / "proxy.log")))
        process = stack.enter_context(closing(TiedProcess([*pod, *hub], folder / "hub.log")))
        headers = {"Authorization": f"token {client_token}"}
        url = f"http://127.0.0.1:{public}"
        client = stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False))
        wait_until_ready(process, client, "/hub/health")
        yield client


def _values(chart: Path, planned: Json) -> Json:
    """Return the values that Helm would give to the hub, changed for this machine."""
    values = _merged(yaml.safe_load((chart / "values.yaml").read_text()), planned)
    values["cull"] |= {key: planned["cull"][key] // SPEED for key in ("timeout", "every")}
    scopes = ["admin:users", "admin:servers", "access:servers"]
    values["hub"]["services"] = {"tests": {}}
    values["hub"]["loadRoles"] = {"tests": {"scopes": scopes, "services": ["tests"]}}
    here = {"hub_bind_url": f"http://{ADDRESS}:{HUB_PORT}", "last_activity_interval": 1}
    slow = "c.Spawner.http_timeout = 120  # on a busy machine"
    values["hub"]["extraConfig"]["zz-here"] = f"c.JupyterHub.update({here!r})\n{slow}"
    for team in values["custom"]["teamProfiles"]:
        for profile in team["profiles"]:
            variables = profile["kubespawner_override"]["environment"]
            report_seconds = int(variables["JUPYTERHUB_ACTIVITY_INTERVAL"])
            variables["JUPYTERHUB_ACTIVITY_INTERVAL"] = str(max(1, report_seconds // SPEED))
    return values


def _merged(before: Json, after: Mapping[str, Any]) -> Json:
    merged = {**before, **after}
    for key in before.keys() & after.keys():
        if isinstance(before[key], dict) and isinstance(after[key], dict):
            merged[key] = _merged(before[key], after[key])
    return merged


def _kubeconfig(server: ApiServer) -> str:
    """Create what the chart has in the cluster for the hub: its account with its role, and its address."""
    about = {"name": HUB_ACCOUNT, "namespace": HUB_NAMESPACE}
    pods = {
        "apiGroups": [""], "resources": ["pods", "persistentvolumeclaims", "secrets", "services"],
        "verbs": ["get", "watch", "list", "create", "delete"],
    }  # fmt: skip
    events = {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "watch", "list"]}
    role = {"kind": "Role", "name": HUB_ACCOUNT, "apiGroup": _RBAC}
    account = {"kind": "ServiceAccount", **about}
    endpoints = {"addressType": "IPv4", "endpoints": [{"addresses": [ADDRESS]}], "ports": [{"port": HUB_PORT}]}
    of_service = {"labels": {"kubernetes.io/service-name": HUB_ACCOUNT}}
    for group, kind, fields in (
        ("", "ServiceAccount", {}),
        (_RBAC, "Role", {"rules": [pods, events]}),
        (_RBAC, "RoleBinding", {"roleRef": role, "subjects": [account]}),
        (_NETWORK, "EndpointSlice", endpoints),
    ):
        metadata = about | (of_service if kind == "EndpointSlice" else {})
        body = {"apiVersion": f"{group}/v1".lstrip("/"), "kind": kind, "metadata": metadata, **fields}
        server.apply(_path(group, kind), body, force=True)
    token_path = f"{_path('', 'ServiceAccount')}/token"
    token = server.call("POST", token_path, json={"spec": {"expirationSeconds": 7200}})["status"]["token"]
    config = json.loads(server.kubeconfig())
    config["users"][0]["user"] = {"token": token}
    return json.dumps(config)


def _path(group: str, kind: str) -> str:
    """Return the path of the hub's object of a kind."""
    version = f"/apis/{group}/v1" if group else "/api/v1"
    return f"{version}/namespaces/{HUB_NAMESPACE}/{kind.lower()}s/{HUB_ACCOUNT}"
