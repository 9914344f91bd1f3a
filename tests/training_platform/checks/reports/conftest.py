"""Reports with something of everything in them, and a real browser to open them in."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.places import ORGANISATION, ROOT
from training_platform.checks.report import Report, StackReport
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.config.reading.finding import Finding, Position

TODAY = date(2026, 11, 21)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
# The browser reads commands from descriptor 3 and answers on 4; two descriptors out of the way are moved there.
LAUNCH = """
import fcntl, os, sys
away = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 100) for number in sys.argv[1:3]]
os.dup2(away[0], 3)
os.dup2(away[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
EXEMPTIONS = """\
exemptions:
  - rule: boot-disk-size
    stack: prod
    path: clusters.us-central1.node_pools.h100
    reason: The cache <b>moves</b> | to Filestore.
    owner: ml-platform@example.com
    expires: "2027-01-31"
  - {rule: labels, stack: prod, path: alerts, reason: once, owner: ml@example.com, expires: "2026-11-20"}
  - {rule: labels, stack: dev, path: alerts, reason: once, owner: ml@example.com, expires: "2027-11-20"}
"""
REQUESTS = """\
    quota_requests:
      more-h100:
        service: compute.googleapis.com
        quota_id: GPUS-PER-GPU-FAMILY-per-project-region
        dimensions: {region: us-central1, gpu_family: NVIDIA_H100}
        value: 96
        justification: Two teams train at once.
        contact: ml-platform@example.com
      more-v4:
        service: compute.googleapis.com
        quota_id: TPU-PODSLICE-V4-per-project-region
        dimensions: {region: us-central2}
        value: 256
        justification: A second cube.
        contact: ml-platform@example.com
      granted:
        service: compute.googleapis.com
        quota_id: N2-CPUS-per-project-region
        dimensions: {region: us-central2}
        value: 48
        justification: System nodes.
        contact: ml-platform@example.com
    filestore:
"""


def finding(message: str = "is 9 GB", **fields: Any) -> Finding:
    """Return a finding of a disk; give what matters."""
    given: dict[str, Any] = {
        "rule": "boot-disk-size",
        "severity": "error",
        "stack": "prod",
        "file": "stacks/Pulumi.prod.yaml",
        "position": Position(14, 7),
        "path": "clusters.main.node_pools.h100.boot_disk.size_gb",
    }
    return Finding(message=message, **{**given, **fields})


def report_of(*findings: Finding, **fields: Any) -> Report:
    """Return the report of one stack with these findings."""
    stack = StackReport(name="prod", kind="environment", file="stacks/Pulumi.prod.yaml", findings=findings)
    return Report(today=TODAY, stacks=(stack,), **fields)


@pytest.fixture(scope="session")
def one() -> Callable[..., Report]:
    """Return a builder of reports: of one stack with these findings."""
    return report_of


@pytest.fixture(scope="session")
def found() -> Callable[..., Finding]:
    """Return a builder of findings."""
    return finding


@pytest.fixture(scope="session")
def clean() -> Report:
    """Return the report of the sample organisation, in which nothing is wrong."""
    return run_check(ORGANISATION, CheckOptions(today=TODAY))


@pytest.fixture(scope="session")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return a report with errors, a warning, an exempt finding, a rejected file, and a file that is no YAML."""
    folder = tmp_path_factory.mktemp("spoiled")
    shutil.copytree(ORGANISATION / "stacks", folder / "stacks")
    for name in ("Pulumi.yaml", "__main__.py"):
        shutil.copy(ROOT / name, folder / name)
    prod = folder / "stacks" / "Pulumi.prod.yaml"
    text = prod.read_text().replace("size_gb: 200}", "size_gb: 700000}")
    text = text.replace("            max_nodes: 8\n", "            max_nodes: 10\n")
    prod.write_text(text.replace("    filestore:\n", REQUESTS, 1))
    nlp = folder / "stacks" / "Pulumi.prod-nlp.yaml"
    nlp.write_text(nlp.read_text().replace("name: nlp", "name: '<img src=x> | @nlp'"))
    (folder / "stacks" / "exemptions.yaml").write_text(EXEMPTIONS)
    (folder / "stacks" / "Pulumi.broken.yaml").write_text("a: [")
    return run_check(folder, CheckOptions(today=TODAY))


class Page:
    """A page in a headless Chromium, spoken to over a pipe in the DevTools protocol."""

    def __init__(self, command: str, profile: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self._read, self._write = ours_in, ours_out
        launch = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), command, *FLAGS]
        self._process = subprocess.Popen(
            [*launch, f"--user-data-dir={profile}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._ids = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Make a page and listen to what happens in it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile are kept."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, url: str, *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Open a page at a size and in a colour scheme, and wait until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write a picture of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def requests(self) -> list[str]:
        """Return every address that the page asked for."""
        sent = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def close(self) -> None:
        """End the browser."""
        os.close(self._write)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + 30
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            assert ready, "the browser says nothing"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser ended"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        return answer


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Return a page of a browser that was started once."""
    command = next(filter(None, map(shutil.which, BROWSERS)), None)
    if command is None:
        pytest.skip(f"no browser on PATH: {', '.join(BROWSERS)}")
    found = Page(command, tmp_path_factory.mktemp("profile"))
    try:
        found.attach()
        yield found
    finally:
        found.close()
