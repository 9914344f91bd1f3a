"""Rules of Vertex AI."""

from training_platform.rules.vertex import (  # noqa: F401 # importing a module registers its rules
    persistent_resources,
    workbench,
)
