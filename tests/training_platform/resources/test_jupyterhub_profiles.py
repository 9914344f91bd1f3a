from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.stack_files import RANGES
from training_platform.catalog import IMAGES
from training_platform.config.expansion import FLAVOR_LABEL
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.resources.notebooks import Profile, profiles

Build = Callable[..., ClusterSpec]
Section = Callable[..., Notebooks]
HOST: dict[str, object] = {"machine_type": "ct5lp-hightpu-8t", "topology": "2x4"}
SLICE: dict[str, object] = {"machine_type": "ct5lp-hightpu-4t", "topology": "4x8"}
GPUS: dict[str, object] = {"machine_type": "a3-highgpu-8g"}


def only(cluster: ClusterSpec, notebooks: Notebooks) -> Any:
    """Return the one profile beside the CPU's."""
    _, profile = profiles("main", cluster, notebooks)
    return profile


def by_slug(hub_profiles: list[Profile]) -> dict[str, Profile]:
    return {profile["slug"]: profile for profile in hub_profiles}


def test_each_single_host_pool_has_a_profile_and_no_other_has(cluster: Build, notebooks: Section) -> None:
    hub_profiles = profiles("main", cluster(host=HOST, slices=SLICE, gpus=GPUS), notebooks())

    assert list(by_slug(hub_profiles)) == ["cpu", "pool-host", "pool-gpus"]


def test_a_pool_that_is_not_there_is_refused_with_the_nearest() -> None:
    hub = {"filestore": "homes", "host": "n.example.com", "oauth_client_id": "id", "allowed_domain": "example.com"}
    place = {"location": "us-central1-a", "subnet": RANGES, "node_pools": {"gpus": GPUS}}
    with pytest.raises(ValidationError) as refused:
        ClusterSpec.model_validate({**place, "notebooks": {**hub, "pools": ("gpu",)}})

    (error,) = refused.value.errors()
    assert (error["ctx"]["at"], error["ctx"]["nearest"]) == (("notebooks", "pools", 0), "gpus")


def test_who_does_not_choose_takes_no_accelerator(cluster: Build, notebooks: Section) -> None:
    hub_profiles = profiles("main", cluster(host=HOST, gpus=GPUS), notebooks())

    assert [profile["slug"] for profile in hub_profiles if profile.get("default")] == ["cpu"]
    assert hub_profiles[0]["description"] == "Up to 4 cores and 8 GB of memory; starts at once."
    limits = {"cpu_guarantee": 0.5, "cpu_limit": 4, "mem_guarantee": "2G", "mem_limit": "8G"}
    assert hub_profiles[0]["kubespawner_override"] == limits


def test_a_tpu_notebook_takes_all_chips_of_a_host_of_that_shape(cluster: Build, notebooks: Section) -> None:
    override = only(cluster(host={**HOST, "capacity": "spot"}), notebooks())["kubespawner_override"]

    assert override["extra_resource_limits"] == {"google.com/tpu": str(2 * 4)}
    assert override["node_selector"] == {
        FLAVOR_LABEL: "tpu-v5e-2x4-spot",
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
        "node.kubernetes.io/instance-type": "ct5lp-hightpu-8t",
    }


def test_a_gpu_notebook_takes_one_gpu_unless_all_are_asked_for(cluster: Build, notebooks: Section) -> None:
    profile = only(cluster(gpus=GPUS), notebooks())
    choices = profile["profile_options"]["gpus"]["choices"]
    limits = {
        name: choice["kubespawner_override"]["extra_resource_limits"]["nvidia.com/gpu"]
        for name, choice in choices.items()
    }

    assert limits == {"gpus-1": "1", "gpus-8": "8"}
    assert [name for name, choice in choices.items() if choice["default"]] == ["gpus-1"]
    # Dictionaries of a choice are merged into the profile's, so the profile itself asks for none.
    assert "extra_resource_limits" not in profile["kubespawner_override"]


ARM: dict[str, object] = {"machine_type": "a4x-highgpu-4g", "capacity": "reservation", "reservation": "nvl"}


@pytest.mark.parametrize(
    ("pool", "taints"),
    [
        (HOST, {"google.com/tpu": "present"}),
        (GPUS, {"nvidia.com/gpu": "present"}),
        (ARM, {"nvidia.com/gpu": "present", "kubernetes.io/arch": "arm64"}),
    ],
)
def test_a_notebook_tolerates_the_taints_of_its_nodes(
    cluster: Build, notebooks: Section, pool: dict[str, object], taints: dict[str, str]
) -> None:
    override = only(cluster(pool=pool), notebooks())["kubespawner_override"]

    assert override["tolerations"] == [
        {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"} for key, value in taints.items()
    ]


def test_gpu_notebooks_have_an_image_with_cuda_unless_the_stack_names_one(cluster: Build, notebooks: Section) -> None:
    ours = only(cluster(gpus=GPUS), notebooks(image="r.example.com/notebook:1"))["kubespawner_override"]

    assert only(cluster(gpus=GPUS), notebooks())["kubespawner_override"]["image"] == IMAGES["notebook-gpu"]
    assert "image" not in ours
    assert "image" not in only(cluster(host=HOST), notebooks())["kubespawner_override"]
