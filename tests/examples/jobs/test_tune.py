from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Program, Start, last

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]


def trial(start: Start, arrays: Path, number: str) -> Program:
    """Start a trial as Vertex AI does: its number and folders as variables."""
    root = arrays.parent
    variables = {"CLOUD_ML_TRIAL_ID": number, "CLOUD_ML_HP_METRIC_FILE": str(root / f"metrics-{number}")}
    options = ["--data", arrays, "--epochs=40"]
    return start(EXAMPLES / "tune" / "trial.py", *options, AIP_CHECKPOINT_DIR=str(root / "checkpoints"), **variables)


def test_a_trial_that_is_killed_goes_on_after_its_last_epoch(start: Start, arrays: Path) -> None:
    whole = trial(start, arrays, "1").ends_well()
    first = trial(start, arrays, "2")
    first.until("epoch 5 .*")
    first.kill()
    assert first.ended() == -signal.SIGKILL

    resumed = trial(start, arrays, "2").ends_well()

    assert int(last(resumed, "from").split()[-1]) >= 5
    assert last(resumed, "epoch") == last(whole, "epoch")
