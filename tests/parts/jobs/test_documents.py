"""Every field renders to something valid: JobSets by their CRD, bodies by Vertex AI's discovery document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.parts.jobs.field_changes import FIELDS
from tests.parts.jobs.lab import Take
from tests.parts.jobs.runs.vertex_cloud import PROJECT, Cloud
from tests.support.lab import write_lab
from training_platform.config.model.team import VertexBootDisk
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.naming import as_run, point_runs
from training_platform.parts.jobs.vertex.custom_job import job_spec, vertex_body
from training_platform.rules.documents.definitions import CrdSchema

COMMON = """\
args: ["--run={run}"]
env: {MODE: fast}
secrets: {TOKEN: token}
command: [python3, train.py]
mounts:
  - {name: data, source: {directory: data}, read_only: true}
  - {name: cache, source: {bucket: checkpoints}, caches: true, file_cache_gib: 50}
cpu: 12
memory_gib: 80
disk_gib: 200
retry_on: [75]
count_interruptions: false
shared_memory_gib: 16
data_loaders: 8
local_checkpoints: {size_gib: 8, medium: memory, restarts: 2}
retries: 0
output: checkpoints
tensorboard: true
experiment: vit
profiler: true
notify: projects/example-lab/topics/runs
"""
GKE = (
    "gke: {cluster: gpus, flavor: h100, nodes: 2, grace_seconds: 300, priority: low, "
    "placement: {level: block, required: true}}"
)
IN = "projects/example-lab"
BASE = "region: us-central1, machine_type: a2-highgpu-8g, replicas: 4, web_access: true"
PLACE = (
    f"network: projects/1/global/networks/lab, kms_key: {IN}/locations/us-central1/keyRings/a/cryptoKeys/b, "
    f"reservation: {IN}/zones/us-central1-a/reservations/held"
)
ROLES = "chief: {machine_type: n1-standard-16}, reducers: {replicas: 3}, evaluator: {machine_type: n1-standard-32}"
GRID = "sweep: {parameters: {lr: {values: [0.1, 1]}, kind: {values: [a, 1]}}, metric: loss, parallel: 2}\n"
SEARCH = (
    "sweep: {method: bayesian, trials: 40, max_failed_trials: 2, metric: loss, goal: minimize, parameters: "
    "{lr: {min: 0.0001, max: 0.1, scale: log}, layers: {min: 1, max: 8}, width: {values: [64, 128]}}}\n"
)
DATA = "pipeline: {data_set: '1', annotation_schema: 'gs://a/b.yaml', model: {name: vit, image: 'a:1'}}"
VERTEX = {
    "custom job": f"{COMMON}vertex: {{{BASE}, {ROLES}, {PLACE}}}",
    "attachment": f"vertex: {{{BASE}, network_attachment: {IN}/regions/us-central1/networkAttachments/a}}",
    "flex-start": f"vertex: {{{BASE}, capacity: flex-start, max_wait: 0s}}",
    "grid": f"{GRID}{COMMON}vertex: {{{BASE}, {PLACE}}}",
    "search": f"{SEARCH}vertex: {{{BASE}}}",
    "pipeline of files": f"output: checkpoints\nvertex: {{{BASE}, {DATA}, {PLACE}}}",
    "search in a pipeline": f"{SEARCH}output: checkpoints\nvertex: {{{BASE}, {DATA}}}",
    "pipeline of a table": f"vertex: {{{BASE}, pipeline: {{data_set: '1', read_as: bigquery}}}}",
    "attached GPUs": (
        "vertex: {region: us-central1, machine_type: n1-standard-8, accelerator: t4, accelerator_count: 2, replicas: 2}"
    ),
    "TPU": "vertex: {region: us-west4, machine_type: ct5lp-hightpu-4t, topology: 4x8}",
    "persistent resource": (
        f"{GRID}vertex: {{region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning, "
        "boot_disk: {size_gb: 200}}"
    ),
}


@pytest.mark.parametrize("fields", [COMMON, GRID, COMMON + GRID, ""], ids=["all", "grid", "all in a grid", "least"])
def test_a_server_with_the_crd_takes_every_field(take: Take, schema: CrdSchema, fields: str) -> None:
    runs = point_runs(take(fields + GKE), "train-bcdfg")

    assert len(runs) == (4 if "sweep" in fields else 1)
    assert [schema.errors(jobset(run)) for run in runs] == [[] for _ in runs]


@pytest.mark.parametrize("text", VERTEX.values(), ids=VERTEX)
def test_the_document_of_vertex_ai_takes_every_field(take: Take, tmp_path: Path, text: str) -> None:
    root = write_lab(tmp_path / "lab")
    quotas = root / "stacks" / "quotas" / f"{PROJECT}.yaml"
    quotas.write_text(quotas.read_text().replace("{limit: 8,", "{limit: 8000,"))
    cloud = Cloud(root).cloud
    collection, body = vertex_body(as_run(take(text), "train-bcdfg"))
    right = 404 if "persistent_resource" in text else 200  # judged by the document first, and not deployed then
    region = "us-west4" if "us-west4" in text else "us-central1"

    def create(kind: str, content: dict[str, Any]) -> tuple[int, Any]:
        return cloud.handle("aiplatform", "POST", f"v1/projects/{PROJECT}/locations/{region}/{kind}", [], content)

    code, answer = create(collection, body)
    assert code == right, answer
    spec = job_spec(body)  # the document types a pipeline's inputs as anything
    code, answer = create("customJobs", {"displayName": "inputs", "jobSpec": spec})
    assert code == right, answer
    if "trialJobSpec" in body.get("trainingTaskInputs", {}):
        code, answer = create("hyperparameterTuningJobs", {"displayName": "inputs", **body["trainingTaskInputs"]})
        assert code == right, answer
    worse = create("customJobs", {"displayName": "inputs", "jobSpec": {**spec, "workerPools": []}})
    assert worse[0] == 400


def test_all_fields_are_checked_here() -> None:
    """A new field must be rendered here too, unless another part of the bodies covers it."""
    written = COMMON + GKE + GRID + SEARCH + " ".join(VERTEX.values())
    elsewhere = {"environment", "image", "source", "gke", "vertex", "slices", "max_run_hours", "host_network", "path",
                 "file", "package", "folder", "module", "requirements", "bucket", "type", "timeout_hours", "split",
                 "training", "pathways", "validation", "test", "data_set", "gpus", "pool", "unconfined"}  # fmt: skip
    fields = {name for model in FIELDS if model is not VertexBootDisk for name in model.model_fields}

    assert {name for name in fields - elsewhere if f"{name}:" not in written} == set()
