"""Rules of disks, Filestore and volumes."""

from training_platform.rules.storage import (  # noqa: F401 # importing a module registers its rules
    disks,
    filestore,
    filestore_access,
    volumes,
)
