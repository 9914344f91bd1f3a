"""``python -m training_platform.sandbox.cloud``: serve the local cloud until interrupted."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from pathlib import Path

from training_platform.config.reading.clock import today
from training_platform.quota.snapshot import read_snapshots
from training_platform.sandbox.cloud.cloud import Cloud
from training_platform.sandbox.cloud.projects import Projects
from training_platform.sandbox.cloud.server import serve
from training_platform.sandbox.cloud.store import Store


def main() -> None:
    """Serve; the port is printed once it is bound."""
    arguments = argparse.ArgumentParser(prog="training_platform.sandbox.cloud", description=__doc__)
    arguments.add_argument("--port", type=int, default=0)
    arguments.add_argument("--root", type=Path, default=Path(), help="the repository, for stacks/quotas")
    arguments.add_argument("--state", type=Path, help="the file that keeps the state; in memory without it")
    arguments.add_argument("--project", action="append", default=[], help="a project without quota limits")
    arguments.add_argument("--verbose", action="store_true", help="log each request")
    given = arguments.parse_args()
    logging.basicConfig(level=logging.INFO if given.verbose else logging.WARNING, format="%(message)s")
    snapshots = read_snapshots(given.root, today(given.root)).by_project
    cloud = Cloud(Projects(snapshots, given.project), store=Store(given.state))
    with serve(cloud, given.port) as port:
        sys.stdout.write(f"http://127.0.0.1:{port}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    main()
