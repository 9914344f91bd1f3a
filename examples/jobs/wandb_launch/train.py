"""Trains a small classifier as W&B Launch starts it: settings come from the queue, and metrics go to W&B.

The agent sets WANDB_CONFIG to what somebody chose for this run, and ``wandb.init`` puts it over the defaults here. A
checkpoint holds the id of the run, so that a job which starts again goes on in the same run after its last epoch.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import wandb

DEFAULTS = {"learning_rate": 0.5, "epochs": 20, "batch": 32}


def main() -> None:
    """Train for some epochs, from the last one that was written."""
    options = arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    with np.load(options.data) as file:
        data = {name: file[name] for name in file.files}
    first, weights, identity = restored(options.output)
    if weights is None:
        weights = np.zeros((data["inputs"].shape[1], int(data["labels"].max()) + 1))
    run = wandb.init(config=DEFAULTS, id=identity, resume="allow", dir=options.output)
    for epoch in range(first, run.config["epochs"]):
        order = np.random.default_rng(epoch).permutation(len(data["inputs"]))
        for start in range(0, len(order), run.config["batch"]):
            part = order[start : start + run.config["batch"]]
            weights = weights - run.config["learning_rate"] * gradient(
                weights, data["inputs"][part], data["labels"][part]
            )
        right = float(np.mean((data["test_inputs"] @ weights).argmax(-1) == data["test_labels"]))
        save(options.output, epoch + 1, weights, run.id)
        run.log({"epoch": epoch + 1, "accuracy": right})
        print(f"epoch {epoch + 1} accuracy {right:.4f}", flush=True)
    run.finish()


def arguments() -> argparse.Namespace:
    """Read the command line; what is written goes to the run's output."""
    output = os.environ.get("OUTPUT_URI", "").replace("gs://", "/gcs/", 1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="arrays: inputs, labels, test_inputs, test_labels")
    parser.add_argument("--output", type=Path, default=Path(output or "."))
    return parser.parse_args()


def gradient(weights: np.ndarray, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the gradient of the mean cross-entropy of a linear classifier."""
    scores = inputs @ weights
    chances = np.exp(scores - scores.max(-1, keepdims=True))
    chances /= chances.sum(-1, keepdims=True)
    chances[np.arange(len(labels)), labels] -= 1
    return inputs.T @ chances / len(labels)


def save(folder: Path, epoch: int, weights: np.ndarray, identity: str) -> None:
    """Write a checkpoint, whole or not at all."""
    with (folder / "new").open("wb") as file:
        np.savez(file, weights=weights, epoch=epoch, identity=identity)
    (folder / "new").replace(folder / "checkpoint.npz")


def restored(folder: Path) -> tuple[int, np.ndarray | None, str | None]:
    """Return the epochs done, the weights after them, and W&B's id of the run."""
    try:
        with np.load(folder / "checkpoint.npz") as saved:
            print(f"from epoch {saved['epoch']} of {saved['identity']}", flush=True)
            return int(saved["epoch"]), saved["weights"], str(saved["identity"])
    except FileNotFoundError:
        return 0, None, None


if __name__ == "__main__":
    main()
