"""Pre-trains a small language model over several slices of TPUs: data parallel between slices and within them.

On GKE every VM of every slice runs this program, and JAX finds the others by what GKE sets. Elsewhere, as in the test
on CPUs, COORDINATOR_ADDRESS, NUM_PROCESSES and PROCESS_ID say who they are, and a process stands for a slice.

Orbax writes checkpoints while the training goes on: the first slice into the run's output. Where the job has
local_checkpoints and several slices, the others write on their VMs, more often. The newest step that is whole in one of
them is read there and sent to the rest; without such a step every slice reads the output.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from absl import flags
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from orbax.checkpoint.experimental.emergency import checkpoint_manager as emergency

WIDTH = 64
LAYERS = 2
CONTEXT = 32
VOCABULARY = 256
Tree = Any


def main() -> None:
    """Train from the last checkpoint, or from nothing, to the last step."""
    options = arguments()
    join()
    mesh = slices_by_devices()
    batches = NamedSharding(mesh, PartitionSpec(("slice", "data")))
    optimizer = optax.adamw(options.learning_rate)
    parameters = initial()
    state = (parameters, optimizer.init(parameters))
    state = jax.device_put(state, NamedSharding(mesh, PartitionSpec()))
    checkpoints = checkpoint_manager(options, mesh, state)
    first, state = restored(checkpoints, state)
    tokens = np.memmap(options.tokens, dtype=np.uint8, mode="r")
    for step in range(first, options.steps):
        state, loss = update(optimizer, state, batch(tokens, step, options.batch, batches))
        say(f"step {step + 1} loss {float(loss):.6f}")
        done = step + 1
        last = done == options.steps
        due = last or done % options.checkpoint_every == 0 or done % options.local_every == 0  # alike in all slices
        if due and checkpoints.save(done, args=ocp.args.Composite(state=ocp.args.PyTreeSave(state)), force=last):
            say(f"checkpoint {done} begun, the one before written")
    checkpoints.wait_until_finished()
    checkpoints.close()


def arguments() -> argparse.Namespace:
    """Read the command line; checkpoints go to the run's output unless it says otherwise."""
    output = os.environ.get("OUTPUT_URI", "").replace("gs://", "/gcs/", 1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=Path, required=True, help="a file of bytes, each a token")
    parser.add_argument("--checkpoints", type=Path, default=Path(output or "."))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--checkpoint-every", type=int, default=100)
    parser.add_argument("--local-every", type=int, default=10, help="steps between local checkpoints")
    parser.add_argument("--batch", type=int, default=256, help="sequences a step, over all devices")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    return parser.parse_args()


def join() -> None:
    """Make one program of all processes."""
    if "COORDINATOR_ADDRESS" not in os.environ:
        jax.distributed.initialize()
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        os.environ["COORDINATOR_ADDRESS"], int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"])
    )


def slices_by_devices() -> Mesh:
    """Return the mesh: slices, which the data centre's network joins, by the devices of one, which ICI joins."""
    devices = jax.devices()
    marked = getattr(devices[0], "slice_index", None) is not None and devices[0].platform == "tpu"
    slices = len({device.slice_index if marked else device.process_index for device in devices})
    shape = (1, len(devices) // slices)
    grid = mesh_utils.create_hybrid_device_mesh(shape, (slices, 1), devices, process_is_granule=not marked)
    return Mesh(grid, ("slice", "data"))


def initial() -> Tree:
    """Return the parameters of a model that has learnt nothing; the same in every process."""
    keys = iter(jax.random.split(jax.random.key(0), 2 + 4 * LAYERS))

    def matrix(rows: int, columns: int) -> jax.Array:
        return jax.random.normal(next(keys), (rows, columns)) / rows**0.5

    return {
        "tokens": matrix(VOCABULARY, WIDTH),
        "positions": matrix(CONTEXT, WIDTH),
        "layers": [
            {
                "mix": matrix(WIDTH, 3 * WIDTH),
                "out": matrix(WIDTH, WIDTH),
                "up": matrix(WIDTH, 4 * WIDTH),
                "down": matrix(4 * WIDTH, WIDTH),
            }
            for _ in range(LAYERS)
        ],
    }


def logits(parameters: Tree, tokens: jax.Array) -> jax.Array:
    """Return what a transformer expects after each token."""
    hidden = parameters["tokens"][tokens] + parameters["positions"]
    causal = jnp.tril(jnp.ones((CONTEXT, CONTEXT), dtype=bool))
    for layer in parameters["layers"]:
        query, key, value = jnp.split(normal(hidden) @ layer["mix"], 3, axis=-1)
        scores = jnp.where(causal, query @ key.swapaxes(-1, -2) / WIDTH**0.5, -1e9)
        hidden += jax.nn.softmax(scores) @ value @ layer["out"]
        hidden += jax.nn.gelu(normal(hidden) @ layer["up"]) @ layer["down"]
    return normal(hidden) @ parameters["tokens"].T


def normal(hidden: jax.Array) -> jax.Array:
    """Return activations of unit length."""
    return hidden * jax.lax.rsqrt(jnp.mean(hidden**2, axis=-1, keepdims=True) + 1e-6)


@partial(jax.jit, static_argnums=0)
def update(optimizer: optax.GradientTransformation, state: Tree, sequences: jax.Array) -> tuple[Tree, jax.Array]:
    """Return the state after one step, and its loss; the compiler sums gradients over all devices."""

    def loss(parameters: Tree) -> jax.Array:
        expected = logits(parameters, sequences[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(expected, sequences[:, 1:]).mean()

    parameters, moments = state
    value, gradients = jax.value_and_grad(loss)(parameters)
    changes, moments = optimizer.update(gradients, moments, parameters)
    return (optax.apply_updates(parameters, changes), moments), value


def batch(tokens: np.ndarray[Any, Any], step: int, size: int, sharding: NamedSharding) -> jax.Array:
    """Return the sequences of a step, which only its number decides; each process reads those of its own devices."""
    starts = np.random.default_rng(step).integers(0, len(tokens) - CONTEXT - 1, size)

    def rows(index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        return np.stack([tokens[start : start + CONTEXT + 1] for start in starts[index[0]]]).astype(np.int32)

    return jax.make_array_from_callback((size, CONTEXT + 1), sharding, rows)


def checkpoint_manager(options: argparse.Namespace, mesh: Mesh, state: Tree) -> Any:
    """Return what writes and reads checkpoints: in the output, and with a folder for them on the VMs as well."""
    options.checkpoints.mkdir(parents=True, exist_ok=True)
    if local := os.environ.get("LOCAL_CHECKPOINT_DIR"):
        ocp.multihost.initialize_runtime_to_distributed_ids()
        ocp.multihost.initialize_distributed_to_device_ids()
        flags.FLAGS.mark_as_parsed()  # Orbax reads a flag of its own while it restores
        return emergency.CheckpointManager(
            local,
            options.checkpoints.absolute(),
            mesh,
            jax.tree.map(ocp.utils.to_shape_dtype_struct, state),
            options=emergency.CheckpointManagerOptions(
                local=emergency.LocalCheckpointOptions(save_interval_steps=options.local_every),
                persistent=emergency.PersistentCheckpointOptions(save_interval_steps=options.checkpoint_every),
            ),
        )
    every = ocp.CheckpointManagerOptions(save_interval_steps=options.checkpoint_every)
    return ocp.CheckpointManager(options.checkpoints.absolute(), options=every)


def restored(checkpoints: Any, state: Tree) -> tuple[int, Tree]:
    """Return the steps done and the state after them; nothing and the given one without a checkpoint."""
    step = checkpoints.latest_step()
    if step is None:
        return 0, state
    read = ocp.args.PyTreeRestore(state, restore_args=ocp.checkpoint_utils.construct_restore_args(state))
    say(f"from step {step}")
    return step, checkpoints.restore(step, args=ocp.args.Composite(state=read)).state


def say(text: str) -> None:
    """Print a line, once for all processes."""
    if jax.process_index() == 0:
        print(text, flush=True)


if __name__ == "__main__":
    main()
