"""The pack as a process, as the engine starts and ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_engine_may_interrupt_the_pack_until_it_has_ended() -> None:
    command = [sys.executable, str(ROOT / "policies")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as pack:
        assert pack.stdout
        assert int(pack.stdout.readline()) > 0  # the port it answers on
        while pack.poll() is None:
            pack.send_signal(signal.SIGINT)
        _, said = pack.communicate(timeout=30)

    assert (pack.returncode, said) == (0, "")
