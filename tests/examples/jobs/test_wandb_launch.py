from __future__ import annotations

import json
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
# The metrics of each step, of the records that wandb keeps until they are uploaded: a log of LevelDB's form, in blocks
# of 32 KiB; a record has a checksum, its length, and whether it is whole (1), begins (2), goes on or ends (4) here.
READ = """\
import json, struct, sys
from wandb.proto.wandb_internal_pb2 import Record
data, at, part, steps = open(sys.argv[1], "rb").read(), 7, b"", []
while at + 7 <= len(data):
    if 32768 - at % 32768 < 7:
        at += 32768 - at % 32768
        continue
    _, size, kind = struct.unpack_from("<IHB", data, at)
    part, at = part + data[at + 7 : at + 7 + size], at + 7 + size
    if kind in (1, 4):
        items = Record.FromString(part).history.item
        if items:
            steps.append({each.key or each.nested_key[0]: json.loads(each.value_json) for each in items})
        part = b""
print(json.dumps(steps))
"""
Step = dict[str, float]


@pytest.fixture
def data(tmp_path: Path, python: str) -> Path:
    path = tmp_path / "data.npz"
    subprocess.run([python, "-c", MAKE, str(path)], check=True, capture_output=True)
    return path


def launched(start: Start, data: Path, name: str, **chosen: float) -> Program:
    """Start a run as W&B's agent does, with what somebody chose as WANDB_CONFIG; nothing is uploaded."""
    variables = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_LAUNCH": "true", "WANDB_RUN_ID": name}
    options = ["--data", data, "--output", data.parent / name]
    return start(EXAMPLES / "wandb_launch" / "train.py", *options, WANDB_CONFIG=json.dumps(chosen), **variables)


def kept(python: str, data: Path, name: str) -> list[list[Step]]:
    """Return what wandb kept of each start of a run."""
    files = sorted((data.parent / name).glob(f"wandb/offline-run-*/run-{name}.wandb"))
    return [json.loads(subprocess.check_output([python, "-c", READ, str(path)], text=True)) for path in files]


def test_what_was_chosen_for_a_run_is_put_over_the_defaults(start: Start, python: str, data: Path) -> None:
    lines = launched(start, data, "chosen", epochs=5, learning_rate=0.1).ends_well()

    (steps,) = kept(python, data, "chosen")
    assert last(lines, "epoch").startswith("epoch 5 ")
    assert [step["epoch"] for step in steps] == [1, 2, 3, 4, 5]
    assert steps[-1]["accuracy"] > 0.8


def test_a_run_that_is_killed_goes_on_in_the_same_run(start: Start, python: str, data: Path) -> None:
    whole = launched(start, data, "whole", epochs=400).ends_well()
    first = launched(start, data, "killed", epochs=400)
    first.until("epoch 5 .*")
    first.kill()
    assert first.ended() == -signal.SIGKILL

    resumed = launched(start, data, "killed", epochs=400).ends_well()

    began = last(resumed, "from").split()
    assert int(began[2]) >= 5
    assert began[-1] == "killed"
    assert last(resumed, "epoch") == last(whole, "epoch")
    assert kept(python, data, "killed")[-1][0]["epoch"] == int(began[2]) + 1
