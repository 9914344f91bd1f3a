"""Trains the vision transformer twice, from a bucket and from Filestore, and prints how long each took.

    python examples/experiments/vit_storage/compare.py --team vision [--target gke]
    python examples/experiments/vit_storage/compare.py --local BUCKET FOLDER -- --model M --steps 16 --batch 8

The first submits both job files of this folder, of which a copy lies in jobs/TEAM/ by then, one after the other, and
waits for them: on GKE, then on Vertex AI, with a table for each. The second trains here, on two folders that hold
food-101: with buckets and file shares that are mounted, it is the same experiment on a VM.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = HERE.parents[1] / "jobs" / "finetune_vit" / "finetune.py"
SOURCES = {"Cloud Storage": "vit-bucket", "Filestore": "vit-filestore"}
TARGETS = {"gke": "on GKE", "vertex": "on Vertex AI"}
REFERENCE = {"Cloud Storage": 4837.0, "Filestore": 3006.0}
"""Seconds of the reference: food-101, 5 GiB, one A100, two epochs, Filestore premium."""
_SECONDS = re.compile(r"^(?:.*\s)?seconds ([0-9.]+)$", re.MULTILINE)


def main() -> int:
    """Train from both, and print both times."""
    options = arguments()
    targets = [""] if options.local else options.target or TARGETS
    for target in targets:
        times = {}
        for index, (source, job) in enumerate(SOURCES.items()):
            print(f"training from {source} {TARGETS.get(target, 'here')} ...", flush=True)
            if target:
                times[source] = submitted(job, target, options)
            else:
                times[source] = local(options.local[index], options.program_options)
        print(table(times, TARGETS.get(target, "here")))
    return 0


def arguments() -> argparse.Namespace:
    """Read the command line; what follows ``--`` is for the program that trains."""
    before, _, program_options = _split(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--team", help="submit the two jobs of jobs/TEAM/")
    where.add_argument("--local", nargs=2, type=Path, metavar=("BUCKET", "FOLDER"), help="train here")
    parser.add_argument("--target", action="append", choices=TARGETS, help="where they run; default: both, in turn")
    parser.add_argument("--command", default="training-platform", help="how the command line is called here")
    options = parser.parse_args(before)
    options.program_options = program_options
    return options


def submitted(job: str, target: str, options: argparse.Namespace) -> float:
    """Submit a job, wait for its run, and return the seconds that its program says it trained for."""
    command = [options.command, "job"]
    run = _output([*command, "submit", f"jobs/{options.team}/{job}.yaml", "--target", target]).split()[-1]
    _output([*command, "wait", run])
    return seconds(_output([*command, "logs", run]), run)


def local(data: Path, program_options: list[str]) -> float:
    """Train here on one folder; no checkpoint of another run is gone on with."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(PROGRAM), f"--data={data}", f"--checkpoints={folder}", *program_options]
        return seconds(_output(command), str(data))


def seconds(text: str, run: str) -> float:
    """Return what a run printed of its time."""
    printed = _SECONDS.findall(text)
    if not printed:
        sys.exit(f"{run} printed no line 'seconds N': it did not train to its end.")
    return float(printed[-1])


def table(times: dict[str, float], where: str) -> str:
    """Return both times beside those of the reference."""
    rows = [("read from", where, "reference")]
    rows += [(source, f"{took:,.0f}", f"{REFERENCE[source]:,.0f}") for source, took in times.items()]
    slow, fast = times.values()
    rows.append(("first / second", f"{slow / fast:.2f}", f"{4837 / 3006:.2f}"))
    return "\n".join(f"{name:<16}{took:>14}{reference:>12}" for name, took, reference in rows)


def _split(words: list[str]) -> tuple[list[str], bool, list[str]]:
    if "--" not in words:
        return words, False, []
    separator = words.index("--")
    return words[:separator], True, words[separator + 1 :]


def _output(command: list[str]) -> str:
    try:
        ran = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is not on PATH: name it by --command, such as .venv/bin/training-platform.")
    if ran.returncode:
        sys.exit(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
