"""Runs one job on new VMs, and twice on a persistent resource, and prints how long each took to start.

    python examples/experiments/start_up/compare.py --team vision

Submits copies of both job files of this folder from jobs/TEAM/, where they have the team's own names by then: the first
asks for new VMs, the second for those that are kept. The second run on these finds the image there, so that the first
run is their warm-up. A start is what Vertex AI says it was: from the creation of a job until it first runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import datetime
from typing import Any

RUNS = {"new VMs": "start-new", "kept VMs": "start-kept", "kept VMs, again": "start-kept"}


def main() -> int:
    """Start the job in all three ways, and print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--team", required=True, help="the folder of jobs/ with copies of both job files")
    parser.add_argument("--command", default="training-platform", help="how the command line is called here")
    options, other_options = parser.parse_known_args()
    started = {}
    for title, job in RUNS.items():
        print(f"starting on {title} ...", flush=True)
        started[title] = start([options.command, "job"], f"jobs/{options.team}/{job}.yaml", other_options)
    print(table(started))
    return 0


def start(command: list[str], job: str, other_options: list[str]) -> float:
    """Submit a job, wait for its end, and return its seconds to start; each command has the ``other_options``."""
    run = _output([*command, "submit", job, *other_options]).split()[-1]
    (ended_run,) = json.loads(_output([*command, "wait", run, "--format", "json", *other_options]))
    return seconds(ended_run)


def seconds(run: dict[str, Any]) -> float:
    """Return the seconds from a run's creation to its start."""
    if not run["started"]:
        sys.exit(f"{run['name']} never started: it is {run['state']}.")
    created, began = (datetime.fromisoformat(run[field]) for field in ("created", "started"))
    return (began - created).total_seconds()


def table(started: dict[str, float]) -> str:
    """Return all times, and what each saved against new VMs."""
    new = next(iter(started.values()))
    rows = [("start on", "seconds", "saved")]
    rows += [(title, f"{took:,.0f}", f"{new - took:,.0f}") for title, took in started.items()]
    return "\n".join(f"{title:<18}{took:>10}{saved:>10}" for title, took, saved in rows)


def _output(command: list[str]) -> str:
    ran = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
