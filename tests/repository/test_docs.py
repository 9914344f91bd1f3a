"""What the pages tell people to run, open and write exists."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from datetime import date
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import yaml
from click.testing import CliRunner

from docs.reference.components import component_pages
from docs.reference.write import EXAMPLES, FOLDER, VERIFIED, pages, rule_pages, status
from tests.support.places import ORGANISATION, ROOT
from training_platform.cli.main import app
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import check_job
from training_platform.parts.jobs.job_model import Job
from training_platform.parts.verify.probe_table import PROBES

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("*_*/README.md"), *(ROOT / "docs").rglob("*.md")])
OF_TODAY = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which has commands and options of earlier versions


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_links_to_what_exists(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_commands_and_options_that_exist(page: Path) -> None:
    for line in re.findall(r"training-platform ([a-z][^`#|\n]*)", page.read_text(encoding="utf-8")):
        command: click.Command = app
        words = line.split()
        while isinstance(command, click.Group) and words and not words[0].startswith(("-", "[")):
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options, line


def test_the_whole_environment_and_its_team_are_clean(tmp_path: Path) -> None:
    page = (FOLDER / "environment.md").read_text(encoding="utf-8")
    files = re.findall(r"^`(stacks/[^`]+)` has .+?^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert [file for file, _ in files] == ["stacks/Pulumi.prod.yaml", "stacks/Pulumi.prod-vision.yaml"]
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    (tmp_path / "stacks").mkdir()
    for file, text in files:
        (tmp_path / file).write_text(text, encoding="utf-8")
    options = ["--today", "2026-11-24", "--root", str(tmp_path)]
    assert CliRunner().invoke(app, ["quota", "init", *options]).exit_code == 0

    result = CliRunner().invoke(app, ["check", "--format", "json", *options])

    assert {finding["rule"] for finding in json.loads(result.stdout)["findings"]} == {"quota-placeholder"}


def test_the_example_of_a_job_is_a_job_of_the_samples(tmp_path: Path) -> None:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    example, *_ = re.findall(
        r"^```yaml\n(.*?)^```$", (ROOT / "docs" / "jobs.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    file = tmp_path / "jobs" / "vision" / "first.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(example, encoding="utf-8")

    assert list(check_job(file, tmp_path, read_workspace(tmp_path), date(2026, 11, 2))) == []


def test_the_examples_of_job_files_have_the_right_shape() -> None:
    text = (FOLDER / "job-files.md").read_text("utf-8")
    examples = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)

    assert len(examples) == 3
    for example in examples:
        Job.model_validate_json(json.dumps(parse_source(example, "jobs/vision/finetune.yaml").value))


README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_example_of_a_team_is_a_stack_file() -> None:
    (example,) = [text for kind, text in BLOCKS if kind == "yaml"]

    stack = parse_stack("prod-vision", parse_source(example, "README.md"))

    assert not stack.findings
    assert stack.team is not None
    assert yaml.safe_load(example)


PAIRS = {"README.md": "README.ja.md", "docs/start.md": "docs/start.ja.md"}
_BLOCK = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


class Skeleton(NamedTuple):
    """What a translation has to have alike: a link to a page that is translated is one to either."""

    blocks: list[str]
    outline: list[str]
    code: Counter[str]
    links: Counter[str]
    figures: Counter[str]


def test_the_readme_is_read_in_two_minutes() -> None:
    assert len(README.splitlines()) <= 90


def skeleton(text: str) -> Skeleton:
    prose = _BLOCK.sub("", text)
    words = re.sub(r"\]\([^)]*\)|`[^`]*`", "", prose)
    return Skeleton(
        blocks=_BLOCK.findall(text),
        outline=re.findall(r"^(#+|\d+\.|\|(?= ))", prose, re.MULTILINE),
        code=Counter(" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)),
        links=Counter(target.replace(".ja.md", ".md") for target in re.findall(r"\]\(([^)]+)\)", prose)),
        figures=Counter(re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", words)),
    )


@pytest.mark.parametrize(("english", "japanese"), PAIRS.items())
def test_a_translation_keeps_step(english: str, japanese: str) -> None:
    assert skeleton((ROOT / japanese).read_text("utf-8")) == skeleton((ROOT / english).read_text("utf-8"))


@pytest.mark.parametrize("name", ["commands.md", "job-file.md", "rights.md", "rules.md", "stack-file.md"])
def test_a_page_of_the_reference_is_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run `make reference`"


def test_each_rule_set_has_a_current_page() -> None:
    written = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in rule_pages()}

    assert written == {name: text for name, text in pages().items() if "/" in name}, "run `make reference`"


def test_the_pages_that_list_the_components_are_current() -> None:
    for path, text in component_pages().items():
        assert path.read_text(encoding="utf-8") == text, "run `make reference`"


def test_the_page_on_what_is_proven_is_current() -> None:
    page = (ROOT / "docs" / "development" / "status.md").read_text(encoding="utf-8")

    assert page == status(page, VERIFIED.glob("*.json")), "run `make reference`"


def verified(folder: Path, day: str, verdict: str, where: str = "Google Cloud") -> Path:
    path = folder / f"{day}.json"
    row = {"probe": "storage-ready", "verdict": verdict}
    path.write_text(json.dumps({"where": where, "began": f"{day}T01:00:00", "version": "1.2.0", "probes": [row]}))
    return path


def test_the_last_report_of_a_project_says_what_is_proven(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "development" / "status.md").read_text(encoding="utf-8")
    late = verified(tmp_path, "2027-02-03", "proven")
    early = verified(tmp_path, "2027-01-02", "refuted")

    changed = status(page, [late, early])

    (row,) = (line for line in changed.splitlines() if "| `storage-ready` |" in line)
    assert row.endswith("| proven | 2027-02-03 | version 1.2.0 |")
    assert f"1 of {len(PROBES)} probes are proven there." in changed


def test_a_report_of_a_local_cloud_proves_nothing_about_google_cloud(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="which proves nothing about Google Cloud"):
        status("", [verified(tmp_path, "2027-02-03", "proven", where="a local cloud")])


def test_the_examples_of_the_reference_are_accepted() -> None:
    result = CliRunner().invoke(app, ["check", "--format", "json", "--root", str(EXAMPLES)])

    assert {finding["rule"] for finding in json.loads(result.stdout)["findings"]} == {
        "quota-no-snapshot",
        "job-quota-snapshot",
        "job-vertex-key",
        "network-not-judged",
        "quota-uncounted",
    }
