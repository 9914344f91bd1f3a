"""Rules of the house: what a platform team asks of its own stacks, and Google Cloud does not."""

from training_platform.rules.house import (  # noqa: F401 # importing a module registers its rules
    alerts,
    charts,
    labels,
    protection,
)
