"""Programs of probes' pods, run by the local sh with stand-ins for disks and connections."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from training_platform.parts.adopt.matches import Match
from training_platform.parts.verify.pod_probes import pod_spec, programs, storage_files
from training_platform.parts.verify.queue_probes import queues_admission
from training_platform.resources.resource_types import FILESTORE
from training_platform.resources.stack_resource import StackResource

DD = "echo '1073741824 bytes (1.1 GB, 1.0 GiB) copied, 2.1 s, {} {}' >&2"
NOBODY: Mapping[str, str] = {"getent": "exit 2", "timeout": "exit 124"}
OPEN = {"getent": "exit 0", "timeout": 'case "$*" in *computeMetadata*) echo "$EMAIL";; *1.1.1.1*) exit 1;; esac'}


def message(folder: Path, name: str, tools: Mapping[str, str], **env: str) -> dict[str, str]:
    """Run a program as its container does, and return the values of its termination message."""
    for tool, text in tools.items():
        (folder / tool).write_text(f"#!/bin/sh\n{text}\n")
        (folder / tool).chmod(0o755)
    log = folder / "termination-log"
    data = folder / "data"
    data.mkdir(exist_ok=True)
    places = {"/dev/termination-log": str(log), "cd /data": f"cd {data}"}
    script = programs()[name].script
    for place, here in places.items():
        script = script.replace(place, here)
    path = f"{folder}:/usr/local/bin:/usr/bin:/bin"
    subprocess.run(["/bin/sh", "-c", script], env={"PATH": path, **env}, check=True, timeout=60)
    return dict(line.split("=", 1) for line in log.read_text().splitlines())


@pytest.mark.parametrize("email", ["example-lab.svc.id.goog", "lab-gke-nodes@example-lab.iam.gserviceaccount.com"])
def test_a_pod_reports_its_connections_and_its_identity(tmp_path: Path, email: str) -> None:
    results = message(tmp_path, "egress", OPEN, EMAIL=email)

    of_node = "yes" if email.startswith("lab-gke-nodes") else "no"
    assert results == {"dns": "yes", "google_apis": "yes", "internet": "no", "metadata_of_node": of_node}


def test_a_pod_that_reaches_nobody_says_so(tmp_path: Path) -> None:
    results = message(tmp_path, "egress", NOBODY)

    assert results == dict.fromkeys(("dns", "google_apis", "internet", "metadata_of_node"), "no")


@pytest.mark.parametrize("program", ["disk", "files", "lustre"])
@pytest.mark.parametrize(("rate", "unit", "told"), [("510", "MB/s", 510), ("1.3", "GB/s", 1300), ("900", "kB/s", 0.9)])
def test_a_pod_reports_the_throughput_of_a_volume_in_megabytes(
    tmp_path: Path, program: str, rate: str, unit: str, told: float
) -> None:
    results = message(tmp_path, program, {"dd": DD.format(rate, unit)})

    assert {key: float(value) for key, value in results.items()} == {"write": told, "read": told}
    assert list((tmp_path / "data").iterdir()) == []


def test_a_pod_reads_an_existing_file_and_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "index").write_text("a")

    results = message(tmp_path, "bucket", {"dd": DD.format(70, "MB/s")}, FILE="index")

    assert results == {"write": "", "read": "70"}
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["index"]


@pytest.mark.parametrize(("attempt", "code"), [("0", 1), ("1", 0)])
def test_a_job_fails_only_at_its_first_attempt(attempt: str, code: int) -> None:
    env = {"ATTEMPT": attempt, "RUN": "verify-1-job"}
    done = subprocess.run(
        ["/bin/sh", "-c", programs()["attempt"].script], env=env, check=False, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (code, f"attempt {attempt} of verify-1-job\n")


@pytest.mark.parametrize("body", [None, {}, {"networks": []}, {"networks": [{"ipAddresses": []}]}])
def test_an_instance_without_an_address_is_undecided(body: Mapping[str, Any] | None) -> None:
    planned = StackResource(stack="lab", type=FILESTORE, name="homes", inputs={})
    match = Match(planned, "homes", "projects/example-lab/locations/us-central1-a/instances/lab-homes", body)
    platform: Any = SimpleNamespace(existing={FILESTORE: [match]}.__getitem__)

    (answer,) = storage_files(platform)

    assert (answer.verdict, answer.says) == ("undecided", "lab-homes has no address yet")


def test_a_pod_of_a_probe_has_no_token_of_the_cluster() -> None:
    platform: Any = SimpleNamespace(environment=SimpleNamespace(node_images={}))

    assert pod_spec(platform, programs()["egress"])["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("evicted", "answer"),
    [
        (["second"], ("proven", "second: Preempted")),
        (["first", "second"], ("refuted", "preempted: ['first', 'second']")),
    ],
)
def test_a_queue_that_reclaims_its_quota_preempts_one_job(evicted: list[str], answer: tuple[str, str]) -> None:
    platform = MagicMock(seconds=0.0, clusters={"main": MagicMock()})
    platform.environment.priorities = {}
    preempted = {"conditions": [{"type": "Evicted", "reason": "Preempted"}]}
    platform.clusters["main"].objects.return_value = [
        {"metadata": {"ownerReferences": [{"name": name}]}, "status": preempted if name in evicted else {}}
        for name in ("first", "second", "third")
    ]

    preemption = list(queues_admission(platform))[3]

    assert (preemption.verdict, preemption.evidence) == answer
