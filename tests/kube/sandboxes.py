"""A sandbox whose Kubernetes objects are in real API servers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from local_google_cloud.api import Store
from local_google_cloud.kubernetes import ObjectStore, serve
from tests.kube.api_servers import ControlPlanes
from tests.kube.api_store import ApiStore
from tests.kube.controller_programs import find_binaries
from tests.kube.nodes import cluster_nodes
from training_platform.config.workspace import Workspace
from training_platform.parts.sandbox.run.folder import SandboxFolder
from training_platform.parts.sandbox.run.servers import Servers, serving

CLUSTER = "projects/example-lab/locations/us-central1-a/clusters/lab-gpus"
ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    clusters:
      gpus:
        location: us-central1-a
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        node_pools:
          l4: {machine_type: g2-standard-8, min_nodes: 2, max_nodes: 4}
"""
TEAM = """\
config:
  training-platform:team:
    environment: lab
    name: vision
    members: ["group:vision@example.com"]
    shares:
      gpus:
        l4: {nominal_quota: 2}
"""
JOB = """\
environment: lab
image: registry.example.com/train:1
command: [python, -m, train]
gke: {cluster: gpus, flavor: l4, nodes: 2}
"""
FILES = {"stacks/Pulumi.lab.yaml": ENVIRONMENT, "stacks/Pulumi.lab-vision.yaml": TEAM, "jobs/vision/train.yaml": JOB}


@contextmanager
def serving_with_api_servers(folder: SandboxFolder, workspace: Workspace, crds: Sequence[Path]) -> Iterator[Servers]:
    """Serve a sandbox while the block runs; its API servers have their data, and a kubeconfig, in ``api_folder``.

    Controllers whose programs are at hand run in a cluster with their charts, and nodes are those of the local cloud's
    pools.
    """
    programs = Path(os.environ["KUBEBUILDER_ASSETS"])
    releases = ObjectStore(folder.kubernetes)
    with (
        serving(folder, workspace, durations={}, crds=crds) as servers,
        ControlPlanes(programs, api_folder(folder)) as planes,
        ApiStore(
            planes,
            crds,
            releases,
            find_binaries(programs),
            lambda cluster: cluster_nodes(Store(folder.cloud), cluster),
        ) as objects,
        serve(crds=crds, store=releases, objects=objects) as plugin_port,
    ):
        yield replace(servers, kubernetes=plugin_port)


def api_folder(folder: SandboxFolder) -> Path:
    """Return the folder of a sandbox's API servers."""
    return folder.path / "api-servers"
