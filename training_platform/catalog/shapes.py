"""Slice shapes: how a topology is written, how many chips it has, and which shapes a family of TPUs has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod


@dataclass(frozen=True, kw_only=True)
class TopologyRule:
    """Which slice shapes exist: listed ``shapes``, and, with ``cube_side``, boxes whose sides are multiples of it.

    A topology is written ``AxB`` (``dims`` 2) or ``AxBxC`` (``dims`` 3), sides in chips. ``ascending`` asks for
    sides in rising order; ``max_cubes`` bounds the number of cubes of ``cube_side`` in a box, 0 for a family without.
    """

    dims: int
    shapes: tuple[str, ...]
    cube_side: int | None = None
    max_cubes: int = 0
    ascending: bool = False

    def legal(self, topology: str) -> bool:
        """Whether the shape exists, on some machine type of the family."""
        if topology in self.shapes:
            return True
        sides = parse_topology(topology)
        if sides is None or self.cube_side is None or len(sides) != self.dims or topology != render_topology(sides):
            return False
        if any(side % self.cube_side for side in sides) or (self.ascending and list(sides) != sorted(sides)):
            return False
        return prod(side // self.cube_side for side in sides) <= self.max_cubes

    def legal_shapes(self) -> Iterator[str]:
        """Every legal shape in order of chips, sides rising, smallest first; a rule with cubes lists all its boxes."""
        shapes = {*self.shapes, *self._boxes()}
        yield from sorted(shapes, key=lambda shape: (chips_in(shape) or 0, parse_topology(shape) or ()))

    def _boxes(self) -> Iterator[str]:
        if self.cube_side is None:
            return
        for sides in _rising(self.dims, self.max_cubes):
            yield render_topology(tuple(side * self.cube_side for side in sides))


@lru_cache(maxsize=4096)
def parse_topology(topology: str) -> tuple[int, ...] | None:
    """Return the sides of ``AxB`` or ``AxBxC`` in chips, or None when the text is not a topology."""
    sides = topology.split("x")
    if not 2 <= len(sides) <= 3 or not all(side.isascii() and side.isdecimal() and len(side) < 6 for side in sides):
        return None
    numbers = tuple(int(side) for side in sides)
    return numbers if all(numbers) else None


def render_topology(sides: tuple[int, ...]) -> str:
    """Return the text of a topology, ``AxB`` or ``AxBxC``."""
    return "x".join(str(side) for side in sides)


def chips_in(topology: str) -> int | None:
    """Return the number of chips in a slice of this topology, or None when the text is not a topology."""
    sides = parse_topology(topology)
    return prod(sides) if sides else None


def _rising(dims: int, most: int, least: int = 1) -> Iterator[tuple[int, ...]]:
    """Yield every tuple of ``dims`` numbers >= ``least``, in rising order, whose product is at most ``most``."""
    if dims == 0:
        yield ()
        return
    for first in range(least, most + 1):
        for rest in _rising(dims - 1, most // first, first):
            yield (first, *rest)
