from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Program, Start, free_port, last

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]

SLICES = 2


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_bytes(b"a slice is a set of chips that ICI joins; " * 100)
    return path


def slices(
    start: Start, tokens: Path, checkpoints: Path, processes: int = SLICES, *, local: Path | None = None
) -> list[Program]:
    """Start a process for each slice, of two devices each; ``local`` has a folder for each VM."""
    where = {"COORDINATOR_ADDRESS": f"127.0.0.1:{free_port()}", "NUM_PROCESSES": str(processes)}
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    options = ["--tokens", tokens, "--checkpoints", checkpoints, "--steps=60", "--checkpoint-every=5", "--batch=8"]
    if local:
        options += ["--checkpoint-every=20", "--local-every=5"]
    programs = []
    for index in range(processes):
        variables = {**where, **devices, "PROCESS_ID": str(index)}
        if local:
            folder = local / f"vm-{index}"
            folder.mkdir(parents=True, exist_ok=True)
            variables["LOCAL_CHECKPOINT_DIR"] = str(folder)
        programs.append(start(EXAMPLES / "pretrain_jax" / "pretrain.py", *options, **variables))
    return programs


def test_slices_that_are_killed_go_on_as_if_nothing_had_been(start: Start, tokens: Path, tmp_path: Path) -> None:
    first, *other_slices = slices(start, tokens, tmp_path / "whole")
    whole = first.ends_well()
    assert all(other.ended() == 0 for other in other_slices)

    killed = slices(start, tokens, tmp_path / "killed")
    killed[0].until("checkpoint 15 begun, .*")
    for program in killed:
        program.kill()
        assert program.ended() == -signal.SIGKILL
    again, *other_slices = slices(start, tokens, tmp_path / "killed")
    resumed = again.ends_well()
    assert all(other.ended() == 0 for other in other_slices)

    steps = [line.split()[1] for line in resumed if line.startswith("step ")]
    assert 10 <= int(last(resumed, "from").split()[-1]) < 60
    assert "1" not in steps
    assert last(resumed, "step") == last(whole, "step")
    losses = [float(line.split()[-1]) for line in whole if line.startswith("step ")]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("lost", "steps"), [(False, {30, 35}), (True, {20})], ids=["local checkpoints exist", "they are lost"]
)
def test_slices_that_start_again_read_local_checkpoints_or_else_the_output(
    start: Start, tokens: Path, tmp_path: Path, *, lost: bool, steps: set[int]
) -> None:
    local = tmp_path / "local"
    whole, *other_slices = slices(start, tokens, tmp_path / "whole")
    final = last(whole.ends_well(), "step")
    assert all(other.ended() == 0 for other in other_slices)
    killed = slices(start, tokens, tmp_path / "killed", local=local)
    killed[0].until("checkpoint 35 begun, .*")
    for program in killed:
        program.kill()
        program.ended()
    if lost:
        shutil.rmtree(local)

    again, *other_slices = slices(start, tokens, tmp_path / "killed", local=local)
    resumed = again.ends_well()

    assert all(other.ended() == 0 for other in other_slices)
    assert int(last(resumed, "from").split()[2]) in steps
    assert last(resumed, "step") == final
