"""Adopts an existing platform: finds ids, writes import files for a project's resources, and shows differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.checks.parts import Part

if TYPE_CHECKING:
    import click


def _adopt() -> click.Command:
    from training_platform.parts.adopt.cli import adopt

    return adopt


def _adopt_state() -> click.Command:
    from training_platform.parts.adopt.cli import adopt_state

    return adopt_state


PART = Part(commands={"adopt": _adopt, "adopt-state": _adopt_state})
