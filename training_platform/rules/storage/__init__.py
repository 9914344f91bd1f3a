"""Rules of disks, Filestore, Managed Lustre, volumes, and keys that encrypt."""

from training_platform.rules.storage import (  # noqa: F401 # importing a module registers its rules
    disks,
    encryption,
    filestore,
    filestore_access,
    lustre,
    volumes,
)
