"""Rules of Kubernetes objects: what an API server and its webhooks compare, and no schema says."""

from training_platform.rules.kubernetes import (  # noqa: F401 # importing a module registers its rules
    amounts,
    expressions,
    jobs,
    jobsets,
    leader_worker_sets,
    network_policies,
    pods,
    ports,
    removed_versions,
    secrets,
    tpu_jobs,
)
