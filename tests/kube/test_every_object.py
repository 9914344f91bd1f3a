"""Every object that a shipped or generated stack renders, put to the real API server, definitions and webhooks.

What a deployment has of Helm is not asked about, since the charts are not at hand.
``TRAINING_PLATFORM_GKE_DEFINITIONS`` may name a folder with the definitions of ``GKES_OWN``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fleet import FleetSize, write_fleet
from tests.kube.clusters import KINDS, NEEDED, KueueCluster, kueue_cluster
from tests.kube.queues import KUEUE, PATHS, Json, Queues, until
from tests.kube.rendered_objects import GKES_OWN, ApiServer, Rendered, rendered
from tests.stacks import every_field
from tests.support.places import ORGANISATION, ROOT
from tests.support.plans import planned_stacks
from tests.training_platform.rules.documents.gateways import CASES, IDS, Case, inputs
from training_platform.catalog import CHARTS
from training_platform.config.workspace import read_workspace
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(600)]

NAMESPACES = ("gmp-system", "gmp-public")  # GKE creates them for managed Prometheus
GKE_DEFINITIONS = "TRAINING_PLATFORM_GKE_DEFINITIONS"
DEFINITIONS = (*KINDS, "gmp", "TRAINING_PLATFORM_LWS_DEFINITIONS")
QUEUE_KINDS = tuple(kind for kind, path in PATHS.items() if path.startswith(KUEUE))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KueueCluster]:
    """All definitions at hand, with the controllers and webhooks of Kueue, JobSet and LeaderWorkerSet."""
    definitions_of_gke = (GKE_DEFINITIONS,) if GKE_DEFINITIONS in os.environ else ()
    settings = configuration(["reservation", "queued-provisioning"], pods=True)
    folder = tmp_path_factory.mktemp("every-object")
    with kueue_cluster(folder, settings, (*DEFINITIONS, *definitions_of_gke), (*NEEDED, "jobset", "lws")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: KueueCluster, objects: list[Rendered]) -> ApiServer:
    """The API server, with every namespace, those that releases of Helm and GKE bring too."""
    server = ApiServer(cluster.client)
    spaces = {
        rendered_object.body["metadata"]["name"]: rendered_object.body
        for rendered_object in objects
        if rendered_object.kind[1] == "Namespace"
    }
    for name in {chart.namespace for chart in CHARTS.values()} | set(NAMESPACES):
        spaces.setdefault(name, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for body in spaces.values():
        assert server.refusal(body, keep=True) == ""
    return server


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Rendered]:
    """All objects, each once for a cluster."""
    fleet = tmp_path_factory.mktemp("fleet")
    write_fleet(fleet, FleetSize(environments=1, pools=20, teams=2))
    folders = {"samples": ROOT, "organisation": ORGANISATION, "fleet": fleet}
    every = [
        *(rendered_object for source, folder in folders.items() for rendered_object in _of_folder(source, folder)),
        *_of_every_field(),
    ]
    once = {
        json.dumps([rendered_object.cluster, rendered_object.body], sort_keys=True): rendered_object
        for rendered_object in every
    }
    return list(once.values())


def _of_folder(source: str, folder: Path) -> Iterator[Rendered]:
    workspace = read_workspace(folder)
    for stack, plan in planned_stacks(workspace, workspace.stacks.values()):
        yield from rendered(f"{source} {stack.environment_name}", stack.name, plan)


def _of_every_field() -> Iterator[Rendered]:
    """Yield the objects of stacks in which every field of the model has a value."""
    for stack in ("env", "team"):
        plan = every_field.planned(every_field.ENVIRONMENT, every_field.TEAM, stack)
        yield from rendered("every field", stack, plan)


def test_only_what_gke_alone_defines_is_not_asked_about(server: ApiServer, objects: list[Rendered]) -> None:
    assert {rendered_object.kind for rendered_object in objects} - server.kinds.keys() <= GKES_OWN.keys()
    assert GKES_OWN.keys() <= {rendered_object.kind for rendered_object in objects}


def test_every_object_is_accepted(server: ApiServer, objects: list[Rendered]) -> None:
    distinct = {
        json.dumps(rendered_object.body, sort_keys=True): rendered_object
        for rendered_object in objects
        if rendered_object.kind in server.kinds
    }
    other_objects = [rendered_object for rendered_object in distinct.values() if rendered_object.kind[1] != "Namespace"]
    refusals = {rendered_object.name: server.refusal(rendered_object.body) for rendered_object in other_objects}

    assert {name: refusal for name, refusal in refusals.items() if refusal} == {}
    assert len(distinct) > 400


@pytest.mark.usefixtures("server")  # namespaces
def test_every_queue_becomes_active(cluster: KueueCluster, objects: list[Rendered]) -> None:
    queues = Queues(cluster.client)
    of_queues = sorted(
        (rendered_object for rendered_object in objects if rendered_object.kind[1] in QUEUE_KINDS),
        key=lambda rendered_object: rendered_object.cluster,
    )
    tried = set()
    for _, every in groupby(of_queues, key=lambda rendered_object: rendered_object.cluster):
        bodies = [rendered_object.body for rendered_object in every]
        text = json.dumps(bodies, sort_keys=True)
        if text not in tried:
            tried.add(text)
            queues.deploy_all(bodies)  # which waits for the ClusterQueues
            _wait_for_local_queues(queues, bodies)
            _clear(queues)

    assert len(tried) > 10


def _wait_for_local_queues(queues: Queues, bodies: Iterable[Json]) -> None:
    """Wait until each is active, but those of a queue that is held."""
    of_kind = {kind: [body for body in bodies if body["kind"] == kind] for kind in ("ClusterQueue", "LocalQueue")}
    held = {queue["metadata"]["name"] for queue in of_kind["ClusterQueue"] if queue["spec"]["stopPolicy"] != "None"}
    for local_queue in of_kind["LocalQueue"]:
        if local_queue["spec"]["clusterQueue"] not in held:
            about = local_queue["metadata"]
            path = f"{PATHS['LocalQueue'].format(about['namespace'])}/{about['name']}"
            until(lambda path=path: _conditions(queues.get(path)), lambda now: now.get("Active") == "True")  # type: ignore[misc]


def _conditions(body: Json) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in body.get("status", {}).get("conditions", ())}


def _clear(queues: Queues) -> None:
    """Take away all that belongs to queues: flavors of the next cluster have the same names."""
    queues.clear()
    for kind in reversed(QUEUE_KINDS):
        path = PATHS[kind].replace("/namespaces/{}", "")
        for obj in queues.get(path)["items"]:
            queues.delete(f"{PATHS[kind].format(obj['metadata'].get('namespace', ''))}/{obj['metadata']['name']}")
    for kind in QUEUE_KINDS:
        path = PATHS[kind].replace("/namespaces/{}", "")
        until(lambda path=path: queues.get(path)["items"], lambda items: not items)  # type: ignore[misc]


@pytest.fixture(scope="module")
def gateway_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("gateways")
    if GKE_DEFINITIONS not in os.environ:
        pytest.skip(f"{GKE_DEFINITIONS} names no definitions of GKE's own kinds")
    with kueue_cluster(folder, configuration(["on-demand"]), ("kueue", GKE_DEFINITIONS), ("kueue",)) as cluster:
        yield ApiServer(cluster.client)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_api_server_refuses_what_is_found_and_takes_what_is_not(gateway_server: ApiServer, case: Case) -> None:
    def refusal(part: dict[str, Any]) -> str:
        return gateway_server.refusal({"apiVersion": case.version, "kind": case.kind, **inputs(case.kind, part)})

    assert refusal(case.wrong)
    assert refusal(case.right) == ""
