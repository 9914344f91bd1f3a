"""Rules of disks, Filestore, volumes, and keys that encrypt."""

from training_platform.rules.storage import (  # noqa: F401 # importing a module registers its rules
    disks,
    encryption,
    filestore,
    filestore_access,
    volumes,
)
