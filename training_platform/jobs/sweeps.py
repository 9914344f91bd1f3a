"""The points of a grid, and the arguments by which a program is given each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from training_platform.jobs.spec.sweep import Sweep


def points(sweep: Sweep) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of every combination, ``--NAME=VALUE``, the last parameter's values first.

    Vertex AI gives a trial its parameters in the same form. Source: Vertex AI docs, hyperparameter tuning, read
    2026-08-22.
    """
    names = list(sweep.parameters)
    for values in product(*(sweep.parameters[name].values for name in names)):
        yield tuple(f"--{name}={value}" for name, value in zip(names, values, strict=True))
