"""Rules of addresses and networks."""

from training_platform.rules.network import (  # noqa: F401 # importing a module registers its rules
    addresses,
    gateways,
    public_addresses,
)
