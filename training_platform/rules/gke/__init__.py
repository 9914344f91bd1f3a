"""Rules of GKE: clusters, node node_pools, node_settings, and what joins them."""

from training_platform.rules.gke import (  # noqa: F401 # importing a module registers its rules
    accelerators,
    auto_provisioning,
    clusters,
    node_pools,
    node_settings,
    provisioning,
    versions,
)
