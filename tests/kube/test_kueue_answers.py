"""Kueue's own statements: on a queue over several clusters (decision 13), and on waiting runs, for ``job why``."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.kube.api_servers import free_port
from tests.kube.clusters import KueueCluster, kueue_cluster
from tests.kube.controller_programs import PROGRAMS, Host, Launch, launch_kueue
from tests.kube.queues import KUEUE, Json, Queues, until
from training_platform.clients.kubernetes_api import ClusterApi, connect
from training_platform.parts.jobs.runs.state import Run
from training_platform.parts.jobs.runs.why_on_gke import Seen, why
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

API = "kueue.x-k8s.io/v1beta2"
NAMESPACE = "kueue-system"
# How kubectl and our provider sign in to GKE: no secret, and a plugin that asks Google Cloud for a token each time.
PLUGIN = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "gke-gcloud-auth-plugin"}}
TOKEN = {"token": "a-token-that-somebody-has-to-keep"}


@pytest.fixture(scope="module")
def queues(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queues]:
    settings = configuration(["reservation", "queued-provisioning"])
    with kueue_cluster(tmp_path_factory.mktemp("multikueue"), settings) as cluster:
        queues = Queues(cluster.client)
        queues.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield queues


def kubeconfig(user: Json) -> str:
    text = yaml.safe_dump(
        {
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "a", "user": user}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }
    )  # fmt: skip
    return base64.b64encode(text.encode()).decode()


def condition(queues: Queues, path: str) -> dict[str, Any]:
    """Wait for the condition Active of an object, and return it."""

    def active() -> list[Json]:
        conditions = queues.get(path).get("status", {}).get("conditions", ())
        return [row for row in conditions if row["type"] == "Active"]

    return dict(until(active, bool)[0])


@pytest.mark.parametrize(("name", "user", "refused"), [("plugin", PLUGIN, True), ("token", TOKEN, False)])
def test_a_worker_is_not_reached_as_gke_is_but_by_a_token(queues: Queues, name: str, user: Json, refused: bool) -> None:
    about = {"name": name, "namespace": NAMESPACE}
    secret = {"metadata": about, "data": {"kubeconfig": kubeconfig(user)}}
    queues.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", secret)
    source = {"clusterSource": {"kubeConfig": {"location": name, "locationType": "Secret"}}}
    body = {"apiVersion": API, "kind": "MultiKueueCluster", "metadata": {"name": name}, "spec": source}
    queues.create(f"{KUEUE}/multikueueclusters", body)

    answer = condition(queues, f"{KUEUE}/multikueueclusters/{name}")

    assert answer["status"] == "False"  # nobody answers at the other's address either
    assert ("exec" in answer["message"].lower()) is refused, answer
    assert (answer["reason"] == "InsecureKubeConfig") is refused, answer


def test_a_queue_has_no_check_of_both_other_clusters_and_requested_vms(queues: Queues) -> None:
    checks = {
        "clusters": ("kueue.x-k8s.io/multikueue", "MultiKueueConfig", {"clusters": ["token"]}),
        "machines": (
            "kueue.x-k8s.io/provisioning-request", "ProvisioningRequestConfig",
            {"provisioningClassName": "queued-provisioning.gke.io"},
        ),
    }  # fmt: skip
    for name, (controller, kind, spec) in checks.items():
        config = {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
        queues.create(f"{KUEUE}/{kind.lower()}s", config)
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": kind, "name": name}
        check = {"controllerName": controller, "parameters": parameters}
        body = {"apiVersion": API, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": check}
        queues.create(f"{KUEUE}/admissionchecks", body)
    strategy = {"admissionChecksStrategy": {"admissionChecks": [{"name": name} for name in checks]}}
    body = {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": "spans"}, "spec": strategy}
    queues.create(f"{KUEUE}/clusterqueues", body)

    def reason() -> str:
        return str(condition(queues, f"{KUEUE}/clusterqueues/spans")["message"])

    message = until(reason, lambda text: "MultiKueue" in text)
    assert "ProvisioningRequest" in message or "provisioning" in message.lower()


# Kueue reads the certificates of its servers from /etc and /visibility alone: it gets a root of its own with both.
OWN_ROOT = """
mount -t tmpfs tmpfs "$0" && cd "$0" || exit 1
for each in /*; do
  if [ -L "$each" ]; then cp -P "$each" ".$each"
  elif [ -d "$each" ]; then mkdir ".$each" && mount --rbind "$each" ".$each"; fi
done
mount -t tmpfs tmpfs ./etc && mkdir -p ./etc/kueue/metrics
cp -r "$1" ./etc/kueue/metrics/certs && cp -r "$1" ./visibility
root=$0; shift
exec chroot "$root" "$@"
"""


class Shown(NamedTuple):
    """A cluster with Kueue, and the address of Kueue's visibility server."""

    cluster: KueueCluster
    port: int


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    port = free_port()
    root = tmp_path_factory.mktemp("root")

    def visible(host: Host, settings: Any) -> Launch:
        launch = launch_kueue(host, settings)
        certificates = str(host.certificates)
        return launch._replace(
            settings={
                **launch.settings,
                "featureGates": {"VisibilityOnDemand": True},
                "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": port},
            },
            inside=("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", OWN_ROOT, str(root), certificates),
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROGRAMS, "kueue", PROGRAMS["kueue"]._replace(launch=visible))
        settings = configuration(["reservation"])
        with kueue_cluster(tmp_path_factory.mktemp("visibility"), settings, needed=["kueue"]) as cluster:
            yield Shown(cluster, port)


def asked(shown: Shown, folder: Path) -> ClusterApi:
    """Return the client of ``job why``, which asks Kueue's server where it would ask the API server."""
    config = json.loads(shown.cluster.server.kubeconfig())
    config["clusters"][0]["cluster"] = {"server": f"https://127.0.0.1:{shown.port}", "insecure-skip-tls-verify": True}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return connect("main", contexts=["cluster"], kubeconfig=str(path), log_in="")


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_a_run_that_waits_is_told_how_many_are_before_it(shown: Shown, tmp_path: Path) -> None:
    queues = Queues(shown.cluster.client)
    api = asked(shown, tmp_path)
    queues.deploy({"vision": {"shares": {"main": {"h100-reservation": {"nominal_quota": 8}}}}})
    queues.submit("vision", "first", 8, priority="high")  # nobody takes its place
    queues.runs("vision", "first")
    queues.submit("vision", "second", 8, priority="low")
    queues.submit("vision", "third", 8, priority="normal")

    pending = until(lambda: api.pending("vision", "vision") or [], lambda rows: len(rows) == 2)
    workloads = {name: queues.workload("vision", name) for name in ("second", "third")}

    assert [workload["metadata"]["name"] for workload in pending] == [
        workloads[name]["metadata"]["name"] for name in ("third", "second")
    ]
    reasons = {name: " ".join(why(run_of(name), seen_of(workload, pending))) for name, workload in workloads.items()}
    assert "It is the first in its queue." in reasons["third"]
    assert "Runs before it: 1 of the team." in reasons["second"]
    assert api.pending("vision", "nobody") is None  # Kueue answers 404


def run_of(name: str) -> Run:
    return Run(
        name=name, job=name, team="vision", target="gke", place="main", identity=name, state="waiting", created=""
    )


def seen_of(workload: Any, pending: Any) -> Seen:
    return Seen(jobset={}, workload=workload, queue={"status": {}}, queue_name="vision", pending=pending)
