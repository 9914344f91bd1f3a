"""Calls to one cluster's API, as far as no command shows them by itself."""

from __future__ import annotations

from kubernetes import client

from tests.parts.jobs.runs.api_stub import ApiStub, served
from training_platform.clients.kubernetes_api import PODS, ClusterApi


def test_a_character_that_two_chunks_of_a_log_share_is_read_whole() -> None:
    stub = ApiStub()
    line = "x" * 4095 + "é"
    stub.texts["/api/v1/namespaces/vision/pods/p/log"] = f"{line}\nend"
    with served(stub) as address:
        cluster = ClusterApi(client.ApiClient(client.Configuration(host=address)), "lab")

        assert list(cluster.logs("vision", "p", "main", follow=False)) == [line, "end"]


def test_objects_are_read_in_pages() -> None:
    stub = ApiStub()
    stub.lists["/api/v1/namespaces/vision/pods"] = [{"metadata": {"name": f"p{number}"}} for number in range(501)]
    with served(stub) as address:
        cluster = ClusterApi(client.ApiClient(client.Configuration(host=address)), "lab")

        assert len(list(cluster.objects(PODS, "vision"))) == 501
