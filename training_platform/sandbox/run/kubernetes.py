"""Where the Kubernetes objects of a run go, and what its summary says of them.

The stand-in provider applies them to real API servers (``--api-server``), or keeps them in a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from training_platform.checks.reports.wording import counted
from training_platform.resources.register import RELEASE
from training_platform.sandbox.kubernetes.store import ObjectStore
from training_platform.sandbox.run.engine import tools
from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.problems import CannotRun
from training_platform.sandbox.run.recovery.pending_creates import clusters_of

_NO_CONTROLLERS: Final = "no controllers run: their programs, or their definitions in --crds, are missing"


def api_server_programs(folder: Folder, *, asked_for: bool) -> Path | None:
    """Return the folder of etcd and kube-apiserver, or None where the stand-in keeps objects in its own file.

    What a sandbox began with, it keeps. Raises CannotRun where objects are in the file, or a program is missing.
    """
    if not asked_for and not folder.api_servers.exists():
        return None
    if not folder.api_servers.exists() and ObjectStore(folder.kubernetes).clusters():
        raise CannotRun(
            f"{folder.path} has its Kubernetes objects in the stand-in: name another --workspace for --api-server."
        )
    return tools.kubebuilder_assets()


def kubernetes_notes(folder: Folder, name: str, crds: Sequence[Path], controllers: Sequence[str] = ()) -> Iterator[str]:
    """Yield what a summary says of a stack's Kubernetes objects; ``controllers`` may run beside its API servers."""
    resources = folder.resources(name)
    releases = Counter(each["inputs"]["name"] for each in resources if each["type"] == RELEASE)
    count = sum(each["type"].startswith("kubernetes:") for each in resources) - releases.total()
    clusters = set(clusters_of(resources).values())
    objects = f"{counted(count, 'Kubernetes object')} in {counted(len(clusters), 'cluster')}"
    if folder.api_servers.exists():
        run = f"controllers of {' and '.join(controllers)} run where their charts are installed" if controllers else ""
        yield f"Applied to a real API server for each cluster: {objects}; {run or _NO_CONTROLLERS}."
    else:
        judged = f", judged by the CRDs in {', '.join(map(str, crds))}" if crds else ""
        yield f"A stand-in for the kubernetes provider kept {objects}{judged}."
    if releases:
        names = ", ".join(f"{number} {release}" for release, number in sorted(releases.items()))
        yield f"Not rendered: the charts of {counted(releases.total(), 'Helm release')}: {names}."
