"""The launcher, run from its text as in a container: in a separate Python, against servers of the test."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.parts.jobs.lab import Lab, Take
from tests.support.lab import ENVIRONMENT, TODAY
from training_platform.cli.main import app
from training_platform.config.reading.finding import Finding
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.container import container
from training_platform.parts.jobs.job_checks import judge
from training_platform.parts.jobs.job_model import PythonSource
from training_platform.parts.jobs.naming import as_run
from training_platform.parts.jobs.resolve import ResolvedJob, parse_job
from training_platform.parts.jobs.runs.submission import listing
from training_platform.parts.jobs.source_archive import archive_uri, source_archive
from training_platform.parts.jobs.source_archive import packed as packed_source
from training_platform.resources.launcher import PLAN_VARIABLE, launcher

HOSTS = ("http://metadata.google.internal", "https://secretmanager.googleapis.com", "https://storage.googleapis.com",
         "https://pubsub.googleapis.com")  # fmt: skip
GPU = "gke: {cluster: gpus, flavor: h100, nodes: 2}"


class Google:
    """Metadata server, Secret Manager, Cloud Storage and Pub/Sub, as far as the launcher uses them."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.package = b""
        google = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                google.requests.append(self.path)
                authorized = (
                    self.headers.get("Metadata-Flavor") == "Google" or self.headers["Authorization"] == "Bearer t"
                )
                self.send_response(200 if authorized else 403)
                self.end_headers()
                if "service-accounts" in self.path:
                    self.wfile.write(b'{"access_token": "t"}')
                elif "secrets" in self.path:
                    data = base64.b64encode(b"s3cret").decode()
                    self.wfile.write(json.dumps({"payload": {"data": data}}).encode())
                else:
                    self.wfile.write(google.package)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                google.messages += [json.loads(base64.b64decode(message["data"])) for message in body["messages"]]
                google.requests.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def google() -> Iterator[Google]:
    google = Google()
    thread = Thread(target=google.server.serve_forever)
    thread.start()
    yield google
    google.server.shutdown()
    thread.join()
    google.server.server_close()


def start(
    google: Google,
    job: ResolvedJob,
    variables: Mapping[str, str] | None = None,
    *,
    cwd: Path | None = None,
    restarts: int = 0,
    script: str = "",
    process_1: bool = False,
) -> subprocess.Popen[str]:
    """Start a job's container with its own Python, and the test's servers for Google's.

    As ``process_1`` it inherits orphans, like the first process of a container.
    """
    training = container(as_run(job, "train-bcdfg"), "image", restarts=restarts, script=script)
    python, flag, text = training["command"]
    assert (python, flag, text) == ("python3", "-c", launcher())
    for host in HOSTS:
        assert host in text
        text = text.replace(host, f"http://127.0.0.1:{google.server.server_port}")
    env = {
        **os.environ,
        **{variable["name"]: variable.get("value", "0") for variable in training["env"]},
        **(variables or {}),
    }
    arguments = [sys.executable if argument == "python3" else argument for argument in training["args"]]
    command = [sys.executable, flag, text, *arguments]
    if process_1:
        command = [sys.executable, "-c", INHERIT_ORPHANS, *command]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, cwd=cwd, stdin=pipe, stdout=pipe, text=True)


# PR_SET_CHILD_SUBREAPER, which exec keeps
INHERIT_ORPHANS = "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1); os.execv(sys.argv[1], sys.argv[1:])"


def test_secrets_are_variables_of_the_program_only(take: Take, google: Google) -> None:
    show = "import os; print(os.environ['TOKEN'], 'TRAINING_LAUNCH' in os.environ)"
    job = take(f'command: [python3, -c, "{show}"]\nsecrets: {{TOKEN: "token:3"}}\n{GPU}')

    with start(google, job) as program:
        output, _ = program.communicate(timeout=30)

    assert output == "s3cret False\n"
    assert google.requests[-1] == "/v1/projects/example-lab/secrets/lab-vision-token/versions/3:access"


SHOW = "import os; print(*(os.environ.get(name) for name in ('NCCL_NET', 'NCCL_A', 'NCCL_B')))"
SCRIPT = "NCCL_NET=script\nexport NCCL_A='two words'\necho told\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [(SCRIPT, "gIB two words None\n"), ("false\n", "gIB None None\n"), (None, "gIB None None\n")],
    ids=["a script", "a script that fails", "none on the node"],
)
def test_a_script_of_the_node_sets_what_is_not_set(
    take: Take, google: Google, tmp_path: Path, script: str | None, expected: str
) -> None:
    file = tmp_path / "set_nccl_env.sh"
    if script is not None:
        file.write_text(script)
    job = take(f'command: [python3, -c, "{SHOW}"]\n{GPU}')

    with start(google, job, {"NCCL_NET": "gIB"}, script=str(file)) as program:
        assert program.communicate(timeout=30)[0] == expected
    assert program.returncode == 0


def test_no_value_of_a_secret_is_rendered(take: Take) -> None:
    job = take(f"command: [a]\nsecrets: {{TOKEN: token}}\n{GPU}")

    (plan,) = [variable["value"] for variable in container(job, "image")["env"] if variable["name"] == PLAN_VARIABLE]
    assert json.loads(plan) == {"secrets": {"TOKEN": "projects/example-lab/secrets/lab-vision-token/versions/latest"}}


@pytest.mark.parametrize(("code", "state"), [(0, "succeeded"), (3, "failed")])
def test_start_and_end_are_published_and_the_exit_code_stays(take: Take, google: Google, code: int, state: str) -> None:
    topic = "projects/example-lab/topics/runs"
    job = take(f'command: [python3, -c, "raise SystemExit({code})"]\nnotify: {topic}\n{GPU}')

    with start(google, job) as program:
        assert program.wait(30) == code

    about = {"run": "train-bcdfg", "team": "vision", "output": None}
    assert google.messages == [{**about, "state": "started"}, {**about, "state": state, "exit_code": code}]
    assert google.requests[-1] == f"/v1/{topic}:publish"


@pytest.mark.parametrize(
    "variables",
    [{"JOB_COMPLETION_INDEX": "1"}, {"CLUSTER_SPEC": '{"task": {"type": "workerpool1", "index": 0}}'}],
    ids=["GKE", "Vertex AI"],
)
def test_one_container_of_a_run_publishes(take: Take, google: Google, variables: dict[str, str]) -> None:
    job = take(f'command: [python3, -c, "print(1)"]\nnotify: projects/example-lab/topics/runs\n{GPU}')

    with start(google, job, variables) as program:
        program.communicate(timeout=30)

    assert google.messages == []


def test_a_program_that_ends_with_0_after_sigterm_has_not_succeeded(take: Take, google: Google, tmp_path: Path) -> None:
    program = (
        "import os, signal, time\n"
        # The signal may come while print still holds the lock of stdout, so the handler writes past it.
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'checkpoint\\n'), os._exit(0)))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    (tmp_path / "train.py").write_text(program)
    job = take(f"command: [python3, {tmp_path}/train.py]\nnotify: projects/example-lab/topics/runs\n{GPU}")

    with start(google, job) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGTERM)
        output, _ = running.communicate(timeout=30)

    assert (output, running.returncode) == ("checkpoint\n", 128 + signal.SIGTERM)
    assert google.messages[-1]["state"] == "failed"


def test_a_program_that_a_shell_started_saves_after_the_shell_has_ended(
    take: Take, google: Google, tmp_path: Path
) -> None:
    program = (
        "import os, signal, sys, time\n"
        "def save(*_: object) -> None:\n"
        "    time.sleep(0.5)\n"
        "    open('checkpoint', 'w').close()\n"
        "    os._exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    (tmp_path / "train.py").write_text(program)
    job = take(f'command: [bash, -c, "{sys.executable} train.py; echo never"]\n{GPU}')

    with start(google, job, cwd=tmp_path) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGTERM)
        output, _ = running.communicate(timeout=30)

    assert (output, running.returncode) == ("", 128 + signal.SIGTERM)
    assert (tmp_path / "checkpoint").exists()


def test_a_signal_before_the_program_starts_ends_the_container(take: Take, google: Google, tmp_path: Path) -> None:
    (tmp_path / "slow.sh").write_text("echo > reading; sleep 60\n")
    job = take(f"command: [touch, started]\n{GPU}")

    with start(google, job, cwd=tmp_path, script=str(tmp_path / "slow.sh")) as running:
        deadline = time.monotonic() + 20
        while not (tmp_path / "reading").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 128 + signal.SIGTERM

    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(("mode", "code"), [(None, 127), (0o644, 126)], ids=["missing", "not executable"])
def test_a_program_that_cannot_start_ends_as_in_a_shell(
    take: Take, google: Google, tmp_path: Path, mode: int | None, code: int
) -> None:
    file = tmp_path / "train"
    if mode is not None:
        file.touch(mode)

    with start(google, take(f"command: [{file}]\n{GPU}")) as running:
        assert running.wait(30) == code


def test_orphans_of_the_program_are_reaped_while_it_runs(take: Take, google: Google, tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "if os.fork() == 0:\n"
        "    if orphan := os.fork():\n"
        "        print(orphan, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "sys.stdin.readline()\n"
    )
    (tmp_path / "train.py").write_text(program)
    job = take(f"command: [python3, {tmp_path}/train.py]\n{GPU}")

    with start(google, job, process_1=True) as running:
        assert running.stdout is not None
        orphan = Path("/proc") / running.stdout.readline().strip()
        deadline = time.monotonic() + 20
        while orphan.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not orphan.exists()
        assert running.poll() is None
        running.send_signal(signal.SIGTERM)


FAILS = "import sys; open('starts', 'a').write('x'); sys.exit({code})"
LOCAL = "output: checkpoints\nlocal_checkpoints: {size_gib: 1, restarts: 2}\n"


@pytest.mark.parametrize(
    ("code", "fields", "starts"),
    [
        ("3", "", 3),
        ("0", "", 1),
        ("3 if len(open('starts').read()) < 2 else 0", "", 2),
        ("75", "retry_on: [75]\n", 3),
        ("3", "retry_on: [75]\n", 1),
    ],
    ids=["fails", "ends well", "fails once", "fails with a code", "fails with another code"],
)
def test_a_program_that_fails_starts_again_in_its_container_a_few_times(
    take: Take, google: Google, tmp_path: Path, *, code: str, fields: str, starts: int
) -> None:
    (tmp_path / "train.py").write_text(FAILS.format(code=code))
    job = take(f"command: [python3, train.py]\n{LOCAL}{fields}{GPU}")

    with start(google, job, cwd=tmp_path, restarts=2) as program:
        ended = program.wait(60)

    assert len((tmp_path / "starts").read_text()) == starts
    assert ended == {"0": 0, "75": 75, "3": 3}.get(code, 0)


def test_a_program_that_got_sigterm_does_not_start_again(take: Take, google: Google, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time; open('starts', 'a').write('x'); print(1, flush=True)\n"
                                       "time.sleep(60)")  # fmt: skip
    job = take(f"command: [python3, train.py]\n{LOCAL}{GPU}")

    with start(google, job, cwd=tmp_path, restarts=2) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        assert program.wait(30) == 128 + signal.SIGTERM

    assert (tmp_path / "starts").read_text() == "x"


def test_what_a_failed_program_left_behind_is_gone_before_it_starts_again(
    take: Take, google: Google, tmp_path: Path
) -> None:
    program = (
        "import os, subprocess, sys\n"
        "if os.path.exists('left'):\n"
        "    sys.exit(os.path.exists(f'/proc/{open(\"left\").read()}/root'))\n"  # a zombie has none
        "open('left', 'w').write(str(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid))\n"
        "sys.exit(1)\n"
    )
    (tmp_path / "train.py").write_text(program)
    job = take(f"command: [python3, train.py]\n{LOCAL}{GPU}")

    with start(google, job, cwd=tmp_path, restarts=1) as running:
        assert running.wait(30) == 0


def test_a_missing_package_ends_the_program_before_it_starts(take: Take, google: Google) -> None:
    job = take(f"command: [a]\nsecrets: {{TOKEN: token}}\n{GPU}")
    google.package = b"no archive"
    plan = json.dumps({"package": "gs://bucket/sources/1/train-0.tar.gz"})

    with start(google, job, {PLAN_VARIABLE: plan}) as program:
        assert program.wait(60) != 0

    assert google.requests[-1] == "/storage/v1/b/bucket/o/sources%2F1%2Ftrain-0.tar.gz?alt=media"


@pytest.mark.parametrize("variables", [{}, {"PIP_INDEX_URL": "https://packages.example.org/simple"}])
def test_pip_alone_gets_the_repository_with_a_token(
    new_lab: Lab, google: Google, tmp_path: Path, variables: dict[str, str]
) -> None:
    root = new_lab(lab=ENVIRONMENT + "    python_repository: us\n")
    (root / "train.py").write_text("import os; print(os.environ.get('PIP_INDEX_URL'))\n")
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__init__.py").write_text("")
    pip = "import os, pathlib; pathlib.Path('index').write_text(os.environ['PIP_INDEX_URL'])"
    (tmp_path / "pip" / "__main__.py").write_text(pip)
    text = f"environment: lab\nsource: {{file: train.py, requirements: [torch]}}\noutput: checkpoints\n{GPU}\n"
    job, findings = parse_job(parse_source(text, "jobs/vision/train.yaml"), read_workspace(root))
    assert job is not None, findings
    assert job.spec.source is not None
    google.package = packed_source(job.spec.source, root).content

    with start(google, job, {"PYTHONPATH": f"{tmp_path}:{root}", **variables}, cwd=tmp_path) as program:
        output, _ = program.communicate(timeout=60)

    job_index = variables.get("PIP_INDEX_URL")
    repository = "https://oauth2accesstoken:t@us-python.pkg.dev/example-lab/lab-python/simple/"
    assert (tmp_path / "index").read_text() == (job_index or repository)
    assert output == f"{job_index}\n"


@pytest.mark.parametrize("member", ["link", "../own.py", "/own.py"])
def test_an_archive_other_than_the_packed_one_is_not_unpacked(
    take: Take, google: Google, capfd: pytest.CaptureFixture[str], member: str
) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        info = tarfile.TarInfo(member)
        if member == "link":
            info.type = tarfile.SYMTYPE
            info.linkname = "/etc"
        tar.addfile(info)
    google.package = archive.getvalue()
    digest = hashlib.sha256(google.package).hexdigest()[:16]
    job = take(f"command: [a]\nsecrets: {{TOKEN: token}}\n{GPU}")

    for path, words in (
        (digest, f"has {member}, which is not a file inside"),
        ("0" * 16, "is not the file that job submit uploaded"),
    ):
        plan = json.dumps({"folder": f"gs://bucket/sources/{path}/src-0.tar.gz"})
        with start(google, job, {PLAN_VARIABLE: plan}) as program:
            assert program.wait(60) == 1
        assert words in capfd.readouterr().err


def test_a_folder_of_the_working_tree_is_where_the_program_runs(new_lab: Lab, google: Google) -> None:
    root = new_lab()
    write_tree(root)
    job = folder_job(root, "command: [python3, train.py]")
    assert job is not None
    source = job.spec.source
    assert source is not None
    google.package = packed_source(source, root).content

    with start(google, job) as program:
        output, _ = program.communicate(timeout=30)

    assert output == "helped by src/lab\n"
    assert google.requests[-1].startswith("/storage/v1/b/example-lab-lab-vision-checkpoints/o/sources%2F")


def write_tree(root: Path) -> None:
    """Write a program in a git checkout, with files that git ignores, hidden ones and a link."""
    src = root / "src"
    (src / "lab").mkdir(parents=True)
    (src / "train.py").write_text("import lab.help; print(lab.help.TEXT)\n")
    (src / "lab" / "help.py").write_text("TEXT = 'helped by src/lab'\n")
    (src / "data.bin").write_bytes(b"1")
    (src / ".env").write_text("TOKEN=1\n")
    (src / "again.py").symlink_to("train.py")
    (root / ".gitignore").write_text("*.bin\n")
    subprocess.run(["git", "init", "-q", root], check=True)


def folder_job(root: Path, fields: str) -> ResolvedJob | None:
    job, findings = folder_read(root, fields)
    assert findings == []
    return job


def folder_read(root: Path, fields: str) -> tuple[ResolvedJob | None, list[Finding]]:
    text = f"environment: lab\nsource: {{folder: src, image: a:1}}\n{fields}\noutput: checkpoints\n{GPU}\n"
    return parse_job(parse_source(text, "jobs/vision/train.yaml"), read_workspace(root))


def uri_of_folder(root: Path) -> str | None:
    """Return where the source of a job goes, as a command that starts now packs it."""
    job = folder_job(root, "command: [a]")
    return archive_uri(job) if job else None


def packed(root: Path) -> list[str]:
    archive = packed_source(PythonSource(folder="src"), root).content
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return sorted(tar.getnames())


def test_what_git_ignores_and_what_is_hidden_stays_behind(new_lab: Lab) -> None:
    root = new_lab()
    write_tree(root)

    assert packed(root) == ["src-0/again.py", "src-0/lab/help.py", "src-0/train.py"]
    job = folder_job(root, "command: [a]")
    assert job is not None
    size = sum((root / "src" / name).stat().st_size for name in ("again.py", "lab/help.py", "train.py"))
    assert listing(job) == f"3 files of src, {size} bytes: again.py, lab/help.py, train.py"


def test_a_folder_is_named_by_its_content(new_lab: Lab) -> None:
    root = new_lab()
    write_tree(root)
    before = uri_of_folder(root)

    (root / "src" / "data.bin").write_bytes(b"2")
    assert uri_of_folder(root) == before
    (root / "src" / "train.py").write_text("other\n")
    assert uri_of_folder(root) != before


def test_a_source_that_changes_after_the_job_is_rendered_is_uploaded_as_it_was(new_lab: Lab) -> None:
    root = new_lab()
    write_tree(root)
    job = folder_job(root, "command: [a]")
    assert job is not None
    rendered = archive_uri(job)

    (root / "src" / "train.py").write_text("other\n")
    archive = source_archive(job)

    assert archive is not None
    assert rendered is not None
    assert rendered.endswith(archive.path)


def leads_out(src: Path) -> None:
    (src / "keys").symlink_to("/etc/hostname")


def hidden(src: Path) -> None:
    (src / "notes.txt").symlink_to(".env")


def elsewhere(src: Path) -> None:
    other = src.parent.with_name("other")
    src.rename(other)
    src.symlink_to(other)


def large(src: Path) -> None:
    with (src / "weights.pt").open("wb") as file:
        file.truncate(101 * 2**20)


def empty(src: Path) -> None:
    src.rename(src.with_name("elsewhere"))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (leads_out, "keys of src link to files outside it"),
        (hidden, "notes.txt of src link to files outside it or to hidden files"),
        (elsewhere, "src is a link out of the repository"),
        (large, "src has 101 MiB; weights.pt has 101"),
        (empty, "src is not a folder of this repository with files that git does not ignore"),
    ],
)
def test_a_folder_that_cannot_be_packed_is_refused(new_lab: Lab, spoil: Callable[[Path], None], message: str) -> None:
    root = new_lab()
    write_tree(root)
    spoil(root / "src")
    job = folder_job(root, "command: [a]")
    assert job is not None

    (finding,) = judge(job, "gke", TODAY).findings

    assert (finding.rule, finding.severity, finding.path, finding.position) == (
        "job-source",
        "error",
        "source.folder",
        (2, 10),
    )
    assert message in finding.message


def test_a_script_that_the_folder_lacks_is_found_with_the_nearest(new_lab: Lab) -> None:
    root = new_lab()
    write_tree(root)
    scripts = sorted(path.name for path in (root / "src").glob("*.py"))
    for script, nearest in ((scripts[0], []), (f"/opt/{scripts[0]}x.py", []), (f"x{scripts[0]}", [scripts[0]])):
        job = folder_job(root, f"command: [python, {script}]")
        assert job is not None

        findings = [row for row in judge(job, "gke", TODAY).findings if row.rule == "job-source"]

        assert [row.nearest for row in findings] == nearest
        assert [(row.severity, row.path) for row in findings] == [("warning", "command[1]")] * len(nearest)


@pytest.mark.parametrize(
    ("source", "fields", "path"),
    [
        ("{folder: src}", "", "source.folder"),
        ("{folder: src, module: a.b}", "command: [a]", "source.module"),
        ("{folder: src, requirements: [torch]}", "command: [a]", "source.requirements"),
    ],
)
def test_a_folder_runs_a_command_of_its_own(new_lab: Lab, source: str, fields: str, path: str) -> None:
    text = f"environment: lab\nsource: {source}\n{fields}\noutput: checkpoints\n{GPU}\n"

    _, findings = parse_job(parse_source(text, "jobs/vision/train.yaml"), read_workspace(new_lab()))

    assert [finding.path for finding in findings] == [path]


IMAGE = "us-central1-docker.pkg.dev/example-lab/lab-images/trainer"
PROGRAM = '#!/bin/sh\nprintf "%s\\n" "$(basename "$0") $*" >> "$CALLS"\necho "${PRINTS-}"\nexit "${ENDS:-0}"\n'
DIGEST = f"sha256:{'5e' * 32}"


@pytest.fixture
def root(new_lab: Lab) -> Path:
    return new_lab(lab=ENVIRONMENT.replace("    labels:", "    images: {location: us-central1}\n    labels:", 1))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "trainer"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM scratch\n")
    return folder


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put stand-ins for all programs on PATH, and return the file that records their calls."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("gcloud", "docker", "buildah"):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("PRINTS", f"{IMAGE}@{DIGEST}")
    return tmp_path / "calls"


def build(root: Path, source: Path, *arguments: str) -> Result:
    command = ["image", "build", str(source), "--environment", "lab", "--root", str(root), *arguments]
    return CliRunner().invoke(app, command)


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
def test_a_folder_without_a_dockerfile_is_not_built(
    root: Path, source: Path, calls: Path, arguments: tuple[str, ...]
) -> None:
    (source / "Dockerfile").unlink()

    result = build(root, source, "--tag", "1", *arguments)

    assert (result.exit_code, result.stdout, calls.exists()) == (2, "", False)
    assert f"{source} has no Dockerfile" in result.stderr


def test_cloud_build_gets_the_folder_and_the_environment_s_repository(root: Path, source: Path, calls: Path) -> None:
    result = build(root, source, "--tag", "1", "--with", "cloud-build")

    assert result.exit_code == 0, result.output
    assert result.stdout == f"{IMAGE}@{DIGEST}\n"
    built, described = calls.read_text().splitlines()
    assert built == f"gcloud builds submit {source} --tag {IMAGE}:1 --project example-lab"
    assert described.startswith(f"gcloud artifacts docker images describe {IMAGE}:1 --project example-lab")


def test_docker_builds_without_rights_in_cloud_build_where_both_are_installed(
    root: Path, source: Path, calls: Path
) -> None:
    assert build(root, source, "--tag", "1").exit_code == 0
    assert calls.read_text().startswith("docker build ")


def test_a_member_pushes_to_the_teams_repository(root: Path, source: Path, calls: Path) -> None:
    team_image = IMAGE.replace("lab-images", "lab-vision-images")

    assert build(root, source, "--tag", "1", "--team", "vision").exit_code == 0
    assert f"docker push {team_image}:1\n" in calls.read_text()


@pytest.mark.parametrize(
    ("program", "pushes"),
    [
        ("docker", ["push", "inspect --format {{index .RepoDigests 0}}"]),
        ("buildah", ["push --digestfile /dev/stdout"]),
    ],
)
def test_a_locally_built_image_is_pushed(
    program: str, pushes: list[str], root: Path, source: Path, calls: Path
) -> None:
    result = build(root, source, "--tag", "1", "--with", program, "--format", "json")

    assert json.loads(result.stdout)["image"] == f"{IMAGE}@{DIGEST}"
    built, *after = calls.read_text().splitlines()
    assert built == f"{program} build --platform linux/amd64 --tag {IMAGE}:1 {source}"
    assert after == [f"{program} {push} {IMAGE}:1" for push in pushes]


def test_an_image_whose_digest_was_not_printed_is_exit_code_2(
    root: Path, source: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRINTS", "")

    result = build(root, source, "--tag", "1")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "its digest was not printed" in result.stderr


def test_a_dry_run_shows_the_commands_and_runs_none(root: Path, source: Path, calls: Path) -> None:
    result = build(root, source, "--tag", "1", "--with", "docker", "--dry-run")

    assert result.stdout.splitlines()[1] == f"docker push {IMAGE}:1"
    assert not calls.exists()


def test_an_image_that_is_not_built_is_not_pushed(
    root: Path, source: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDS", "3")

    result = build(root, source, "--tag", "1", "--with", "docker")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "docker build --platform failed with exit code 3" in result.stderr
    assert len(calls.read_text().splitlines()) == 1  # the build


def test_the_tag_is_the_commit_and_uncommitted_changes_are_refused(root: Path, source: Path, calls: Path) -> None:
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True)

    assert build(root, source).exit_code == 0
    assert f" --tag {IMAGE}:{commit.stdout.strip()} " in calls.read_text()
    (source / "new").touch()
    assert "has uncommitted changes" in build(root, source).stderr
    assert len(calls.read_text().splitlines()) == 3  # the first build, its push and its digest


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--environment", "lap"], "There is no environment lap. Nearest: lab."),
        (["--team", "vison"], "lab has no team vison. Nearest: vision."),
        (["--name", "Trainer"], "'Trainer' is not a name of an image"),
        (["--tag", "a b"], "'a b' is not a tag of an image"),
        ([], "is not in a git repository with a commit"),
    ],
)
def test_an_image_that_cannot_be_built_gives_one_sentence(
    arguments: list[str], sentence: str, root: Path, source: Path, calls: Path
) -> None:
    tag = [] if not arguments or arguments[0] == "--tag" else ["--tag", "1"]

    result = build(root, source, *tag, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert not calls.exists()


def test_a_missing_folder_is_reported_before_its_commit_is_read(root: Path, source: Path) -> None:
    assert "gone is not a folder." in build(root, source / "gone").stderr


def test_an_environment_without_a_repository_is_reported(new_lab: Lab, source: Path, calls: Path) -> None:
    assert "lab has no repository of images" in build(new_lab(), source, "--tag", "1").stderr


def test_a_machine_without_any_builder_is_reported(
    root: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "None of docker, buildah is on PATH" in build(root, source, "--tag", "1").stderr


@pytest.mark.parametrize("source", ["file: train.py", "package: lib, module: keys"])
def test_no_source_follows_a_link_out_of_the_repository(new_lab: Lab, source: str) -> None:
    root = new_lab()
    outside = root.with_name("own.py")
    outside.write_text("TOKEN = 1\n")
    (root / "train.py").symlink_to(outside)
    (root / "lib").mkdir()
    (root / "lib" / "setup.py").write_text("")
    (root / "lib" / "keys.py").symlink_to(outside)
    text = f"environment: lab\nsource: {{{source}, image: a:1}}\noutput: checkpoints\n{GPU}\n"

    job, rejected = parse_job(parse_source(text, "jobs/vision/train.yaml"), read_workspace(root))
    assert job is not None, rejected

    messages = [finding.message for finding in judge(job, "gke", TODAY).findings if finding.rule == "job-source"]

    assert ["link to files outside it" in message for message in messages] == [True], messages
