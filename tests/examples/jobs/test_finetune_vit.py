from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Program, Start, last
from tests.examples.jobs.data_sets import MAKE_IMAGES

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]


@pytest.fixture
def data(tmp_path: Path, python: str) -> Path:
    """Two dishes of twelve pictures, as food-101 lays them out, and a small vision transformer."""
    subprocess.run([python, "-c", MAKE_IMAGES, str(tmp_path)], check=True, capture_output=True)
    return tmp_path


def tuning(start: Start, data: Path, checkpoints: Path) -> Program:
    where = ["--data", data, "--model", data / "model", "--checkpoints", checkpoints]
    options = ["--steps=16", "--checkpoint-every=100", "--batch=8", "--workers=1", "--learning-rate=1e-3"]
    return start(EXAMPLES / "finetune_vit" / "finetune.py", *where, *options)


def test_a_vm_that_goes_leaves_a_checkpoint_and_the_next_goes_on(start: Start, data: Path) -> None:
    whole = tuning(start, data, data / "whole").ends_well()

    first = tuning(start, data, data / "stopped")
    first.until("step 3 loss .*")
    first.terminate()
    assert first.ended() == 128 + signal.SIGTERM, first.lines[-30:]
    done = last(first.lines, "checkpoint").split()[1]
    assert last(first.lines, "step").split()[1] == done
    assert 3 <= int(done) < 16
    resumed = tuning(start, data, data / "stopped").ends_well()

    assert f"from step {done}" in resumed
    assert next(line for line in resumed if line.startswith("step ")).split()[1] == str(int(done) + 1)
    assert last(resumed, "step") == last(whole, "step")
    assert last(resumed, "accuracy") == last(whole, "accuracy")
