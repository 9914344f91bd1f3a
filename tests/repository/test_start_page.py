"""docs/start.md is followed word by word, in a clone that has samples, up to a deployment; test_pages.py rehearses it.

What stands for Google Cloud is the local cloud of ``sandbox serve``. Nothing of a command is replaced but the places of
the state, of its key and of Google; ``gcloud`` is not run, and its commands are listed, so that none comes unseen.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.measure import BIN
from tests.repository.clones import CLOUD, clone, commands
from tests.repository.typed_pages import START, type_page

STEPS = commands()


@dataclass
class Walk:
    """A clone in which commands are typed."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def type(self, command: str) -> str:
        """Run a command, which has to succeed, and return its output."""
        env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(self.root.parent / "cache")}
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.root, env={**env, **self.env}, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """Return a clone after the first section."""
    walk = Walk(clone(tmp_path_factory.mktemp("start") / "clone"))
    assert (
        type_page(START, walk.root).splitlines()[-1] == "2 stacks: 1 note; not judged: 1 project without known limits"
    )
    return walk


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_the_platform_comes_up_under_the_policies(walk: Walk, cloud: tuple[str, str]) -> None:
    settings, port = cloud
    instead = {
        "gs://example-pulumi-state": f"file://{walk.root.parent / 'state'}",
        r"--secrets-provider=gcpkms://\S+": "--secrets-provider=passphrase",
        "quota pull": f"quota pull --endpoint http://127.0.0.1:{port}/cloudquotas",
        "pulumi up": "pulumi up --yes",
        "sh ../accounts.sh": "sh -n ../accounts.sh",  # gcloud is not run
    }
    (walk.root.parent / "state").mkdir()
    outputs = {}
    for command in STEPS[CLOUD]:
        if command.startswith("gcloud "):
            continue
        typed = command
        for old, new in instead.items():
            typed = re.sub(old, new, typed)
        outputs[command] = walk.type(typed)
        if command.startswith("pulumi stack init"):  # where Google is: in the file of the stack, for the gcp provider
            (name,) = re.findall(r"init (\S+)", command)
            file = walk.root / "stacks" / f"Pulumi.{name}.yaml"
            file.write_text(file.read_text().replace("config:\n", f"config:\n{settings}", 1))

    assert "created" in outputs["pulumi up -s prod --policy-pack policies"]
    assert "created" in outputs["pulumi up -s prod-vision --policy-pack policies"]
    assert walk.type("git status --porcelain") == ""


@pytest.fixture
def cloud(walk: Walk, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Serve the local cloud; yield the provider's settings, as lines of a stack file, and the port."""
    walk.env = {"PULUMI_CONFIG_PASSPHRASE": "example", "PULUMI_HOME": str(tmp_path / "home")}
    program = shutil.which("training-platform", path=str(BIN)) or ""
    with subprocess.Popen(
        [program, "sandbox", "serve", "--workspace", str(tmp_path / "served")],
        cwd=walk.root, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        output = ""
        while "gcp:pollInterval" not in output:
            line = process.stdout.readline()
            assert line, output
            output += line
        walk.env["PULUMI_DEBUG_PROVIDERS"] = re.findall(r"PULUMI_DEBUG_PROVIDERS=(\S+)", output)[0]
        yield output.partition("config:\n")[2], re.findall(r"http://127\.0\.0\.1:(\d+)/", output)[0]
        process.terminate()
