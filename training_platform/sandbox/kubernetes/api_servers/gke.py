"""What GKE itself puts into every cluster, without which objects of the platform are refused.

Their definitions are not ours to bring, so any field is taken here; ``--crds`` may bring a real one, which goes before.
Plurals and scopes are those of the published definitions: GoogleCloudPlatform/gke-networking-api 34c617f for networks,
GoogleCloudPlatform/compute-class-api 8067eae for ComputeClass; read 2026-11-22.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from training_platform.sandbox.kubernetes.values import Json

NAMESPACES: Final = ("gmp-system", "gmp-public")  # of managed Prometheus


class OwnKind(NamedTuple):
    """A cluster-scoped kind that GKE defines."""

    group: str
    kind: str
    plural: str


KINDS: Final = (
    OwnKind("cloud.google.com", "ComputeClass", "computeclasses"),
    OwnKind("networking.gke.io", "GKENetworkParamSet", "gkenetworkparamsets"),
    OwnKind("networking.gke.io", "Network", "networks"),
)


def open_definition(own: OwnKind) -> Json:
    """Return a CustomResourceDefinition of version v1 that takes any field."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{own.plural}.{own.group}"},
        "spec": {
            "group": own.group,
            "names": {"kind": own.kind, "plural": own.plural},
            "scope": "Cluster",
            "versions": [version],
        },
    }
