"""Run the plugin beside an engine: ``--port 0`` takes a free port and prints it, on one line."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from threading import Event

from training_platform.sandbox.kubernetes.server import serve
from training_platform.sandbox.kubernetes.store import Store


def main() -> None:
    """Serve until the process is told to stop."""
    parser = argparse.ArgumentParser(prog="python -m training_platform.sandbox.kubernetes", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--crds", type=Path, action="append", default=[], help="folder of CRDs; may repeat")
    parser.add_argument("--state", type=Path, help="JSON file that keeps the objects between runs")
    given = parser.parse_args()
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with serve(given.port, crds=given.crds, store=Store(given.state)) as port:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        stopped.wait()


if __name__ == "__main__":
    main()
