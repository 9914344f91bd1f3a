"""For every field of a job file, a job and a change of that field."""

from __future__ import annotations

from training_platform.config.model.team import VertexBootDisk
from training_platform.config.reading.section import Section
from training_platform.parts.jobs.job_model import (
    GkeTarget,
    Job,
    LocalCheckpoints,
    Mount,
    MountSource,
    OtherMachine,
    Pipeline,
    Placement,
    PythonSource,
    Range,
    Reducers,
    Split,
    Sweep,
    UploadedModel,
    VertexTarget,
)

TPU = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 1}"
GPU = "gke: {cluster: gpus, flavor: h100, nodes: 1}"
QUEUED = "gke: {cluster: gpus, flavor: h100-queued-provisioning, nodes: 1, max_run_hours: 1}"
NEAR = "gke: {cluster: gpus, flavor: h100-mega, nodes: 2, placement: {level: block}}"
MORE_POOLS = (
    "queue: {machine_type: a3-highgpu-8g, zone: us-central1-a, capacity: queued-provisioning}",
    "mega: {machine_type: a3-megagpu-8g, zone: us-central1-a, min_nodes: 4, max_nodes: 4, topology_aware: true}",
)
MORE_SHARES = ("h100-queued-provisioning: {nominal_quota: 8}", "h100-mega: {nominal_quota: 32}")
H100 = "vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start, boot_disk: {type: pd-ssd}}"
ON_DEMAND = H100.replace("capacity: flex-start, ", "")
T4 = "vertex: {region: us-central1, machine_type: n1-standard-8, accelerator: t4, accelerator_count: 1}"
V5E = "vertex: {region: us-west4, machine_type: ct5lp-hightpu-4t, topology: 4x8}"
MOUNT_OF = "mounts: [{name: data, source: {bucket: checkpoints}}]\n" + GPU
DIRECTORY = "mounts: [{name: data, source: {directory: data}}]\n" + GPU
FILE = "source: {file: train.py}\noutput: checkpoints\n" + GPU
FOLDER = "source: {folder: src}\ncommand: [a]\noutput: checkpoints\n" + GPU
PACKAGE = "source: {package: src, module: lab.train}\noutput: checkpoints\n" + GPU
GRID = "sweep: {parameters: {lr: {values: [1, 2]}}, metric: loss, parallel: 1}\n" + H100
SEARCH = "sweep: {method: random, trials: 5, metric: loss, parameters: {lr: {min: 1, max: 5}}}\n" + H100
PIPELINE = "output: checkpoints\n" + H100.replace("boot", "pipeline: {data_set: '1'}, boot")
MODEL = H100.replace("boot", "pipeline: {model: {name: vit, image: 'a:1'}}, boot")
PROJECT = "projects/example-lab"
JOB = {
    "environment": (GPU, "environment: lab", "environment: lob"),
    "image": (GPU, "train:1", "train:2"),
    "source": (FILE, "train.py", "other.py"),
    "command": (GPU, "gke:", "command: [a]\ngke:"),
    "args": (GPU, "gke:", "args: [a]\ngke:"),
    "env": (GPU, "gke:", "env: {A: b}\ngke:"),
    "secrets": (GPU, "gke:", "command: [a]\nsecrets: {A: token}\ngke:"),
    "cpu": (GPU, "gke:", "cpu: 8\ngke:"),
    "memory_gib": (GPU, "gke:", "memory_gib: 8\ngke:"),
    "disk_gib": (GPU, "gke:", "disk_gib: 50\ngke:"),
    "count_interruptions": (GPU, "gke:", "count_interruptions: true\ngke:"),
    "retry_on": (GPU, "gke:", "retry_on: [75]\ngke:"),
    "shared_memory_gib": (GPU, "gke:", "shared_memory_gib: 8\ngke:"),
    "data_loaders": (GPU, "gke:", "data_loaders: 8\ngke:"),
    "mounts": (GPU, "gke:", "mounts: [{name: data, source: {directory: data}}]\ngke:"),
    "local_checkpoints": (GPU, "gke:", "output: checkpoints\nlocal_checkpoints: {size_gib: 1}\ngke:"),
    "retries": (GPU, "gke:", "retries: 4\ngke:"),
    "output": (GPU, "gke:", "output: checkpoints\ngke:"),
    "tensorboard": (H100, "vertex:", "tensorboard: true\nvertex:"),
    "experiment": (GPU, "gke:", "experiment: vit\ngke:"),
    "profiler": (H100, "vertex:", "profiler: true\nvertex:"),
    "notify": (GPU, "gke:", f"notify: {PROJECT}/topics/runs\ngke:"),
    "sweep": (GPU, "gke:", "sweep: {parameters: {lr: {values: [1, 2]}}}\ngke:"),
    "gke": (GPU, GPU, H100),
    "vertex": (H100, H100, GPU),
}
GKE = {
    "cluster": (GPU, "cluster: gpus", "cluster: more"),
    "flavor": (TPU, "4x8", "2x4"),
    "pool": (GPU, "flavor: h100", "pool: general"),
    "slices": (TPU, "slices: 1", "slices: 2"),
    "nodes": (GPU, "nodes: 1", "nodes: 2"),
    "gpus": (GPU, "nodes: 1", "nodes: 1, gpus: 1"),
    "priority": (GPU, "nodes: 1", "nodes: 1, priority: low"),
    "max_run_hours": (QUEUED, "max_run_hours: 1", "max_run_hours: 2"),
    "placement": (NEAR, ", placement: {level: block}", ""),
    "grace_seconds": (GPU, "nodes: 1", "nodes: 1, grace_seconds: 60"),
    "pathways": (TPU, "slices: 1", "slices: 1, pathways: true"),
    "host_network": (GPU, "nodes: 1", "nodes: 1, host_network: true"),
    "unconfined": (GPU, "nodes: 1", "nodes: 1, unconfined: true"),
}
PLACEMENT = {"level": (NEAR, "block}", "subblock}"), "required": (NEAR, "block}", "block, required: true}")}
VERTEX = {
    "region": (H100, "us-central1", "us-east4"),
    "machine_type": (H100, "a3-highgpu-8g", "a2-highgpu-8g"),
    "accelerator": (T4, ", accelerator: t4, accelerator_count: 1", ""),
    "accelerator_count": (T4, "accelerator_count: 1", "accelerator_count: 2"),
    "topology": (V5E, "4x8", "4x4"),
    "replicas": (H100, "boot", "replicas: 2, boot"),
    "chief": (H100, "boot", "chief: {machine_type: n1-standard-16}, boot"),
    "reducers": (ON_DEMAND, "boot", "reducers: {replicas: 2}, boot"),
    "evaluator": (ON_DEMAND, "boot", "evaluator: {machine_type: n1-standard-16}, boot"),
    "capacity": (H100, "flex-start", "spot"),
    "reservation": (H100, "boot", f"reservation: {PROJECT}/zones/us-central1-a/reservations/held, boot"),
    "timeout_hours": (H100, "boot", "timeout_hours: 2, boot"),
    "max_wait": (H100, "boot", "max_wait: 2h, boot"),
    "boot_disk": (H100, "{type: pd-ssd}", "{size_gb: 200}"),
    "network": (H100, "boot", "network: projects/1/global/networks/lab, boot"),
    "network_attachment": (
        H100,
        "boot",
        f"network_attachment: {PROJECT}/regions/us-central1/networkAttachments/lab, boot",
    ),
    "kms_key": (H100, "boot", f"kms_key: {PROJECT}/locations/us-central1/keyRings/lab/cryptoKeys/jobs, boot"),
    "web_access": (H100, "boot", "web_access: true, boot"),
    "persistent_resource": (H100, "boot", "persistent_resource: tuning, boot"),
    "pipeline": (H100, "boot", "pipeline: {}, boot"),
}
MOUNT = {
    "name": (MOUNT_OF, "name: data", "name: more"),
    "source": (MOUNT_OF, "{bucket: checkpoints}", "{directory: data}"),
    "path": (MOUNT_OF, "data,", "data, path: /data,"),
    "read_only": (MOUNT_OF, "data,", "data, read_only: true,"),
    "caches": (MOUNT_OF, "data,", "data, caches: true,"),
    "file_cache_gib": (MOUNT_OF, "data,", "data, file_cache_gib: 8,"),
}
MOUNT_SOURCE = {
    "directory": (DIRECTORY, "directory: data", "directory: own"),
    "bucket": (MOUNT_OF, "bucket: checkpoints", "bucket: far"),
    "data_set": (MOUNT_OF.replace("bucket: checkpoints", "data_set: files"), "data_set: files", "data_set: images"),
}
SOURCE = {
    "file": (FILE, "train.py", "other.py"),
    "package": (PACKAGE, "package: src", "package: lib"),
    "folder": (FOLDER, "folder: src", "folder: lib"),
    "module": (PACKAGE, "lab.train", "lab.other"),
    "requirements": (FILE, "train.py", "train.py, requirements: [numpy]"),
    "image": (FILE, "train.py", "train.py, image: 'a:1'"),
    "bucket": (FILE, "train.py", "train.py, bucket: far"),
}
LOCAL_OF = "command: [a]\noutput: checkpoints\nlocal_checkpoints: {size_gib: 8}\n" + GPU
LOCAL = {
    "size_gib": (LOCAL_OF, "size_gib: 8", "size_gib: 9"),
    "medium": (LOCAL_OF, "size_gib: 8", "size_gib: 8, medium: memory"),
    "restarts": (LOCAL_OF, "size_gib: 8", "size_gib: 8, restarts: 4"),
}
SWEEP = {
    "parameters": (GRID, "lr:", "rate:"),
    "method": (SEARCH, "random", "bayesian"),
    "metric": (GRID, "loss", "accuracy"),
    "goal": (GRID, "loss", "loss, goal: minimize"),
    "trials": (SEARCH, "trials: 5", "trials: 6"),
    "parallel": (GRID, "parallel: 1", "parallel: 2"),
    "max_failed_trials": (SEARCH, "trials: 5", "trials: 5, max_failed_trials: 2"),
}
RANGE = {
    "values": (GRID, "[1, 2]", "[1, 3]"),
    "min": (SEARCH, "min: 1", "min: 2"),
    "max": (SEARCH, "max: 5", "max: 6"),
    "scale": (SEARCH, "max: 5", "max: 5, scale: log"),
}
CHIEF = H100.replace("boot", "chief: {machine_type: n1-standard-16, accelerator: t4, accelerator_count: 1}, boot")
OTHER = {
    "machine_type": (CHIEF, "n1-standard-16", "n1-standard-8"),
    "accelerator": (CHIEF, ", accelerator: t4, accelerator_count: 1", ""),
    "accelerator_count": (CHIEF, "accelerator_count: 1", "accelerator_count: 2"),
}
SERVED = ON_DEMAND.replace("boot", "reducers: {replicas: 2}, boot")
REDUCERS = {
    "replicas": (SERVED, "replicas: 2", "replicas: 3"),
    "machine_type": (SERVED, "replicas: 2", "replicas: 2, machine_type: n1-highcpu-32"),
    "image": (SERVED, "replicas: 2", "replicas: 2, image: 'a:1'"),
}
PIPELINES = {
    "data_set": (PIPELINE, "'1'", "'2'"),
    "read_as": (PIPELINE, "'1'", "'1', read_as: bigquery"),
    "annotation_schema": (PIPELINE, "'1'", "'1', annotation_schema: 'gs://a/b.yaml'"),
    "split": (PIPELINE, "'1'", "'1', split: {training: 90, test: 0}"),
    "model": (MODEL, "vit", "bert"),
}
SPLITS = {
    "training": (PIPELINE, "'1'", "'1', split: {training: 70}"),
    "validation": (PIPELINE, "'1'", "'1', split: {validation: 20}"),
    "test": (PIPELINE, "'1'", "'1', split: {test: 20}"),
}
MODELS = {"name": (MODEL, "vit", "bert"), "image": (MODEL, "a:1", "a:2")}
DISK = {"type": (H100, "pd-ssd", "pd-standard"), "size_gb": (H100, "pd-ssd", "pd-ssd, size_gb: 200")}
FIELDS: dict[type[Section], dict[str, tuple[str, str, str]]] = {
    Job: JOB, GkeTarget: GKE, Placement: PLACEMENT, VertexTarget: VERTEX, VertexBootDisk: DISK, Mount: MOUNT,
    LocalCheckpoints: LOCAL, MountSource: MOUNT_SOURCE, PythonSource: SOURCE, Sweep: SWEEP, Range: RANGE,
    OtherMachine: OTHER, Reducers: REDUCERS, Pipeline: PIPELINES, Split: SPLITS, UploadedModel: MODELS,
}  # fmt: skip
