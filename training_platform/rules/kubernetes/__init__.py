"""Rules of Kubernetes objects: comparisons of API servers and webhooks that no schema states."""

from training_platform.rules.kubernetes import jobs, objects, pods  # noqa: F401 # importing a module registers its rules
