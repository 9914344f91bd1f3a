"""Rules about GKE: clusters, node pools, node settings, and how they fit together."""

from training_platform.rules.gke import (  # noqa: F401 # importing a module registers its rules
    accelerators,
    auto_provisioning,
    clusters,
    node_pools,
    node_settings,
    provisioning,
    versions,
)
