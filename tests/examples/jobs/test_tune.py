from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Program, Start, last

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]

MAKE = """\
import sys, numpy as np
random = np.random.default_rng(0)
inputs = random.standard_normal((300, 8)).astype("float32")
labels = inputs[:, :3].argmax(1)
np.savez(sys.argv[1], inputs=inputs[:200], labels=labels[:200], test_inputs=inputs[200:], test_labels=labels[200:])
"""


@pytest.fixture
def data(tmp_path: Path, python: str) -> Path:
    path = tmp_path / "data.npz"
    subprocess.run([python, "-c", MAKE, str(path)], check=True, capture_output=True)
    return path


def trial(start: Start, data: Path, number: str, *parameters: str) -> Program:
    """Start a trial as Vertex AI does: its parameters as arguments, its number and folders as variables."""
    root = data.parent
    variables = {"CLOUD_ML_TRIAL_ID": number, "CLOUD_ML_HP_METRIC_FILE": str(root / f"metrics-{number}")}
    options = ["--data", data, "--epochs=40", *parameters]
    return start(EXAMPLES / "tune" / "trial.py", *options, AIP_CHECKPOINT_DIR=str(root / "checkpoints"), **variables)


def test_a_trial_that_is_killed_goes_on_after_its_last_epoch(start: Start, data: Path) -> None:
    whole = trial(start, data, "1").ends_well()
    first = trial(start, data, "2")
    first.until("epoch 5 .*")
    first.kill()
    assert first.ended() == -signal.SIGKILL

    resumed = trial(start, data, "2").ends_well()

    assert int(last(resumed, "from").split()[-1]) >= 5
    assert last(resumed, "epoch") == last(whole, "epoch")
