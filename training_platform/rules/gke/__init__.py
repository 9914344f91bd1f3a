"""Rules of GKE: clusters, node pools, nodes, and what joins them."""

from training_platform.rules.gke import (  # noqa: F401 # importing a module registers its rules
    auto_provisioning,
    clusters,
    compute_classes,
    gpu,
    gpu_networks,
    identities,
    machines,
    maintenance,
    nodes,
    placement,
    pools,
    provisioning_models,
    reservations,
    tpu,
    versions,
)
