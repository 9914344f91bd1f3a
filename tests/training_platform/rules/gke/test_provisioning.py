"""Rules of provisioning models and reservations."""

from __future__ import annotations

import pytest

from tests.training_platform.rules.builders import example, flex_pool, gpu_pool, slice_pool
from tests.training_platform.rules.cases import Case, Found, Rule, cases

IRONWOOD = {"machine_type": "tpu7x-standard-4t", "tpu_topology": "4x4x4"}


RESERVED = {"consume_reservation": "SPECIFIC_RESERVATION", "reservation": "training", "reservation_path": "training"}
ON_N1 = {
    "machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1,
    "local_ssd_count": None,
}  # fmt: skip
OF_N1 = {"machine_type": "n1-standard-8", "accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
NO_GPUS = {"accelerator_type": None, "accelerator_count": None}


V4 = {"machine_type": "ct4p-hightpu-4t"}
NAMED = {"consume_reservation": "SPECIFIC_RESERVATION", "reservation": "h100-training"}
A2 = {"machine_type": "a2-highgpu-8g"}
AHEAD = {"node_labels": {"training-platform/reserved-from": "2026-12-01"}}


TABLE = [
    Rule(
        "one-provisioning-model",
        gpu_pool,
        passes=[{"flex_start": True, "queued": True}],
        finds=[
            Found({"spot": True, "flex_start": True}, "flex-start", path="capacity"),
            Found({"spot": True, "queued": True}, "queued"),
            {"spot": True, "spot_twice": True},
        ],
    ),
    Rule(
        "no-reservation-affinity",
        gpu_pool,
        passes=[
            {"consume_reservation": None},
            {"flex_start": True},
            {"spot": True},
            {"spot": True, "consume_reservation": None},
        ],
        finds=[
            {"flex_start": True, "consume_reservation": None},
            {"queued": True, "consume_reservation": "ANY_RESERVATION"},
            Found({"spot": True, "consume_reservation": "ANY_RESERVATION"}, severity="warning"),
            Found({"spot": True, "consume_reservation": "SPECIFIC_RESERVATION"}, severity="error"),
        ],
    ),
    Rule(
        "tpu-reservation-name",
        slice_pool,
        passes=[{"consume_reservation": "SPECIFIC_RESERVATION"}],
        finds=[Found({"consume_reservation": "ANY_RESERVATION"}, path="reservation")],
    ),
    Rule("tpu-reservation-name", gpu_pool, passes=[{"consume_reservation": "ANY_RESERVATION"}], finds=[]),
    Rule(
        "reservation-named",
        gpu_pool,
        passes=[{**NAMED, "reservations": 1}],
        finds=[
            {"consume_reservation": "SPECIFIC_RESERVATION"},
            Found({**NAMED, "reservations": 2}, severity="warning"),
        ],
    ),
    Rule("flex-start-scaling", gpu_pool, passes=[{"initial_nodes": 2, "min_nodes": 2}], finds=[]),
    Rule(
        "flex-start-scaling",
        flex_pool,
        passes=[{"max_nodes": None, "total_max_nodes": 4}],
        finds=[
            Found({"max_nodes": None}, path="max_nodes"),
            Found({"initial_nodes": 1}, path=""),
            {"node_count": 1},
            Found({"min_nodes": 1}, path="min_nodes"),
            Found({"total_min_nodes": 1}, path="min_nodes"),
        ],
    ),
    Rule("flex-start-repair", flex_pool, passes=[], finds=[{"auto_repair": True}]),
    Rule("flex-start-repair", gpu_pool, passes=[{"auto_repair": True}], finds=[]),
    Rule(
        "max-run-duration",
        flex_pool,
        passes=[{"max_run_seconds": 600}, {"max_run_seconds": 7 * 24 * 3600}, {"queued": True}],
        finds=[
            Found({"max_run_seconds": 599}, "1"),
            Found({"max_run_seconds": 7 * 24 * 3600 + 1}, "168"),
        ],
    ),
    Rule(
        "max-run-on-demand",
        gpu_pool,
        passes=[{}, {"max_run_seconds": 3600, "spot": True}, {"max_run_seconds": 3600, "queued": True}],
        finds=[{"max_run_seconds": 3600}],
    ),
    Rule(
        "max-run-duration",
        gpu_pool,
        passes=[{"max_run_seconds": 30}, {"max_run_seconds": 120 * 24 * 3600}],
        finds=[
            Found({"max_run_seconds": 29}, "1"),
            Found({"max_run_seconds": 120 * 24 * 3600 + 1}, "2880"),
            {"queued": True, "max_run_seconds": 3600},
        ],
    ),
    Rule(
        "capacity-offered",
        gpu_pool,
        passes=[
            {"machine_type": "a3-highgpu-1g", "spot": True},
            {**V4, "consume_reservation": "SPECIFIC_RESERVATION"},
            {"machine_type": "n1-standard-8", "flex_start": True},  # its GPUs are what is wrong
        ],
        finds=[
            Found({"machine_type": "a3-highgpu-1g"}, path="capacity", severity="error"),
            Found({"machine_type": "a3-ultragpu-8g", "consume_reservation": None}, severity="warning"),
            Found({**V4, "flex_start": True}, severity="error"),
            Found({**V4, "queued": True}, severity="warning"),
            Found({"machine_type": "n1-standard-8", "accelerator_type": None, "flex_start": True}, severity="warning"),
        ],
    ),
    Rule(
        "location-policy-any",
        gpu_pool,
        passes=[
            {"zones": ("us-central1-a", "us-central1-b")},
            {"location_policy": "BALANCED"},
            {"spot": True, "location_policy": "BALANCED", "machine_type": "e2-standard-4"},
            {"spot": True, "location_policy": None, "max_nodes": None},
        ],
        finds=[
            {"spot": True, "location_policy": "BALANCED"},
            {"flex_start": True, "location_policy": None},
            {"spot": True, "location_policy": None, "total_max_nodes": 4},
            {"zones": ("us-central1-a", "us-central1-b"), "location_policy": "BALANCED"},
        ],
    ),
    Rule(
        "reservation-blocks",
        gpu_pool,
        passes=[{"reservation_path": "one/reservationBlocks/b1"}, {**A2, "reservation_path": "one"}, A2],
        finds=[{**A2, "reservation_path": "one/reservationBlocks/b1"}],
    ),
    Rule(
        "reservation-ahead",
        gpu_pool,
        passes=[AHEAD, {"min_nodes": 1}],
        finds=[{**AHEAD, "min_nodes": 1}, {**AHEAD, "total_min_nodes": 1}],
    ),
    Rule(
        "capacity-on-request",
        slice_pool,
        passes=[{"spot": True}, {**IRONWOOD, "consume_reservation": "SPECIFIC_RESERVATION"}],
        finds=[{**IRONWOOD, "spot": True}],
    ),
    Rule(
        "flex-start-upgrades",
        gpu_pool,
        passes=[{"flex_start": True, "upgrades": False}, {"flex_start": True, "ignored": ("upgradeSettings",)}],
        finds=[{"flex_start": True}, {"queued": True}],
    ),
    Rule(
        "queued-label",
        gpu_pool,
        passes=[{"queued": True, "node_labels": {"cloud.google.com/gke-queued": "true"}}],
        finds=[{"queued": True}],
    ),
    Rule(
        "reservation-block",
        gpu_pool,
        passes=[
            {"reservation_path": "r"},
            {"reservation_path": "r/reservationBlocks/b"},
            {"reservation_path": "r/reservationBlocks/b/reservationSubBlocks/s"},
        ],
        finds=[
            {"reservation_path": "r/reservationBlocks/b", "zones": ()},
            {"reservation_path": "r/reservationSubBlocks/s"},
        ],
    ),
    Rule(
        "host-maintenance",
        gpu_pool,
        passes=[
            {"maintenance": "AS_NEEDED"},
            {"maintenance": "PERIODIC", "consume_reservation": "SPECIFIC_RESERVATION"},
        ],
        finds=[{"maintenance": "PERIODIC"}],
    ),
    Rule(
        "reservation-fits",
        example,
        passes=[
            {"gpu_pool": RESERVED},
            {"gpu_pool": RESERVED, "reservation.local_ssds": 16},
            {"gpu_pool": {**RESERVED, **ON_N1}, "reservation": OF_N1},
            {"gpu_pool": {**RESERVED, "reservation_path": "x"}, "reservation.zone": "z"},
        ],
        finds=[
            {"gpu_pool": {**RESERVED, "zones": ("us-central1-b",)}},
            {"gpu_pool": {**RESERVED, "machine_type": "a3-megagpu-8g"}},
            {"gpu_pool": RESERVED, "reservation.specific": False},
            {"gpu_pool": RESERVED, "reservation.min_cpu_platform": "Intel Skylake"},
            {"gpu_pool": {**RESERVED, "min_cpu_platform": "Intel Skylake"}},
            {"gpu_pool": RESERVED, "reservation.local_ssds": 15},
            {"gpu_pool": {**RESERVED, **ON_N1, "accelerator_count": 2}, "reservation": OF_N1},
            {"gpu_pool": {**RESERVED, **ON_N1}, "reservation": {**OF_N1, **NO_GPUS}},
            {"gpu_pool": {**RESERVED, **ON_N1, "local_ssd_count": 1}, "reservation": OF_N1},
            {"gpu_pool": RESERVED, "reservation": {**OF_N1, "machine_type": None}},
            {
                "gpu_pool": {**RESERVED, "reservation_path": "projects/p/reservations/training/reservationBlocks/b"},
                "reservation.zone": "us-central1-b",
            },
        ],
    ),
    Rule(
        "reservation-room",
        example,
        passes=[{"gpu_pool": {**RESERVED, "max_nodes": 4}}, {"gpu_pool": {**RESERVED, "max_nodes": 3, "max_surge": 1}}],
        finds=[
            Found({"gpu_pool": {**RESERVED, "max_nodes": 5}}, "4"),
            {"gpu_pool": {**RESERVED, "max_surge": 1}},
            {"gpu_pool": {**RESERVED, "upgrades": False}},
        ],
    ),
]


@pytest.mark.parametrize("case", cases(TABLE), ids=str)
def test_a_rule_finds_what_is_spoiled_and_nothing_beside_it(case: Case) -> None:
    case.holds()
