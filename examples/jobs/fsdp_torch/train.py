"""Trains over many GPUs, with a copy of the model on each (DDP) or a part of it on each (FSDP); gloo where no GPUs are.

``torchrun`` starts one process for each GPU and tells them of each other. A checkpoint is written by all processes
together, each its part, and can be read by another number of them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS, CLASSES = 64, 4, 10


def main() -> None:
    """Train from the last checkpoint, or from nothing, to the last step."""
    options = arguments()
    device = join()
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(LAYERS)]
    model = STRATEGIES[options.strategy](nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES)).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    examples = torch.load(options.data, weights_only=True, mmap=True)
    first = restore(options.checkpoints, model, optimizer)
    for step in range(first, options.steps):
        inputs, labels = batch(examples, step, options.batch)
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach_())
        say(f"step {step + 1} loss {loss.item() / dist.get_world_size():.6f}")
        if (step + 1) % options.checkpoint_every == 0 or step + 1 == options.steps:
            save(options.checkpoints, step + 1, model, optimizer)
    dist.destroy_process_group()


def arguments() -> argparse.Namespace:
    """Read the command line; checkpoints go to the run's output unless it says otherwise."""
    output = os.environ.get("OUTPUT_URI", "").replace("gs://", "/gcs/", 1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="a file of tensors, inputs and labels")
    parser.add_argument("--strategy", choices=sorted(STRATEGIES), default="fsdp")
    parser.add_argument("--checkpoints", type=Path, default=Path(output or "."))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--checkpoint-every", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64, help="examples a step, of each process")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    return parser.parse_args()


def join() -> torch.device:
    """Make one program of all processes; return the device of this one."""
    if not torch.cuda.is_available():
        dist.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return device


def sharded(model: nn.Sequential) -> nn.Module:
    """Return a model of which each process holds a part: layer by layer, so that few are whole at a time."""
    for layer in model:
        fully_shard(layer)
    return fully_shard(model)


STRATEGIES: dict[str, Callable[[nn.Sequential], nn.Module]] = {"ddp": DistributedDataParallel, "fsdp": sharded}


def batch(examples: dict[str, torch.Tensor], step: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this process's examples of a step, which the step and its rank decide."""
    chosen = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    index = torch.randint(len(examples["labels"]), (size,), generator=chosen)
    return examples["inputs"][index], examples["labels"][index]


def save(folder: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write a checkpoint; it counts once ``last`` names it, which is written when every process is done."""
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=str(folder / f"step-{step}"))
    if dist.get_rank() == 0:
        (folder / "new").write_text(str(step))
        (folder / "new").replace(folder / "last")
    say(f"checkpoint {step}")


def restore(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Load the last whole checkpoint, if there is one; return the steps done."""
    if not (folder / "last").is_file():
        return 0
    step = int((folder / "last").read_text())
    weights, moments = get_state_dict(model, optimizer)
    saved: dict[str, Any] = {"model": weights, "optimizer": moments}
    dcp.load(saved, checkpoint_id=str(folder / f"step-{step}"))
    set_state_dict(model, optimizer, model_state_dict=saved["model"], optim_state_dict=saved["optimizer"])
    say(f"from step {step}")
    return step


def say(text: str) -> None:
    """Print a line, once for all processes."""
    if dist.get_rank() == 0:
        print(text, flush=True)


if __name__ == "__main__":
    main()
