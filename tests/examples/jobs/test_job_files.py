"""The job files of ``examples/jobs/``, as jobs of the tests' organisation: clean, and as the APIs want them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from local_google_cloud.api import CloudSettings, LocalCloud, Record, serve
from tests.examples.jobs.conftest import EXAMPLES
from tests.examples.jobs.job_files import GKE, VERTEX, rendered
from training_platform.rules.documents.definitions import load_crds

SCHEMAS = Path(__file__).parents[4] / "shared" / "schemas" / "jobset"


def test_every_example_has_a_job_file_and_a_test() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if any(path.glob("*.py"))}

    assert folders == GKE.keys() | VERTEX.keys()
    assert all((Path(__file__).parent / f"test_{name}.py").is_file() for name in folders)


@pytest.mark.parametrize("example", GKE)
def test_a_job_for_gke_is_a_jobset(example: str, tmp_path: Path) -> None:
    if not SCHEMAS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    jobset = yaml.safe_load(rendered(tmp_path, example, GKE[example]))

    assert load_crds(SCHEMAS)["jobset.x-k8s.io", "v1alpha2", "JobSet"].errors(jobset) == []
    (container,) = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    assert any(word.endswith(".py") and (EXAMPLES / example / word).is_file() for word in words(container))


LOCATION = "projects/example/locations/us-central1"


def vertex() -> LocalCloud:
    """Return a local cloud with the persistent resource that a job names."""
    cloud = LocalCloud(["example"], settings=CloudSettings(check_services=False))
    tuning = f"aiplatform/{LOCATION}/persistentResources/prod-vision-tuning"
    cloud.store.put(Record(name=tuning, project="example", body={}))
    return cloud


@pytest.mark.parametrize("example", VERTEX)
def test_a_job_for_vertex_ai_is_one_of_its_documents(example: str, tmp_path: Path) -> None:
    body = yaml.safe_load(rendered(tmp_path, example, "vision"))

    code, answer = vertex().handle("aiplatform", "POST", f"v1/{LOCATION}/{VERTEX[example]}", [], body)

    assert code == 200, answer
    (container, *_) = [pool["containerSpec"] for pool in spec(body)["workerPoolSpecs"]]
    assert any(word.endswith(".py") and (EXAMPLES / example / word).is_file() for word in words(container))


@pytest.mark.examples
@pytest.mark.timeout(300)
def test_each_job_for_vertex_ai_is_created_by_the_generated_client(python: str, tmp_path: Path) -> None:
    files = [tmp_path / f"{example}.json" for example in VERTEX]
    for file in files:
        file.write_text(rendered(tmp_path / f"of-{file.stem}", file.stem, "vision"))
    program = Path(__file__).with_name("drive_vertex.py")

    with serve(vertex()) as port:
        command = [python, str(program), f"http://127.0.0.1:{port}", LOCATION, *map(str, files)]
        done = subprocess.run(command, env={"HOME": str(tmp_path)}, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-3000:]
    names = {example: example.replace("_", "-") for example in VERTEX}
    assert json.loads(done.stdout) == {example: [name, "JOB_STATE_PENDING"] for example, name in names.items()}


def words(container: dict[str, list[str]]) -> list[str]:
    return [*container["command"], *container.get("args", ())]


def spec(
    body: dict[str, dict[str, list[dict[str, dict[str, list[str]]]]]],
) -> dict[str, list[dict[str, dict[str, list[str]]]]]:
    return body.get("jobSpec") or body["trialJobSpec"]
