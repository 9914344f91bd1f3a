"""How a run ends that does not end well; the message is for the person who typed the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_platform.config.reading.finding import UserError

if TYPE_CHECKING:
    from training_platform.sandbox.run.reports.summary import Summary


class CannotRun(UserError):
    """Nothing was tried: a tool, a stack, or something before it is missing. The command ends with exit code 2."""


class RunFailed(Exception):
    """The engine, the cloud or a protection said no; ``summary`` has what was done until then. Exit code 1."""

    def __init__(self, message: str, summary: Summary | None = None) -> None:
        super().__init__(message)
        self.summary = summary
