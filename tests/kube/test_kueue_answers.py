"""Kueue's own statements: on a queue over several clusters (decision 13), and on waiting runs, for ``job why``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kube.api_servers import free_port
from tests.kube.clusters import KueueCluster, kueue_cluster
from tests.kube.controller_programs import PROGRAMS, Host, Launch, launch_kueue
from tests.kube.queues import Queues, until
from training_platform.clients.kubernetes_api import ClusterApi, connect
from training_platform.parts.jobs.runs.state import Run
from training_platform.parts.jobs.runs.why_on_gke import Seen, why
from training_platform.resources.kueue import configuration

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
