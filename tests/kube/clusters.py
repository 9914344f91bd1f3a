"""A cluster with Kueue on real controllers, for as long as a module's tests run; nodes are objects only."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.kube.api_servers import ApiServer, ControlPlanes
from tests.kube.controller_programs import find_binaries, run_controllers
from training_platform.catalog.types import Json
from training_platform.rules.documents.definitions import read_definitions

SCHEMAS = Path(__file__).parents[2].parent / "shared" / "schemas"
KINDS = ("jobset", "kueue", "autoscaler")  # folders of definitions
NEEDED = ("kueue", "controller_manager", "scheduler")
OPERATORS = ("jobset", "lws", "kuberay", "trainer")  # which most tests do without


class KueueCluster(NamedTuple):
    """How to reach a cluster's API server, and the metrics of its Kueue."""

    server: ApiServer
    client: httpx.Client
    metrics_url: str


@contextmanager
def kueue_cluster(
    folder: Path,
    settings: Json,
    kinds: Sequence[str] = KINDS,
    needed: Sequence[str] = NEEDED,
    *,
    quotas: bool = False,
    kubelets: bool = False,
) -> Iterator[KueueCluster]:
    """Run Kubernetes' controllers and those that are ``needed``, with ``settings`` as Kueue's configuration.

    ``folder`` keeps data and logs. ``kinds`` are folders of definitions, or variables that name one. Tests are skipped
    where a program that they need, or the definitions, are missing. ``quotas`` are those of namespaces; ``kubelets``
    says that a test starts some.
    """
    programs = Path(os.environ["KUBEBUILDER_ASSETS"])
    binaries = needed_binaries(needed)
    definitions = [definition for name in kinds for definition in read_definitions(folder_of(name))]
    flags = {"kubelet-preferred-address-types": "InternalIP"} if kubelets else {}
    with ControlPlanes(programs, folder, quotas=quotas, flags=flags) as planes:
        server = planes.server("main")
        logs = folder / "controllers"
        controllers = run_controllers(server, binaries, logs, definitions, settings, kubelets=kubelets)
        with controllers as metrics_url, server.client() as client:
            yield KueueCluster(server, client, metrics_url)


def needed_binaries(needed: Sequence[str] = NEEDED) -> dict[str, Path]:
    """Return the programs that settings name; a test that needs one which they do not is skipped."""
    binaries = find_binaries(Path(os.environ["KUBEBUILDER_ASSETS"]))
    if missing := [name for name in needed if name not in binaries]:
        pytest.skip(f"not named by settings: {', '.join(missing)}")
    return {name: binary for name, binary in binaries.items() if name in needed or name not in OPERATORS}


def folder_of(definitions: str) -> Path:
    """Return a folder of CustomResourceDefinitions: one of those beside this checkout, or what a variable names."""
    folder = Path(os.environ.get(definitions, SCHEMAS / definitions))
    if not folder.is_dir():
        pytest.skip(f"there are no definitions: {definitions}")
    return folder
