"""`training-platform verify` as a person runs it, against a local cloud with an environment and its team."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.parts.adopt.seeding import served
from tests.parts.verify.lab import PROJECT, Lab, change, let_in
from training_platform.cli.main import app
from training_platform.parts.verify import cli, google_cloud, probe_run
from training_platform.parts.verify.object_record import ObjectRecord
from training_platform.parts.verify.probe_table import PROBES, chosen_probes
from training_platform.parts.verify.probes import STAGES, Platform

pytestmark = pytest.mark.timeout(300)
TWO = ["storage-ready", "tenancy-accounts"]


def verify(lab: Lab, *words: str) -> Result:
    return CliRunner().invoke(app, ["verify", "lab", "--root", str(lab.root), *words], env={"COLUMNS": "160"})


def ledgers(lab: Lab) -> list[Path]:
    return sorted(probe_run.folder_of(lab.root, "lab").glob("*.jsonl"))


def picked(result: Result) -> set[str]:
    """Return the probes that a plan names."""
    return set(PROBES) & set(result.stdout.split("fewest roles")[0].split())


def test_reports_lead_with_what_is_let_in_and_name_no_person_and_no_project(lab: Lab, tmp_path: Path) -> None:
    files = {form: tmp_path / f"report.{form}" for form in ("html", "json", "txt")}
    words = [word for path in files.values() for word in ("--report", str(path))]
    with lab.spoiled(let_in("user:eve@example.com")), served(lab.seeded) as address:
        stages = ["--stage", "tenancy", "--stage", "monitoring"]
        result = verify(lab, *stages, "--local-cloud", address, "--anew", "--yes", *words)

    assert result.exit_code == 1, result.output
    texts = {form: path.read_text(encoding="utf-8") for form, path in files.items()}
    for text in (*texts.values(), result.stdout.partition("probes, at most")[2]):
        assert "eve@" not in text
        assert "oncall@" not in text
        assert not re.search(rf"(?<![\w-]){PROJECT}(?![\w-])", text)
        assert "ADDRESS has roles/iam.serviceAccountTokenCreator" in text
        assert "a local cloud" in text
    report: dict[str, Any] = json.loads(texts["json"])
    rows = {row["probe"]: row for row in report["probes"]}
    assert rows["tenancy-accounts"]["verdict"] == "refuted"
    assert rows["monitoring-series"]["verdict"] == "proven"
    assert rows["tenancy-rights"]["answers"][0]["says"] == "not decided, because of cluster-answers"
    assert report["versions"].keys() >= {"training-platform", "pulumi-gcp"}
    assert report["complete"]
    assert "not complete" not in result.stdout
    assert result.stdout.index("error: ") < result.stdout.index("refuted, ")
    assert texts["html"].index("error: ") < texts["html"].index("<table")


def test_an_interrupted_run_goes_on_and_asks_nothing_twice(lab: Lab, tmp_path: Path) -> None:
    def interrupt(_: str, number: int, __: int) -> None:
        if number == 1:
            raise KeyboardInterrupt

    with served(lab.seeded) as address, lab.platform(tmp_path) as platform:
        begun = chosen_probes(names=TWO)
        folder = probe_run.folder_of(lab.root, "lab")
        folder.mkdir(parents=True, exist_ok=True)
        head = probe_run.head_of(lab.root, "lab", PROJECT, address, begun, options=("", "", ""))
        ledger = ObjectRecord.begin(folder, head)
        platform.maker.object_record = ledger
        with pytest.raises(KeyboardInterrupt):
            probe_run.run_probes(begun, platform, ledger, interrupt)
        before = len(ledgers(lab))
        words = [word for name in TWO for word in ("--probe", name)]

        result = verify(lab, *words, "--local-cloud", address, "--yes")

        assert f"Continuing {ledger.path.name}: 1 of 2 probes are done." in result.stderr
        assert result.exit_code == 0, result.output
        assert len(ledgers(lab)) == before
        done = [json.loads(line) for line in ledger.path.read_text(encoding="utf-8").splitlines()[1:]]
        assert [row["done"] for row in done if "done" in row] == TWO
        assert "ended" in done[-1]
        assert "2 proven" in result.stdout


def test_without_a_terminal_nothing_is_asked_of_the_project(lab: Lab) -> None:
    before = ledgers(lab)

    result = verify(lab, "--probe", "storage-ready", "--anew", "--local-cloud", "http://127.0.0.1:9")

    assert result.exit_code == 2
    assert "--yes runs the plan without confirmation" in result.stderr
    assert ledgers(lab) == before


def test_a_plan_has_the_probes_of_its_stages_and_asks_nothing(lab: Lab) -> None:
    result = verify(lab, "--plan", "--stage", "network", "--stage", "vertex")

    expected = {probe.name for probe in PROBES.values() if probe.stage in ("network", "vertex") and not probe.by_name}
    assert picked(result) == expected | {"cluster-running", "cluster-answers"}
    assert result.exit_code == 0


def test_probes_that_send_messages_are_chosen_only_by_name(lab: Lab) -> None:
    by_name = {probe.name for probe in PROBES.values() if probe.by_name}

    assert by_name == {"storage-lustre", "monitoring-page"}
    assert not by_name & picked(verify(lab, "--plan"))
    assert "storage-lustre" in picked(verify(lab, "--plan", "--probe", "storage-lustre"))
    assert picked(verify(lab, "--plan", "--page", "--probe", "storage-ready")) == {"storage-ready", "monitoring-page"}


def test_a_page_is_sent_once_and_a_terminal_is_asked_for_its_code(lab: Lab) -> None:
    ours, theirs = pty.openpty()
    words = ["verify", "lab", "--root", str(lab.root), "--probe", "monitoring-page", "--page", "--anew", "--yes"]
    with served(lab.seeded) as address:
        os.write(ours, b"000000x\n")
        ran = subprocess.run(
            [sys.executable, "-m", "training_platform.cli.main", *words, "--local-cloud", address],
            check=False, stdin=theirs, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    os.close(ours)
    os.close(theirs)
    assert ran.stderr.count("The code in the message") == 1
    assert "a different code was entered" in " ".join(ran.stdout.split())
    assert "000000x" not in ran.stdout
    assert ran.returncode == 1
    assert not any("vector(1)" in str(record.body) for record in lab.cloud.store.all())


def test_stages_and_the_probe_of_the_page_are_named_as_the_table_of_probes_has_them() -> None:
    assert cli._STAGES == STAGES
    assert {probe.stage for probe in PROBES.values()} == set(STAGES)
    assert PROBES[cli._PAGE].needs == ["page"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--probe", "pools-nodse"], "'pools-nodse' is not a probe. Nearest: pools-nodes"),
        (["--report", "report.pdf"], "report.pdf: the file name must end with .html or .json or .txt."),
        (["--stage", "pool"], "'pool' is not one of"),
    ],
)
def test_a_wrong_word_is_refused_before_anything_is_asked(lab: Lab, words: list[str], says: str) -> None:
    result = verify(lab, "--plan", *words)

    assert result.exit_code == 2
    assert says in result.stderr


def test_a_bug_in_a_probe_is_reported_as_one_and_the_other_probes_run(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(platform: Platform) -> None:
        platform.maker.kept.append("another run's object is kept")
        raise ZeroDivisionError

    monkeypatch.setattr(google_cloud, "_planned_grants", fail)
    with lab.spoiled(change("instances/lab-homes", state="ERROR")), served(lab.seeded) as address:
        words = [word for name in reversed(TWO) for word in ("--probe", name)]
        result = verify(lab, *words, "--anew", "--yes", "--local-cloud", address)

    assert result.exit_code == 2
    assert (
        "error: probe tenancy-accounts failed because of a bug in training-platform: ZeroDivisionError" in result.stdout
    )
    assert "1 failed, 1 refuted" in result.stdout
    assert "training-platform: another run's object is kept" in result.stderr
