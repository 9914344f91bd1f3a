"""Rules about the nodes of a pool: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.builders import check, cluster, gpu_pool, repository, slice_pool, system_pool
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.views.node_pool import Taint

T4 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
TAINT = Taint("team", "NO_SCHEDULE")


TABLE = [
    Rule(
        "e2-features",
        system_pool,
        passes=[
            {"machine_type": "e2-standard-4"},
            {"machine_type": "n2-standard-4", "local_ssd_count": 1, "nested": True, "huge_pages_1g": 4},
            {"machine_type": "n2d-standard-4", "min_cpu_platform": "AMD Milan"},
        ],
        finds=[
            {"machine_type": "e2-standard-4", "local_ssd_count": 1},
            {"machine_type": "e2-standard-4", "nested": True},
            {"machine_type": "e2-standard-4", "confidential": "SEV"},
            {"machine_type": "e2-standard-4", "huge_pages_1g": 4},
            Found({"machine_type": "n2d-standard-4", "min_cpu_platform": "Intel Ice Lake"}, "AMD Milan"),
        ],
    ),
    Rule(
        "node-sysctls",
        gpu_pool,
        passes=[
            {"sysctls": {"net.core.somaxconn": "128", "vm.overcommit_ratio": "100"}},
            {"sysctls": {"net.ipv4.tcp_rmem": "4096 87380 6291456"}},
        ],
        finds=[
            Found({"sysctls": {"net.core.somaxcon": "4096", "vm.swappines": "0"}}, times=2),
            Found({"sysctls": {"net.core.somaxconn": "127", "vm.overcommit_ratio": "101"}}, times=2),
            {"sysctls": {"net.core.somaxconn": "4k"}},
        ],
    ),
    Rule("node-huge-pages", system_pool, passes=[{"huge_pages_2m": 4915}], finds=[{"huge_pages_2m": 4916}]),  # of 16 GB
    Rule(
        "node-huge-pages",
        gpu_pool,
        passes=[{"huge_pages_1g": 1497}],  # 1,497.6 of 1,872 GB
        finds=[{"huge_pages_1g": 1497, "huge_pages_2m": 512}],
    ),
    Rule("node-image", slice_pool, passes=[], finds=[{"image_type": "UBUNTU_CONTAINERD", "image_streaming": False}]),
    Rule(
        "machine-type-known",
        gpu_pool,
        passes=[],
        finds=[
            Found({"machine_type": "a3-higpu-8g"}, "a3-highgpu-8g", severity="error"),
            Found({"machine_type": "a5-highgpu-8g"}, severity="warning"),
            *(Found({"machine_type": name}, severity="warning") for name in ("a3-edgegpu-8g", "ct5l-hightpu-4t")),
            Found({"machine_type": None}, severity="warning"),
        ],
    ),
    Rule(
        "machine-zone",
        gpu_pool,
        passes=[
            {"machine_type": "e2-standard-4"},
            {"machine_type": "a4x-highgpu-4g", "zones": ("us-east4-b",)},  # of which only regions are known
            {"zones": (), "location": "us-central1-a"},
        ],
        finds=[
            Found({"zones": ("us-central1-f",)}, path="zone", severity="warning"),
            {"zones": (), "location": "us-central1-f"},
            Found({"machine_type": "ct5lp-hightpu-4t", "zones": ("us-west4-c",)}, "us-west4-a"),
            Found({"machine_type": "ct5lp-hightpu-4t", "zones": ("europe-west8-a",)}, "europe-north1-a"),
        ],
    ),
    Rule(
        "pool-zone",
        gpu_pool,
        passes=[{"zones": (), "location": "us-central1-a"}, {"zones": (), "machine_type": "e2-standard-4"}],
        finds=[Found({"zones": ()}, "us-central1-a"), Found({"zones": ("us-west4-a",)}, "us-central1-a")],
    ),
    Rule(
        "node-image",
        gpu_pool,
        passes=[
            {"fast_socket": True},
            {"image_type": "UBUNTU_CONTAINERD", "image_streaming": False},
            {"secondary_disks": 1},
        ],
        finds=[
            {"fast_socket": True, "gvnic": False},
            {"image_type": "UBUNTU_CONTAINERD"},
            {"image_type": "WINDOWS_LTSC_CONTAINERD", "image_streaming": False},
            {"secondary_disks": 1, "image_streaming": False},
        ],
    ),
    Rule(
        "gpu-driver-image",
        gpu_pool,
        passes=[{"driver": "LATEST"}, {"driver": "DEFAULT", "image_type": "UBUNTU_CONTAINERD"}],
        finds=[{"driver": "LATEST", "image_type": "UBUNTU_CONTAINERD"}],
    ),
    Rule(
        "gpu-sharing",
        gpu_pool,
        passes=[
            {"partition": "1g.20gb"},
            {"sharing": "MPS", "sharing_clients": 48},
            {"sharing": "TIME_SHARING", "sharing_clients": 2},
        ],
        finds=[
            {"partition": "1g.5gb"},
            {"partition": "1g.5gb", **T4},
            {"sharing": "TIME_SHARING", "sharing_clients": 49},
            {"sharing": "TIME_SHARING", "sharing_clients": 1},
            {"sharing": "SPLIT"},
            Found({"sharing_clients": 1}, "2"),
        ],
    ),
    Rule(
        "confidential-gpu",
        gpu_pool,
        passes=[{"confidential": "TDX", "machine_type": "a3-highgpu-1g"}],
        finds=[{"confidential": "TDX"}, {"confidential": "SEV", "machine_type": "a3-highgpu-1g"}],
    ),
    Rule("confidential-gpu", system_pool, passes=[{"confidential": "SEV"}], finds=[]),
    Rule(
        "boot-disk-settings",
        gpu_pool,
        passes=[
            {"provisioned": True, "disk_type": "hyperdisk-balanced"},
            {"storage_pools": 1, "disk_type": "hyperdisk-balanced"},
        ],
        finds=[{"provisioned": True}, {"storage_pools": 1}],
    ),
    Rule(
        "node-labels",
        gpu_pool,
        passes=[
            {"node_labels": {"a": "", "b": "B_1.c"}},
            {"node_labels": {"example.com/a": "b", "plain": "c"}},
            {"node_labels": {"notkubernetes.io/role": "a"}},
            {"node_labels": {"cloud.google.com/gke-queued": "true"}},
            {"node_labels": {"a": "b" * 63}},
        ],
        finds=[
            Found({"node_labels": {"a": "b c", "b": "-b"}}, times=2),
            {"node_labels": {"kubernetes.io/role": "a"}},
            {"node_labels": {"node.kubernetes.io/role": "a"}},
            {"node_labels": {"x.k8s.io/role": "a"}},
            {"node_labels": {"cloud.google.com/gke-spot": "true"}},
            {"node_labels": {"a": "b" * 64}},
        ],
    ),
    Rule("node-tags", gpu_pool, passes=[{"tags": 5}], finds=[{"tags": 6}]),
    Rule(
        "graceful-shutdown",
        gpu_pool,
        passes=[{"shutdown_seconds": 10, "spot": True}, {"shutdown_seconds": 10_000, "spot": True}],
        finds=[
            {"shutdown_seconds": 60},
            {"shutdown_seconds": 9, "spot": True},
            {"shutdown_seconds": 10_001, "spot": True},
        ],
    ),
    Rule(
        "numa-policy",
        gpu_pool,
        passes=[
            {"numa_policy": "best-effort"},
            {"numa_policy": "restricted"},
            {"numa_policy": "single-numa-node", "machine_type": "a2-highgpu-4g", "accelerator_count": 4},
        ],
        finds=[Found({"numa_policy": "single-numa-node"}, "best-effort")],
    ),
    Rule(
        "node-taints",
        gpu_pool,
        passes=[{"taints": (TAINT, TAINT._replace(effect="NO_EXECUTE"))}],
        finds=[{"taints": (TAINT, TAINT)}, {"taints": (TAINT, TAINT, TAINT)}],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


def test_label_that_gke_sets_is_a_warning_and_kubernetes_own_an_error() -> None:
    labels = {"cloud.google.com/gke-spot": "true", "kubernetes.io/role": "a"}

    assert [finding.severity for finding in check("node-labels", gpu_pool(node_labels=labels))] == ["warning", "error"]


@pytest.mark.parametrize(
    ("machine", "zone", "allowed"),
    [
        ("ct5lp-hightpu-4t", "us-west4-c", "us-west4-a, us-west4-b; regions "),
        ("ct4p-hightpu-4t", "us-west4-a", "regions us-central2"),
        ("e2-standard-4", "us-central2-b", ""),
        ("a4x-highgpu-4g", "us-west1-a", "regions europe-west4, us-central1, us-east1, us-east4"),
    ],
)
def test_a_zone_without_the_machine_has_its_region_s_others_and_other_regions_as_allowed(
    machine: str, zone: str, allowed: str
) -> None:
    (finding,) = check("machine-zone", gpu_pool(machine_type=machine, zones=(zone,)))

    assert (finding.allowed or "").startswith(allowed)
    assert "2026" in finding.message  # when the list was read


def test_zone_without_the_gpus_that_are_attached_names_them() -> None:
    t4 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}

    (finding,) = check("machine-zone", gpu_pool(**t4, zones=("us-west1-c",)))

    assert finding.message.startswith("n1-standard-8 with nvidia-tesla-t4 is not listed in us-west1-c")
    assert check("machine-zone", gpu_pool(**t4, zones=("us-west1-a",))) == []


def test_region_without_the_machine_names_those_that_have_it() -> None:
    pool = gpu_pool(machine_type="ct4p-hightpu-4t", zones=(), location="us-west4")

    (finding,) = check("pool-zone", pool)

    assert finding.allowed == "no known zone of us-west4; regions us-central2"


@pytest.mark.parametrize(
    ("location", "regions", "nearest"),
    [
        ("us", ("us-central1", "us-west4-a"), None),
        ("us-central1", ("us-central1-a",), None),
        ("us-central1", ("us-central1", "us-west4-a"), "us"),
        ("us", ("us-central1", "europe-west4", "northamerica-northeast1"),
         "us, with caches: [europe, northamerica-northeast1]"),
    ],
)  # fmt: skip
def test_images_are_in_the_region_of_the_nodes_or_around_it(
    location: str, regions: tuple[str, ...], nearest: str | None
) -> None:
    clusters = [cluster(name=region, location=region) for region in regions]

    findings = check("images-streamed", repository(location=location), *clusters)

    assert [finding.nearest for finding in findings] == ([nearest] if nearest else [])
    assert [finding.path for finding in findings] == ["section.location"] * len(findings)


def test_a_cache_of_the_repository_serves_the_nodes_of_its_region() -> None:
    images = repository(location="us")
    far = cluster(location="europe-west4")
    cache = repository(name="cache", location="europe", mode="REMOTE_REPOSITORY")
    other = repository(name="other", location="europe", mode="REMOTE_REPOSITORY", repository="dev-images-docker-hub")

    assert check("images-streamed", images, cache, far) == []
    assert len(check("images-streamed", images, other, far)) == 1
    assert check("images-streamed", repository(location="us", format="PYTHON"), far) == []
