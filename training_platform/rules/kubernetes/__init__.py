"""Rules about Kubernetes objects: comparisons that API servers and webhooks make and that no schema contains."""

from training_platform.rules.kubernetes import jobs, objects, pods  # noqa: F401 # importing a module registers its rules
