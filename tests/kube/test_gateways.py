"""Gateways, routes and health checks that are found wrong, put to a real API server with their definitions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.clusters import kueue_cluster
from tests.kube.test_every_object import GKE_DEFINITIONS, ApiServer
from tests.training_platform.rules.documents.gateways import CASES, IDS, Case, inputs
from training_platform.resources.kueue import configuration

pytestmark = [pytest.mark.kube, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("gateways")
    if GKE_DEFINITIONS not in os.environ:
        pytest.skip(f"{GKE_DEFINITIONS} names no definitions of GKE's own kinds")
    with kueue_cluster(folder, configuration(["on-demand"]), ("kueue", GKE_DEFINITIONS), ("kueue",)) as cluster:
        yield ApiServer(cluster.client)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_api_server_refuses_what_is_found_and_takes_what_is_not(server: ApiServer, case: Case) -> None:
    def refusal(part: dict[str, Any]) -> str:
        return server.refusal({"apiVersion": case.version, "kind": case.kind, **inputs(case.kind, part)})

    assert refusal(case.wrong)
    assert refusal(case.right) == ""
