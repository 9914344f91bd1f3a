"""Starts the component package; the engine runs this folder, and the rest of the checkout is beside it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pulumi.provider.server import main

from components.provider import Provider

if __name__ == "__main__":
    main(Provider("0.1.0"), sys.argv[1:])
