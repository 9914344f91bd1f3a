"""Adoption of what a local cloud has already: the command, lost state, the import and its preview."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from pulumi.automation import Deployment
from pulumi.automation.events import EngineEvent
from rich.console import Console

from tests.parts.sandbox.run.repositories import Sandbox
from training_platform.cli.main import app
from training_platform.parts.adopt.import_file import settled
from training_platform.parts.sandbox.run.session import RunOptions, session

PROJECT = "example-train-small"


def adopt(sandbox: Sandbox, port: int, *args: str) -> Result:
    where = ["--local-cloud", f"http://127.0.0.1:{port}", "--root", str(sandbox.folder.root)]
    return CliRunner().invoke(app, ["adopt", PROJECT, "--stack", "small", *where, *args])


def throw_away_state(sandbox: Sandbox, stack: str = "small") -> None:
    folder = sandbox.folder
    for path in (folder.state / ".pulumi" / "stacks").rglob(f"{stack}.json*"):
        path.unlink()
    shutil.rmtree(folder.path / "stacks" / stack)


def rows_of(files: list[Path]) -> list[dict[str, Any]]:
    return [row for file in files for row in json.loads(file.read_text())["resources"]]


def first_preview(sandbox: Sandbox, files: list[Path], stack: str = "small") -> tuple[list[str], dict[str, list[str]]]:
    """Import files and preview; returns what was put right in the state, and the names of resources by step."""
    steps: dict[str, list[str]] = {}

    def take(event: EngineEvent) -> None:
        if event.resource_pre_event:
            metadata = event.resource_pre_event.metadata
            steps.setdefault(metadata.op.value, []).append(metadata.urn.split("::", 3)[-1])

    with (
        session(sandbox.folder, [stack], RunOptions(), console=Console(), ask=lambda _: False) as preview_session,
        preview_session.engine(stack) as engine,
    ):
        for file in files:
            how = ("--yes", "--generate-code=false", "--protect=false", "--skip-preview")
            engine.run("import", "--file", str(file), *how)
        exported = engine.stack.export_stack()
        state = {"version": exported.version, "deployment": exported.deployment}
        fixed, names = settled(state, {"resources": rows_of(files)})
        engine.stack.import_stack(Deployment(version=exported.version, deployment=fixed["deployment"]))
        engine.stack.preview(on_event=take, color="never")
    return names, steps
