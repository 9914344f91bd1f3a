from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Program, Start, free_port, last
from tests.examples.jobs.data_sets import MAKE_TENSORS

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]


@pytest.fixture
def data(tmp_path: Path, python: str) -> Path:
    path = tmp_path / "data.pt"
    subprocess.run([python, "-c", MAKE_TENSORS, str(path)], check=True, capture_output=True)
    return path


def training(
    start: Start, data: Path, checkpoints: Path, strategy: str, processes: int = 2, *more: str, **variables: str
) -> Program:
    torchrun = [f"--nproc-per-node={processes}", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
    where = ["--data", data, "--checkpoints", checkpoints, "--strategy", strategy]
    program = [*torchrun, EXAMPLES / "fsdp_torch" / "train.py", *where, "--steps=200", "--checkpoint-every=20"]
    options = ["--batch=16", "--learning-rate=1e-2", *more]
    return start(*program, *options, module="torch.distributed.run", **variables)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_processes_that_are_killed_go_on_as_if_nothing_had_been(
    strategy: str, start: Start, data: Path, tmp_path: Path
) -> None:
    whole = training(start, data, tmp_path / "whole", strategy).ends_well()

    first = training(start, data, tmp_path / "killed", strategy)
    first.until("checkpoint 40")
    first.kill()
    assert first.ended() == -signal.SIGKILL
    resumed = training(start, data, tmp_path / "killed", strategy).ends_well()

    assert 40 <= int(last(resumed, "from").split()[2]) < 200
    assert "step 1 " not in "\n".join(resumed)
    assert last(resumed, "step") == last(whole, "step")
    losses = [float(line.split()[-1]) for line in whole if line.startswith("step ")]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize("lost", [False, True], ids=["local checkpoints exist", "those of a process are lost"])
def test_a_program_that_starts_again_reads_local_checkpoints_or_else_the_output(
    strategy: str, start: Start, data: Path, tmp_path: Path, *, lost: bool
) -> None:
    local = tmp_path / "local"
    more = ("--checkpoint-every=100", "--local-every=10", "--steps=150")
    where = {"LOCAL_CHECKPOINT_DIR": str(local)}
    whole = training(start, data, tmp_path / "whole", strategy, 2, *more).ends_well()
    first = training(start, data, tmp_path / "killed", strategy, 2, *more, **where)
    first.until("local checkpoint 130")
    first.kill()
    first.ended()
    assert (tmp_path / "killed" / "step-100" / ".metadata").is_file()
    if lost:
        shutil.rmtree(local / "rank-1")

    resumed = training(start, data, tmp_path / "killed", strategy, 2, *more, **where).ends_well()

    begun = last(resumed, "from").split()
    assert begun[3:] == (["of", "the", "output"] if lost else ["of", "local", "checkpoints"])
    assert int(begun[2]) == 100 if lost else int(begun[2]) >= 120
    assert last(resumed, "step") == last(whole, "step")
    assert len(list((local / "rank-0").iterdir())) <= 2
