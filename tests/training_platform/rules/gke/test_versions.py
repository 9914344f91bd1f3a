"""Rules about GKE versions: happy path, then one spoiled value at a time, at the boundary."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.builders import check, example
from tests.training_platform.rules.cases import Case, Found, Rule, cases
from training_platform.config.model.stack import parse_stack
from training_platform.config.names import Locator
from training_platform.config.reading.declaration import RULES
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.resources.resource_types import RELEASE
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules.evaluation import evaluate
from training_platform.rules.gke.versions import below, floor_of, parse
from training_platform.views.adapters import views_of_plan
from training_platform.views.cluster import ResourceLimit
from training_platform.views.node_pool import PoolNic
from training_platform.views.whole_stack import program

IRONWOOD = {"machine_type": "tpu7x-standard-4t", "tpu_topology": "4x4x4"}
TPU7X = {"limits": (ResourceLimit("tpu7x", 64),)}


TABLE = [
    Rule(
        "gke-floor",
        example,
        passes=[
            {"cluster.version": "1.32.2-gke.1652000", "gpu_pool.flex_start": True},
            {"cluster.version": "1.32.2-gke.1651999"},
            {"cluster.version": "1.32.2-gke.1651999", "gpu_pool.queued": True},
            {"gpu_pool": {**IRONWOOD, "cluster": "other"}, "cluster.version": "1.33"},
        ],
        finds=[
            {"cluster.version": "1.32.2-gke.1651999", "gpu_pool.flex_start": True},
            {"gpu_pool": {"flex_start": True, "queued": True, "version": "1.31.1-gke.1"}},
            Found({"gpu_pool.flex_start": True, "gpu_pool.version": "1.31.1-gke.1"}, "1.32.2-gke.1652000"),
            {"gpu_pool": IRONWOOD, "cluster.version": "1.33"},
        ],
        notes=[{"gpu_pool.flex_start": True, "cluster.version": UNKNOWN}],
    ),
    Rule(
        "gpudirect-floor",
        example,
        passes=[
            {"gpu_pool.nics": (PoolNic("a", None),), "gpu_pool.version": "1.29.15-gke.2467000"},
            {"gpu_pool.nics": (PoolNic("a", None),), "gpu_pool.version": "1.30.1-gke.1"},
            {"gpu_pool.version": "1.29.15-gke.2466999"},
        ],
        finds=[{"gpu_pool.nics": (PoolNic("a", None),), "gpu_pool.version": "1.29.15-gke.2466999"}],
    ),
    Rule(
        "feature-floor",
        example,
        passes=[
            {"gpu_pool.driver": None, "gpu_pool.version": "1.30.1-gke.1156000"},
            {"gpu_pool": {"fast_socket": True, "version": "1.25.2-gke.1700", "driver": "LATEST"}},
            {"gpu_pool.secondary_disks": 1, "gpu_pool.version": "1.28.3-gke.106700"},
            {"gpu_pool.network_profile": "auto", "gpu_pool.version": "1.34.1-gke.1829001"},
        ],
        finds=[
            {"gpu_pool.driver": None, "gpu_pool.version": "1.30.1-gke.1155999"},
            {"gpu_pool.fast_socket": True, "gpu_pool.version": "1.25.2-gke.1699"},
            {"gpu_pool.secondary_disks": 1, "gpu_pool.version": "1.28.3-gke.106699"},
            {"gpu_pool.network_profile": "auto", "gpu_pool.version": "1.34.1-gke.1829000"},
            {
                "gpu_pool.network_profile": "auto",
                "gpu_pool.version": "1.34.3-gke.1317999",
                "gpu_pool.machine_type": "a4x-maxgpu-4g-metal",
            },
        ],
    ),
    Rule(
        "auto-provisioning-floor",
        example,
        passes=[
            {"cluster.version": "1.32.2-gke.1297000"},
            {"nap": TPU7X, "cluster.version": "1.34.1-gke.2541000"},
        ],
        finds=[
            {"cluster.version": "1.32.2-gke.1296999"},
            {"nap": TPU7X, "cluster.version": "1.34.1-gke.2540999"},
        ],
    ),
    Rule(
        "channel-upgrades",
        example,
        passes=[
            {"gpu_pool.auto_upgrade": False, "cluster.release_channel": "UNSPECIFIED"},
            {"gpu_pool.auto_upgrade": False, "cluster.release_channel": None},
        ],
        finds=[{"gpu_pool.auto_upgrade": False}],
    ),
    Rule(
        "pinned-version",
        example,
        passes=[{"cluster.version": "1.34.1-gke.1", "cluster.release_channel": None}, {"cluster.version": "1.34"}],
        finds=[{"cluster.version": "1.34.1-gke.1"}],
    ),
    Rule(
        "add-on-floor",
        example,
        passes=[
            {"cluster.slice_controller": True, "cluster.version": "1.35"},
            {"cluster.slice_controller": False, "cluster.version": "1.34"},
        ],
        finds=[{"cluster.slice_controller": True, "cluster.version": "1.34"}],
        notes=[{"cluster.slice_controller": True, "cluster.version": None}],  # channels still offer 1.34
    ),
    Rule(
        "version-offered",
        example,
        passes=[
            {"cluster.version": "1.34"},
            {"cluster.version": "1.37.9-gke.1", "cluster.release_channel": "RAPID"},
            {"cluster.version": "1.31", "cluster.release_channel": "EXTENDED"},
            {"cluster.version": None},
        ],
        finds=[
            {"cluster.version": "1.27"},
            Found({"cluster.version": "1.38"}, "1.37"),
            {"cluster.version": "1.99"},
            {"cluster.version": "1.33.9-gke.1"},
            {"cluster.version": "1.30", "cluster.release_channel": "EXTENDED"},
            {"cluster.version": "1.33", "cluster.release_channel": None},
        ],
        notes=[{"cluster.version": UNKNOWN}],
    ),
    Rule(
        "pool-version",
        example,
        passes=[
            {"cluster.version": "1.34.1-gke.2", "gpu_pool.version": "1.34.1-gke.2"},
            {"cluster.version": "1.34", "gpu_pool.version": "1.32"},
            {"cluster.version": "1.30", "gpu_pool.version": "1.34", "gpu_pool.cluster": "other"},
        ],
        finds=[
            {"cluster.version": "1.34.1-gke.2", "gpu_pool.version": "1.34.1-gke.3"},
            {"cluster.version": "1.34", "gpu_pool.version": "1.31"},
        ],
    ),
    Rule(
        "queued-tpu",
        example,
        passes=[{"gpu_pool.queued": True}, {"gpu_pool.flex_start": True, "gpu_pool.machine_type": "ct6e-standard-4t"}],
        finds=[
            {"gpu_pool.queued": True, "gpu_pool.machine_type": "ct6e-standard-4t"},
            {"gpu_pool": {"queued": True, "flex_start": True, "machine_type": "ct6e-standard-4t"}},
        ],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()


@pytest.mark.parametrize(
    ("version", "severity"), [("1.34.9-gke.1", "error"), ("1.35.0-gke.1", "warning"), (None, "warning")]
)
def test_queued_flex_start_tpus_are_refused_before_1_35_and_disputed_after(version: str | None, severity: str) -> None:
    pool = {"queued": True, "flex_start": True, "machine_type": "ct6e-standard-4t"}
    (finding,) = check("queued-tpu", *example(gpu_pool=pool, cluster={"version": version}))

    assert finding.severity == severity


def test_pool_whose_cluster_is_not_named_yet_is_of_the_only_one() -> None:
    findings = check("gke-floor", *example(gpu_pool={**IRONWOOD, "cluster": UNKNOWN}, cluster={"version": "1.33"}))

    assert [finding.severity for finding in findings] == ["warning"]


FLOOR = "1.34.0-gke.2201000"
FLOORS = ("1.29.15-gke.2467000", "1.28.15-gke.3163000")


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("1.34.1-gke.2541000", (1, 34, 1, 2541000)),
        ("1.34.1", (1, 34, 1)),
        ("1.34", (1, 34)),
        ("1.34.", (1, 34)),
        ("latest", None),
        ("-", None),
        (None, None),
    ],
)
def test_version_is_read_as_numbers(version: str | None, numbers: tuple[int, ...] | None) -> None:
    assert parse(version) == numbers


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ("1.34.0-gke.2201000", None),
        ("1.34.0-gke.2200999", "error"),
        ("1.34.0-gke.10000000", None),  # as text it would come first
        ("1.9.9-gke.9999999", "error"),
        ("1.34.0", None),
        ("1.34", None),
        ("1.33", "warning"),
        ("1.33.9", "warning"),
        ("1.35", None),
        ("latest", None),
        (None, None),
    ],
)
def test_version_below_a_floor_is_an_error_only_where_it_is_written_out(
    version: str | None, severity: str | None
) -> None:
    assert below(version, FLOOR) == severity


@pytest.mark.parametrize(
    ("version", "floor"),
    [("1.27.1-gke.1", FLOORS[1]), ("1.28.15-gke.1", FLOORS[1]), ("1.29", FLOORS[0]), ("1.30", None), (None, None)],
)
def test_each_minor_version_has_its_own_floor_and_later_ones_none(version: str | None, floor: str | None) -> None:
    assert floor_of(FLOORS, version) == floor


def test_nothing_has_no_floor() -> None:
    assert floor_of((), "1.30") is None


PAIRS = """\
config:
  training-platform:environment:
    project: example-train
    production: false
    charts:
      kueue: {version: "KUEUE"}
      trainer: {version: "TRAINER"}
    clusters:
      a: {location: us-central1-a, subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}}
"""


def found_pairs(kueue: str, trainer: str, clusters: tuple[str, str] = ("a", "a"), gke: str = "1.34") -> list[Finding]:
    text = PAIRS.replace("KUEUE", kueue).replace("TRAINER", trainer)
    stack = parse_stack("env", parse_source(text, "stacks/Pulumi.env.yaml"))
    releases = [
        StackResource(
            stack="env", type=RELEASE, name=f"{cluster}-{name}-release", options={},
            inputs={"name": name, "chart": f"oci://mirror.example.com/{chart}", "version": version},
        )
        for cluster, (name, chart, version) in zip(
            clusters, (("kueue", "kueue", kueue), ("trainer", "kubeflow-trainer", trainer)), strict=True
        )
    ]  # fmt: skip
    inputs = {"name": "a", "minMasterVersion": gke}
    cluster = StackResource(
        stack="env", type="gcp:container/cluster:Cluster", name="a-cluster", inputs=inputs, options={}
    )
    views = views_of_plan([*releases, cluster], Locator(stack.section) if stack.section else None)
    whole = program(views, stack="env", environment="env", team=None, production=False)
    return evaluate(whole, [RULES["releases-together"]], stack)


@pytest.mark.parametrize(
    ("kueue", "trainer", "nearest"),
    [("0.19.2", "2.3.0", "2.2.1"), ("0.19.14", "2.3.1", "2.2.1"), ("0.20.0", "2.2.1", "2.3.0")],
)
def test_trainer_of_a_version_that_kueue_does_not_read_is_found_at_its_line(
    kueue: str, trainer: str, nearest: str
) -> None:
    (finding,) = found_pairs(kueue, trainer)

    assert (finding.severity, finding.path, finding.nearest) == ("error", "charts.trainer.version", nearest)
    assert finding.position is not None
    assert finding.position.line == 7
    assert found_pairs(kueue, nearest) == []
    assert found_pairs(kueue, trainer, clusters=("a", "b")) == []


@pytest.mark.parametrize(
    ("kueue", "gke", "count"), [("0.20.0", "1.33", 1), ("0.20.0", "1.34", 0), ("0.19.2", "1.33", 0)]
)
def test_a_cluster_older_than_kueue_supports_is_found(kueue: str, gke: str, count: int) -> None:
    trainer = "2.3.0" if kueue == "0.20.0" else "2.2.1"

    assert [finding.nearest for finding in found_pairs(kueue, trainer, gke=gke)] == ["1.34"] * count
