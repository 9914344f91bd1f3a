"""The policy pack; `pulumi preview --policy-pack policies` runs it."""

import signal
from contextlib import suppress
from pathlib import Path

from pulumi_policy import EnforcementLevel, PolicyPack

from training_platform.policy.pack import policies


def _interrupted(*_: object) -> None:
    """End the wait for the engine once: a second interrupt, of a terminal or the engine, would print a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


signal.signal(signal.SIGINT, _interrupted)
with suppress(KeyboardInterrupt):
    PolicyPack(
        "training-platform",
        policies(Path(__file__).resolve().parents[1]),
        enforcement_level=EnforcementLevel.MANDATORY,
        description="What Google Cloud, Kueue and the house refuse, on every planned resource",
    )
