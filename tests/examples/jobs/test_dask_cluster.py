from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Program, Start, free_port

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]

PARTS = 40
MAKE = "import sys, numpy as np; np.save(sys.argv[1], np.random.default_rng(2).standard_normal((4000, 100)))"
COMPARE = """\
import sys, numpy as np
from pathlib import Path
one, two = (np.concatenate([np.load(part) for part in sorted(Path(folder).glob("*.npy"))]) for folder in sys.argv[1:])
assert one.shape == two.shape == (4000, 64), (one.shape, two.shape)
assert np.array_equal(one, two)
"""


@pytest.fixture
def data(tmp_path: Path, python: str) -> Path:
    path = tmp_path / "vectors.npy"
    subprocess.run([python, "-c", MAKE, str(path)], check=True, capture_output=True)
    return path


def cluster(start: Start, data: Path, output: Path) -> list[Program]:
    """Start one scheduler and two workers, with the variables by which Vertex AI lets them find each other."""
    port = free_port()
    pools = {"workerpool0": ["127.0.0.1:2222"], "workerpool1": ["127.0.0.1:2222", "127.0.0.1:2222"]}
    options = ["--data", data, "--output", output, f"--parts={PARTS}", f"--port={port}"]
    return [
        start(
            EXAMPLES / "dask_cluster" / "embed.py",
            *options,
            CLUSTER_SPEC=json.dumps({"cluster": pools, "task": {"type": pool, "index": index}}),
        )
        for pool, vms in pools.items()
        for index in range(len(vms))
    ]


def parts(folder: Path) -> int:
    return len(list(folder.glob("part-*.npy")))


def test_a_cluster_that_is_killed_does_only_what_is_left(start: Start, data: Path, tmp_path: Path, python: str) -> None:
    whole, *workers = cluster(start, data, tmp_path / "whole")
    whole.ends_well()
    assert [worker.ended() for worker in workers] == [0, 0]

    first = cluster(start, data, tmp_path / "killed")
    first[0].until("part .*")
    for program in first:
        program.kill()
        program.ended()
    done = parts(tmp_path / "killed")
    again, *workers = cluster(start, data, tmp_path / "killed")
    lines = again.ends_well()
    assert [worker.ended() for worker in workers] == [0, 0]

    assert done > 0
    assert f"{PARTS - done} of {PARTS} parts to do" in lines
    assert parts(tmp_path / "killed") == PARTS
    folders = [str(tmp_path / name) for name in ("whole", "killed")]
    subprocess.run([python, "-c", COMPARE, *folders], check=True)
