"""One trial of a hyperparameter tuning job: trains a small classifier, and reports its accuracy after every epoch.

Vertex AI gives each trial its parameters as arguments, reads the metric from lines of JSON in a file, and sets
AIP_CHECKPOINT_DIR and CLOUD_ML_TRIAL_ID. A trial that begins again goes on after its last epoch. Source of the file and
its lines: cloudml-hypertune 0.1.0.dev6, which writes nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

Tree = Any


def main() -> None:
    """Train for some epochs, from the last one that was written."""
    options = arguments()
    with np.load(options.data) as file:
        data = {name: jnp.asarray(file[name]) for name in file.files}
    optimizer = optax.adam(options.learning_rate)
    parameters = initial(data["inputs"].shape[1], options.hidden, int(data["labels"].max()) + 1)
    state = (parameters, optimizer.init(parameters))
    first, state = restored(options.checkpoints, state)
    for epoch in range(first, options.epochs):
        state = trained(optimizer, state, data["inputs"], data["labels"])
        right = jnp.mean(logits(state[0], data["test_inputs"]).argmax(-1) == data["test_labels"])
        save(options.checkpoints, epoch + 1, state)
        report("accuracy", float(right), epoch + 1)
        print(f"epoch {epoch + 1} accuracy {float(right):.4f}", flush=True)


def report(metric: str, value: float, step: int) -> None:
    """Add a line to the file that Vertex AI reads."""
    file = Path(os.environ.get("CLOUD_ML_HP_METRIC_FILE", "/var/hypertune/output.metrics"))
    file.parent.mkdir(parents=True, exist_ok=True)
    line = {
        "timestamp": time.time(),
        "trial": os.environ.get("CLOUD_ML_TRIAL_ID", "0"),
        metric: str(value),
        "global_step": str(step),
        "checkpoint_path": "",
    }
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def arguments() -> argparse.Namespace:
    """Read the command line: what is searched for, and where things are."""
    output = os.environ.get("AIP_CHECKPOINT_DIR") or os.environ.get("OUTPUT_URI", "")
    folder = Path(output.replace("gs://", "/gcs/", 1) or ".") / os.environ.get("CLOUD_ML_TRIAL_ID", "")
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float, default=1e-2)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--data", type=Path, required=True, help="arrays: inputs, labels, test_inputs, test_labels")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--checkpoints", type=Path, default=folder)
    return parser.parse_args()


def initial(inputs: int, hidden: int, classes: int) -> Tree:
    """Return parameters that have learnt nothing."""
    first, second = jax.random.split(jax.random.key(0))
    return {
        "in": jax.random.normal(first, (inputs, hidden)) / inputs**0.5,
        "out": jax.random.normal(second, (hidden, classes)) / hidden**0.5,
    }


def logits(parameters: Tree, inputs: jax.Array) -> jax.Array:
    """Return what the classifier thinks of each class."""
    return jax.nn.gelu(inputs @ parameters["in"]) @ parameters["out"]


def trained(optimizer: optax.GradientTransformation, state: Tree, inputs: jax.Array, labels: jax.Array) -> Tree:
    """Return the state after one epoch."""

    def loss(parameters: Tree) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(logits(parameters, inputs), labels).mean()

    parameters, moments = state
    changes, moments = optimizer.update(jax.grad(loss)(parameters), moments, parameters)
    return optax.apply_updates(parameters, changes), moments


def save(folder: Path, epoch: int, state: Tree) -> None:
    """Write a checkpoint, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "new").open("wb") as file:
        np.savez(file, *map(np.asarray, jax.tree.leaves(state)), epoch=epoch)
    (folder / "new").replace(folder / "checkpoint.npz")


def restored(folder: Path, state: Tree) -> tuple[int, Tree]:
    """Return the epochs done and the state after them."""
    try:
        with np.load(folder / "checkpoint.npz") as saved:
            leaves, shape = jax.tree.flatten(state)
            print(f"from epoch {saved['epoch']}", flush=True)
            return int(saved["epoch"]), jax.tree.unflatten(shape, [saved[f"arr_{n}"] for n in range(len(leaves))])
    except FileNotFoundError:
        return 0, state


if __name__ == "__main__":
    main()
