"""Probes of a deployed platform. Each one tests a promise of the documentation in a project, and shows its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.checks.parts import Part

if TYPE_CHECKING:
    import click


def _verify() -> click.Command:
    from training_platform.parts.verify.cli import verify

    return verify


PART = Part(commands={"verify": _verify}, needs=("adopt", "jobs"))
