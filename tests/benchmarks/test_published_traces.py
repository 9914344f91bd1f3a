"""Published traces, from a few rows in their forms: what is read, what is left out, and what a change changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.traces import CHANGES, alibaba, cluster, gavel, measure, most_in_use, rows
from training_platform.parts.simulate.page import Bar

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"


def philly(folder: Path) -> Path:
    traces = folder / "traces" / "msr" / "seed=0"
    traces.mkdir(parents=True)
    speeds = {"v100": {"('LM', 1)": {"null": 2.0}, "('LM', 8)": {"null": 4.0}}}
    (folder / "simulation_throughputs.json").write_text(json.dumps(speeds), encoding="utf-8")
    (traces / "one.trace").write_text(
        "LM\tpython3 x\t-n\t1\t100\t0.0\t1\nLM\tpython3 x\t-n\t1\t100\t10.0\t8\n", encoding="utf-8"
    )
    (traces / "two.trace").write_text(
        "LM\tpython3 x\t-n\t1\t100\t5.0\t2\nLM\tpython3 x\t-n\t1\t20\t90.0\t1\n", encoding="utf-8"
    )
    (traces / "philly.trace").write_text("LM\tpython3 x\t-n\t1\t100\t5.0\t1\n", encoding="utf-8")
    return folder


def test_steps_become_seconds_by_the_throughput_of_the_kind_and_its_gpus(tmp_path: Path) -> None:
    published = gavel(philly(tmp_path))

    found = [(job.team, job.submitted, job.chips, job.seconds) for job in published.jobs]
    assert found == [("one", 0.0, 1, 100 / 2), ("one", 10.0, 8, 100 / 4), ("two", 90.0, 1, 20 / 2)]
    assert published.left_out == 1  # of two GPUs no throughput is known; philly.trace has the jobs of all others again


def test_pods_that_were_scheduled_on_gpus_are_jobs(tmp_path: Path) -> None:
    pods = tmp_path / "pods.csv"
    lines = ["p0,1,1,1,460,,BE,Succeeded,0,90,30", "p1,1,1,0,0,,LS,Running,0,90,30", "p2,1,1,8,1000,,LS,Pending,0,90,"]
    pods.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")

    published = alibaba(pods)

    assert [(job.name, job.submitted, job.chips, job.seconds) for job in published.jobs] == [("p0", 0.0, 1, 90.0 - 30)]
    assert published.left_out == 2


def test_each_change_changes_what_its_name_says(tmp_path: Path) -> None:
    published = gavel(philly(tmp_path))._replace(scale=1.0)
    before, larger, weighed, spot = (cluster(published, change) for change in CHANGES)

    assert most_in_use(published.jobs) == 1 + 8
    assert {name: flavor.chips for name, flavor in before.flavors.items()} == {"reserved": 9}
    assert larger.flavors["reserved"].chips == round(9 * 1.25)
    assert spot.flavors["spot"].chips == round(9 * 0.25)
    weights = [{team: spec["fairSharing"]["weight"] for team, spec in row.queues.items()} for row in (before, weighed)]
    assert weights == [{"one": "1", "two": "1"}, {"one": "1", "two": "3"}]
    drawn: dict[str, list[Bar]] = {}
    table = {row[0]: row for row in rows(published, drawn)}
    assert [*table] == [*drawn] == [change.words for change in CHANGES]
    assert all(bars[0][0] == f"{table[words][2]}, largest team" for words, bars in drawn.items())


@pytest.mark.parametrize("setting", ["TRAINING_PLATFORM_TRACE_GAVEL", "TRAINING_PLATFORM_TRACE_ALIBABA"])
def test_a_trace_without_its_setting_is_named(
    setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TRAINING_PLATFORM_TRACE_GAVEL", raising=False)
    monkeypatch.delenv("TRAINING_PLATFORM_TRACE_ALIBABA", raising=False)

    measure()

    assert f"{setting} names no trace." in capsys.readouterr().out
