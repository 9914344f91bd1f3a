"""Trains over many GPUs, with a copy of the model on each (DDP) or a part of it on each (FSDP); gloo where no GPUs are.

``torchrun`` starts one process for each GPU and tells them of each other. All processes together write a checkpoint
into the run's output, each its part, and another number of them can read it. Where the job has local_checkpoints, each
process writes its own part there, more often; a program that starts again in its container reads the newest step that
every process still has. Both are written while the training goes on.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH = 64
LAYERS = 4
CLASSES = 10


def main() -> None:
    """Train from the last checkpoint, or from nothing, to the last step."""
    options = arguments()
    device = join()
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(LAYERS)]
    model = STRATEGIES[options.strategy](nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES)).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    examples = torch.load(options.data, weights_only=True, mmap=True)
    checkpoints = Checkpoints(options, model, optimizer)
    first = checkpoints.restore()
    for step in range(first, options.steps):
        inputs, labels = batch(examples, step, options.batch)
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss.detach_())
        say(f"step {step + 1} loss {loss.item() / dist.get_world_size():.6f}")
        checkpoints.save(step + 1)
    checkpoints.written()
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
    parser.add_argument("--local-every", type=int, default=10, help="steps between local checkpoints")
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
    """Return a model whose parts are held by one process each: layer by layer, so that few are whole at a time."""
    for layer in model:
        fully_shard(layer)
    return fully_shard(model)


STRATEGIES: dict[str, Callable[[nn.Sequential], nn.Module]] = {"ddp": DistributedDataParallel, "fsdp": sharded}


def batch(examples: dict[str, torch.Tensor], step: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this process's examples of a step, which the step and its rank decide."""
    chosen = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
    index = torch.randint(len(examples["labels"]), (size,), generator=chosen)
    return examples["inputs"][index], examples["labels"][index]


class Checkpoints:
    """Checkpoints of a model and its optimizer: all of it in the run's output, and local ones of each process."""

    def __init__(self, options: argparse.Namespace, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.options = options
        self.model = model
        self.optimizer = optimizer
        local = os.environ.get("LOCAL_CHECKPOINT_DIR")
        self.local = Path(local, f"rank-{dist.get_rank()}") if local else None
        self.background = dist.new_group(backend="gloo")  # of threads, beside that of the training
        self.writing: dict[Path, Future[Any]] = {}

    def save(self, step: int) -> None:
        """Begin to write the checkpoints of a step, if it has any; the one before has to be written by then."""
        whole = step % self.options.checkpoint_every == 0 or step == self.options.steps
        if whole:
            self.begin(self.options.checkpoints, step, f"checkpoint {step}", alone=False)
        if self.local and step % self.options.local_every == 0:
            self.begin(self.local, step, f"local checkpoint {step}", alone=True)
            for old in steps(self.local)[:-1]:
                shutil.rmtree(self.local / f"step-{old}")

    def begin(self, folder: Path, step: int, name: str, *, alone: bool) -> None:
        """Copy a step's state, and let a thread write it; the folder has ``.metadata`` once it is whole."""
        if before := self.writing.pop(folder, None):
            before.result()
        weights, moments = get_state_dict(self.model, self.optimizer)
        state = {"model": weights, "optimizer": moments}
        checkpoint = str(folder / f"step-{step}")
        written = dcp.async_save(state, checkpoint_id=checkpoint, process_group=self.background, no_dist=alone)
        assert isinstance(written, Future)
        written.add_done_callback(lambda done: None if done.exception() else say(name))
        self.writing[folder] = written

    def written(self) -> None:
        """Wait until all that was begun is written."""
        for written in self.writing.values():
            written.result()

    def restore(self) -> int:
        """Load the newest checkpoint that every process can read, if there is one; return the steps done."""
        readable = (steps(self.local) if self.local else [], steps(self.options.checkpoints))
        every: list[tuple[list[int], list[int]]] = [readable] * dist.get_world_size()
        dist.all_gather_object(every, readable, group=self.background)
        local, whole = (max(set.intersection(*map(set, lists)), default=0) for lists in zip(*every, strict=True))
        step = max(local, whole)
        if not step:
            return 0
        near = self.local is not None and local == step
        folder = self.local if near and self.local else self.options.checkpoints
        weights, moments = get_state_dict(self.model, self.optimizer)
        saved: dict[str, Any] = {"model": weights, "optimizer": moments}
        dcp.load(saved, checkpoint_id=str(folder / f"step-{step}"), no_dist=near)
        set_state_dict(self.model, self.optimizer, model_state_dict=saved["model"], optim_state_dict=saved["optimizer"])
        say(f"from step {step} of {'local checkpoints' if near else 'the output'}")
        return step


def steps(folder: Path) -> list[int]:
    """Return the steps whose checkpoints in a folder are whole, in their order."""
    return sorted(int(path.parent.name.removeprefix("step-")) for path in folder.glob("step-*/.metadata"))


def say(text: str) -> None:
    """Print a line, once for all processes."""
    if dist.get_rank() == 0:
        print(text, flush=True)


if __name__ == "__main__":
    main()
