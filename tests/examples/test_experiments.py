"""A folder is filled from another, and an interrupted copy goes on with the very next byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local_google_cloud.api import CloudSettings, serve
from tests.examples.jobs.conftest import PYTHON
from tests.examples.jobs.data_sets import MAKE_IMAGES
from tests.parts.jobs.runs.vertex_cloud import PROJECT, Cloud, write_repository
from tests.support.places import ROOT

PROGRAM = ROOT / "examples" / "data" / "prefetch.py"


def run(source: Path, destination: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), str(source), str(destination), "--threads=4"]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    source = tmp_path / "bucket"
    for index in range(20):
        path = source / f"class-{index % 3}" / f"{index}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([index]) * (1000 + index))
    return source, tmp_path / "volume"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_file_is_copied_and_a_second_run_copies_nothing(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    total = sum(1000 + index for index in range(20))

    first = run(source, volume)
    second = run(source, volume)

    assert first.stdout == f"20 copied ({total} bytes), 0 there already, 0 failed, 0 only in the destination\n"
    assert second.stdout == "0 copied (0 bytes), 20 there already, 0 failed, 0 only in the destination\n"
    assert contents(volume) == contents(source)


def test_a_file_that_was_under_way_goes_on_from_its_last_byte(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    large = source / "large.bin"
    text = os.urandom(300_000)
    large.write_bytes(text)
    os.utime(large, (1_700_000_000, 1_700_000_000))
    run(source, volume)
    (volume / "large.bin").unlink()
    (volume / "large.bin.300000-1700000000.part").write_bytes(text[:200_000])

    again = run(source, volume)

    assert again.stdout.startswith("1 copied (100000 bytes), 20 there already")
    assert (volume / "large.bin").read_bytes() == text
    assert not list(volume.rglob("*.part"))


def test_a_source_that_changed_is_copied_again(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    run(source, volume)
    changed = source / "class-0" / "0.jpg"
    changed.write_bytes(b"x" * 1000)  # of the same size
    os.utime(changed, (1_800_000_000, 1_800_000_000))

    assert run(source, volume).stdout.startswith("1 copied (1000 bytes), 19 there already")
    assert contents(volume) == contents(source)


def test_what_cannot_be_read_fails_the_run_and_hinders_no_other_file(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    (volume / "class-1").mkdir(parents=True)
    (volume / "class-1" / "1.jpg").mkdir()  # a folder stands where a file is to be

    ran = run(source, volume)

    assert ran.returncode == 1
    assert "19 copied" in ran.stdout
    assert "1 failed" in ran.stdout
    assert "1.jpg" in ran.stderr


def test_what_the_source_has_no_more_stays_and_is_counted(folders: tuple[Path, Path]) -> None:
    source, volume = folders
    run(source, volume)
    (source / "class-0" / "0.jpg").unlink()

    assert run(source, volume).stdout.endswith("1 only in the destination\n")
    assert (volume / "class-0" / "0.jpg").is_file()


EXPERIMENT = ROOT / "examples" / "experiments" / "start_up"
KEPT = {
    "resourcePools": [
        {
            "machineSpec": {
                "machineType": "a2-highgpu-1g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 1,
            },
            "replicaCount": "1",
            "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
        }
    ]
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")
def test_all_three_starts_stand_side_by_side(tmp_path: Path) -> None:
    root = write_repository(tmp_path / "lab")
    for name in ("start-new", "start-kept"):
        text = (EXPERIMENT / f"{name}.yaml").read_text().replace("environment: prod", "environment: lab")
        (root / "jobs" / "vision" / f"{name}.yaml").write_text(text)
    cloud = Cloud(root)
    pool = f"v1/projects/{PROJECT}/locations/us-central1/persistentResources"
    code, answer = cloud.cloud.handle("aiplatform", "POST", pool, [("persistentResourceId", "lab-vision-tuning")], KEPT)
    assert code == 200, answer
    cloud.cloud.settings = CloudSettings(durations={"aiplatform.jobs.pending": 4.0, "aiplatform.jobs.pendingKept": 1.0})
    cloud.cloud.clock = type(cloud.cloud.clock)()

    with serve(cloud.cloud) as port:
        command = [
            sys.executable, EXPERIMENT / "compare.py", "--team", "vision", "--command",
            Path(sys.executable).with_name("training-platform"), "--root", root,
            "--local-cloud", f"http://127.0.0.1:{port}",
        ]  # fmt: skip
        ran = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True, cwd=root)

    assert ran.returncode == 0, ran.stderr
    assert [line.split() for line in ran.stdout.splitlines()[-4:]] == [
        ["start", "on", "seconds", "saved"],
        ["new", "VMs", "4", "0"],
        ["kept", "VMs", "1", "3"],
        ["kept", "VMs,", "again", "1", "3"],
    ]


@pytest.mark.examples
@pytest.mark.timeout(400)
def test_it_trains_on_a_small_set_of_images_from_two_folders(tmp_path: Path) -> None:
    python = os.environ.get(PYTHON)
    if python is None:
        pytest.skip("only `make test-examples` installs and uses the examples' libraries, gigabytes")
    data = tmp_path / "data"
    other = tmp_path / "other"
    subprocess.run([python, "-c", MAKE_IMAGES, str(data)], check=True, capture_output=True)
    shutil.copytree(data / "food-101", other / "food-101")
    program = ROOT / "examples" / "experiments" / "vit_storage" / "compare.py"
    options = ["--model", str(data / "model"), "--steps=4", "--batch=8", "--workers=1"]

    command = [python, str(program), "--local", str(data), str(other), "--", *options]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)

    assert ran.returncode == 0, ran.stderr
    rows = [line.split() for line in ran.stdout.splitlines()[-3:]]
    assert [row[0] for row in rows] == ["Cloud", "Filestore", "first"]
