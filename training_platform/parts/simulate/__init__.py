"""Simulates jobs in Kueue's queues and on machines, and derives recommendations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.checks.parts import Part

if TYPE_CHECKING:
    import click


def _simulate() -> click.Command:
    from training_platform.parts.simulate.cli.simulate import simulate

    return simulate


def _recommend() -> click.Command:
    from training_platform.parts.simulate.cli.simulate import recommend

    return recommend


def _trace() -> click.Command:
    from training_platform.parts.simulate.cli.trace import trace_app

    return trace_app


def _declare_rules() -> None:
    from kueue_model import read_trace  # noqa: F401


PART = Part(
    commands={"simulate": _simulate, "recommend": _recommend, "trace": _trace},
    needs=("jobs",),  # `trace pull` asks where runs are
    declare_rules=_declare_rules,
)
