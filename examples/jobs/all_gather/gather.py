"""Measures the network between VMs: bus bandwidth of an all-gather over all GPUs; gloo where no GPUs are.

Bus bandwidth is algorithm bandwidth times (n - 1)/n (NCCL's tests, doc/PERFORMANCE.md). ``torchrun`` starts one process
for each GPU.
"""

from __future__ import annotations

import os
import time

import torch
import torch.distributed as dist

BYTES = 1 << 30
WARM_UP = 5  # collectives
MEASURED = 20


def main() -> None:
    """Gather a GiB from all processes a few times, and print the mean bandwidth in GB/s."""
    gpus = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpus else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpus else torch.device("cpu")
    processes = dist.get_world_size()
    part = torch.ones(int(os.environ.get("BYTES", BYTES)) // processes, dtype=torch.uint8, device=device)
    whole = [torch.empty_like(part) for _ in range(processes)]
    repeat(WARM_UP, whole, part)
    seconds = repeat(MEASURED, whole, part) / MEASURED
    if dist.get_rank() == 0:
        sent = part.numel() * (processes - 1)
        print(f"{processes} processes: bus bandwidth {sent / seconds / 1e9:.1f} GB/s", flush=True)
    dist.destroy_process_group()


def repeat(times: int, whole: list[torch.Tensor], part: torch.Tensor) -> float:
    """Gather some times, and return the seconds of all."""
    dist.barrier()
    began = time.monotonic()
    for _ in range(times):
        dist.all_gather(whole, part)
    if part.is_cuda:
        torch.cuda.synchronize()
    return time.monotonic() - began


if __name__ == "__main__":
    main()
