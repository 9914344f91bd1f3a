"""Pools of one reservation, over clusters and environments, against the size that a pool states."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from training_platform.config.reading.declaration import located
from training_platform.config.workspace import Workspace
from training_platform.quota.reservations import reservation_findings

Build = Callable[..., Workspace]


def pools(small: int, large: int, size: str) -> str:
    return f"""\
        node_pools:
          small: {{machine_type: ct5lp-hightpu-1t, topology: 1x1, slices: {small}, zone: us-central1-a,
                  capacity: reservation, reservation: {{name: v5e{size}}}}}
          large: {{machine_type: ct5lp-hightpu-8t, topology: 2x4, slices: {large}, zone: us-central1-a,
                  capacity: reservation, reservation: v5e}}
        """


@pytest.mark.parametrize(
    ("small", "large", "path", "nearest"),
    [(2, 3, None, None), (3, 3, "large.slices", "2"), (20, 3, "small.slices", "2"), (30, 4, "large.slices", None)],
    ids=["whole", "one more", "both", "each too many"],
)
def test_pools_of_a_reservation_have_no_more_chips_than_it(
    build: Build, small: int, large: int, path: str | None, nearest: str | None
) -> None:
    findings = located(reservation_findings(build(dev=pools(small, large, ", chips: 26"))))

    assert [finding.path.removeprefix("clusters.main.node_pools.") for finding in findings] == [path] * bool(path)
    for finding in findings:
        chips = small + large * 8
        assert (finding.rule, finding.severity, finding.nearest) == ("reservation-exceeded", "error", nearest)
        assert finding.message == (
            f"reservation v5e in us-central1-a has 26 chips, but its pools need {chips}: large of dev {large * 8}, "
            f"small of dev {small}"
        )


def gpus(vms: int, reservation: str, zone: str = "us-central1-a") -> str:
    return f"""\
        node_pools:
          h100: {{machine_type: a3-highgpu-8g, zone: {zone}, max_nodes: {vms}, capacity: reservation,
                 reservation: {{{reservation}}}}}
        """


@pytest.mark.parametrize(
    ("dev", "prod", "paths"),
    [
        (gpus(2, "name: one, chips: 40"), gpus(3, "name: one"), []),
        (gpus(2, "name: one, chips: 40"), gpus(4, "name: one"), ["prod max_nodes 3"]),
        (gpus(5, "name: one, chips: 40"), gpus(5, "name: one, project: example-other, chips: 40", "us-central1-b"), []),
        (gpus(5, "name: one, chips: 40"), gpus(5, "name: one, project: example-other, chips: 40"), []),
        (gpus(5, "name: one, project: example-a, chips: 40"), gpus(5, "name: one, project: example-b, chips: 40"), []),
        (gpus(1, "name: one, chips: 40"), gpus(1, "name: one, chips: 48"), ["prod chips 40"]),
    ],
    ids=["fits", "too many", "another project and zone", "another project", "two other projects", "two sizes"],
)
def test_environments_share_a_reservation_of_one_project_and_zone(
    build: Build, dev: str, prod: str, paths: list[str]
) -> None:
    findings = located(reservation_findings(build(dev=dev, prod=prod)))

    assert [f"{row.stack} {row.path.rpartition('.')[2]} {row.nearest}" for row in findings] == paths


def test_pools_of_a_reservation_of_unknown_size_are_a_note(build: Build) -> None:
    (note,) = located(reservation_findings(build(dev=pools(20, 3, ""))))

    assert (note.severity, note.path) == ("note", "clusters.main.node_pools.large.reservation")
    assert "is unknown; its pools need 44 chips: large of dev 24, small of dev 20" in note.message


def test_what_is_not_known_of_reservations_is_counted_as_not_judged(build: Build) -> None:
    workspace = build(
        dev=gpus(5, "name: one"),
        prod=gpus(5, "name: two, chips: 40"),
        next=gpus(5, "name: two, chips: 40", "us-central1-b"),
        classes="""\
        compute_classes:
          any: {priorities: [{machine_type: a3-highgpu-8g, zones: [us-central1-a], capacity: reservation,
                reservation: one}]}
        """,
    )

    findings = located(reservation_findings(workspace))

    assert [(row.stack, row.path.removeprefix("clusters.main."), row.unjudged) for row in findings] == [
        ("classes", "compute_classes.any.priorities[0].reservation", "reservation of a compute class"),
        ("dev", "node_pools.h100.reservation", "reservation of unknown size"),
        ("next", "node_pools.h100.reservation", "reservation of unclear zone"),
    ]
    assert "two is in us-central1-b here and in us-central1-a for h100 of prod" in findings[-1].message
