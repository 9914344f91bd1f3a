"""The probes of verify in their order."""

from __future__ import annotations

import shlex

from training_platform.catalog import fact_sheets
from training_platform.catalog.reading import table
from training_platform.parts.verify.probe_table import PROBES


def test_the_default_list_fits_into_an_hour() -> None:
    probes = [probe for probe in PROBES.values() if not probe.by_name]

    assert sum(probe.minutes for probe in probes) <= 60


def test_each_probe_comes_after_what_it_needs() -> None:
    earlier: set[str] = set()
    for probe in PROBES.values():
        assert set(probe.after) <= earlier
        earlier.add(probe.name)


def test_a_probe_that_decides_facts_of_the_catalogue_exists() -> None:
    commands = [shlex.split(row.get("command", "")) for row in table(fact_sheets.__file__, "deciding.yaml")]
    probes = [words[words.index("--probe") + 1] for words in commands if "--probe" in words]

    assert probes
    assert set(probes) <= PROBES.keys()
