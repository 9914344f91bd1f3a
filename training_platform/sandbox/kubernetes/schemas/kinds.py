"""What must be known of a kind without asking a cluster: plural, and by ``kinds.yaml`` scope and fixed fields."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import yaml

FieldPath = tuple[str, ...]


class Kind(NamedTuple):
    """Group (empty for core), version and kind."""

    group: str
    version: str
    kind: str

    @property
    def namespaced(self) -> bool | None:
        """Whether objects live in a namespace; ``None`` for a custom kind, which only its CRD can tell."""
        if (self.group, self.kind) in CLUSTER_SCOPED:
            return False
        return True if "." not in self.group or self.group.endswith(".k8s.io") else None

    @property
    def resource(self) -> str:
        """The plural that messages of an API server use, such as ``clusterroles.rbac.authorization.k8s.io``."""
        name = self.kind.lower()
        if name.endswith(("s", "x", "ch")):
            name += "es"
        else:
            name = name[:-1] + "ies" if name.endswith("y") and name[-2] not in "aeou" else name + "s"
        return f"{name}.{self.group}" if self.group else name


def parse(token: str) -> Kind:
    """Read a Pulumi type such as ``kubernetes:core/v1:Namespace``; ``ValueError`` for a token of another shape."""
    parts = token.split(":")
    if len(parts) != 3 or parts[1].count("/") != 1:
        raise ValueError(f"{token!r} names no Kubernetes kind: expected kubernetes:<group>/<version>:<kind>")
    group, version = parts[1].split("/")
    return Kind("" if group == "core" else group, version, parts[2])


_TABLE: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
CLUSTER_SCOPED: Final = frozenset((group, kind) for group, kinds in _TABLE["cluster_scoped"].items() for kind in kinds)
IDENTITY: Final[tuple[FieldPath, ...]] = (("kind",), ("metadata", "name"), ("metadata", "namespace"))
IMMUTABLE: Final[dict[tuple[str, str], tuple[FieldPath, ...]]] = {
    (group, kind): tuple(tuple(path.split(".")) for path in paths)
    for group, kinds in _TABLE["immutable"].items()
    for kind, paths in kinds.items()
}
