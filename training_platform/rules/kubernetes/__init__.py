"""Rules of Kubernetes objects: what an API server and its webhooks compare, and no schema says."""

from training_platform.rules.kubernetes import jobs, objects, pods  # noqa: F401 # importing a module registers its rules
