"""Reads outputs of deployed stacks with the Pulumi CLI. Users need access to the state, but not to the resources."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from training_platform.resources.environment_outputs import EnvironmentOutputs, OutputsError, parse_outputs

_SECONDS = 60


def environment_outputs(root: Path, environment: str) -> EnvironmentOutputs | None:
    """Return the outputs of an environment's stack, or None if there is no CLI or it cannot read the state."""
    program = shutil.which("pulumi")
    if program is None:
        return None
    command = [program, "stack", "output", "--json", "--non-interactive", "--stack", environment]
    try:
        printed = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=_SECONDS, check=True)  # noqa: S603 # our own arguments
        return parse_outputs(environment, json.loads(printed.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, OutputsError):
        return None
