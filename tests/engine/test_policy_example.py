"""The pack under the real engine, on a program in plain pulumi-gcp: from the checkout, and as it is published."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.workspace import Preview, Workspace
from tests.places import ROOT
from training_platform.policy.build import build

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

STACK = "dev"
PROJECT_FILE = """\
name: plain-gcp
stackConfigDir: stacks
runtime: {name: python, options: {toolchain: pip, virtualenv: .venv}}
"""
FOUND = ["boot-disk-type", "labels", "labels", "quota-exceeded", "tpu-topology"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A project with the example's program and nothing of ours, and beside it the folder to publish."""
    program = (ROOT / "examples" / "plain_gcp" / "__main__.py").read_text(encoding="utf-8")
    made = Workspace(tmp_path_factory.mktemp("plain"), program=program)
    (made.root / "Pulumi.yaml").write_text(PROJECT_FILE, encoding="utf-8")
    pack = made.root / "published"
    build(pack)
    (pack / "PulumiPolicy.yaml").write_text(f"runtime: {{name: python, options: {{virtualenv: {sys.prefix}}}}}\n")
    site = made.root / "site"
    for wheel in pack.glob("*.whl"):
        shutil.unpack_archive(wheel, site, "zip")
    made.environment["PYTHONPATH"] = str(site)
    made.init(STACK)
    return made


def preview(place: Workspace, pack: Path, **config: Any) -> Preview:
    limits = ROOT / "examples" / "plain_gcp" / "quotas" / "example-plain.yaml"
    given = {"labels": {"environment": "dev", "team": "vision"}, "quota": {"snapshot": str(limits)}, **config}
    file = place.root / "policy-config.json"
    file.write_text(json.dumps(given), encoding="utf-8")
    return place.preview(STACK, "--policy-pack", str(pack), "--policy-pack-config", str(file))


def rules(seen: Preview, level: str) -> list[str]:
    return sorted(each.rpartition("Rule: ")[2].partition(".")[0] for each in seen.violations(level))


@pytest.mark.parametrize("pack", ["the checkout's", "the published"])
def test_the_pack_finds_the_examples_mistakes(pack: str, place: Workspace) -> None:
    seen = preview(place, ROOT / "policies" if pack == "the checkout's" else place.root / "published")

    assert seen.code != 0
    assert rules(seen, "mandatory") == FOUND
    assert any("other stacks are not counted" in each for each in seen.violations("advisory"))


def test_what_has_one_right_answer_is_put_right_where_a_config_says_so(place: Workspace) -> None:
    labels = {"environment": "dev", "team": "vision", "enforcementLevel": "remediate"}

    seen = preview(place, ROOT / "policies", labels=labels, disks="remediate")

    assert rules(seen, "mandatory") == ["quota-exceeded", "tpu-topology"]
    bucket = seen.resources["gcp:storage/bucket:Bucket", "data"]["inputs"]
    assert (bucket["labels"]["environment"], bucket["labels"]["team"]) == ("dev", "vision")


def test_a_config_with_a_wrong_name_ends_the_preview_and_names_the_nearest(place: Workspace) -> None:
    seen = preview(place, ROOT / "policies", labls={"enforcementLevel": "advisory"})

    assert seen.code != 0
    assert "there is no policy 'labls'" in seen.text
    assert "Nearest: labels" in seen.text
