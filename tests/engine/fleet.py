"""The sandbox of a copy of the repository, and what its runs did."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.parts.sandbox.run.repositories import Sandbox, without_stacks
from tests.support.places import ORGANISATION, ROOT
from training_platform.parts.sandbox.run.folder import SandboxFolder
from training_platform.parts.sandbox.run.servers import announced, serving
from training_platform.parts.sandbox.run.session import read_stacks

SCHEMAS = ROOT.parent / "shared" / "schemas"  # the upstream CRDs, where they are beside this checkout
# What a project keeps: enabled APIs, its number, its clusters' identity pool, its log bucket; and what is others'.
KEPT = re.compile(
    r"(serviceusage|cloudresourcemanager)/|iam/projects/[\w-]+/(identityPool|roles/training_platform_)|cloudquotas/"
    r"|compute/projects/[\w-]+/zones/[\w-]+/reservations/|storage/b/example-images"
    r"|logging/projects/[\w-]+/locations/global/buckets/_Default"
)
Ran = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Fleet:
    """The sandbox of a copy of the repository, whose local cloud listens on ``port``."""

    sandbox: Sandbox
    port: int

    def each(self, command: str, stacks: Iterable[str], *args: str) -> dict[str, Ran]:
        """Run a command on several stacks at once."""
        names = list(stacks)
        with ThreadPoolExecutor(len(names)) as threads:
            return dict(zip(names, threads.map(lambda name: self.sandbox(command, name, *args), names), strict=True))

    def steps(self, stack: str) -> set[tuple[str, str]]:
        """Return what the last run of a stack did, or would do, to which resource."""
        summary = json.loads(self.sandbox.folder.summary(stack).read_text())
        return {(step["op"], step["name"]) for step in summary["steps"]}

    def identity(self, stack: str, name: str) -> str:
        """Return the id of a resource by its logical name."""
        (resource,) = [state for state in self.sandbox.folder.resources(stack) if state["urn"].endswith(f"::{name}")]
        return str(resource["id"])

    def ask(self, verb: str, path: str, body: object = None) -> Any:
        """Call the local cloud as anybody with access to the project."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        with closing(connection):
            connection.request(verb, f"/{path}", json.dumps(body), {"Authorization": "Bearer other"})
            answer = connection.getresponse()
            content = json.load(answer)
        assert answer.status == 200, content
        return content


@contextmanager
def served(sandbox: Sandbox) -> Iterator[Fleet]:
    """Serve the sandbox's local cloud, whose operations take no time, while the block runs."""
    folder = sandbox.folder
    crds = [SCHEMAS] if SCHEMAS.is_dir() else []
    with (
        folder.locked(),
        serving(folder, read_stacks(folder.root, ()), durations={}, crds=crds) as servers,
        announced(folder, servers),
    ):
        yield Fleet(sandbox, servers.cloud)


def repository(root: Path) -> Sandbox:
    """Copy what a stack needs of the repository, and give the copy's sandbox."""
    sandbox = without_stacks(root)
    shutil.copytree(ORGANISATION / "stacks", root / "stacks", dirs_exist_ok=True)
    return sandbox


def state(folder: SandboxFolder, stack: str) -> set[tuple[str, str]]:
    """Return the types and names of a stack's resources."""
    return {(resource["type"], resource["urn"].split("::", 3)[-1]) for resource in folder.resources(stack)}


def unchanged(command: str, stack: str, ran: Ran) -> bool:
    return re.match(rf"{stack}: {command} done: \d+ unchanged\n", ran.stdout) is not None
