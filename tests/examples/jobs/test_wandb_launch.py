from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Program, Start, last

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]


def launched(start: Start, arrays: Path, name: str, **chosen: float) -> Program:
    """Start a run as W&B's agent does, with what somebody chose as WANDB_CONFIG; nothing is uploaded."""
    variables = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_LAUNCH": "true", "WANDB_RUN_ID": name}
    options = ["--data", arrays, "--output", arrays.parent / name]
    return start(EXAMPLES / "wandb_launch" / "train.py", *options, WANDB_CONFIG=json.dumps(chosen), **variables)


def test_a_run_that_is_killed_goes_on_in_the_same_run_with_what_was_chosen(start: Start, arrays: Path) -> None:
    whole = launched(start, arrays, "whole", epochs=400).ends_well()
    first = launched(start, arrays, "killed", epochs=400)
    first.until("epoch 5 .*")
    first.kill()
    assert first.ended() == -signal.SIGKILL

    resumed = launched(start, arrays, "killed", epochs=400).ends_well()

    began = last(resumed, "from").split()
    assert int(began[2]) >= 5
    assert began[-1] == "killed"
    assert last(resumed, "epoch") == last(whole, "epoch")
    assert last(whole, "epoch").startswith("epoch 400 ")  # of 20 by default
