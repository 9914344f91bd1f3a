"""The probes of verify in their order."""

from __future__ import annotations

from training_platform.parts.verify.probe_table import PROBES


def test_the_default_list_fits_into_an_hour() -> None:
    probes = [probe for probe in PROBES.values() if not probe.by_name]

    assert sum(probe.minutes for probe in probes) <= 60


def test_each_probe_comes_after_what_it_needs() -> None:
    earlier: set[str] = set()
    for probe in PROBES.values():
        assert set(probe.after) <= earlier
        earlier.add(probe.name)
