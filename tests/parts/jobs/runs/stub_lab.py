"""The organisation with one job on GKE, beside an API server that answers from a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner, Result

from tests.parts.jobs.runs.api_stub import ApiStub, served, write_kubeconfig
from tests.support.lab import write_lab
from training_platform.cli.main import app
from training_platform.config.workspace import read_workspace
from training_platform.parts.jobs.gke.jobset import jobset
from training_platform.parts.jobs.naming import as_run
from training_platform.parts.jobs.resolve import read_job

RUN = "train-bcdfg"
JOB = """\
environment: lab
image: registry.example.com/train:1
args: [--rate=1]
gke: {cluster: gpus, flavor: h100, nodes: 2}
command: [train]
"""
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/vision/jobsets"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2/namespaces/vision"
FOLLOWING = ("status", "why", "logs", "cancel", "wait")


class Lab(NamedTuple):
    """The organisation with one job, its cluster's API server, and a way to run commands against it."""

    root: Path
    api: ApiStub
    kubeconfig: Path

    def __call__(self, command: str, *arguments: str) -> Result:
        where = ["--root", str(self.root), "--kubeconfig", str(self.kubeconfig), "--local-cloud", "http://127.0.0.1:9"]
        file = [str(self.root / "jobs" / "vision" / "train.yaml")] if command == "submit" else []
        run = [RUN] if command in FOLLOWING else []
        return CliRunner().invoke(app, ["job", command, *file, *run, *arguments, *where])

    def live(self) -> dict[str, Any]:
        """Return the run as the cluster has it: as submitted, with the API server's additions."""
        path = self.root / "jobs" / "vision" / "train.yaml"
        job, _ = read_job(path, self.root, read_workspace(self.root))
        assert job is not None
        body = jobset(as_run(job, RUN))
        body["metadata"] |= {"uid": "1", "creationTimestamp": "2026-11-22T10:00:00Z"}
        return dict(body)


def one_sentence(result: Result, sentence: str, code: int = 2) -> None:
    """Assert that a command ended with a code and one sentence, and wrote nothing else."""
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith(("# ", "note "))]
    assert line.startswith("training-platform: ")
    assert sentence in line


@contextmanager
def stub_lab(folder: Path) -> Iterator[Lab]:
    """Serve the API server of the organisation, which has one run."""
    root = write_lab(folder / "lab")
    (root / "jobs" / "vision" / "train.yaml").write_text(JOB)
    stub = ApiStub()
    with served(stub) as address:
        lab = Lab(root, stub, write_kubeconfig(folder / "config", address, "lab-gpus"))
        queue = {"metadata": {"name": "vision"}, "status": {"conditions": [{"type": "Active", "status": "True"}]}}
        pods, events = (f"/api/v1/namespaces/vision/{kind}" for kind in ("pods", "events"))
        requests = "/apis/autoscaling.x-k8s.io/v1/namespaces/vision/provisioningrequests"
        stub.lists = {SETS: [lab.live()], f"{KUEUE}/localqueues": [queue], f"{KUEUE}/workloads": []}
        stub.lists |= {pods: [], events: [], requests: []}
        yield lab
