"""Rules of Kueue's objects."""

from training_platform.rules.kueue import (  # noqa: F401 # importing a module registers its rules
    cluster_queues,
    flavors,
    resource_groups,
    time_outs,
    topology_requests,
)
