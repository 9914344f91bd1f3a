"""What a submission does before it creates a run: source to its bucket, addresses and names into the body."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_google_cloud.api import serve
from tests.parts.jobs.lab import Lab
from tests.parts.jobs.runs.vertex_cloud import PROJECT, Cloud, Command, job_command, write_repository
from tests.support.lab import TODAY
from training_platform.clients.stack_outputs import environment_outputs
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_model import PythonSource
from training_platform.parts.jobs.naming import as_run, job_among, job_of, new_run
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.runs import watching
from training_platform.parts.jobs.runs.call import submit
from training_platform.parts.jobs.runs.places import places, places_of_run
from training_platform.parts.jobs.runs.state import Run, State
from training_platform.parts.jobs.runs.submission import Changes, delivered, prepare
from training_platform.parts.jobs.source_archive import packed
from training_platform.resources.environment_outputs import parse_outputs

pytestmark = pytest.mark.filterwarnings("ignore:You are using a Python version:FutureWarning")
BUCKET = f"{PROJECT}-lab-vision-checkpoints"
BOARD = {"displayName": "lab-vision-us-central1"}
SHARE = {
    "tier": "ZONAL",
    "fileShares": [{"name": "share", "capacityGb": "1024"}],
    "networks": [{"network": "default", "modes": ["MODE_IPV4"]}],
}
SOURCE = "environment: lab\nsource: {file: train.py}\noutput: checkpoints\nvertex: {region: us-central1, machine_type: "
WHOLE = """\
environment: lab
image: a:1
output: checkpoints
tensorboard: true
mounts: [{name: data, source: {directory: data}}]
vertex:
  region: us-central1
  machine_type: n1-standard-16
  network: projects/1/global/networks/lab
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write_repository(tmp_path / "lab")
    (root / "train.py").write_text("print('trained')\n")
    return root


@pytest.fixture
def cloud(root: Path) -> Cloud:
    cloud = Cloud(root)
    apis = {"serviceIds": [f"{name}.googleapis.com" for name in ("file", "storage", "compute")]}
    cloud.cloud.handle("serviceusage", "POST", f"v1/projects/{PROJECT}/services:batchEnable", [], apis)
    return cloud


@pytest.fixture
def job(root: Path, cloud: Cloud) -> Iterator[Command]:
    with serve(cloud.cloud) as port:
        yield job_command(root, port)


def create_in_cloud(cloud: Cloud, service: str, path: str, body: dict[str, Any], **query: str) -> None:
    code, answer = cloud.cloud.handle(service, "POST", path, list(query.items()), body)
    assert code == 200, answer


def created(cloud: Cloud, collection: str = "customJobs") -> list[dict[str, Any]]:
    path = f"v1/projects/{PROJECT}/locations/us-central1/{collection}"
    return list(cloud.cloud.handle("aiplatform", "GET", path, [], None)[1].get(collection, []))


def test_source_goes_to_its_bucket_before_the_job_that_names_it(job: Command, cloud: Cloud, root: Path) -> None:
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(SOURCE + "n1-standard-16}\n")
    create_in_cloud(cloud, "storage", "v1/b", {"name": BUCKET, "location": "us-central1"}, project=PROJECT)

    result = job("submit", str(file))

    assert result.exit_code == 0, result.output
    (body,) = created(cloud)
    package = body["jobSpec"]["workerPoolSpecs"][0]["pythonPackageSpec"]
    assert package["pythonModule"] == "train"
    assert package["packageUris"][0].startswith(f"gs://{BUCKET}/sources/")
    assert "tf-cpu" in package["executorImageUri"]


def test_without_the_bucket_nothing_is_submitted(job: Command, cloud: Cloud, root: Path) -> None:
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(SOURCE + "n1-standard-16}\n")

    result = job("submit", str(file))

    assert result.exit_code == 2
    assert "Cloud Storage rejects gs://" in result.output
    assert created(cloud) == []


def test_addresses_and_names_of_what_is_deployed_are_filled_in(job: Command, cloud: Cloud, root: Path) -> None:
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(WHOLE)
    place = f"v1/projects/{PROJECT}/locations"
    create_in_cloud(cloud, "aiplatform", f"{place}/us-central1/tensorboards", BOARD)
    create_in_cloud(cloud, "file", f"{place}/us-central1-a/instances", SHARE, instanceId="lab-shared")
    cloud.now += 3600

    result = job("submit", str(file))

    assert result.exit_code == 0, result.output
    (body,) = created(cloud)
    (mount,) = body["jobSpec"]["workerPoolSpecs"][0]["nfsMounts"]
    assert mount["path"] == "/share/vision/data"
    assert mount["mountPoint"] == "data"
    assert mount["server"].count(".") == 3
    assert "/tensorboards/" in body["jobSpec"]["tensorboard"]
    assert "{" not in str(body["jobSpec"]["tensorboard"]) + mount["server"]


def test_a_missing_deployment_gives_one_sentence_and_nothing_is_submitted(
    job: Command, cloud: Cloud, root: Path
) -> None:
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(WHOLE)

    result = job("submit", str(file))

    assert (result.exit_code, created(cloud)) == (2, [])
    assert "Filestore rejects the request (404)" in result.output or "There is no TensorBoard" in result.output


def test_addresses_that_the_environment_exports_need_no_role(root: Path) -> None:
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(WHOLE.replace("tensorboard: true\n", ""))
    exported = {"instance": "lab-shared", "ip": "10.9.8.7"}
    outputs = parse_outputs("lab", {"clusters": {}, "filestore": {"shared": exported}})

    def endpoint(service: str) -> str | None:
        raise AssertionError(service)

    ready = delivered(prepare(file, root, None, TODAY), endpoint, lambda: outputs)

    (body,) = ready.bodies
    (mount,) = body["jobSpec"]["workerPoolSpecs"][0]["nfsMounts"]
    assert mount["server"] == "10.9.8.7"


PULUMI = """\
#!/bin/sh
echo "$@" > "$CALLS"
echo '{"clusters": {}, "lustre": {"scratch": {"instance": "lab-scratch", "ip": "10.9.8.6"}}}'
exit "${ENDS:-0}"
"""


def test_outputs_of_an_environment_are_pulumis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pulumi"
    program.write_text(PULUMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))

    outputs = environment_outputs(tmp_path, "lab")

    assert outputs is not None
    assert outputs.lustre["scratch"].ip == "10.9.8.6"
    assert (tmp_path / "calls").read_text() == "stack output --json --non-interactive --stack lab\n"
    monkeypatch.setenv("ENDS", "255")
    assert environment_outputs(tmp_path, "lab") is None


def test_an_sdist_is_the_same_bytes_each_time_and_other_source_is_another(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    source = PythonSource(file="train.py", requirements=("numpy",))
    first = packed(source, tmp_path)

    assert packed(source, tmp_path) == first
    (tmp_path / "train.py").write_text("print(2)\n")
    assert packed(source, tmp_path) != first


def test_a_package_leaves_out_what_builds_and_hides(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "lab/train.py", "lab/__pycache__/x.pyc", ".git/config", "dist/old.tar.gz"):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text("")
    content = packed(PythonSource(package="src", module="lab.train"), tmp_path).content

    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert archive.getnames() == ["src-0/PKG-INFO", "src-0/lab/train.py", "src-0/pyproject.toml"]


def test_pip_installs_the_sdist_of_a_file_and_python_runs_its_module(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('trained')\n")
    archive = tmp_path / "train-0.tar.gz"
    archive.write_bytes(packed(PythonSource(file="train.py"), tmp_path).content)
    offline = ["--quiet", "--no-index", "--no-build-isolation", "--target", str(tmp_path / "site")]
    subprocess.run([sys.executable, "-m", "pip", "install", *offline, str(archive)], check=True)

    done = subprocess.run(
        [sys.executable, "-m", "train"], cwd="/", env={"PYTHONPATH": str(tmp_path / "site")}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.stdout == "trained\n"


JOB = """\
command: [torchrun]
args: ["--rdzv-endpoint={run}-slice-0-0.{run}:29500", "--title={title}"]
env: {NAME: "{run}"}
output: checkpoints
gke: {cluster: gpus, flavor: h100, nodes: 2}
"""


@pytest.mark.parametrize("job", ["train", "a", "train-2", "fine-tune-vit"])
def test_a_runs_name_leads_back_to_its_job(job: str) -> None:
    names = {new_run(job) for _ in range(50)}

    assert len(names) > 45
    assert {job_of(name) for name in names} == {job}


@pytest.mark.parametrize("name", ["train", "train-again", "train-aeiou", "train-bcdfgh", "-bcdfg"])
def test_a_name_without_a_runs_suffix_is_the_jobs_own(name: str) -> None:
    assert job_of(name) == name


def test_a_run_has_its_own_name_in_everything_that_asks_for_it(take: Callable[[str], ResolvedJob]) -> None:
    run = as_run(take(JOB), "train-bcdfg")

    assert run.name == "train-bcdfg"
    assert run.spec.args == ("--rdzv-endpoint=train-bcdfg-slice-0-0.train-bcdfg:29500", "--title={title}")
    assert run.spec.env == {"NAME": "train-bcdfg"}


BOTH = """\
environment: lab
image: registry.example.com/train:1
gke: {cluster: gpus, flavor: h100, nodes: 2}
vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start}
"""


@pytest.fixture
def places_root(new_lab: Lab) -> Path:
    places_root = new_lab()
    (places_root / "jobs" / "vision" / "train.yaml").write_text(BOTH)
    return places_root


def test_a_run_is_looked_for_where_its_job_says(places_root: Path) -> None:
    job_places, other_places = places_of_run(places_root, read_workspace(places_root), "train-bcdfg")

    assert [(place.target, place.key) for place in job_places] == [("gke", "gpus"), ("vertex", "us-central1")]
    assert [(place.target, place.key) for place in other_places] == [("gke", "tpus")]
    assert job_places[0].contexts == ("gke_example-lab_us-central1_lab-gpus", "lab-gpus")
    assert job_places[0].log_in == (
        "gcloud container clusters get-credentials lab-gpus --location us-central1 --project example-lab --dns-endpoint"
    )


def test_a_run_of_a_name_that_somebody_chose_is_found_and_one_of_no_job_is_not_submitted(places_root: Path) -> None:
    job_places, _ = places_of_run(places_root, read_workspace(places_root), "train-again")

    assert [place.key for place in job_places] == ["gpus", "us-central1"]
    assert job_among("train-again-bcdfg-0", ["train", "train-again"]) == "train-again"
    with pytest.raises(UserError, match=r"'again' does not begin with the job's name.*Nearest: train-again\."):
        prepare(places_root / "jobs" / "vision" / "train.yaml", places_root, "gke", TODAY, "again")


def test_a_run_of_an_unknown_job_is_reported_with_the_nearest(places_root: Path) -> None:
    with pytest.raises(UserError, match=r"No job file is called 'trian'.*Allowed: train\. Nearest: train\."):
        places_of_run(places_root, read_workspace(places_root), "trian-bcdfg")


def test_a_job_of_two_teams_needs_the_team(places_root: Path) -> None:
    (places_root / "jobs" / "nlp").mkdir()
    (places_root / "jobs" / "nlp" / "train.yaml").write_text(BOTH)
    workspace = read_workspace(places_root)

    with pytest.raises(UserError, match="Teams nlp and vision each have a job 'train': choose one with --team"):
        places_of_run(places_root, workspace, "train-bcdfg")
    job_places, other_places = places_of_run(places_root, workspace, "train-bcdfg", team="nlp")
    assert {place.team.name for place in (*job_places, *other_places)} == {"nlp"}


def test_an_unknown_team_is_reported_with_the_nearest(places_root: Path) -> None:
    with pytest.raises(
        UserError, match=r"No team stack exists for team vison\. Allowed: nlp, vision\. Nearest: vision\."
    ):
        places(places_root, read_workspace(places_root), team="vison")


def seen(*states: State) -> Iterator[Run]:
    for state in states:
        yield Run(
            name="train-bcdfg", job="train", team="vision", target="vertex", place="us-central1", identity="a",
            state=state, created="2026-11-22T10:00:00Z",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "started", "end"),
    [(None, False, "failed"), (None, True, "running"), (60, False, "failed"), (0, False, "waiting")],
)
def test_a_run_is_waited_for_until_it_ends_or_starts_or_the_time_is_up(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None, started: bool, end: str
) -> None:
    monkeypatch.setattr(watching, "_POLL_SECONDS", 0.01)
    runs = seen("waiting", "waiting", "running", "failed")
    changes = list[str]()

    run = watching.wait(
        lambda: next(runs), seconds=seconds, changed=lambda run: changes.append(run.state), started=started
    )

    assert run is not None
    assert run.state == end
    assert changes == {"failed": ["waiting", "running"]}.get(end, ["waiting"])


def test_a_run_that_is_waited_for_says_once_that_its_image_is_not_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_POLL_SECONDS", 0.01)
    (starting,) = seen("starting")
    reasons = ["", "ErrImagePull", "ImagePullBackOff", "ErrImagePull"]
    (failed,) = seen("failed")
    runs = iter([*(replace(starting, waiting_reason=reason) for reason in reasons), failed])
    changes = list[str]()

    watching.wait(lambda: next(runs), seconds=None, changed=lambda run: changes.append(run.waiting_reason))

    assert changes == ["", "ErrImagePull"]


def test_nodes_do_not_change_a_job_with_slices(root: Path) -> None:
    (root / "jobs" / "vision" / "train.yaml").write_text(
        "environment: lab\nimage: a:1\ngke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2}\n"
    )

    with pytest.raises(UserError, match=r"the job has slices: edit gke\.slices\."):
        prepare(root / "jobs" / "vision" / "train.yaml", root, None, TODAY, changes=Changes(nodes=3))


def test_a_program_submits_as_the_command_does(root: Path, cloud: Cloud) -> None:
    create_in_cloud(cloud, "storage", "v1/b", {"name": BUCKET, "location": "us-central1"}, project=PROJECT)
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(SOURCE + "n1-standard-16}\n")

    with serve(cloud.cloud) as port:
        (run,) = submit(file, args=["lr=0.1"], env={"SEED": "2"}, local_cloud=f"http://127.0.0.1:{port}")

    (body,) = created(cloud)
    package = body["jobSpec"]["workerPoolSpecs"][0]["pythonPackageSpec"]
    assert body["displayName"] == run
    assert package["args"] == ["lr=0.1"]
    assert {"name": "SEED", "value": "2"} in package["env"]


def test_a_program_gets_every_error_of_a_job_and_submits_nothing(root: Path, cloud: Cloud) -> None:
    file = root / "jobs" / "vision" / "train.yaml"
    file.write_text(SOURCE + "n1-standard-16, replicas: 0}\nretries: -1\n")

    with serve(cloud.cloud) as port, pytest.raises(UserError, match=r"(?s)retries: is -1.*vertex.replicas: is 0"):
        submit(file, local_cloud=f"http://127.0.0.1:{port}")

    assert created(cloud) == []
