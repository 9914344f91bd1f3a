from __future__ import annotations

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Start, free_port, last

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]


def test_two_processes_measure_the_bandwidth_between_them(start: Start) -> None:
    torchrun = ["--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}"]
    program = EXAMPLES / "all_gather" / "gather.py"

    lines = start(*torchrun, program, module="torch.distributed.run", BYTES=str(1 << 20)).ends_well()

    words = last(lines, "2 processes").split()
    assert words[2:4] == ["bus", "bandwidth"]
    assert float(words[4]) > 0
