"""What only some commands need, and pyproject.toml has as extras."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final, Literal

from training_platform.cli.root import fail

MODULES: Final = {
    "deploy": ("pulumi", "pulumi_gcp", "pulumi_kubernetes"),
    "jobs": ("googleapiclient", "kubernetes"),
    "sandbox": ("pulumi", "pulumi_gcp", "pulumi_kubernetes", "googleapiclient", "starlette", "uvicorn"),
}
"""By extra, modules that it brings; ``quota`` is asked for by ``quota pull`` itself."""


def need(extra: Literal["deploy", "jobs", "sandbox"], what: str) -> None:
    """End the command with exit code 2 and one sentence where an extra is not installed; ``what`` needs it."""
    if any(find_spec(module) is None for module in MODULES[extra]):
        fail(
            f"{what} needs the extra `{extra}`: pip install 'training-platform[{extra}]', "
            "or with the pins of a clone: make setup"
        )
