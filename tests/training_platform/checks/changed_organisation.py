"""The tests' organisation with a change in one file, and the report of a check."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

from tests.support.places import ORGANISATION
from training_platform.checks.report import Report
from training_platform.checks.stacks import CheckOptions, check_stacks

QUOTAS = "stacks/quotas/example-train-dev.yaml"
NLP = "stacks/Pulumi.prod-nlp.yaml"
VISION = "stacks/Pulumi.prod-vision.yaml"


def report(root: Path, file: str, old: str, new: str) -> Report:
    """Check the tests' organisation with one text replaced in one file."""
    for folder in ("stacks", "jobs"):
        shutil.copytree(ORGANISATION / folder, root / folder)
    text = (root / file).read_text(encoding="utf-8")
    assert old in text
    (root / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    return check_stacks(root, None, CheckOptions(today=date(2026, 11, 21))).report
