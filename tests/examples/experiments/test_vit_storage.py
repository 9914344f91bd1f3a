"""The experiment prints how long training took from a bucket and from Filestore, side by side."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.examples.jobs.conftest import PYTHON
from tests.examples.jobs.test_finetune_vit import MAKE
from tests.places import ROOT
from training_platform.jobs.model import Job

EXPERIMENT = ROOT / "examples" / "experiments" / "vit_storage"
STUB = """\
#!{python}
import json, sys
from pathlib import Path
log = Path({log!r})
words = sys.argv[1:]
log.open("a").write(" ".join(words) + "\\n")
if words[1] == "submit":
    print("# not a name")
    print(Path(words[2]).stem + "-abcde")
elif words[1] == "wait":
    sys.exit({code})
elif words[1] == "logs":
    print("workerpool0-0 | step 1 loss 0.5")
    print("workerpool0-0 | seconds 4000.0" if "bucket" in words[2] else "workerpool0-0 | seconds 2500.0")
"""


def compare(*words: str | Path, using: str = sys.executable) -> subprocess.CompletedProcess[str]:
    command = [using, str(EXPERIMENT / "compare.py"), *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)


def stub(folder: Path, code: int = 0) -> tuple[Path, Path]:
    """Write a command that submits nothing, and answers as runs would that took 4,000 and 2,500 s."""
    log, command = folder / "log", folder / "training-platform"
    command.write_text(STUB.format(python=sys.executable, log=str(log), code=code))
    command.chmod(0o755)
    return command, log


def test_both_jobs_are_submitted_waited_for_and_their_times_printed(tmp_path: Path) -> None:
    command, log = stub(tmp_path)

    ran = compare("--team", "vision", "--command", command)

    assert ran.returncode == 0, ran.stderr
    assert log.read_text().splitlines() == [
        "job submit jobs/vision/vit-bucket.yaml", "job wait vit-bucket-abcde", "job logs vit-bucket-abcde",
        "job submit jobs/vision/vit-filestore.yaml", "job wait vit-filestore-abcde", "job logs vit-filestore-abcde",
    ]  # fmt: skip
    assert [line.split() for line in ran.stdout.splitlines()[-3:]] == [
        ["Cloud", "Storage", "4,000", "4,837"], ["Filestore", "2,500", "3,006"],
        ["first", "/", "second", "1.60", "1.61"],
    ]  # fmt: skip


def test_a_run_that_fails_ends_the_experiment_with_its_command(tmp_path: Path) -> None:
    command, _ = stub(tmp_path, code=1)

    ran = compare("--team", "vision", "--command", command)

    assert ran.returncode == 1
    assert "job wait vit-bucket-abcde ended with 1" in ran.stderr


@pytest.mark.parametrize("name", ["vit-bucket", "vit-filestore"])
def test_the_job_files_are_jobs_that_differ_in_where_they_read(name: str) -> None:
    file = yaml.safe_load((EXPERIMENT / f"{name}.yaml").read_text(encoding="utf-8"))
    job = Job.model_validate(file, strict=False)

    assert job.source is not None
    assert (ROOT / str(job.source.file)).is_file()
    assert job.vertex is not None
    assert job.vertex.machine_type == "a2-highgpu-1g"


def test_both_files_train_alike() -> None:
    bucket, files = (
        yaml.safe_load((EXPERIMENT / f"vit-{name}.yaml").read_text(encoding="utf-8"))
        for name in ("bucket", "filestore")
    )

    assert [one for one, other in zip(bucket["args"], files["args"], strict=True) if one != other] == [
        "--data=/gcs/example-images/food101"
    ]
    assert {key: value for key, value in bucket.items() if key not in ("args", "mounts")} == {
        key: value for key, value in files.items() if key not in ("args", "mounts")
    }


@pytest.mark.examples
@pytest.mark.timeout(400)
def test_it_trains_on_a_small_set_of_images_from_two_folders(tmp_path: Path) -> None:
    python = os.environ.get(PYTHON)
    if python is None:
        pytest.skip("the examples' libraries, gigabytes, are installed and used by `make test-examples` alone")
    data, other = tmp_path / "data", tmp_path / "other"
    subprocess.run([python, "-c", MAKE, str(data)], check=True, capture_output=True)
    shutil.copytree(data / "food-101", other / "food-101")
    options: list[str | Path] = ["--model", data / "model", "--steps=4", "--batch=8", "--workers=1"]

    ran = compare("--local", data, other, "--", *options, using=python)

    assert ran.returncode == 0, ran.stderr
    rows = [line.split() for line in ran.stdout.splitlines()[-3:]]
    assert [row[0] for row in rows] == ["Cloud", "Filestore", "first"]
