"""A sandbox whose Kubernetes half the released plugin registers in a cluster of the user's: here a real API server.

Charts cannot be pulled in a test: those of Kueue and JobSet have their CRDs alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.kube.labs import CONTEXT, Lab, running_lab
from training_platform.parts.sandbox.run.redirection import MARK
from training_platform.parts.sandbox.run.user_cluster import MARKER

pytestmark = [pytest.mark.kube, pytest.mark.engine, pytest.mark.timeout(1800)]

LOCAL_QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with running_lab(tmp_path) as started:
        yield started


def test_the_kubernetes_half_comes_up_in_a_cluster_of_the_users_and_only_it_is_deleted(lab: Lab) -> None:
    namespaces = "/api/v1/namespaces"
    lab.server.call("POST", namespaces, json={"metadata": {"name": "my-own"}})
    for stack in ("lab", "lab-vision"):
        up = lab.sandbox("up", stack, *lab.options)
        assert up.returncode == 0, up.stdout + up.stderr
        assert f"Context {CONTEXT} of " in up.stdout
    queues = lab.server.call("GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues")["items"]
    assert [queue["metadata"]["name"] for queue in queues] == ["vision"]
    mark = queues[0]["metadata"]["labels"][MARK]
    marker = lab.server.call("GET", f"{namespaces}/default/configmaps/{MARKER}")
    assert marker["metadata"]["labels"] == {MARK: mark}
    assert set[str]().union(*lab.sandbox.steps("up", "lab-vision").values()) <= {"same", "read"}

    _a_create_of_a_killed_run_is_imported(lab)
    _a_changed_template_of_a_chart_in_a_folder_is_deployed(lab)

    _destroy(lab, "lab-vision")
    _destroy(lab, "lab")
    names = {row["metadata"]["name"] for row in lab.server.call("GET", namespaces)["items"]}
    assert "my-own" in names
    assert "vision" not in names
    assert lab.server.read(f"{namespaces}/default/configmaps/{MARKER}") is None


def _a_create_of_a_killed_run_is_imported(lab: Lab) -> None:
    """Pulumi's state has only the beginning of the create, and the cluster the object."""
    (file,) = lab.sandbox.folder.state.glob("**/stacks/**/lab-vision.json")
    state = json.loads(file.read_text())
    resources = state["checkpoint"]["latest"]["resources"]
    queue = next(resource for resource in resources if resource["type"] == LOCAL_QUEUE)
    assert queue["urn"] not in json.dumps([resource for resource in resources if resource is not queue])
    resources.remove(queue)
    create = {name: queue[name] for name in queue if name not in ("id", "outputs")}
    state["checkpoint"]["latest"]["pending_operations"] = [{"resource": create, "type": "creating"}]
    file.write_text(json.dumps(state))

    refused = lab.sandbox("up", "lab-vision")
    resumed = lab.sandbox("up", "lab-vision", "--resume")

    assert "already exists" in refused.stderr
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert f"imported {queue['urn'].rpartition('::')[2]} as {queue['id']}" in resumed.stdout


def _destroy(lab: Lab, stack: str) -> None:
    destroyed = lab.sandbox("destroy", stack, "--lift-protection")
    assert destroyed.returncode == 0, destroyed.stdout + destroyed.stderr


def _a_changed_template_of_a_chart_in_a_folder_is_deployed(lab: Lab) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "added"}}
    (lab.sandbox.folder.root.parent / "kueue" / "templates" / "added.yaml").write_text(yaml.safe_dump(body))

    changed = {name for name, steps in lab.sandbox.steps("up", "lab").items() if "update" in steps}

    assert changed == {"main-kueue-release"}
    assert lab.server.read("/api/v1/namespaces/kueue-system/configmaps/added") is not None


def test_a_release_whose_deployment_was_killed_is_deployed_by_the_next_run(lab: Lab) -> None:
    """A Deployment that no node takes keeps Helm waiting; then the chart wants no pod of it."""
    assert lab.sandbox("up", "lab", *lab.options).returncode == 0
    templates = lab.sandbox.folder.root.parent / "kueue" / "templates"
    labels = {"app": "slow"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "registry.example.com/a:1"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    slow = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "slow"}, "spec": spec}
    (templates / "slow.yaml").write_text(yaml.safe_dump(slow))
    path = "/apis/apps/v1/namespaces/kueue-system/deployments/slow"

    assert lab.sandbox.kill(lambda: lab.server.read(path) is not None, "up", "lab", *lab.options)
    slow["spec"] = {**spec, "replicas": 0}
    (templates / "slow.yaml").write_text(yaml.safe_dump(slow))
    resumed = lab.sandbox("up", "lab", "--resume")

    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "release kueue, left in pending-upgrade, will be deployed again" in resumed.stdout
    assert lab.server.call("GET", path)["spec"]["replicas"] == 0
    assert set[str]().union(*lab.sandbox.steps("up", "lab").values()) <= {"same", "read"}
