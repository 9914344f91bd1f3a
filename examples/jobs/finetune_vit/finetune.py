"""Fine-tunes a vision transformer on food-101, or on images laid out like it: ``food-101/images`` and ``/meta``.

A VM that is taken away sends SIGTERM first: the program then writes a checkpoint and ends, and the next one goes on
with the very batch that would have come.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler
from torchvision import transforms
from torchvision.datasets import Food101
from transformers import AutoImageProcessor, ViTForImageClassification

STOPPED = 128 + signal.SIGTERM  # never 0, which would count as success
_stopping = False


def main() -> None:
    """Train from the last checkpoint, or from the pre-trained model, and write the tuned one."""
    options = arguments()
    signal.signal(signal.SIGTERM, stop)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images = transform(options.model)
    training = Food101(options.data, split="train", transform=images)
    model = ViTForImageClassification.from_pretrained(
        options.model, num_labels=len(training.classes), ignore_mismatched_sizes=True
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    first = restore(options.checkpoints, model, optimizer)
    loader = DataLoader(
        training,
        batch_sampler=Shuffled(len(training), options.batch, first, options.steps),
        num_workers=options.workers,
        pin_memory=device.type == "cuda",
    )
    started = time.monotonic()
    for step, (pixels, labels) in enumerate(loader, start=first + 1):
        loss = model(pixel_values=pixels.to(device), labels=labels.to(device)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f}", flush=True)
        if _stopping or step % options.checkpoint_every == 0 or step == options.steps:
            save(options.checkpoints, step, model, optimizer)
        if _stopping:
            sys.exit(STOPPED)
    print(f"seconds {time.monotonic() - started:.1f}", flush=True)
    tested = DataLoader(Food101(options.data, split="test", transform=images), options.batch)
    print(f"accuracy {accuracy(model, tested, device):.4f}", flush=True)
    model.save_pretrained(options.checkpoints / "model")


def arguments() -> argparse.Namespace:
    """Read the command line; checkpoints go to the run's output unless it says otherwise."""
    output = os.environ.get("OUTPUT_URI", "").replace("gs://", "/gcs/", 1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds food-101")
    parser.add_argument("--model", required=True, help="a folder, or a name on Hugging Face's hub")
    parser.add_argument("--checkpoints", type=Path, default=Path(output or "."))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--checkpoint-every", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=8, help="processes that load images")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    return parser.parse_args()


def stop(*_: Any) -> None:
    """Note that the VM goes; the step that is under way ends first."""
    global _stopping  # noqa: PLW0603 # a signal handler has nothing else to write to
    _stopping = True


def transform(model: str) -> Any:
    """Return what makes a model's input of an image: its size and its colours' mean and spread."""
    processor = AutoImageProcessor.from_pretrained(model)
    size = (processor.size["height"], processor.size["width"])
    normal = transforms.Normalize(processor.image_mean, processor.image_std)
    return transforms.Compose([transforms.Resize(size), transforms.ToTensor(), normal])


class Shuffled(Sampler[list[int]]):
    """Batches of indexes, each decided only by its step, so that a program that goes on sees what would have come."""

    def __init__(self, images: int, batch: int, first: int, steps: int) -> None:
        self.images = images
        self.batch = batch
        self.first = first
        self.steps = steps

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches from the first step on."""
        for step in range(self.first, self.steps):
            chosen = torch.Generator().manual_seed(step)
            yield torch.randint(self.images, (self.batch,), generator=chosen).tolist()


def save(folder: Path, step: int, model: Any, optimizer: Any) -> None:
    """Write a checkpoint, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "new")
    (folder / "new").replace(folder / "checkpoint.pt")
    print(f"checkpoint {step}", flush=True)


def restore(folder: Path, model: Any, optimizer: Any) -> int:
    """Load the last checkpoint, if there is one; return the steps done."""
    if not (folder / "checkpoint.pt").is_file():
        return 0
    saved = torch.load(folder / "checkpoint.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    print(f"from step {saved['step']}", flush=True)
    return int(saved["step"])


@torch.no_grad()
def accuracy(model: Any, loader: Any, device: Any) -> float:
    """Return the share of images that the model names right."""
    model.eval()
    right = total = 0
    for pixels, labels in loader:
        named = model(pixel_values=pixels.to(device)).logits.argmax(-1).cpu()
        right, total = right + int((named == labels).sum()), total + len(labels)
    return right / total


if __name__ == "__main__":
    main()
