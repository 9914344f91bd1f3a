"""A Ray cluster: what is planned, and what the program's own provider does with it in the local cloud."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from pulumi.dynamic import ConfigureRequest
from pulumi.dynamic.config import Config
from pulumi.dynamic.dynamic import serialize_provider
from pydantic import ValidationError

from modules.vertex import ray_requests
from modules.vertex.persistent_resource import PersistentResource, PersistentResourceArgs
from modules.vertex.ray_cluster import RayProvider
from modules.vertex.ray_requests import RayClusterError, Settings, alike, settings
from tests.training_platform.jobs.runs.vertex_cloud import PROJECT, Cloud, write_repository
from training_platform.catalog import replacements
from training_platform.checks.planning.recorder import record
from training_platform.config.model import team
from training_platform.resources.planned import PROVIDER_CODE, Planned
from training_platform.resources.register import RAY_CLUSTER
from training_platform.resources.scope import Scope
from training_platform.resources.vertex.ray_cluster import RAY_PROVIDER
from training_platform.rules.documents.problems import Problem
from training_platform.rules.documents.shapes import check_of
from training_platform.sandbox.cloud.faults.spec import Scenario, Stockout
from training_platform.sandbox.cloud.http.server import serve
from training_platform.sandbox.cloud.state import settings as cloud_settings

LABELS = {"environment": "lab", "team": "vision", "managed-by": "training-platform"}
SCOPE = Scope(environment="lab", team="vision", project=PROJECT, labels=LABELS, deletion_protection=True)
POOLS = {
    "gpus": {"machine_type": "a2-highgpu-1g", "replicas": 0, "max_replicas": 4},
    "others": {"machine_type": "n1-standard-8", "replicas": 1},
}
ACCOUNT = {"enableCustomServiceAccount": True, "serviceAccount": f"lab-vision-jobs@{PROJECT}.iam.gserviceaccount.com"}
NAME = f"projects/{PROJECT}/locations/us-central1/persistentResources/lab-vision-rays"


def planned(ray: dict[str, Any] | None = None, pools: dict[str, Any] | None = None, **fields: Any) -> Planned:
    spec = team.PersistentResourceSpec(
        **{"region": "us-central1", "machine_type": "n2-standard-8", "ray": ray or {}, "more_pools": pools or POOLS}
        | fields
    )

    def program() -> None:
        PersistentResource("vertex-rays", PersistentResourceArgs(scope=SCOPE, key="rays", spec=spec))

    return record(program, project="training-platform", stack_name="lab-vision").one(RAY_CLUSTER)


def test_the_api_s_document_has_all_that_is_planned() -> None:
    plan, wrong = planned(), list[Problem]()
    judge = check_of(RAY_CLUSTER)
    assert judge

    judge(plan.inputs, (), wrong.append)
    assert wrong == []

    judge({**plan.inputs, "resourceRuntimeSpec": {"raySpec": {"headNodeResourcePoolId": [5]}}}, (), wrong.append)
    assert [problem.path for problem in wrong] == ["resourceRuntimeSpec.raySpec.headNodeResourcePoolId"]


def test_the_stack_file_decides_what_the_cluster_is() -> None:
    plan = planned()
    image = "us-docker.pkg.dev/vertex-ai/training/ray-{}.2-47.py311:latest"

    assert plan.inputs["resourceRuntimeSpec"] == {
        "serviceAccountSpec": ACCOUNT,
        "raySpec": {
            "headNodeResourcePoolId": "machines",
            "resourcePoolImages": {
                "machines": image.format("cpu"), "gpus": image.format("gpu"), "others": image.format("cpu"),
            },
            "rayMetricSpec": {"disabled": False},
            "rayLogsSpec": {"disabled": False},
        },
    }  # fmt: skip
    assert (plan.inputs["name"], plan.inputs["location"], plan.inputs["labels"]) == (
        "lab-vision-rays", "us-central1", LABELS,
    )  # fmt: skip
    assert plan.options["protect"] is True
    assert plan.options["deleteBeforeReplace"] is True


def test_the_number_of_workers_that_scale_is_the_autoscalers() -> None:
    machines, gpus, others = planned().inputs["resourcePools"]

    assert (machines["replicaCount"], others["replicaCount"]) == ("1", "1")
    assert "replicaCount" not in gpus
    assert gpus["autoscalingSpec"] == {"minReplicaCount": "0", "maxReplicaCount": "4"}


@pytest.mark.parametrize(
    ("region", "version", "image"),
    [
        ("europe-west4", "2.47", "europe-docker.pkg.dev/vertex-ai/training/ray-cpu.2-47.py311:latest"),
        ("me-west1", "2.42", "us-docker.pkg.dev/vertex-ai/training/ray-cpu.2-42.py310:latest"),
        ("asia-east1", "2.33", "asia-docker.pkg.dev/vertex-ai/training/ray-cpu.2-33.py310:latest"),
    ],
)
def test_images_are_near_and_of_the_version(region: str, version: str, image: str) -> None:
    images = planned({"version": version}, region=region).inputs["resourceRuntimeSpec"]["raySpec"]["resourcePoolImages"]

    assert images["machines"] == image


def test_machines_with_attached_gpus_get_the_image_for_gpus() -> None:
    attached = {"machine_type": "n1-standard-8", "accelerator": "t4", "replicas": 1}
    images = planned(pools={"gpus": attached}).inputs["resourceRuntimeSpec"]["raySpec"]["resourcePoolImages"]

    assert {pool: image.split("/")[-1].split(".")[0] for pool, image in images.items()} == {
        "machines": "ray-cpu", "gpus": "ray-gpu",
    }  # fmt: skip


def test_a_head_is_one_of_the_pools() -> None:
    with pytest.raises(ValidationError, match=r"ray.head_pool heads is not one of the pools: machines, gpus, others"):
        planned({"head_pool": "heads"})


def test_the_state_holds_where_the_provider_is_and_no_code_of_it() -> None:
    """A stack's state keeps these bytes until the resource is deleted: with other names nobody could delete it."""
    kept = base64.b64decode(serialize_provider(RayProvider()))

    assert serialize_provider(RayProvider()) == RAY_PROVIDER  # which an import writes
    assert len(kept) < 100
    assert b"modules.vertex.ray_cluster" in kept
    assert b"RayProvider" in kept


class Provided:
    """The provider, a local cloud with a clock, and what the state has of one resource."""

    def __init__(self, cloud: Cloud, port: int) -> None:
        self.cloud = cloud
        self.cloud.cloud.settings = cloud_settings.Settings(durations={"aiplatform.persistentResources": 600.0})
        self.provider = RayProvider()
        endpoint = f"http://127.0.0.1:{port}/aiplatform/v1beta1/"
        config = {"gcp:vertexAiCustomEndpoint": endpoint, "gcp:accessToken": "none", "gcp:pollInterval": "60s"}
        self.provider.configure(ConfigureRequest(Config(config, "training-platform")))

    def ask(self, verb: str, name: str, body: dict[str, Any] | None = None, **query: str) -> tuple[int, Any]:
        return self.cloud.cloud.handle("aiplatform", verb, f"v1/{name}", list(query.items()), body or {})

    def stands(self) -> Any:
        code, body = self.ask("GET", NAME)
        return body if code == 200 else None


@pytest.fixture
def provided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provided]:
    cloud = Cloud(write_repository(tmp_path / "lab"))

    def pass_time(seconds: float) -> None:
        cloud.now += seconds

    monkeypatch.setattr(ray_requests, "time", SimpleNamespace(sleep=pass_time, monotonic=lambda: cloud.now))
    monkeypatch.setattr("sys.tracebacklimit", 100, raising=False)  # the provider sets it for its plugin's process
    with serve(cloud.cloud) as port:
        yield Provided(cloud, port)


def inputs(**fields: Any) -> dict[str, Any]:
    return copy.deepcopy(dict(planned(**fields).inputs))


def larger() -> dict[str, Any]:
    return inputs(pools={**POOLS, "others": {"machine_type": "n1-standard-8", "replicas": 3}})


def test_it_is_created_with_all_that_is_said_and_waited_for(provided: Provided) -> None:
    said = inputs()

    made = provided.provider.create(said)

    found = provided.stands()
    assert made.id == NAME
    assert found["state"] == "RUNNING"
    assert alike({key: value for key, value in said.items() if key not in ("project", "location", "name")}, found)
    assert made.outs is not None
    assert made.outs["resourceRuntime"]["accessUris"].keys() == {"RAY_HEAD_NODE_INTERNAL_IP", "RAY_DASHBOARD_URI"}
    assert {key: made.outs[key] for key in said} == said


def test_one_that_an_interrupted_deployment_left_is_taken(provided: Provided) -> None:
    said = inputs()
    parent = NAME.rpartition("/")[0].rpartition("/")[0]
    body = {key: value for key, value in said.items() if key not in ("project", "location", "name")}
    code, _ = provided.ask("POST", f"{parent}/persistentResources", body, persistentResourceId="lab-vision-rays")
    assert code == 200
    assert provided.stands()["state"] == "PROVISIONING"

    made = provided.provider.create(said)

    assert made.id == NAME
    assert provided.stands()["state"] == "RUNNING"


def test_another_of_the_same_name_is_left_alone(provided: Provided) -> None:
    provided.provider.create(inputs())
    before = provided.stands()

    with pytest.raises(RayClusterError, match="lab-vision-rays exists with other settings"):
        provided.provider.create(larger())

    assert provided.stands() == before


def test_what_a_sold_out_machine_leaves_is_deleted_so_that_the_name_is_free(provided: Provided) -> None:
    gone = Stockout(machine_type="n2-standard-8", location="us-central1")
    provided.cloud.cloud.faults.add(Scenario(stockouts={"gone": gone}))

    with pytest.raises(RayClusterError, match="lab-vision-rays"):
        provided.provider.create(inputs())

    assert provided.stands() is None


def test_only_sizes_change_in_place(provided: Provided) -> None:
    old, new = inputs(), larger()
    outs = provided.provider.create(old).outs or {}

    diff = provided.provider.diff(NAME, outs, new)
    updated = provided.provider.update(NAME, outs, new).outs or {}

    assert (diff.changes, diff.replaces) == (True, [])
    assert [pool.get("replicaCount") for pool in provided.stands()["resourcePools"]] == ["1", "0", "3"]
    assert updated["resourcePools"] == new["resourcePools"]
    again = provided.provider.diff(NAME, updated, new)
    assert (again.changes, again.replaces) == (False, [])


@pytest.mark.parametrize(
    ("change", "replaces"),
    [
        ({"ray": {"version": "2.42"}}, ["resourceRuntimeSpec"]),
        ({"machine_type": "n2-standard-16"}, ["resourcePools"]),
        ({"boot_disk": {"size_gb": 200}}, ["resourcePools"]),
        ({"pools": {**POOLS, "gpus": {**POOLS["gpus"], "max_replicas": 5}}}, ["resourcePools"]),
        ({"pools": {"gpus": POOLS["gpus"]}}, ["resourcePools", "resourceRuntimeSpec"]),
        ({"region": "us-east1"}, ["location"]),
    ],
)
def test_every_other_change_replaces_as_the_table_says(change: dict[str, Any], replaces: list[str]) -> None:
    old, new = inputs(), inputs(**change)

    diff = RayProvider().diff(NAME, {**old, "resourceRuntime": {}, "__provider": "a"}, {**new, "__provider": "b"})

    assert (diff.changes, diff.replaces, diff.delete_before_replace) == (True, replaces, True)
    for key in replaces:
        leaf = {"resourceRuntimeSpec": "resourceRuntimeSpec.raySpec.headNodeResourcePoolId", "location": "location"}
        assert replacements.forces(RAY_CLUSTER, leaf.get(key, "resourcePools[0].machineSpec.machineType"))
    assert not replacements.forces(RAY_CLUSTER, "resourcePools[0].replicaCount")


def test_a_refresh_sees_sizes_that_somebody_changed_and_no_others(provided: Provided) -> None:
    said = inputs()
    outs = provided.provider.create(said).outs or {}
    pools = provided.stands()["resourcePools"]
    pools[1]["replicaCount"], pools[2]["replicaCount"] = "2", "4"  # the autoscaler's, and a person's
    code, _ = provided.ask("PATCH", NAME, {"resourcePools": pools}, updateMask="resourcePools.replicaCount")
    assert code == 200

    read = provided.provider.read(NAME, outs)

    assert read.inputs is not None
    assert [pool.get("replicaCount") for pool in read.inputs["resourcePools"]] == ["1", None, "4"]
    assert provided.provider.diff(NAME, read.outs or {}, said).replaces == []
    assert provided.provider.diff(NAME, read.outs or {}, said).changes is True


def test_one_that_is_gone_is_read_as_gone_and_deleted_without_complaint(provided: Provided) -> None:
    outs = provided.provider.create(inputs()).outs or {}

    provided.provider.delete(NAME, outs)

    assert provided.stands() is None
    assert provided.provider.read(NAME, outs).id == ""
    provided.provider.delete(NAME, outs)


@pytest.mark.parametrize("begun", [False, True])
def test_what_is_not_done_after_an_hour_is_no_success_and_the_next_deployment_waits_on(
    provided: Provided, begun: bool
) -> None:
    said, hours = inputs(), cloud_settings.Settings(durations={"aiplatform.persistentResources": 5400.0})
    if begun:
        provided.provider.create(said)
    provided.cloud.cloud.settings = hours
    step = partial(provided.provider.delete, NAME, said) if begun else partial(provided.provider.create, said)

    with pytest.raises(RayClusterError, match=r"not done with .*lab-vision-rays after 60 minutes: deploy again"):
        step()

    assert provided.stands()["state"] == ("STOPPING" if begun else "PROVISIONING")
    step()
    assert (provided.stands() or {}).get("state") == (None if begun else "RUNNING")


def test_credentials_are_looked_for_once(monkeypatch: pytest.MonkeyPatch, provided: Provided) -> None:
    session = Mock(wraps=ray_requests._session)
    monkeypatch.setattr(ray_requests, "_session", session)

    provided.provider.create(inputs())  # ten polls of a minute
    provided.provider.delete(NAME, inputs())

    session.assert_called_once()


def test_a_refusal_is_one_sentence(provided: Provided) -> None:
    said = inputs()
    del said["resourceRuntimeSpec"]["raySpec"]["resourcePoolImages"]

    with pytest.raises(RayClusterError, match=r"refuses .*lab-vision-rays \(400\): Either image_uri or") as caught:
        provided.provider.create(said)

    assert str(caught.value).count("\n") == 0
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("declared", "actual", "same"),
    [
        ({"disabled": False, "count": "0"}, {}, True),
        ({"disabled": True}, {}, False),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": [{"b": "1"}]}, {"a": [{"b": "1", "used": "0"}]}, True),
        ({"a": [{"b": "1"}]}, {"a": []}, False),
        ({"a": "projects/name/regions/r"}, {"a": "projects/123/regions/r"}, True),
        ({"a": 100.0}, {"a": 100}, True),
        ({"a": "100"}, {"a": "200"}, False),
        ({"a": "x"}, None, False),
    ],
)
def test_what_the_cloud_adds_and_leaves_out_does_not_count(declared: Any, actual: Any, same: bool) -> None:
    assert alike(declared, actual) is same


def test_settings_are_those_of_the_gcp_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT", "http://127.0.0.1:1/")
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "environment")

    assert settings(lambda _: None) == Settings("http://127.0.0.1:1/", "environment", 10.0)
    configured = {"gcp:vertexAiCustomEndpoint": "https://a/", "gcp:accessToken": "stack", "gcp:pollInterval": "200ms"}
    assert settings(configured.get) == Settings("https://a/", "stack", 0.2)
    assert settings({"gcp:pollInterval": "2m"}.get).poll_seconds == 120.0


def test_without_credentials_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing"))

    with pytest.raises(RayClusterError, match="There are no credentials: "):
        ray_requests.RayClusters(Settings()).get(NAME)


def test_a_plan_leaves_the_provider_out() -> None:
    assert PROVIDER_CODE not in planned().inputs
