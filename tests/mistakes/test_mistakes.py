"""Mistakes that people make in their first hour: each has one answer, at the right place, with a hint that works."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.training_platform.rules.corpus import load
from training_platform.cli.main import app

HERE = Path(__file__).parent
MISTAKES: list[dict[str, Any]] = load(HERE / "mistakes.yaml")
ANSWER = re.compile(r"(?m)^(?:error|warning|not checked:|training-platform:) (?P<text>.*(?:\n  .*)*)")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "organisation", tmp_path / "organisation"))


def check(root: Path, file: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of the check that the owner of a file would run."""
    command = ("job", "check", str(root / file)) if file.startswith("jobs/") else ("check", *arguments)
    result = CliRunner().invoke(app, [*command, "--root", str(root)], env={"COLUMNS": "160"})
    return result.exit_code, result.output


def place(text: str, row: dict[str, Any]) -> str:
    """Return the file, line and column at which the answer has to be."""
    if "place" in row:
        return str(row["place"])
    if "at" in row and row["at"] is None:
        return str(row["file"])
    index = text.index(row.get("at", row["new"].strip()))
    line = text.count("\n", 0, index) + 1
    return f"{row['file']}:{line}:{index - text.rfind(chr(10), 0, index)}: "


def test_the_organisation_is_clean(root: Path) -> None:
    assert check(root, "stacks/", "--strict")[0] == 0
    for job in ("jobs/vision/finetune.yaml", "jobs/nlp/pretrain.yaml"):
        code, output = check(root, job)
        assert (code, ANSWER.findall(output)) == (0, []), output


@pytest.mark.parametrize("row", MISTAKES, ids=[row["mistake"].replace(" ", "-") for row in MISTAKES])
def test_a_mistake_has_one_answer_whose_hint_works(root: Path, row: dict[str, Any]) -> None:
    path = root / row["file"]
    code = row.get("exit", 1)
    before = path.read_text(encoding="utf-8") if path.exists() else None
    text = row["new"] if before is None or "old" not in row else before.replace(row["old"], row["new"])
    assert text != before
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")

    exit_code, output = check(root, row["file"])

    answers = [match["text"] for match in ANSWER.finditer(output)]
    assert len(answers) == 1, output
    assert answers[0].startswith(place(text, row)), answers[0]
    assert [part for part in (*row["says"], row["hint"]) if part not in answers[0]] == [], answers[0]
    assert exit_code == code
    counted = {0: "1 warning", 1: r"(stacks?|job): 1 error", 2: "1 thing not checked"}[code]
    assert re.search(counted, output), output
    if "strict" in row:
        assert check(root, row["file"], "--strict")[0] == row["strict"]

    if row["then"] is None and before is None:
        path.unlink()
    elif row["then"] is None:
        path.write_text(before or "", encoding="utf-8")
    else:
        path.write_text(text.replace(row["new"], row["then"]), encoding="utf-8")
    exit_code, output = check(root, "stacks/", "--strict")
    assert exit_code == 0, output


def edit(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (root / file).write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("[{limit: 80}]", "[{limit: 24,000}]", "the comma ends the number 24, so 000 is read as another key"),
        ("[{limit: 80}]", '[{limit: "24,000"}]', "'24,000' is not an integer"),
        ('taken: "2026-11-01"', "taken: 01.11.2026", "'01.11.2026' is not a day such as 2026-11-01"),
    ],
)
def test_a_snapshot_has_one_error_and_what_it_hides_is_not_checked(root: Path, old: str, new: str, answer: str) -> None:
    edit(root, "stacks/quotas/own-train-prod.yaml", old, new)

    exit_code, output = check(root, "stacks/")

    assert answer in output
    assert ("Nearest: 24000" in output) == ("24,000" in new)
    assert (exit_code, "5 stacks: 1 error, 1 thing not checked" in output) == (2, True)


def test_shares_of_a_file_that_cannot_be_read_are_not_idle(root: Path) -> None:
    before = check(root, "stacks/")[1]
    edit(root, "stacks/Pulumi.prod-vision.yaml", "config:", "config: [")

    output = check(root, "stacks/")[1]

    assert "; unassigned: 8 GPUs, 64 chips" in before
    assert "idle" not in output
    assert "shares in files that are rejected or cannot be read are not counted" in output
    assert output.endswith("5 stacks: 1 thing not checked\n")


def test_a_topology_that_changes_a_flavor_s_name_says_where_to_change_it_too(root: Path) -> None:
    edit(root, "stacks/Pulumi.prod.yaml", "topology: 4x8", "topology: 4x6")
    share = root / "stacks" / "Pulumi.prod-nlp.yaml"
    edit(root, "stacks/Pulumi.prod-nlp.yaml", "tpu-v5e-4x8-reservation", "tpu-v5e-4x6-reservation")
    line = share.read_text(encoding="utf-8").splitlines().index("        tpu-v5e-4x6-reservation: {nominal_quota: 64}")

    output = check(root, "stacks/")[1]

    also = (
        f"its flavor then becomes tpu-v5e-4x8-reservation: change the flavor's name at "
        f"stacks/Pulumi.prod-nlp.yaml:{line + 1}"
    )
    assert f"Nearest: 4x8; {also}\n" in output
    assert output.count("\nerror ") == 1


def test_the_first_error_is_explained_and_no_warning_before_it(root: Path) -> None:
    edit(root, "stacks/Pulumi.prod.yaml", "zone: us-central1-b", "zone: us-central1-f")
    edit(root, "stacks/Pulumi.prod.yaml", "topology: 4x8", "topology: 4x6")

    lines = check(root, "stacks/")[1].splitlines()

    assert lines[-2:] == ["5 stacks: 1 error, 1 warning", "More about it: training-platform explain tpu-topology"]
