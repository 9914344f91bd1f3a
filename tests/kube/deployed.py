"""The sample cluster dev/us-central1 and team vision's part of it, as they are planned, on real controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.kube.clusters import KINDS, KueueCluster, kueue_cluster
from tests.kube.queues import PATHS, Json, Queues, until
from tests.kube.rendered_objects import GKES_OWN, ApiServer, rendered
from tests.stacks.edited_dev import plans_of_dev
from tests.support.plans import PlannedStack
from training_platform.catalog import CHARTS

CLUSTER = "us-central1"
TEAM = "vision"
FLAVOR = "a100-40-spot"
GPU = "nvidia.com/gpu"
GPU_TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
NOTEBOOKS = (
    "          allowed_domain: example.com\n",
    "          allowed_domain: example.com\n          teams: {vision: {users: [ada@example.com], pools: [a100]}}\n",
)
# Without GPUDirect its namespace enforces baseline of Pod Security.
NO_GPUDIRECT = ("        h100-flex-start: {nominal_quota: 8, borrowing_limit: 8}\n", "")


class Deployed(NamedTuple):
    """A cluster with all that a deployment makes in it, but for the charts, whose values are in the plans."""

    kueue: KueueCluster
    plans: Mapping[str, PlannedStack]

    def values(self, release: str) -> Json:
        """Return the values of a release's chart in the cluster."""
        planned_release = self.plans["dev"].one("kubernetes:helm.sh/v3:Release", f"{CLUSTER}-{release}-release")
        return dict(planned_release.inputs["values"])

    def node_labels(self) -> dict[str, str]:
        """Return the labels of a VM of the team's GPUs."""
        flavor = self.kueue.server.read(f"{PATHS['ResourceFlavor']}/{FLAVOR}") or {}
        return {**flavor["spec"]["nodeLabels"], "node.kubernetes.io/instance-type": "a2-highgpu-8g"}


@contextmanager
def deployed(
    folder: Path, dev: tuple[str, str], needed: Sequence[str], definitions: Sequence[str] = ()
) -> Iterator[Deployed]:
    """Run the cluster with an edit of its stack file, two VMs of the team's GPUs, and one for other pods."""
    with without_nodes(folder, dev, needed, definitions) as cluster:
        queues = Queues(cluster.kueue.client)
        for index in range(2):
            queues.node(f"gpu-{index}", cluster.node_labels(), GPU, 8, taints=[GPU_TAINT])
        queues.node("other", {}, "example.com/none", 1)
        yield cluster


@contextmanager
def without_nodes(
    folder: Path,
    dev: tuple[str, str],
    needed: Sequence[str],
    definitions: Sequence[str] = (),
    *,
    vision: tuple[str, str] = NO_GPUDIRECT,
    kubelets: bool = False,
    change: Callable[[Json], Json] = lambda body: body,
) -> Iterator[Deployed]:
    """Run the cluster with edits of its and the team's stack file.

    ``change`` returns what is applied for a planned object.
    """
    plans = plans_of_dev(folder / "repository", {"dev": dev, "dev-vision": vision})
    release = plans["dev"].one("kubernetes:helm.sh/v3:Release", f"{CLUSTER}-kueue-release").inputs["values"]
    settings = yaml.safe_load(release["managerConfig"]["controllerManagerConfigYaml"])
    kinds = (*KINDS, "gmp", *definitions)
    with kueue_cluster(folder / "cluster", settings, kinds, needed, quotas=True, kubelets=kubelets) as kueue:
        stacks = (rendered_object for name, plan in plans.items() for rendered_object in rendered(name, name, plan))
        bodies = [change(rendered_object.body) for rendered_object in stacks if rendered_object.cluster[1] == CLUSTER]
        _apply(Queues(kueue.client), ApiServer(kueue.client), bodies)
        yield Deployed(kueue, plans)


def _apply(queues: Queues, server: ApiServer, bodies: list[Json]) -> None:
    """Apply what a deployment makes, namespaces first and queues last, and wait until the team's quota is counted."""
    for chart in CHARTS.values():
        name = {"metadata": {"name": chart.namespace}}
        server.refusal({"apiVersion": "v1", "kind": "Namespace", **name}, keep=True)
    for body in sorted(bodies, key=lambda obj: obj["kind"] != "Namespace"):
        is_served = (body["apiVersion"], body["kind"]) not in GKES_OWN
        if is_served and body["kind"] not in PATHS:
            assert (server.refusal(body, keep=True) or "409")[:3] == "409", body["metadata"]
    queues.deploy_all([body for body in bodies if body["kind"] in PATHS])
    quota = f"/api/v1/namespaces/{TEAM}/resourcequotas/team"
    until(lambda: queues.get(quota), lambda now: "pods" in now.get("status", {}).get("used", {}))
