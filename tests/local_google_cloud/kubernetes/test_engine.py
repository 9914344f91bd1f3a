"""The real Pulumi engine, deploying to the stand-in provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from local_google_cloud.kubernetes.object_store import Key, ObjectStore
from local_google_cloud.kubernetes.plugin import serve

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

PRELUDE = """
import json
import pulumi
import pulumi_kubernetes as k8s

def kubeconfig(server):
    return json.dumps({
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    })

def custom(name, kind, spec, **opts):
    k8s.apiextensions.CustomResource(
        name, api_version="kueue.x-k8s.io/v1beta2", kind=kind, metadata={"name": name}, spec=spec,
        opts=pulumi.ResourceOptions(**opts),
    )

config = pulumi.Config()
"""

PLATFORM = """
cluster = k8s.Provider("cluster", kubeconfig=kubeconfig("https://example.com"), cluster_identifier="c1")
namespace = k8s.core.v1.Namespace("vision", metadata={"name": "vision"}, opts=pulumi.ResourceOptions(provider=cluster))
kueue = k8s.helm.v3.Release(
    "kueue", name="kueue", namespace="kueue-system", create_namespace=True, version="0.19.2",
    chart="oci://registry.example.com/charts/kueue", values={"token": pulumi.Output.secret("hush")},
    opts=pulumi.ResourceOptions(provider=cluster),
)
after = {"provider": cluster, "depends_on": [kueue]}
custom("v5e", "ResourceFlavor", {"nodeLabels": {"cloud.google.com/gke-tpu-topology": "2x4"}}, **after)
quota = [{"name": "google.com/tpu", "nominalQuota": config.get_int("quota") or 16}]
groups = [{"coveredResources": ["google.com/tpu"], "flavors": [{"name": "v5e", "resources": quota}]}]
cohort = {config.get("cohort") or "cohortName": "research"}
custom("research", "ClusterQueue", {"namespaceSelector": {}, "resourceGroups": groups, **cohort}, **after)
pulumi.export("uid", namespace.metadata["uid"])
pulumi.export("release", kueue.status["status"])
"""

CLUSTERS = """
a = k8s.Provider("a", kubeconfig=kubeconfig("https://a.example.com"), cluster_identifier="a")
first = k8s.core.v1.Namespace("first", metadata={"name": "vision"}, opts=pulumi.ResourceOptions(provider=a))
address = first.id.apply(lambda name: kubeconfig(f"https://{name}.example.com"))  # not known in a preview
b = k8s.Provider("b", kubeconfig=address, cluster_identifier="b")
k8s.core.v1.Namespace("second", metadata={"name": "vision"}, opts=pulumi.ResourceOptions(provider=b))
settings = k8s.core.v1.ConfigMap(
    "settings", data={"x": config.get("x") or "1"}, opts=pulumi.ResourceOptions(provider=a)
)
pulumi.export("settings", settings.metadata["name"])
"""

Pulumi = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[[str], Pulumi]


@pytest.fixture
def start(tmp_path: Path, schemas: Path, store: ObjectStore) -> Iterator[Start]:
    """Return a function that writes a program, and returns one that runs ``pulumi`` on its stack ``dev``."""
    with serve(store=store, crds=[schemas]) as port:
        environment = {
            **os.environ,
            "PULUMI_BACKEND_URL": (tmp_path / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{port}",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": str(tmp_path / "home"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }

        def run(*args: str) -> subprocess.CompletedProcess[str]:
            command = ["pulumi", "--non-interactive", *args]
            return subprocess.run(
                command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=120
            )

        def started(program: str) -> Pulumi:
            (tmp_path / "state").mkdir()
            runtime = f"{{name: python, options: {{virtualenv: {sys.prefix}}}}}"
            (tmp_path / "Pulumi.yaml").write_text(f"name: stand-in\nruntime: {runtime}\n")
            (tmp_path / "__main__.py").write_text(dedent(PRELUDE) + program)
            assert run("stack", "init", "dev").returncode == 0
            return run

        yield started


def done(ran: subprocess.CompletedProcess[str]) -> str:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def outputs(pulumi: Pulumi) -> Any:
    return json.loads(done(pulumi("stack", "output", "--json")))


def test_a_platform_is_previewed_deployed_changed_and_destroyed(start: Start, store: ObjectStore) -> None:
    pulumi = start(PLATFORM)

    assert "+ 6 to create" in done(pulumi("preview"))
    assert store.clusters() == []

    done(pulumi("up", "--yes"))
    queue = Key("kueue.x-k8s.io", "ClusterQueue", "", "research")
    assert {queue, Key("", "Namespace", "", "vision"), Key("helm.sh", "Release", "kueue-system", "kueue")} <= set(
        store.keys("c1")
    )
    assert outputs(pulumi)["release"] == "deployed"
    done(pulumi("preview", "--expect-no-changes"))
    done(pulumi("refresh", "--yes", "--expect-no-changes"))
    done(pulumi("up", "--yes", "--expect-no-changes"))

    done(pulumi("config", "set", "quota", "32"))
    done(pulumi("up", "--yes"))
    cluster_queue = store.read("c1", queue)
    assert cluster_queue is not None
    assert cluster_queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] == 32

    done(pulumi("destroy", "--yes"))
    assert store.keys("c1") == [Key("", "Namespace", "", "kueue-system")]  # Helm made it, and Helm leaves it


def test_a_preview_refuses_what_the_definition_refuses(start: Start) -> None:
    pulumi = start(PLATFORM)
    done(pulumi("config", "set", "cohort", "cohort"))

    ran = pulumi("preview")

    assert ran.returncode != 0
    output = ran.stdout + ran.stderr
    assert "'research'" in output
    assert "spec.cohort" in output
    assert "spec has no cohort; allowed: " in output
    assert "; nearest: 'cohortName'" in output


def test_clusters_are_kept_apart_and_a_replacement_comes_before_its_original_goes(
    start: Start, store: ObjectStore
) -> None:
    pulumi = start(CLUSTERS)

    assert "+ 6 to create" in done(pulumi("preview"))
    done(pulumi("up", "--yes"))
    assert store.clusters() == ["a", "b"]
    before = outputs(pulumi)["settings"]

    done(pulumi("config", "set", "x", "2"))
    done(pulumi("up", "--yes"))
    after = outputs(pulumi)["settings"]
    assert after != before
    assert Key("", "ConfigMap", "default", after) in store.keys("a")
    assert Key("", "ConfigMap", "default", before) not in store.keys("a")

    done(pulumi("destroy", "--yes"))
    assert store.clusters() == []
