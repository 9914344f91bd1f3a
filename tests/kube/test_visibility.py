"""What Kueue itself says of who waits in a queue, read as ``job why`` reads it.

Kueue shows it by a server of its own, which a cluster reaches behind its API server. Here it is asked directly: nothing
aggregates on these API servers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kube.clusters import KueueCluster, kueue_cluster
from tests.kube.queues import Queues, until
from training_platform.clients.kubernetes_api import ClusterApi, connect
from training_platform.jobs.runs.state import Run
from training_platform.jobs.runs.why_on_gke import Seen, why
from training_platform.resources.kueue import configuration
from training_platform.sandbox.kubernetes import controllers
from training_platform.sandbox.kubernetes.api_servers import free_port
from training_platform.sandbox.kubernetes.controllers import Ports, Start, start

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]

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
    """A cluster with Kueue, and where Kueue says who waits."""

    cluster: KueueCluster
    port: int


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    port, root = free_port(), tmp_path_factory.mktemp("root")

    def visible(name: str, settings: Any, ports: Ports, certificate: Path, folder: Path) -> Start:
        found = start(name, settings, ports, certificate, folder)
        certificates = found.inside[-1]
        inside = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", OWN_ROOT, str(root), certificates)
        body = {**found.settings, "visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": port}}
        return Start(inside, {"feature-gates": "VisibilityOnDemand=true"}, body)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(controllers, "start", visible)
        settings = configuration(["reservation"])
        with kueue_cluster(tmp_path_factory.mktemp("visibility"), settings, needed=["kueue"]) as cluster:
            yield Shown(cluster, port)


def asked(shown: Shown, folder: Path) -> ClusterApi:
    """Return the client of ``job why``, which asks Kueue's server where it would ask the API server."""
    config = json.loads(shown.cluster.access.kubeconfig())
    config["clusters"][0]["cluster"] = {"server": f"https://127.0.0.1:{shown.port}", "insecure-skip-tls-verify": True}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return connect("main", contexts=["cluster"], kubeconfig=str(path), log_in="")


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_a_run_that_waits_is_told_how_many_are_before_it(shown: Shown, tmp_path: Path) -> None:
    queues, api = Queues(shown.cluster.client), asked(shown, tmp_path)
    queues.deploy({"vision": {"shares": {"main": {"h100-reservation": {"nominal_quota": 8}}}}})
    queues.submit("vision", "first", 8, priority="high")  # nobody takes its place
    queues.runs("vision", "first")
    queues.submit("vision", "second", 8, priority="low")
    queues.submit("vision", "third", 8, priority="normal")

    pending = until(lambda: api.pending("vision", "vision") or [], lambda found: len(found) == 2)
    workloads = {name: queues.workload("vision", name) for name in ("second", "third")}

    assert [each["metadata"]["name"] for each in pending] == [
        workloads[name]["metadata"]["name"] for name in ("third", "second")
    ]
    said = {name: " ".join(why(run_of(name), seen_of(each, pending))) for name, each in workloads.items()}
    assert "No run is before it." in said["third"]
    assert "Runs before it: 1 of the team's own." in said["second"]
    assert api.pending("vision", "nobody") is None  # Kueue answers 404


def run_of(name: str) -> Run:
    return Run(
        name=name, job=name, team="vision", target="gke", place="main", identity=name, state="waiting", created=""
    )


def seen_of(workload: Any, pending: Any) -> Seen:
    return Seen(jobset={}, workload=workload, queue={"status": {}}, queue_name="vision", pending=pending)
