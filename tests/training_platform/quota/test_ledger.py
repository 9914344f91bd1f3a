from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from training_platform.config.workspace import Workspace
from training_platform.quota.keys import Charge, Holder, QuotaKey, shown
from training_platform.quota.ledger import Line, capacity_ledger, project_ledgers
from training_platform.quota.snapshot import Snapshots

Build = Callable[..., Workspace]
Limits = Callable[[str], Snapshots]
Key = Callable[..., QuotaKey]
TWO_LIMITS = """
    compute.googleapis.com:
      PREEMPTIBLE: [{limit: %d, region: us-central1}]
      STANDARD: [{limit: 40, region: us-central1}]
"""


def charge(amount: float, *keys: QuotaKey, stack: str = "dev", label: str = "h100") -> Charge:
    return Charge(keys, amount, "GPUs", Holder(stack, ("clusters", label), label))


def one_line(charges: list[Charge], snapshots: Snapshots) -> Line:
    (ledger,) = project_ledgers(charges, snapshots).values()
    (line,) = ledger.lines
    return line


def test_holders_are_summed_and_sorted_by_amount(key: Key, limits: Limits) -> None:
    gpus = key("STANDARD")
    charges = [charge(16, gpus, label="eval"), charge(4 * 8, gpus), charge(8, gpus, label="eval")]

    line = one_line(charges, limits(TWO_LIMITS % 0))

    assert [(held.holder.label, held.amount) for held in line.holders] == [("h100", 4 * 8), ("eval", 16 + 8)]
    assert line.used == 4 * 8 + 16 + 8
    assert line.limit == 40
    assert line.headroom == 40 - 56
    assert line.over


def test_same_label_in_two_stacks_is_two_holders(key: Key, limits: Limits) -> None:
    charges = [charge(8, key("STANDARD")), charge(8, key("STANDARD"), stack="prod")]

    assert len(one_line(charges, limits(TWO_LIMITS % 0)).holders) == 2


@pytest.mark.parametrize(("amount", "over"), [(40, False), (40.5, True)])
def test_line_is_over_above_its_limit_only(key: Key, limits: Limits, amount: float, over: bool) -> None:
    assert one_line([charge(amount, key("STANDARD"))], limits(TWO_LIMITS % 0)).over is over


@pytest.mark.parametrize(("preemptible", "charged"), [(0, "STANDARD"), (1, "PREEMPTIBLE")])
def test_charge_falls_back_where_the_first_limit_is_0(key: Key, limits: Limits, preemptible: int, charged: str) -> None:
    line = one_line([charge(8, key("PREEMPTIBLE"), key("STANDARD"))], limits(TWO_LIMITS % preemptible))

    assert line.key.quota_id == charged


def test_charge_stays_with_its_first_key_where_none_has_a_limit(key: Key, limits: Limits) -> None:
    line = one_line([charge(8, key("PREEMPTIBLE", "us-west4"), key("STANDARD", "us-west4"))], limits(TWO_LIMITS % 8))

    assert (line.key.quota_id, line.limit, line.over) == ("PREEMPTIBLE", 0, True)


def test_unlisted_quota_and_missing_snapshot_leave_the_limit_unknown(key: Key, limits: Limits) -> None:
    for snapshots in (limits("compute.googleapis.com: {}"), Snapshots()):
        line = one_line([charge(8, key("STANDARD"))], snapshots)

        assert (line.limit, line.headroom, line.over) == (None, None, False)


def test_unlimited_quota_is_never_over(key: Key, limits: Limits) -> None:
    line = one_line([charge(1e9, key("STANDARD"))], limits("compute.googleapis.com: {STANDARD: [{limit: -1}]}"))

    assert (line.limit, line.over) == (math.inf, False)


def test_capacity_is_chips_of_pools_at_their_maximum(build: Build) -> None:
    workspace = build(
        dev="""
            node_pools:
              a: {machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: 4x8, slices: 3}
              b: {machine_type: ct5lp-hightpu-4t, zone: us-central1-a, topology: 4x8}
              c: {machine_type: ct5lp-hightpu-8t, zone: us-central1-a, topology: 2x4, slices: 2}
        """,
        dev_vision="shares: {main: {tpu-v5e-4x8: {nominal_quota: 96}}}",
        dev_nlp="shares: {main: {tpu-v5e-4x8: {nominal_quota: 64}}}",
    )

    lines = {line.flavor.name: line for line in capacity_ledger(workspace)}
    shared = lines["tpu-v5e-4x8"]

    assert shared.capacity == 3 * 32 + 32
    assert [(share.holder.label, share.amount) for share in shared.shares] == [("vision", 96), ("nlp", 64)]
    assert shared.headroom == 128 - (96 + 64)
    assert shared.over
    assert shared.resource == "google.com/tpu"
    assert lines["tpu-v5e-2x4"].capacity == 2 * 8
    assert not lines["tpu-v5e-2x4"].over


@pytest.mark.parametrize(("amount", "text"), [(1234567, "1,234,567"), (2.5, "2.5"), (math.inf, "unlimited")])
def test_amount_is_shown_as_people_write_it(amount: float, text: str) -> None:
    assert shown(amount) == text
