"""Rules about Kubernetes objects: constraints that API servers and webhooks enforce and that no schema contains."""

from training_platform.rules.kubernetes import jobs, objects, pods  # noqa: F401 # importing a module registers its rules
