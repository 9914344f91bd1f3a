"""The pack as a process, as the engine starts and ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]
SECONDS = 30


def test_the_engine_may_interrupt_the_pack_until_it_has_ended() -> None:
    command = [sys.executable, "-u", str(ROOT / "policies")]  # unbuffered, as the engine starts it
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as pack:
        assert pack.stdout
        assert int(pack.stdout.readline()) > 0  # the port it answers on
        for _ in range(SECONDS * 20):
            pack.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                pack.wait(1 / 20)
                break
        _, errors = pack.communicate(timeout=SECONDS)

    assert (pack.returncode, errors) == (0, "")
