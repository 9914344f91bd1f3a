"""A Dask cluster on worker pools of Vertex AI: pool 0 schedules and hands out work, the other pools' VMs do it.

Vertex AI starts this program on every VM, with CLUSTER_SPEC saying who is where. The work is cut into parts, and a part
that is done is a file: what begins again does only the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from dask.distributed import Client, Scheduler, Worker, as_completed

PORT = 8786


def main() -> None:
    """Schedule or work, by this VM's place in the cluster."""
    options = arguments()
    spec = json.loads(os.environ["CLUSTER_SPEC"])
    host = spec["cluster"]["workerpool0"][0].rpartition(":")[0]
    address = f"tcp://{host}:{options.port}"
    if spec["task"]["type"] == "workerpool0":
        workers = sum(len(vms) for pool, vms in spec["cluster"].items() if pool != "workerpool0")
        asyncio.run(schedule(options, workers))
    else:
        asyncio.run(work(address))


def arguments() -> argparse.Namespace:
    """Read the command line; parts go to the run's output unless it says otherwise."""
    output = os.environ.get("OUTPUT_URI", "").replace("gs://", "/gcs/", 1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="an .npy file of vectors")
    parser.add_argument("--output", type=Path, default=Path(output or "."))
    parser.add_argument("--parts", type=int, default=100)
    parser.add_argument("--width", type=int, default=64, help="numbers in an embedding")
    parser.add_argument("--port", type=int, default=PORT)
    return parser.parse_args()


async def schedule(options: argparse.Namespace, workers: int) -> None:
    """Hand out the parts that are not there yet, and write each as it comes; then end the workers."""
    options.output.mkdir(parents=True, exist_ok=True)
    missing_parts = [part for part in range(options.parts) if not file_of(options.output, part).is_file()]
    print(f"{len(missing_parts)} of {options.parts} parts to do", flush=True)
    async with (
        Scheduler(port=options.port, dashboard=False) as scheduler,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        await client.wait_for_workers(workers)
        part_of = {
            client.submit(embedded, options.data, part, options.parts, options.width, pure=False): part
            for part in missing_parts
        }
        async for future, result in as_completed(part_of, with_results=True):
            write(file_of(options.output, part_of[future]), result)
            print(f"part {part_of[future]}", flush=True)
        await scheduler.close()
    print("done", flush=True)


async def work(address: str) -> None:
    """Work for the scheduler until it ends."""
    async with Worker(address, nthreads=1, dashboard=False, death_timeout=120) as worker:
        await worker.finished()


def embedded(data: Path, part: int, parts: int, width: int) -> Any:
    """Return a part of the vectors, projected to fewer numbers; random, and the same in every run."""
    vectors = np.array_split(np.load(data, mmap_mode="r"), parts)[part]
    return vectors @ np.random.default_rng(0).standard_normal((vectors.shape[1], width))


def file_of(folder: Path, part: int) -> Path:
    """Return the file of a part."""
    return folder / f"part-{part:05}.npy"


def write(path: Path, result: Any) -> None:
    """Write a part, whole or not at all."""
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        np.save(file, result)
    new.replace(path)


if __name__ == "__main__":
    main()
