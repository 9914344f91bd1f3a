"""An interrupt of a command while the Automation API reads the output of the engine, here a stand-in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from training_platform.parts.sandbox.run.folder import is_alive

ENGINE = '#!/bin/sh\necho $$ > "$STARTED"\nwhile :; do echo line; sleep 0.1; done\n'
COMMAND = """\
import os, sys
from pulumi.automation import PulumiCommand
from training_platform.checks.process import ended_by_signals
from training_platform.parts.sandbox.run.engine import uninterrupted
from training_platform.parts.sandbox.run.guardian import MARK

command = PulumiCommand.__new__(PulumiCommand)  # whose own constructor looks for the released CLI
command.command = sys.argv[1]
with ended_by_signals():
    uninterrupted(lambda: command.run(["up"], ".", {MARK: str(os.getpid())}))
"""


@pytest.mark.timeout(180)
@pytest.mark.skipif(sys.platform != "linux", reason="finds the engine by /proc")
def test_a_signal_to_only_the_command_ends_the_engine_and_prints_nothing(tmp_path: Path) -> None:
    engine = tmp_path / "pulumi"
    started = tmp_path / "started"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    command = [sys.executable, "-c", COMMAND, str(engine)]
    process = subprocess.Popen(
        command,
        env={**os.environ, "STARTED": str(started)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while process.poll() is None and not (started.exists() and started.read_text()):
        time.sleep(0.05)

    process.terminate()
    output, _ = process.communicate(timeout=120)

    assert (process.returncode, output) == (128 + signal.SIGTERM, "")
    assert not is_alive(int(started.read_text()))
