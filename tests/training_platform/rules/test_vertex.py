"""Rules of Vertex AI: persistent resources."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.builders import check, persistent_pool
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.resources.resource_types import PERSISTENT_RESOURCE
from training_platform.resources.stack_resource import StackResource
from training_platform.views.vertex import PersistentPoolView

T4 = {"machine_type": "n1-standard-8", "accelerator_type": "NVIDIA_TESLA_T4"}


def replicas(count: int | None, minimum: int | None, maximum: int | None) -> dict[str, int | None]:
    return {"replica_count": count, "min_replicas": minimum, "max_replicas": maximum}


TABLE = [
    Rule(
        "vertex-machine-type",
        persistent_pool,
        passes=[{"machine_type": "n2-standard-8"}],
        finds=[
            Found({"machine_type": "a2-higpu-1g"}, "a2-highgpu-1g"),
            {"machine_type": "e2-standard-2"},
            {"machine_type": "ct5lp-hightpu-4t"},
            {"machine_type": None},
        ],
    ),
    Rule(
        "vertex-accelerator",
        persistent_pool,
        passes=[
            {"machine_type": "a2-highgpu-2g", "accelerator_count": 2},
            {"machine_type": "n2-standard-8", "accelerator_type": None, "accelerator_count": None},
            {"machine_type": "ct5lp-hightpu-4t"},
            {**T4, "accelerator_count": 1},
            {**T4, "accelerator_type": "NVIDIA_TESLA_P100", "accelerator_count": 1},  # outside the catalogue
        ],
        finds=[
            Found({"accelerator_count": 2}, "1", path="machine_type"),
            {"accelerator_count": None},
            Found({"accelerator_type": None}, "NVIDIA_TESLA_A100", path="machine_type"),
            {"accelerator_type": "NVIDIA_L4"},
            Found({**T4, "machine_type": "n1-standard-32", "accelerator_count": 1}, "2"),  # which GKE would take
            Found({**T4, "accelerator_count": 3}, "2", path="accelerator_count"),
            Found({**T4, "machine_type": "n2-standard-8"}, path="accelerator"),
        ],
    ),
    Rule(
        "vertex-region",
        persistent_pool,
        passes=[{**T4, "accelerator_count": 1, "region": "europe-west4"}],
        finds=[{"region": "europe-north1"}],
    ),
    Rule(
        "persistent-replicas",
        persistent_pool,
        passes=[replicas(1, None, None), replicas(1, 1, 2), replicas(2, 1, 2), replicas(None, 1, 2)],
        finds=[
            Found(replicas(0, None, None), "1", path="replicas"),
            Found(replicas(3, 1, 2), "2", path="replicas"),
            Found(replicas(1, 2, 4), "2", path="replicas"),
            Found(replicas(1, 1, 1), "2", path="max_replicas"),
            Found(replicas(2, 2, 1), "3", path="max_replicas"),
            Found(replicas(1, 0, 2), "1", path="replicas"),
            Found(replicas(1, 1, None), path="replicas"),
            Found(replicas(1, None, 2), path="max_replicas"),
        ],
    ),
    Rule(
        "persistent-resource-name",
        persistent_pool,
        passes=[{"resource_id": "a" * 63}, {"resource_id": None}],
        finds=[{"resource_id": name} for name in ("a" * 64, "Tuning", "1tuning", "tuning-", "a_b")],
    ),
    Rule(
        "persistent-network",
        persistent_pool,
        passes=[{"network_attachment": "projects/p/regions/us-central1/networkAttachments/vertex"}],
        finds=[{"network_attachment": "projects/p/regions/us-east1/networkAttachments/vertex"}],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


def test_a_region_without_the_attached_gpu_is_a_warning() -> None:
    (finding,) = check("vertex-region", persistent_pool(**T4, accelerator_count=1, region="us-east4"))

    assert finding.severity == "warning"


def test_a_finding_of_a_further_pool_stands_at_that_pool_and_of_the_region_at_the_resource() -> None:
    origin = ("vertex", "persistent_resources", "tuning")
    pools = [{"id": "machines"}, {"id": "servers", "machineSpec": {"machineType": "ct5lp-hightpu-4t"}}]
    inputs = {"location": "us-central1", "resourcePools": pools}
    planned = StackResource(stack="prod-vision", type=PERSISTENT_RESOURCE, name="vertex-tuning", inputs=inputs)
    first, further = PersistentPoolView.of(planned, origin)

    assert first.path("machine_type") == (*origin, "machine_type")
    assert further.path("machine_type") == (*origin, "more_pools", "servers", "machine_type")
    assert further.path("region") == (*origin, "region")
