"""What ``sandbox serve`` prints, and when it ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from threading import Event

from training_platform.sandbox.run.engine.environment import TOKEN
from training_platform.sandbox.run.servers import Servers, provider_settings


def settings_lines(servers: Servers, endpoints: Mapping[str, str]) -> Iterator[str]:
    """Yield the settings for a stack file that is run by hand against these servers."""
    yield f"# The local cloud listens on http://127.0.0.1:{servers.cloud}/ until interrupted."
    yield f"# The stand-in Kubernetes provider: export PULUMI_DEBUG_PROVIDERS=kubernetes:{servers.kubernetes}"
    yield "config:"
    for setting, url in endpoints.items():
        yield f"  {setting}: {url}"
    yield f"  gcp:accessToken: {TOKEN}"
    for setting, value in provider_settings(servers.durations).items():
        yield f"  {setting}: {value}"


def wait_for_the_end() -> None:
    """Return when the process is told to stop."""
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()
