"""The objects of clusters as YAML files, in a folder per cluster, as the stand-in keeps them.

Each file has one object as the program asked for it, without what a server fills in; a Secret's values are in plain
text. Releases are no objects: their charts are not rendered.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import yaml

from training_platform.sandbox.kubernetes.objects import without_servers_own
from training_platform.sandbox.kubernetes.releases import GROUP
from training_platform.sandbox.kubernetes.store import Key, Store

_HEAD: Final = "# Rendered by training-platform; the next run writes it anew.\n"


def write_objects(store: Store, clusters: Iterable[str], folder: Path) -> int:
    """Write the objects of some clusters, those of all stacks, and return how many there are.

    Files of an earlier run whose object is gone are taken away; files that people put there are left alone.
    """
    count = 0
    for cluster in clusters:
        place = folder / cluster_name(cluster)
        place.mkdir(parents=True, exist_ok=True)
        files = {place / file_name(key): key for key in store.keys(cluster) if key.group != GROUP}
        for path in set(place.glob("*.yaml")) - files.keys():
            if path.read_text(encoding="utf-8").startswith(_HEAD):
                path.unlink()
        for path, key in files.items():
            obj = without_servers_own(store.read(cluster, key) or {})
            path.write_text(_HEAD + yaml.safe_dump(obj), encoding="utf-8")
        count += len(files)
    return count


def cluster_name(cluster: str) -> str:
    """The name of a cluster: the last part of ``projects/*/locations/*/clusters/*``."""
    return cluster.rpartition("/")[2]


def file_name(key: Key) -> str:
    """``localqueue.kueue.x-k8s.io_vision_default.yaml``: kind and group, namespace if it has one, name.

    Names of RBAC objects may have a colon, which no other name has, and which not every file system takes.
    """
    kind = f"{key.kind.lower()}.{key.group}" if key.group else key.kind.lower()
    return "_".join((kind, *filter(None, (key.namespace, key.name)))).replace(":", "%3A") + ".yaml"
