"""The controllers beside each API server of a sandbox: those whose charts are installed in its cluster.

Charts are not rendered, so Kueue and JobSet come from the programs that settings name, once a cluster has the Helm
release, with the configuration that the release gives to Kueue; and they go with it. What they need of
CustomResourceDefinitions is in a folder that ``--crds`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple, Self

import yaml

from training_platform.resources.kueue.configuration import configuration
from training_platform.sandbox.kubernetes.api_servers.control_plane import ControlPlanes
from training_platform.sandbox.kubernetes.controllers.controllers import Controllers, remove_webhooks
from training_platform.sandbox.kubernetes.controllers.kubelets import Kubelets
from training_platform.sandbox.kubernetes.controllers.programs import VARIABLES, Binaries
from training_platform.sandbox.kubernetes.releases import GROUP
from training_platform.sandbox.kubernetes.store import Store
from training_platform.sandbox.kubernetes.values import Json, dig

KINDS: Final = {"kueue": "clusterqueues.kueue.x-k8s.io", "jobset": "jobsets.jobset.x-k8s.io"}
"""The controllers that a sandbox runs, by the name of their chart, and a kind that each cannot start without."""


class _Running(NamedTuple):
    releases: Mapping[str, Json]
    stack: ExitStack


class Operators:
    """Controllers by cluster, for as long as the block runs; ``nodes`` returns a cluster's nodes by name."""

    def __init__(
        self, planes: ControlPlanes, binaries: Binaries, releases: Store, nodes: Callable[[str], Mapping[str, Json]]
    ) -> None:
        self._planes = planes
        self._binaries = binaries
        self._releases = releases
        self._nodes = nodes
        self._running: dict[str, _Running] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            running.stack.close()

    def able(self, definitions: Mapping[str, Json]) -> list[str]:
        """Return the charts whose controllers can run: their programs are named, and their kinds defined."""
        return [chart for chart, kind in KINDS.items() if kind in definitions and getattr(self._binaries, chart)]

    def keep_up(self, cluster: str, definitions: Mapping[str, Json]) -> None:
        """Start, end or start anew what a cluster's releases ask for; one cluster is kept up by one thread at a time.

        Raises Refused where a controller does not start.
        """
        wanted = dict(self._wanted(cluster, definitions))
        if cluster in self._running and self._running[cluster].releases == wanted:
            return
        access = self._planes.access(cluster)
        with access.client() as client:
            if cluster in self._running:
                self._running.pop(cluster).stack.close()
            remove_webhooks(client)  # of a command before this one, too
        with ExitStack() as stack:
            if wanted:
                nodes = Kubelets(access, lambda: self._nodes(cluster))
                stack.enter_context(self._controllers(cluster, wanted, definitions))
                stack.enter_context(nodes)
            self._running[cluster] = _Running(wanted, stack.pop_all())

    def _wanted(self, cluster: str, definitions: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
        """Yield chart and values of the releases whose controllers can run."""
        for key in self._releases.keys(cluster):
            release = (self._releases.read(cluster, key) if key.group == GROUP else None) or {}
            if (chart := dig(release, "status", "chart")) in self.able(definitions):
                yield chart, release.get("values") or {}

    def _controllers(self, cluster: str, wanted: Mapping[str, Json], definitions: Mapping[str, Json]) -> Controllers:
        binaries = self._binaries._replace(**{name: None for name in VARIABLES if name not in wanted})
        text = dig(wanted.get("kueue", {}), "managerConfig", "controllerManagerConfigYaml")
        settings = yaml.safe_load(text) if text else configuration([])
        folder = self._planes.place(cluster) / "controllers"
        return Controllers(self._planes.access(cluster), binaries, folder, list(definitions.values()), settings)
