"""The program that runs in the hub, loaded as the chart loads it; pods are KubeSpawner's own where it is installed."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.resources import hub_program as program
from training_platform.resources.data_sets import NotebookData
from training_platform.resources.jupyterhub import HubSecret, hub_values

Build = Callable[..., ClusterSpec]
Section = Callable[..., Notebooks]
Json = dict[str, Any]
Google = tuple[str, list[tuple[str, str | None]]]
TEAMS = {"vision": {"users": ("ada@example.com",), "pools": ("gpus",)}}
GPUS: Json = {"machine_type": "a3-highgpu-8g"}
SECRET = HubSecret("projects/example/secrets/dev-oauth/versions/latest", "hub@example.iam.gserviceaccount.com")


@pytest.fixture
def section(notebooks: Section) -> Notebooks:
    return notebooks(pools=(), teams=TEAMS)


def loaded(values: Json, config: Any) -> Any:
    """Run the program as the chart does: after its own configuration, in whose names it finds ``c``."""
    every = {"singleuser.profileList": values["singleuser"]["profileList"], "custom": values["custom"]}
    text = values["hub"]["extraConfig"]["training-platform"]
    exec(compile(text, "training-platform", "exec"), {"c": config, "get_config": every.get})  # noqa: S102
    return config


def plain() -> Any:
    return SimpleNamespace(
        KubeSpawner=SimpleNamespace(), JupyterHub=SimpleNamespace(), GoogleOAuthenticator=SimpleNamespace()
    )


def named(user: str) -> Any:
    return SimpleNamespace(user=SimpleNamespace(name=user))


def test_only_people_of_a_team_see_its_profiles(cluster: Build, section: Notebooks) -> None:
    config = loaded(hub_values("main", cluster(gpus=GPUS), section, "homes"), plain())

    seen = {
        user: [profile["slug"] for profile in config.KubeSpawner.profile_list(named(user))] for user in ("ada", "eve")
    }
    assert seen == {"ada": ["cpu", "team-vision-pool-gpus"], "eve": ["cpu"]}


def test_notebooks_of_other_namespaces_find_the_hub(cluster: Build, section: Notebooks) -> None:
    config = loaded(hub_values("main", cluster(gpus=GPUS), section, "homes"), plain())

    assert config.JupyterHub.hub_connect_url == "http://hub.jupyterhub:8081"
    assert not hasattr(config.GoogleOAuthenticator, "client_secret")  # that of the environment stays


@pytest.fixture
def google() -> Iterator[Google]:
    """A server on the loopback that is both metadata server and Secret Manager, and the requests to it."""
    requests: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append((self.path, self.headers.get("Authorization")))
            data = base64.b64encode(b"sesame\n").decode()
            body = {"access_token": "one"} if self.path == "/token" else {"payload": {"data": data}}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", requests
    server.shutdown()
    server.server_close()


def test_the_oauth_secret_is_read_from_secret_manager_by_the_hubs_account(
    cluster: Build,
    section: Notebooks,
    google: Google,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, requests = google
    monkeypatch.setattr(program, "TOKEN_URL", f"{url}/token")
    monkeypatch.setattr(program, "SECRETS", url)
    config = plain()
    custom = hub_values("main", cluster(gpus=GPUS), section, "homes", secret=SECRET)["custom"]

    program.configure(config, [], custom)

    assert config.GoogleOAuthenticator.client_secret == "sesame"
    assert requests == [("/token", None), (f"/{SECRET.version}:access", "Bearer one")]


def test_kubespawner_makes_the_teams_pod_of_a_profile(
    cluster: Build, section: Notebooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubespawner = pytest.importorskip("kubespawner.spawner", reason="jupyterhub-kubespawner is not installed")
    from traitlets.config import Config  # noqa: PLC0415 # comes with it

    for name in ("load_config", "shared_client"):  # there is no cluster
        monkeypatch.setattr(kubespawner, name, lambda *_args, **_settings: None)
    data = {"images": NotebookData(bucket="example-images")}
    values = hub_values(
        "main", cluster(gpus=GPUS), section, "homes", team_data={"vision": data}, environment_data=("images", "disk")
    )
    config = loaded(values, Config())
    spawner = kubespawner.KubeSpawner(
        _mock=True, config=config, user=SimpleNamespace(name="ada", id=1, url="/", server=None, spawners={}),
        image="example.com/lab:1", extra_labels={"hub.jupyter.org/network-access-hub": "true"},
    )  # fmt: skip
    spawner.user_options = {"profile": "team-vision-pool-gpus"}

    async def claims(namespace: str) -> Any:
        assert namespace == "vision"
        phases = dict.fromkeys(
            ("notebooks.homes", "datasets", "data-set.images", "data-set.disk", "data-set.own-crops", "data-set.a.b"),
            "Bound",
        )
        items = [
            SimpleNamespace(metadata=SimpleNamespace(name=name), status=SimpleNamespace(phase=phase))
            for name, phase in (phases | {"data-set.waiting": "Pending"}).items()
        ]
        return SimpleNamespace(items=items)

    spawner.api = SimpleNamespace(list_namespaced_persistent_volume_claim=claims)

    async def manifest() -> Any:
        await spawner.load_user_options()
        pod = await spawner.get_pod_manifest()
        return await spawner.modify_pod_hook(spawner, pod)

    pod = asyncio.run(manifest()).to_dict()

    assert spawner.namespace == "vision"
    labels = pod["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "vision"
    assert labels["hub.jupyter.org/network-access-hub"] == "true"
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    homes = {mount["mount_path"]: mount["sub_path"] for mount in container["volume_mounts"] if mount["name"] == "home"}
    assert homes == {"/home/jovyan": "ada", "/cache": ".cache"}
    assert pod["spec"]["service_account_name"] == "training"
    mounted = {mount.get("mount_path") or mount["mountPath"] for mount in container["volume_mounts"]}
    assert mounted >= {"/data/images", "/data/own-crops"}  # the team's own one too, by its claim
    assert "/data/disk" not in mounted  # the environment's, and in another zone
    assert not {path for path in mounted if "a.b" in path or "waiting" in path}  # which would hold every notebook
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    assert (variables["DATA_SET_IMAGES"], variables["DATA_SET_OWN_CROPS"]) == ("/data/images", "/data/own-crops")
    assert variables["HF_HOME"] == "/home/jovyan/.cache/huggingface"  # below the home on Filestore
    assert pod["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"
    (volume,) = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "shared-memory"]
    assert (volume.get("emptyDir") or volume["empty_dir"])["medium"] == "Memory"
    (mount,) = [volume_mount for volume_mount in container["volume_mounts"] if volume_mount["name"] == "shared-memory"]
    shared = mount.get("mountPath") or mount["mount_path"]
    assert shared == "/dev/shm"  # noqa: S108 # the pod's own


def test_a_notebook_of_everybody_is_left_as_it_is() -> None:
    pod = SimpleNamespace()

    assert asyncio.run(program.add_own_data(SimpleNamespace(namespace="jupyterhub"), pod, [])) is pod
