"""Local stand-ins for the clouds, with which the real Pulumi engine deploys every stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.checks.parts import Part

if TYPE_CHECKING:
    import click


def _sandbox() -> click.Command:
    from training_platform.parts.sandbox.cli import app

    return app


PART = Part(commands={"sandbox": _sandbox})
