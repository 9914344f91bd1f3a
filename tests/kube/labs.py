"""A sandbox whose Kubernetes half the released plugin registers in an API server, as in a cluster of the user's.

Charts cannot be pulled in a test: those of Kueue and JobSet have their CRDs alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.kube.api_servers import ApiServer, ControlPlanes
from tests.kube.clusters import SCHEMAS
from tests.kube.controller_programs import run_controllers
from tests.parts.sandbox.run.repositories import Sandbox, without_stacks

PLUGIN = "pulumi-resource-kubernetes"
CONTEXT = "kind-lab"
ENVIRONMENT: dict[str, Any] = {
    "project": "example-lab", "production": False,
    "clusters": {
        "main": {
            "location": "us-central1-a", "software": {"metrics": False},
            "subnet": {"nodes": "10.12.0.0/20", "pods": "10.66.0.0/16", "services": "10.12.16.0/20"},
            "node_pools": {"l4": {"machine_type": "g2-standard-8", "max_nodes": 4}},
        },
    },
}  # fmt: skip
TEAM: dict[str, Any] = {
    "environment": "lab",
    "name": "vision",
    "members": ["group:vision@example.com"],
    "shares": {"main": {"l4": {"nominal_quota": 2}}},
}


class Lab(NamedTuple):
    """A sandbox, and the API server of the user's cluster."""

    sandbox: Sandbox
    server: ApiServer
    options: tuple[str, ...]


@contextmanager
def running_lab(folder: Path) -> Iterator[Lab]:
    """Run an API server with Kubernetes' controllers, and yield a sandbox that will use it; nothing is up yet."""
    if shutil.which(PLUGIN) is None:
        pytest.skip(f"not on PATH: {PLUGIN}")
    if not SCHEMAS.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    programs = Path(os.environ["KUBEBUILDER_ASSETS"])
    charts = {name: {"chart": str(write_chart(folder / name))} for name in ("kueue", "jobset")}
    sandbox = without_stacks(folder / "repository")
    sandbox.write("lab", {**ENVIRONMENT, "charts": charts})
    sandbox.write("lab-vision", TEAM)
    manager = {"controller_manager": programs / "kube-controller-manager"}
    with ControlPlanes(programs, folder / "servers", quotas=True) as planes:
        server = planes.server("main")
        file = folder / "kubeconfig"
        file.write_text(server.kubeconfig(CONTEXT))
        with run_controllers(server, manager, folder / "controllers", [], {}):
            yield Lab(sandbox, server, ("--kubeconfig", str(file), "--context", CONTEXT))


def write_chart(folder: Path) -> Path:
    """Write a chart that has the CRDs of the folder's name."""
    (folder / "templates").mkdir(parents=True)
    chart = {"apiVersion": "v2", "name": folder.name, "version": "0.0.1"}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(chart))
    for file in (SCHEMAS / folder.name).glob("*.yaml"):
        shutil.copy(file, folder / "templates" / file.name)
    return folder
