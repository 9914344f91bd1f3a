"""A team's notebook on a real node: the pod that KubeSpawner makes of the planned profile, as the hub's account.

The sample cluster dev has its policies, quotas and rights; network policies are not enforced, and a folder is in place
of Filestore.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.containers.hubs import notebook_node
from tests.containers.nodes import IMAGE, NODE, python_image
from tests.kube.deployed import FLAVOR, NOTEBOOKS, TEAM
from tests.kube.queues import Json, Queues, until
from training_platform.resources.notebooks import HUB_ACCOUNT, HUB_NAMESPACE

pytestmark = [pytest.mark.kube, pytest.mark.containers, pytest.mark.timeout(400)]

HUB = {"Impersonate-User": f"system:serviceaccount:{HUB_NAMESPACE}:{HUB_ACCOUNT}"}
PODS = f"/api/v1/namespaces/{TEAM}/pods"
GATE = "kueue.x-k8s.io/admission"
PROGRAM = """\
import os, pathlib, signal, sys, time
home = pathlib.Path.home()
def stop(*_):
    (home / "stopped").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
for name in ("HF_HOME", "PIP_CACHE_DIR"):
    pathlib.Path(os.environ[name]).mkdir(parents=True, exist_ok=True)
with open("/dev/shm/batch", "wb") as file:
    file.write(bytes(100 << 20))
print("begun", os.getuid(), os.getgid(), sorted(path.name for path in home.iterdir()), flush=True)
time.sleep(600)
"""


class Notebooks(Queues):
    """A cluster with one node of 16 GPUs, and notebooks of ada."""

    def __init__(self, client: Any, profile: Json, homes: Path) -> None:
        super().__init__(client)
        self._http = client
        self._profile = profile
        self.homes = homes

    def start(self) -> None:
        """Create the pod of a notebook on one GPU, as the hub does."""
        answer = self._http.post(PODS, json=notebook(self._profile, "ada"), headers=HUB)
        assert answer.is_success, answer.text

    def stop(self) -> None:
        self._http.delete(f"{PODS}/jupyter-ada", headers=HUB, params={"gracePeriodSeconds": "1"})
        until(self.state, lambda state: state == {})

    def state(self) -> Json:
        """Return the notebook's pod, or an empty mapping without one."""
        answer = self._http.get(f"{PODS}/jupyter-ada")
        return dict(answer.json()) if answer.is_success else {}

    def log(self) -> str:
        answer = self._http.get(f"{PODS}/jupyter-ada/log")
        return answer.text if answer.is_success else ""


def notebook(profile: Json, user: str) -> Json:
    """Return the pod of a profile.

    Source: jupyterhub/kubespawner 7.1.0, get_pod_manifest of such a profile, with uid 1000 and fsGid 100 as in
    zero-to-jupyterhub-k8s 4.4.0; seen 2026-11-28. Variables and arguments of the hub are left out.
    """
    override = profile["kubespawner_override"]
    for option in profile["profile_options"].values():
        (default,) = (choice for choice in option["choices"].values() if choice["default"])
        override = {**override, **default["kubespawner_override"]}

    def mounted(mounts: list[Json]) -> list[Json]:
        return [{key: str(value).replace("{username}", user) for key, value in mount.items()} for mount in mounts]

    container = {
        "name": "notebook", "image": IMAGE, "args": ["python3", "-u", "-c", PROGRAM],
        "ports": [{"name": "notebook-port", "containerPort": 8888}],
        "env": [{"name": name, "value": value} for name, value in override["environment"].items()]
        + [{"name": "HOME", "value": "/home/jovyan"}],
        "resources": {"limits": override["extra_resource_limits"], "requests": {}},
        "securityContext": {"allowPrivilegeEscalation": False, "runAsUser": 1000},
        "volumeMounts": mounted(override["volume_mounts"]),
    }  # fmt: skip
    starters = [
        {**starter, "image": IMAGE, "volumeMounts": mounted(starter["volumeMounts"])}
        for starter in override["init_containers"]
    ]
    labels = {"app": "jupyterhub", "component": "singleuser-server", "hub.jupyter.org/username": user}
    return {
        "metadata": {
            "name": f"jupyter-{user}",
            "labels": {**labels, **override["extra_labels"]},
            "annotations": {"hub.jupyter.org/username": user, **override.get("extra_annotations", {})},
        },
        "spec": {
            "serviceAccountName": override["service_account"],
            "restartPolicy": "OnFailure", "securityContext": {"fsGroup": 100, **override["pod_security_context"]},
            "nodeSelector": override["node_selector"], "tolerations": override["tolerations"],
            "volumes": override["volumes"], "initContainers": starters, "containers": [container],
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebooks]:
    image = python_image()
    folder = tmp_path_factory.mktemp("notebooks")
    with notebook_node(folder, NOTEBOOKS, image) as lab:
        (team,) = lab.values("notebooks")["custom"]["teamProfiles"]
        (profile,) = team["profiles"]
        yield Notebooks(lab.kueue.client, profile, folder / "share" / TEAM)


@pytest.fixture(autouse=True)
def _ended(cluster: Notebooks) -> Iterator[None]:
    """Delete a test's job and notebook, of this cluster."""
    yield
    cluster.delete(f"/apis/batch/v1/namespaces/{TEAM}/jobs")
    cluster.stop()


def test_a_notebook_writes_to_its_home_and_caches_and_yields_to_a_job(cluster: Notebooks) -> None:
    cluster.start()
    log = until(cluster.log, lambda text: "begun" in text)

    assert log == "begun 1000 0 ['.cache']\n"
    assert cluster.state()["spec"]["nodeName"] == NODE
    home = (cluster.homes / "ada").stat()
    assert (home.st_uid, home.st_gid) == (1000, 100)

    cluster.submit(TEAM, "train", 16)  # a job without priority

    cluster.runs(TEAM, "train", FLAVOR)
    until(cluster.state, lambda state: state == {})
    assert (cluster.homes / "ada" / "stopped").exists()


def test_a_notebook_that_waits_for_quota_starts_with_its_home_once_the_job_ends(cluster: Notebooks) -> None:
    (cluster.homes / "ada").mkdir(exist_ok=True)
    (cluster.homes / "ada" / "kept").touch()
    cluster.submit(TEAM, "train", 16)
    cluster.runs(TEAM, "train", FLAVOR)
    cluster.start()
    cluster.waits(TEAM, "jupyter-ada")
    assert GATE in [gate["name"] for gate in cluster.state()["spec"]["schedulingGates"]]

    cluster.delete(f"/apis/batch/v1/namespaces/{TEAM}/jobs/train")

    assert "'kept'" in until(cluster.log, lambda text: "begun" in text)
