"""Each restriction broken on its own gives one finding at its line, with the problem and the allowed values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parts.jobs.lab import Lab, Read
from tests.support.lab import TODAY
from training_platform.config.reading.finding import Finding
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.job_checks import check_job

HEAD = "environment: lab\nimage: registry.example.com/train:1\n"
GPU = "gke: {cluster: gpus, flavor: h100, nodes: 2}"
TPU = "gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 1}"
SPOT = "gke: {cluster: tpus, flavor: tpu-v5e-4x4-spot, slices: 1, grace_seconds: 26}"
A100 = "vertex: {region: us-central1, machine_type: a2-highgpu-1g, replicas: 2}"
FLEX = "vertex: {region: us-central1, machine_type: a3-highgpu-8g, replicas: 2, capacity: flex-start}"
V5E = "vertex: {region: us-west4, machine_type: ct5lp-hightpu-4t, topology: 4x8}"
TUNING = (
    "vertex: {region: us-central1, machine_type: a2-highgpu-1g, persistent_resource: tuning, boot_disk: {size_gb: 200}}"
)
IN = "projects/example-lab"


def put(target: str, *fields: str) -> str:
    """Return a target with further fields."""
    return target[:-1] + "".join(f", {field}" for field in fields) + "}"


def above(line: str, target: str) -> str:
    return f"{line}\n{target}"


def mounted(*mounts: str, on: str = GPU) -> str:
    return above(f"mounts: [{', '.join(mounts)}]", on)


def local(fields: str, on: str = GPU) -> str:
    """Return a job with local checkpoints and everything that they need."""
    return above(f"local_checkpoints: {{{fields}}}\ncommand: [a]\noutput: checkpoints", on)


DATA = "{name: data, source: {directory: data}}"
BUCKET = "{name: data, source: {bucket: checkpoints}}"
GRID = "{parameters: {lr: {values: [1, 2]}}, metric: loss}"
PEERED = "network: projects/1/global/networks/lab"

EVERYWHERE = {
    "no such secret's form": (above("command: [a]\nsecrets: {A: BAD}", GPU), "job-model", "secrets.A", "NAME:VERSION"),
    "a missing secret": (above("command: [a]\nsecrets: {A: tokn:3}", GPU), "job-model", "secrets.A", "token"),
    "secret without command": (above("secrets: {A: token}", GPU), "job-command", "secrets", "command"),
    "notice without command": (above(f"notify: {IN}/topics/a", GPU), "job-command", "notify", "command"),
    "no topic": (above("notify: runs", GPU), "job-model", "notify", "projects/PROJECT/topics/TOPIC"),
    "secret and variable": (
        above("command: [a]\nenv: {A: b}\nsecrets: {A: token}", GPU), "job-model", "secrets.A", "one of the two",
    ),
    "memory below its part": (
        above("memory_gib: 8\nshared_memory_gib: 9", GPU), "job-memory", "shared_memory_gib", "at most 8",
    ),
    "a code of lost memory": (above("retry_on: [75, 137]", GPU), "job-retry-on", "retry_on[1]", "other codes"),
    "no exit code": (above("retry_on: [256]", GPU), "job-model", "retry_on[0]", "255"),
    "more than the disk": (above("disk_gib: 6000", GPU), "job-machine", "disk_gib", "less than 6000"),
    "local checkpoints without a bucket": (
        above("command: [a]\nlocal_checkpoints: {size_gib: 1}", GPU), "job-output", "local_checkpoints", "checkpoints",
    ),
    "local checkpoints without command": (
        above("output: checkpoints\nlocal_checkpoints: {size_gib: 1}", GPU), "job-command", "local_checkpoints",
        "restarts: 0",
    ),
    "a size of nothing": (local("size_gib: 0"), "job-model", "local_checkpoints.size_gib", "at least 1"),
    "a medium that VMs lack": (local("size_gib: 1, medium: disk"), "job-model", "local_checkpoints.medium", "memory"),
    "local SSD that the flavor lacks": (
        local("size_gib: 1", GPU.replace("h100", "a100-40")), "job-local-checkpoints", "local_checkpoints",
        "memory, or a flavor with local SSD",
    ),
    "as many checkpoints in memory as the limit": (
        local("size_gib: 1644, medium: memory"), "job-local-checkpoints", "local_checkpoints.size_gib",
        "less than 1,644, or a larger memory_gib",
    ),
    "as many checkpoints as the disk": (
        f"disk_gib: 200\n{local('size_gib: 200')}", "job-local-checkpoints", "local_checkpoints.size_gib",
        "less than 200, or a larger disk_gib",
    ),
    "a mount in the place of local checkpoints": (
        f"mounts: [{BUCKET.replace('data,', 'data, path: /local-checkpoints,')}]\n{local('size_gib: 1')}", "job-mount",
        "mounts[0].path", "different paths",
    ),
    "two mounts of a name": (mounted(BUCKET, DATA), "job-model", "mounts[1].name", "each once"),
    "no source": (mounted("{name: data, source: {}}"), "job-model", "mounts[0].source", "one of directory or bucket"),
    "no such bucket": (
        mounted("{name: data, source: {bucket: chekpoints}}"), "job-model", "mounts[0].source.bucket", "checkpoints",
    ),
    "no such directory": (
        mounted("{name: data, source: {directory: dta}}"), "job-model", "mounts[0].source.directory", "data",
    ),
    "one path for two": (
        mounted("{name: a, path: /mnt/nfs/data, source: {bucket: checkpoints}}", DATA),
        "job-mount", "mounts[1]", "different paths",
    ),
    "read-only caches": (
        mounted("{name: data, source: {bucket: checkpoints}, read_only: true, caches: true}"),
        "job-mount", "mounts[0].caches", "read_only: false",
    ),
    "caches twice": (
        mounted(
            "{name: a, source: {bucket: checkpoints}, caches: true}",
            "{name: b, source: {directory: data}, caches: true}",
        ),
        "job-mount", "mounts[1].caches", "one mount",
    ),
    "cache of a directory": (
        mounted("{name: a, source: {directory: data}, file_cache_gib: 1}"), "job-mount", "mounts[0].file_cache_gib",
        "0",
    ),
    "profile nowhere": (above("profiler: true", GPU), "job-output", "profiler", "checkpoints"),
    "bounds in a grid": (
        above("sweep: {parameters: {lr: {min: 1, max: 2}}}", GPU), "job-model", "sweep.parameters.lr", "values",
    ),
    "bounds the wrong way": (
        above("sweep: {method: random, trials: 2, parameters: {lr: {min: 2, max: 1}}}", GPU), "job-model",
        "sweep.parameters.lr.max", "more than 2",
    ),
    "no logarithm": (
        above("sweep: {method: random, trials: 2, parameters: {lr: {min: 0, max: 1, scale: log}}}", GPU), "job-model",
        "sweep.parameters.lr.min", "more than 0",
    ),
    "a search without end": (
        above("sweep: {method: random, parameters: {lr: {values: [1]}}}", GPU), "job-model", "sweep", "trials",
    ),
    "more failures than trials": (
        above("sweep: {method: random, trials: 2, max_failed_trials: 3, parameters: {lr: {values: [1]}}}", GPU),
        "job-model", "sweep.max_failed_trials", "at most 2",
    ),
}  # fmt: skip
ON_GKE = {
    "more CPUs than a VM": (above("cpu: 208", GPU), "job-machine", "cpu", "less than 208"),
    "more memory than a VM": (above("memory_gib: 1872", GPU), "job-machine", "memory_gib", "less than 1872"),
    "no memory for data loaders": (
        above("shared_memory_gib: 0\ndata_loaders: 4", GPU), "job-memory", "shared_memory_gib", "a size in GiB",
    ),
    "all memory shared": (above("shared_memory_gib: 1872", GPU), "job-machine", "shared_memory_gib", "less than 1872"),
    "Filestore of another region": (mounted(DATA, on=TPU), "job-mount-far", "mounts[0].source.directory", "none"),
    "a search": (
        above("sweep: {method: random, trials: 2, parameters: {lr: {values: [1]}}}", GPU), "job-sweep", "sweep.method",
        "grid",
    ),
    "long grace on spot": (SPOT, "job-grace", "gke.grace_seconds", "at most 25"),
    "grace that the cluster refuses": (
        f"{GPU[:-1]}, grace_seconds: 901}}", "job-grace-refused", "gke.grace_seconds", "at most 900",
    ),
}  # fmt: skip
ON_VERTEX = {
    "no metric": (above(f"sweep: {GRID}".replace(", metric: loss", ""), A100), "job-vertex-metric", "sweep", "metric"),
    "more at a time than trials": (
        above(f"sweep: {GRID[:-1]}, parallel: 3}}", A100), "job-vertex-parallel", "sweep.parallel", "at most 2",
    ),
    "a metric of two words": (
        above(f"sweep: {GRID.replace('loss', 'the loss')}", A100), "job-vertex-metric", "sweep.metric",
        "without spaces",
    ),
    "more failures than points": (
        above(f"sweep: {GRID[:-1]}, max_failed_trials: 3}}", A100), "job-vertex-failed-trials",
        "sweep.max_failed_trials", "at most 2",
    ),
    "a sweep on TPUs": (above(f"sweep: {GRID}", V5E), "job-vertex-tpu-sweep", "sweep", "GPUs"),
    "few trials of a search": (
        above("sweep: {method: bayesian, trials: 9, metric: loss, parameters: {lr: {min: 1, max: 2}}}", A100),
        "job-vertex-trials", "sweep.trials", "at least 10",
    ),
    "no topology": (
        GPU.replace("}", ", placement: {level: block}}"), "job-placement", "gke.placement", "the field left out",
    ),
    "a pipeline of nothing": (put(A100, "pipeline: {}"), "job-vertex-pipeline", "vertex.pipeline", "data_set, model"),
    "a model of nowhere": (
        put(A100, "pipeline: {model: {name: a, image: 'a:1'}}"), "job-vertex-pipeline", "vertex.pipeline.model",
        "output",
    ),
    "files of nowhere": (
        put(A100, "pipeline: {data_set: '1'}"), "job-vertex-pipeline", "vertex.pipeline.data_set", "read_as: bigquery",
    ),
    "annotations of a table": (
        put(A100, "pipeline: {data_set: '1', read_as: bigquery, annotation_schema: 'gs://a/b'}"), "job-vertex-pipeline",
        "vertex.pipeline.annotation_schema", "none",
    ),
    "a split of 101": (
        put(A100, "pipeline: {data_set: '1', read_as: bigquery, split: {test: 11}}"), "job-vertex-pipeline",
        "vertex.pipeline.split", "100 percent",
    ),
    "flex-start with reducers": (
        put(FLEX, "reducers: {replicas: 2}"), "job-vertex-flex-pools", "vertex.reducers.machine_type", "a3-highgpu-8g",
    ),
    "reducers with GPUs": (
        put(A100, "reducers: {replicas: 1, machine_type: a2-highgpu-1g}"), "job-vertex-reducers",
        "vertex.reducers.machine_type", "a machine without",
    ),
    "reducers of one VM": (
        put(A100.replace("replicas: 2", "replicas: 1"), "reducers: {replicas: 1}"), "job-vertex-reducers",
        "vertex.reducers", "at least 2",
    ),
    "reducers without GPUs": (
        put(A100.replace("a2-highgpu-1g", "n1-standard-16"), "reducers: {replicas: 1}"), "job-vertex-reducers",
        "vertex.reducers", "none",
    ),
    "reducers of a TPU": (put(V5E, "reducers: {replicas: 1}"), "job-vertex-tpu-pool", "vertex.reducers", "none"),
    "a chief that is not offered": (
        put(A100, "chief: {machine_type: n2d-standard-8}"), "job-vertex-machine", "vertex.chief.machine_type",
        "a2-highgpu-1g",
    ),
    "a chief that its resource does not have": (
        put(TUNING, "chief: {machine_type: n1-standard-16}"), "job-vertex-resource", "vertex.chief.machine_type",
        "a2-highgpu-1g",
    ),
    "more replicas than its resource has, with the evaluator": (
        put(TUNING, "replicas: 4", "evaluator: {machine_type: a2-highgpu-1g}"), "job-vertex-resource",
        "vertex.replicas", "at most 4",
    ),
    "two networks": (
        put(A100, PEERED, f"network_attachment: {IN}/regions/us-central1/networkAttachments/a"), "job-vertex-network",
        "vertex.network", "network or network_attachment",
    ),
    "a network by its name": (put(A100, "network: lab"), "job-model", "vertex.network", "projects/NUMBER/"),
    "H100 Mega in a peered network": (
        put(A100.replace("a2-highgpu-1g", "a3-megagpu-8g, capacity: spot"), PEERED), "job-vertex-network",
        "vertex.network", "network_attachment",
    ),
    "an attachment of another region": (
        put(A100, f"network_attachment: {IN}/regions/us-east4/networkAttachments/a"), "job-vertex-place",
        "vertex.network_attachment", "one in us-central1",
    ),
    "an attachment that the environment does not have there": (
        put(A100.replace("us-central1", "europe-west4"), "network_attachment: environment"), "job-vertex-network",
        "vertex.network_attachment", "europe-west4 under network_attachments of lab",
    ),
    "a data set on Managed Lustre without a network": (
        put(A100) + "\nmounts: [{name: data, source: {data_set: own}}]\n", "job-vertex-mount", "mounts[0].source",
        "vertex.network or vertex.network_attachment",
    ),
    "a reservation for spot": (
        put(A100, "capacity: spot", f"reservation: {IN}/zones/us-central1-a/reservations/a"), "job-vertex-reservation",
        "vertex.reservation", "capacity: on-demand",
    ),
    "a reservation of another region": (
        put(A100, f"reservation: {IN}/zones/us-east4-a/reservations/a"), "job-vertex-reservation",
        "vertex.reservation", "a zone of us-central1",
    ),
    "a reservation beside a persistent resource": (
        put(TUNING, f"reservation: {IN}/zones/us-central1-a/reservations/a"), "job-vertex-reservation",
        "vertex.reservation", "none",
    ),
    "another path": (
        mounted(BUCKET.replace("data,", "data, path: /data,"), on=A100), "job-vertex-mount", "mounts[0].path",
        "/gcs/example-lab-lab-vision-checkpoints",
    ),
    "read-only": (
        mounted(BUCKET.replace("data,", "data, read_only: true,"), on=A100), "job-vertex-mount", "mounts[0].read_only",
        "false",
    ),
    "Filestore without a network": (
        mounted(DATA, on=A100), "job-vertex-mount", "mounts[0].source", "vertex.network",
    ),
    "more CPUs than the machine": (above("cpu: 13", A100), "job-vertex-size", "cpu", "at most 12"),
    "more memory than the machine": (above("memory_gib: 86", A100), "job-vertex-size", "memory_gib", "at most 85"),
    "shared memory": (above("shared_memory_gib: 8", A100), "job-vertex-shared-memory", "shared_memory_gib", "GKE"),
    "interruptions": (above("count_interruptions: true", A100), "job-retry-on", "count_interruptions", "GKE"),
    "local checkpoints": (local("size_gib: 1", A100), "job-local-checkpoints", "local_checkpoints", "GKE"),
    "exit codes": (above("retry_on: [75]", A100), "job-retry-on", "retry_on", "GKE"),
    "data loaders": (above("data_loaders: 8", A100), "job-vertex-shared-memory", "data_loaders", "GKE"),
    "no TensorBoard there": (
        above("output: far\ntensorboard: true", A100.replace("us-central1", "europe-west4")), "job-model",
        "vertex.region", "us-central1",
    ),
}  # fmt: skip


def check(root: Path, text: str, name: str = "train") -> list[Finding]:
    path = root / "jobs" / "vision" / f"{name}.yaml"
    path.write_text(text)
    findings = check_job(path, root, read_workspace(root), TODAY)
    return [finding for finding in findings if "quota" not in finding.rule and finding.severity != "note"]


@pytest.mark.parametrize(
    ("image", "pulled"),
    [
        ("train:1", True),
        ("localhost:5000/a/b_c:1.0-Dev", True),
        ("registry.example.com/train:1@sha256:" + "0" * 64, True),
        ("registry.example.com/Train:1", False),
        ("registry.example.com//train:1", False),
    ],
)
def test_an_image_has_a_name_that_nodes_can_pull(new_lab: Lab, *, image: str, pulled: bool) -> None:
    findings = check(new_lab(), f"environment: lab\nimage: {image}\ncommand: [a]\n{GPU}")

    assert [(finding.path, finding.rule) for finding in findings] == [("image", "job-model")] * (not pulled)


@pytest.mark.parametrize(
    ("text", "rule", "path", "allowed"),
    [row for table in (EVERYWHERE, ON_GKE, ON_VERTEX) for row in table.values()],
    ids=[name for table in (EVERYWHERE, ON_GKE, ON_VERTEX) for name in table],
)
def test_one_mistake_is_one_finding_at_its_line(new_lab: Lab, *, text: str, rule: str, path: str, allowed: str) -> None:
    (finding,) = check(new_lab(), HEAD + text)

    assert (finding.rule, finding.path) == (rule, path)
    assert allowed in (finding.allowed or "")
    assert str(finding).startswith("jobs/vision/train.yaml:")
    assert finding.position is not None
    key = path.partition(".")[0].partition("[")[0]
    assert (HEAD + text).splitlines()[finding.position.line - 1].startswith(key)


def test_the_jobs_that_the_rows_spoil_have_no_findings(new_lab: Lab) -> None:
    root = new_lab()
    right = [
        GPU, TPU, A100, FLEX, V5E, TUNING, mounted(DATA), mounted(BUCKET, on=A100), mounted(DATA, on=put(A100, PEERED)),
        above(f"sweep: {GRID}", A100), above(f"sweep: {GRID[:-1]}, max_failed_trials: 2}}", A100),
        above(f"sweep: {GRID}".replace(", metric: loss", ""), GPU), put(A100, "reducers: {replicas: 1}"),
        put(A100, f"reservation: {IN}/zones/us-central1-a/reservations/a"), above("cpu: 207\nmemory_gib: 1871", GPU),
        above(f"output: checkpoints\nsweep: {GRID}", put(A100, "pipeline: {data_set: '1'}")),
        above("output: checkpoints\ntensorboard: true\nprofiler: true", put(A100, "pipeline: {data_set: '1'}")),
        above(f"command: [a]\nsecrets: {{A: token}}\nnotify: {IN}/topics/runs", GPU), SPOT.replace("26", "25"),
        local("size_gib: 1643, medium: memory"), f"disk_gib: 200\n{local('size_gib: 199')}",
        local("size_gib: 1, medium: memory", GPU.replace("h100", "a100-40")),
    ]  # fmt: skip

    assert {text: [str(finding) for finding in check(root, HEAD + text)] for text in right} == {
        text: [] for text in right
    }


@pytest.mark.parametrize(
    ("source", "path", "allowed"),
    [
        ("{file: none.py}", "source.file", "ends in .py"),
        ("{file: train.txt}", "source.file", "ends in .py"),
        ("{package: nothing, module: a.b}", "source.package", "a folder with pyproject.toml or setup.py"),
        ("{file: ../train.py}", "source.file", "such as src/train.py"),
        ("{package: src}", "source.package", "package and module"),
        ("{file: train.py, module: a}", "source.module", "none"),
        ("{package: src, module: a, requirements: [numpy]}", "source.requirements", "none"),
        ("{}", "source", "file, package or folder"),
        ("{file: train.py, package: src}", "source", "file, package or folder"),
        ("{file: train.py, bucket: nope}", "source.bucket", "checkpoints, far"),
    ],
)
def test_source_that_cannot_be_packed_is_a_finding(new_lab: Lab, source: str, path: str, allowed: str) -> None:
    root = new_lab()
    for name in ("train.py", "train.txt", "src/pyproject.toml"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")

    (finding,) = check(root, f"environment: lab\nsource: {source}\noutput: checkpoints\n{GPU}")

    assert finding.path == path
    assert allowed in (finding.allowed or "")


def test_source_needs_a_bucket_and_says_what_runs(new_lab: Lab) -> None:
    root = new_lab()
    (root / "train.py").write_text("")

    (bucket,) = check(root, f"environment: lab\nsource: {{file: train.py}}\n{GPU}")
    (command,) = check(root, f"environment: lab\nsource: {{file: train.py}}\noutput: checkpoints\ncommand: [a]\n{GPU}")

    assert (bucket.rule, bucket.path) == ("job-source-bucket", "source")
    assert (command.path, command.allowed) == ("command", "only args")


def test_a_name_overflows_with_the_letters_of_a_run_and_the_number_of_a_point(new_lab: Lab) -> None:
    root = new_lab()
    longest = 63 - len("-7x2kq-slice-0-1-abcde")
    grid = "sweep: {parameters: {lr: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}}}\n"

    assert check(root, HEAD + GPU, "a" * longest) == []
    assert [finding.rule for finding in check(root, HEAD + GPU, "a" * (longest + 1))] == ["job-name"]
    assert check(root, HEAD + grid + GPU, "a" * (longest - len("-10"))) == []
    assert [finding.rule for finding in check(root, HEAD + grid + GPU, "a" * (longest - 2))] == ["job-name"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("cpu: x\noutput: nowhere\n" + GPU, ["cpu", "output"]),
        (GPU.replace("h100", "h1000") + "\nenv: {A: 1}\nsecrets: {A: tokn}", ["env.A", "gke.flavor", "secrets.A"]),
        ("foo: 1\nmounts: [{name: a, source: {directory: nowhere}}]\n" + GPU, ["foo", "mounts[0].source.directory"]),
        ("cpu: x\ngke: 1", ["cpu", "gke"]),
    ],
)
def test_a_value_of_the_wrong_type_hides_no_unknown_name(new_lab: Lab, text: str, paths: list[str]) -> None:
    assert sorted(finding.path for finding in check(new_lab(), HEAD + text)) == paths


def test_all_mistakes_of_a_file_are_reported_at_once(new_lab: Lab) -> None:
    text = above("cpu: 300\nsecrets: {A: token}\nprofiler: true", GPU) + "\n" + put(A100, PEERED)
    text += f"\nmounts: [{BUCKET.replace('data,', 'data, path: /data,')}]"

    assert [finding.path for finding in check(new_lab(), HEAD + text)] == [
        "secrets", "profiler", "cpu", "mounts[0].path", "cpu",
    ]  # fmt: skip


def test_a_field_of_a_target_at_the_top_level_is_led_there(read: Read) -> None:
    _, findings = read(
        "environment: lab\nimage: example:1\nmax_run_hours: 3\ngke: {cluster: gpus, flavor: h100, nodes: 1}\n"
    )

    assert [(row.path, row.nearest) for row in findings] == [("max_run_hours", "gke.max_run_hours")]


@pytest.mark.parametrize(
    ("fields", "path", "subject"),
    [
        ("", "", "neither image nor source is given"),
        ("image: registry.example.com/train:1\nsource: {file: a.py}\n", "source", "image and source are both given"),
    ],
)
def test_a_job_has_an_image_or_a_source(new_lab: Lab, fields: str, path: str, subject: str) -> None:
    findings = check(new_lab(), f"environment: lab\n{fields}command: [a]\n{GPU}")

    assert (path, subject) in [(finding.path, finding.message) for finding in findings]
