"""Rules of GKE: clusters, node pools, nodes, and what joins them."""

from training_platform.rules.gke import (  # noqa: F401 # importing a module registers its rules
    accelerators,
    auto_provisioning,
    clusters,
    nodes,
    pools,
    provisioning,
    versions,
)
