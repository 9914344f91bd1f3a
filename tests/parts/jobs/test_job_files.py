"""The jobs that this repository shows, and the schema that editors check them against."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.parts.jobs.lab import Judge, Lab, Read
from tests.support.lab import ENVIRONMENT
from tests.support.places import ROOT
from training_platform.cli.main import app
from training_platform.cli.stacks import schema_files
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import UnreadableError, parse_source
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.first_file import on_vertex, vertex_machines, vertex_regions
from training_platform.parts.jobs.job_file import job_file
from training_platform.parts.jobs.render import json_text, yaml_text
from training_platform.parts.jobs.resolve import ResolvedJob
from training_platform.parts.jobs.schema import SCHEMA_FILE, job_schema
from training_platform.parts.jobs.vertex.rules import vertex_findings

JOB = """\
environment: lab
image: registry.example.com/train:1
command: [python]
env: {MODE: "on"}
output: checkpoints
gke: {cluster: tpus, flavor: tpu-v5e-4x8, slices: 2, priority: high}
vertex: {region: us-central1, machine_type: a3-highgpu-8g, capacity: flex-start, boot_disk: {size_gb: 500}}
"""


def only_finding(read: Read, old: str, new: str) -> Finding:
    assert JOB.count(old) == 1
    job, findings = read(JOB.replace(old, new))

    assert job is None
    (finding,) = findings
    return finding


@pytest.mark.parametrize(
    ("old", "new", "position", "path", "allowed", "nearest"),
    [
        ("environment: lab", "environment: lap", (1, 1), "environment", "lab", "lab"),
        ("environment: lab", "environment: lab-nlp", (1, 1), "environment", "lab", "lab"),
        ("image: registry.example.com/train:1", "imgae: x:1\nimage: x:1", (2, 1), "imgae", "args, command", "image"),
        ("command: [python]", "command: [python, 3]", (3, 19), "command[1]", "a string (in quotes)", None),
        ('MODE: "on"', '1MODE: "on"', (4, 7), "env.1MODE", "letters, digits and _", None),
        ('MODE: "on"', "MODE: on", (4, 13), "env.MODE", "a form that all YAML parsers read in the same way", '"on"'),
        ("output: checkpoints", "output: checkpoint", (5, 1), "output", "checkpoints, far", "checkpoints"),
        ("cluster: tpus", "cluster: tpu", (6, 7), "gke.cluster", "gpus, tpus", "tpus"),
        ("flavor: tpu-v5e-4x8", "flavor: tpu-v5e-4x9", (6, 22), "gke.flavor", "tpu-v5e-2x4,", "tpu-v5e-4x8"),
        ("slices: 2", "slices: 0", (6, 43), "gke.slices", "at least 1", "1"),
        (", slices: 2", "", (6, 1), "gke", "slices for a flavor of TPUs", None),
        ("slices: 2", "slices: 2, nodes: 2", (6, 1), "gke", "slices for a flavor of TPUs", None),
        ("priority: high", "priority: hihg", (6, 54), "gke.priority", "high, low, normal", "high"),
        ("region: us-central1", "region: us-cental1", (7, 10), "vertex.region", "africa-south1, ", "us-central1"),
        ("flex-start", "flexstart", (7, 60), "vertex.capacity", "on-demand, spot, flex-start", "flex-start"),
        ("500}", "500}, persistent_resource: tunig", (7, 109), "vertex.persistent_resource", "tuning", "tuning"),
    ],
)
def test_a_rejection_has_its_place_and_the_allowed_values(
    read: Read, *, old: str, new: str, position: tuple[int, int], path: str, allowed: str, nearest: str | None
) -> None:
    finding = only_finding(read, old, new)

    assert (finding.file, finding.position) == ("jobs/vision/train.yaml", position)
    assert (finding.path, finding.nearest) == (path, nearest)
    assert allowed in (finding.allowed or "")


def test_a_job_without_a_target_is_rejected(read: Read) -> None:
    _, (finding,) = read("environment: lab\nimage: a:1\n")

    assert (finding.message, finding.allowed) == ("the job has no target", "gke, vertex or both")


TOKEN = "hf_" + "aB3dE6gH9" * 3


@pytest.mark.parametrize(
    ("secrets", "path"),
    [
        (f"{{HF_TOKEN: {TOKEN}}}", "secrets.HF_TOKEN"),
        (f"{{HF_TOKEN: {'a1b2c3d4' * 3}}}", "secrets.HF_TOKEN"),  # letters and digits, as a secret's name has
        (f"{{{TOKEN}: HF_TOKEN}}", "secrets"),
        (f"[{TOKEN}]", "secrets"),
        (TOKEN, "secrets"),
    ],
)
def test_a_secret_in_the_place_of_its_name_is_not_shown(read: Read, secrets: str, path: str) -> None:
    finding = only_finding(read, 'env: {MODE: "on"}', f"secrets: {secrets}")

    assert finding.path == path
    assert "one of token" in (finding.allowed or "")
    assert not any(part in str(finding) for part in (TOKEN, "a1b2c3d4"))


def test_a_list_of_secrets_is_shown_as_a_mapping(read: Read) -> None:
    finding = only_finding(read, 'env: {MODE: "on"}', "secrets: [token]")

    assert finding.nearest == "{VARIABLE: token}"


@pytest.mark.parametrize(
    ("new", "path", "nearest"),
    [
        ("mounts: [checkpoints]", "mounts[0]", "{name: checkpoints, source: {bucket: checkpoints}}"),
        ("mounts: [data]", "mounts[0]", "{name: data, source: {directory: data}}"),
        ("mounts: [images]", "mounts[0]", "{name: images, source: {data_set: images}}"),
        ("gpu: 1", "gpu", "gke.gpus"),
        ("retries: -1", "retries", "0"),
    ],
)
def test_likely_mistakes_lead_to_the_right_field(read: Read, new: str, path: str, nearest: str) -> None:
    finding = only_finding(read, 'env: {MODE: "on"}', new)

    assert (finding.path, finding.nearest) == (path, nearest)


def test_gpus_with_a_flavor_of_tpus_are_reported_at_gpus(verdict: Judge) -> None:
    (finding,) = verdict("gke: {cluster: tpus, flavor: tpu-v5e-2x4, gpus: 4}", "gke").findings

    assert (finding.path, finding.nearest) == ("gke.gpus", "slices: 1")


def test_a_file_that_ends_in_yml_has_its_right_name(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"names of jobs end in \.yaml\. Nearest: train\.yaml\."):
        job_file(tmp_path / "jobs" / "vision" / "train.yml", tmp_path)


def test_a_folder_that_is_no_team_is_rejected_with_the_nearest(read: Read) -> None:
    _, (finding,) = read(JOB, "jobs/vison/train.yaml")

    assert "'vison' is not a team of lab" in finding.message
    assert (finding.allowed, finding.nearest) == ("nlp, vision", "jobs/vision/train.yaml")


@pytest.mark.parametrize("name", ["a" * 63, "a", "a-1"])
def test_a_file_name_that_is_a_label_is_a_jobs_name(read: Read, name: str) -> None:
    assert read(JOB, f"jobs/vision/{name}.yaml")[1] == []


@pytest.mark.parametrize("name", ["a" * 64, "1a", "a-", "a_b", "A", "a.b"])
def test_any_other_file_name_is_not(read: Read, name: str) -> None:
    _, (finding,) = read(JOB, f"jobs/vision/{name}.yaml")

    assert finding.rule == "job-name"
    assert name in finding.message


def test_a_share_of_a_flavor_without_a_pool_is_not_offered(read: Read, new_lab: Lab) -> None:
    root = new_lab()
    stack = root / "stacks" / "Pulumi.lab.yaml"
    stack.write_text(stack.read_text().replace("topology: 4x8", "topology: 8x8"))

    _, (finding,) = read(JOB, workspace=read_workspace(root))

    assert finding.path == "gke.flavor"
    assert "tpu-v5e-4x8" not in (finding.allowed or "")


def test_a_cluster_without_jobset_runs_no_job(read: Read, new_lab: Lab) -> None:
    root = new_lab()
    stack = root / "stacks" / "Pulumi.lab.yaml"
    for presence, expected_paths in (("existing", []), ("none", ["gke.cluster"])):
        software = f"tpus:\n        software: {{jobset: {presence}}}\n"
        stack.write_text(ENVIRONMENT.replace("tpus:\n", software, 1))

        _, findings = read(JOB, workspace=read_workspace(root))

        assert [finding.path for finding in findings] == expected_paths
        assert all("no JobSet" in finding.message for finding in findings)


def test_a_team_with_a_rejected_file_is_distinguished_from_an_unknown_one(read: Read, new_lab: Lab) -> None:
    workspace = read_workspace(new_lab(lab_vision="config: {}", lab_nlp="config: ["))

    _, (finding,) = read(JOB, workspace=workspace)

    assert "(without 2 rejected or unreadable stack files)" in finding.message


def test_a_file_is_known_by_its_place_below_the_repository(tmp_path: Path) -> None:
    (tmp_path / "repository" / "jobs" / "vision").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "repository")

    path = tmp_path / "link" / "jobs" / ".." / "jobs" / "vision" / "train.yaml"

    assert job_file(path, tmp_path / "repository") == "jobs/vision/train.yaml"


@pytest.mark.parametrize(
    "file", ["train.yaml", "jobs/train.yaml", "jobs/vision/old/train.yaml", "stacks/vision/a.yaml", "jobs/a.yml"]
)
def test_a_file_in_another_place_is_no_job(tmp_path: Path, file: str) -> None:
    with pytest.raises(
        UnreadableError, match=f"^{file}: is not a job of this repository: jobs are jobs/<team>/<job>.yaml"
    ):
        job_file(tmp_path / file, tmp_path)


def test_a_file_of_another_repository_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="is not a job of this repository"):
        job_file(tmp_path / "b" / "jobs" / "vision" / "a.yaml", tmp_path / "a")


def accepts(job: object) -> bool:
    return bool(Draft202012Validator(job_schema()).is_valid(job))


@pytest.mark.parametrize(
    "change",
    [
        {"gke": None},
        {"imgae": "x"},
        {"env": {"A": 1}},
    ],
)
def test_the_schema_refuses_what_the_model_refuses(change: dict[str, object]) -> None:
    right = {"environment": "lab", "image": "a:1", "gke": {"cluster": "a", "flavor": "b", "slices": 1}}
    spoiled = {key: value for key, value in (right | change).items() if value is not None}

    assert accepts(right)
    assert not accepts(spoiled)


def test_the_schema_file_is_current() -> None:
    written = (ROOT / SCHEMA_FILE).read_text(encoding="utf-8")

    assert written == schema_files()[SCHEMA_FILE], "run `training-platform schema`"


texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.from_regex(r"[-+]?[0-9a-fx_.:eE-]{1,8}", fullmatch=True)
keys = texts.filter(lambda key: key != "<<")  # what merges one mapping into another is read as no key, quoted or not
values = st.recursive(
    texts | st.integers(-(10**6), 10**6) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "text",
    [
        "1e3",
        "y",
        "N",
        "on",
        "off",
        "null",
        "~",
        "",
        "0x1F",
        "1_000",
        "12:30",
        "2026-11-21",
        ".5",
        "1.30",
        "-",
        "a: b",
        "a:",
    ],
)
def test_a_string_that_some_reader_takes_for_another_type_is_quoted(text: str) -> None:
    assert yaml_text({"value": text}) == f'value: "{text}"\n'


@given(values)
def test_every_value_is_read_back_by_a_reader_of_yaml(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


@given(st.dictionaries(keys, values, max_size=3))
def test_no_string_is_read_in_two_ways(value: dict[str, Any]) -> None:
    source = parse_source(yaml_text(value), "job.yaml")

    assert source.value == value
    assert source.findings == []


def test_the_order_of_keys_is_kept_and_nothing_is_an_alias() -> None:
    shared = {"b": "x"}

    assert yaml_text({"z": shared, "a": shared}) == "z:\n  b: x\na:\n  b: x\n"


IMAGE = ("--image", "us-docker.pkg.dev/example-lab/images/train:1")
BOTH = ("--target", "both", "--cluster", "gpus", "--flavor", "h100", "--machine-type", "a2-highgpu-1g")


@pytest.fixture
def root(new_lab: Lab) -> Path:
    return new_lab()


def job(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["job", *arguments, "--root", str(root)])


def test_json_ends_its_line_and_keeps_the_order_of_keys() -> None:
    assert json_text({"z": ["a"], "a": "é"}) == '{\n  "z": [\n    "a"\n  ],\n  "a": "\\u00e9"\n}\n'
    assert json.loads(json_text({"a": "é"})) == {"a": "é"}


@pytest.mark.parametrize(
    ("options", "targets"),
    [
        (BOTH, {"gke": "gpus", "vertex": "us-central1"}),
        (
            ("--target", "vertex", "--region", "us-central1", "--machine-type", "a2-highgpu-1g"),
            {"vertex": "us-central1"},
        ),
        (("--flavor", "tpu-v5e-4x4-spot"), {"gke": "tpus"}),
    ],
)
def test_a_first_file_is_right_for_its_targets(options: tuple[str, ...], targets: dict[str, str], root: Path) -> None:
    result = job(root, "init", "vision/first", *IMAGE, *options)

    assert result.exit_code == 0, result.output
    path = root / "jobs" / "vision" / "first.yaml"
    written = yaml.safe_load(path.read_text())
    assert {name: next(iter(written[name].values())) for name in ("gke", "vertex") if name in written} == targets
    checked = job(root, "check", str(path))
    assert checked.exit_code == 0, checked.stdout


@pytest.mark.parametrize("machine_type", vertex_machines())
def test_vertex_ai_takes_every_offered_machine(machine_type: str, take: Callable[[str], ResolvedJob]) -> None:
    text = on_vertex(vertex_regions(machine_type)[0], machine_type)

    assert [str(finding) for finding in vertex_findings(take(text)) if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--target", "both", "--cluster", "gpu"), "--cluster 'gpu' is unknown. Allowed: tpus, gpus. Nearest: gpus."),
        (("--target", "vertx"), "Nearest: vertex."),
        (("--flavor", "h100"), "--flavor 'h100' is unknown. Allowed: tpu-v5e-4x8"),
        (("--target", "vertex", "--machine-type", "a2-highgpu-1"), "Nearest: a2-highgpu-1g."),
        (("--target", "vertex", "--region", "us-west9"), "--region 'us-west9' is unknown. Allowed: us-central1"),
    ],
)
def test_impossible_options_of_a_first_file_give_one_sentence(
    options: tuple[str, ...], sentence: str, root: Path
) -> None:
    result = job(root, "init", "vision/first", *IMAGE, *options)

    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not (root / "jobs" / "vision" / "first.yaml").exists()


def test_a_name_that_no_job_can_have_is_refused(root: Path) -> None:
    result = job(root, "init", "vision/Debug_Job", *IMAGE)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "Nearest: vision/debug-job." in result.stderr


def test_a_first_file_names_its_choice_among_several(root: Path) -> None:
    result = job(root, "init", "vision/first", *IMAGE)

    assert result.stderr.startswith("# --cluster tpus, the first of tpus, gpus\n# --flavor ")
    assert "#" not in job(root, "init", "vision/second", *IMAGE, "--cluster", "gpus", "--flavor", "h100").stderr
