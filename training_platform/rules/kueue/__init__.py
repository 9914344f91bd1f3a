"""Rules of Kueue's objects."""

from training_platform.rules.kueue import (  # noqa: F401 # importing a module registers its rules
    cluster_queues,
    flavors,
    partial_admission,
    resource_groups,
    time_outs,
    topology_requests,
)
