"""Where the Kubernetes objects of a run go, and what its summary says of them.

They go to real API servers (``--api-server``), to a folder (``--render``), or to the file of the stand-in provider.
Only API servers and folders are of use to the released plugin; where it is not at hand, the stand-in serves these too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from modules.gke.cluster import cluster_name
from modules.gke.kubernetes_provider import KUBECONFIGS, RENDER_TO, cluster_identifier
from training_platform.checks.reports.wording import counted
from training_platform.config.spec.environment import Environment
from training_platform.config.spec.stack import PROJECT, Stack
from training_platform.config.workspace import Workspace
from training_platform.resources.scope import Scope, environment_scope
from training_platform.sandbox.kubernetes.releases import RELEASE
from training_platform.sandbox.kubernetes.rendering import write_objects
from training_platform.sandbox.kubernetes.store import Store
from training_platform.sandbox.run import tools
from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.problems import CannotRun
from training_platform.sandbox.run.resume import clusters_of


@dataclass(frozen=True, kw_only=True)
class Mode:
    """What becomes of objects; ``binaries`` is the folder of etcd and kube-apiserver where API servers take them."""

    binaries: Path | None = None
    render: Path | None = None
    released: bool = False  # the released plugin takes them, not the stand-in

    def config(self, folder: Folder) -> dict[str, str]:
        """Return what the program is told, which makes the provider of each cluster."""
        if not self.released:
            return {}  # the stand-in knows clusters by their identifiers
        if self.binaries is not None:
            return {f"{PROJECT}:{KUBECONFIGS}": str(folder.api_servers)}
        return {f"{PROJECT}:{RENDER_TO}": str(self.render)}


def choose_mode(folder: Folder, *, api_server: bool, render: Path | None) -> Mode:
    """Decide where objects go, which stays so in a sandbox. Raises CannotRun where that cannot be.

    A folder that the released plugin renders to is its cluster, and is remembered; the stand-in keeps the objects in
    its own file, and writes a folder when asked to.
    """
    stood_in = bool(Store(folder.kubernetes).clusters())
    if api_server or folder.api_servers.exists():
        if render is not None:
            raise CannotRun("--render and --api-server exclude each other: objects go to one place in a sandbox.")
        if stood_in and not folder.api_servers.exists():
            raise CannotRun(
                f"{folder.path} has its Kubernetes objects in the stand-in: name another --workspace for --api-server."
            )
        return Mode(binaries=tools.kubebuilder_assets(), released=tools.has_plugin("kubernetes") and not stood_in)
    rendered = folder.rendered.read_text(encoding="utf-8") if folder.rendered.exists() else None
    if rendered is not None:
        tools.require_kubernetes()
        return Mode(render=Path(rendered), released=True)
    if render is None:
        return Mode()
    released = tools.has_plugin("kubernetes") and not stood_in
    if released:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.rendered.write_text(str(render.resolve()), encoding="utf-8")
    return Mode(render=render.resolve(), released=released)


def cluster_identifiers(workspace: Workspace, stack: Stack) -> list[str]:
    """Return the clusters of a stack's environment, as its Kubernetes providers know them."""
    home = workspace.stacks[stack.environment_name]
    environment = home.environment
    if environment is None:
        return []
    scope = environment_scope(home.name, environment)
    return [_identifier(scope, environment, name) for name in environment.clusters]


def kubernetes_notes(folder: Folder, name: str, mode: Mode, crds: Iterable[Path]) -> Iterator[str]:
    """Yield what a summary says of a stack's Kubernetes objects, which the stand-in renders here if it is to."""
    resources = folder.resources(name)
    clusters = sorted(set(clusters_of(resources).values()))
    releases = Counter(each["inputs"]["name"] for each in resources if each["type"] == RELEASE)
    count = sum(each["type"].startswith("kubernetes:") for each in resources) - releases.total()
    objects = f"{counted(count, 'Kubernetes object')} in {counted(len(clusters), 'cluster')}"
    judged = ", ".join(map(str, crds))
    if mode.binaries is not None:
        yield f"Applied to a real API server for each cluster: {objects}; no controllers run."
        yield from _left_out("Not applied", releases)
    elif mode.released:
        yield f"Rendered to {mode.render} by the released kubernetes plugin: {objects}."
    else:
        by = f", judged by the CRDs in {judged}" if judged else ""
        yield f"A stand-in for the kubernetes provider kept {objects}{by}."
        if mode.render is not None:
            written = write_objects(Store(folder.kubernetes), clusters, mode.render)
            yield f"Written to {mode.render}: {counted(written, 'object')}, those of all stacks in these clusters."
        yield from _left_out("Not rendered", releases)


def _left_out(what: str, releases: Counter[str]) -> Iterator[str]:
    if releases:
        names = ", ".join(f"{count} {name}" for name, count in sorted(releases.items()))
        yield f"{what}: the charts of {counted(releases.total(), 'Helm release')}: {names}."


def _identifier(scope: Scope, environment: Environment, name: str) -> str:
    location = environment.clusters[name].location
    return cluster_identifier(scope.project, location, cluster_name(scope, name))
