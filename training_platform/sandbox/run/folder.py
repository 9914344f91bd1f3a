"""The sandbox's own folder: a copy of the program for each stack, Pulumi's state, and what the servers hold.

Nothing outside it is written. The engine rewrites stack files and keeps its log-in under ``PULUMI_HOME``, so it gets
copies of the ones and a home of its own; packages that nobody writes to are links.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from training_platform.config.model.stack import PROJECT, stack_name
from training_platform.config.workspace import STACKS_FOLDER
from training_platform.sandbox.files import read_json
from training_platform.sandbox.run.problems import CannotRun
from training_platform.sandbox.run.stack_copy import salt_of, sandboxed

NAME: Final = ".sandbox"
_REFERENCE: Final = "pulumi:pulumi:StackReference"
_LINKED: Final = ("modules", "policies", "training_platform")


class Folder:
    """Where everything of a sandbox is; ``root`` is the repository."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root = root
        self.path = path
        self.state = path / "state"  # Pulumi's local backend
        self.home = path / "home"  # PULUMI_HOME; its plugins are the person's own
        self.cloud = path / "cloud.json"  # what the local cloud holds
        self.kubernetes = path / "kubernetes.json"  # the objects in the clusters
        self.api_servers = path / "api-servers"  # the data of the clusters' API servers, where the sandbox has them
        self.kubeconfig = path / "no-clusters"  # an empty one, so that the person's own clusters stay out of reach

    def checkout(self, stack: str) -> Path:
        """The copy of the program in which a stack runs."""
        return self.path / "stacks" / stack / "checkout"

    def summary(self, stack: str) -> Path:
        """What the last run of a stack did."""
        return self.path / "stacks" / stack / "summary.json"

    def prepare(self) -> None:
        """Create what every stack shares."""
        self.state.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.kubeconfig.touch()
        (self.path / "gcloud").mkdir(exist_ok=True)
        plugins, own = self.home / "plugins", persons_home() / "plugins"
        if own.is_dir() and own.resolve() != plugins.resolve():
            _link(plugins, own)

    def mend(self, stack: str) -> None:
        """Remove what a killed engine left half-written of a stack in its local backend.

        The backend renames a finished state into its place, but writes the file of attributes beside it in place; an
        empty one makes the state unreadable (engine 3.259, seen on 2026-11-21), and a missing one does not matter.
        """
        stacks = self.state / ".pulumi" / "stacks" / PROJECT
        for path in stacks.glob(f"{stack}.json*"):
            if path.suffix == ".tmp" or (path.suffix == ".attrs" and path.stat().st_size == 0):
                path.unlink()

    def holder(self, stack: str) -> int | None:
        """Return the process that works on a stack, None where no process that holds a lock is alive."""
        for path in self.locks(stack):
            pid = read_json(path).get("pid") if path.stat().st_size else None
            if isinstance(pid, int) and is_alive(pid):
                return pid
        return None

    def copy(self, stack: str, config: Mapping[str, str], *, lift_protection: str | None = None) -> Path:
        """Copy the program as it now is and return the copy's folder; ``config`` is set beside the stack's own.

        ``lift_protection`` names the environment whose ``deletion_protection`` is off in the copy.
        """
        checkout = self.checkout(stack)
        stacks = checkout / STACKS_FOLDER
        kept = checkout.parent / "salt"
        salt = kept.read_text(encoding="utf-8") if kept.exists() else None
        shutil.rmtree(stacks, ignore_errors=True)
        shutil.copytree(self.root / STACKS_FOLDER, stacks)
        for path in stacks.glob("Pulumi.*.yaml"):
            own = salt if stack_name(path) == stack else None
            lift = stack_name(path) == lift_protection
            text = sandboxed(path.read_text(encoding="utf-8"), salt=own, lift_protection=lift)
            path.write_text(text, encoding="utf-8")
        if salt and not (own_file := checkout / stack_file(stack)).exists():
            own_file.write_text(f"encryptionsalt: {salt}\n", encoding="utf-8")  # a destroy needs no more of it
        shutil.copy(self.root / "__main__.py", checkout / "__main__.py")
        (checkout / "Pulumi.yaml").write_text(_project(self.root, config), encoding="utf-8")
        for name in _LINKED:
            if (self.root / name).is_dir():
                _link(checkout / name, self.root / name)
        _link(checkout / ".venv", Path(sys.prefix))
        return checkout

    def keep_salt(self, stack: str) -> None:
        """Keep what the engine wrote into a copied stack file when it made the stack; later copies need it."""
        file = self.checkout(stack) / STACKS_FOLDER / f"Pulumi.{stack}.yaml"
        salt = salt_of(file.read_text(encoding="utf-8"))
        if salt:
            (self.checkout(stack).parent / "salt").write_text(salt, encoding="utf-8")

    def locks(self, stack: str) -> list[Path]:
        """Return the locks that runs of a stack hold, or left behind."""
        return sorted((self.state / ".pulumi" / "locks" / "organization" / PROJECT / stack).glob("*.json"))

    def resources(self, stack: str) -> list[dict[str, Any]]:
        """Return what a stack's state holds; nothing where it was never up."""
        return list(self._deployment(stack).get("resources") or ())

    def pending(self, stack: str) -> list[dict[str, Any]]:
        """Return the operations that were under way when the last run of a stack ended, or its last resume began."""
        path = self.checkout(stack).parent / "pending.json"
        kept = read_json(path) if path.exists() else []
        return [*kept, *(self._deployment(stack).get("pending_operations") or ())]

    def remember(self, stack: str, operations: list[dict[str, Any]]) -> None:
        """Keep pending operations apart from the state, which forgets them when a resume begins; none to forget."""
        path = self.checkout(stack).parent / "pending.json"
        if operations:
            path.write_text(json.dumps(operations), encoding="utf-8")
        else:
            path.unlink(missing_ok=True)

    def stacks(self) -> list[str]:
        """Return the stacks that have a state."""
        found = (self.state / ".pulumi" / "stacks" / PROJECT).glob("*.json")
        return sorted(path.stem for path in found)

    def readers(self, environment: str) -> list[str]:
        """Return the stacks whose state reads what an environment exports, also those whose file is gone."""
        return [
            stack
            for stack in self.stacks()
            for each in self.resources(stack)
            if each["type"] == _REFERENCE and each.get("inputs", {}).get("name", "").rpartition("/")[2] == environment
        ]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the sandbox while a server of this process serves it. Raises CannotRun where another holds it."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CannotRun(
                    f"another command uses {self.path}: wait for it, or run `training-platform sandbox serve` "
                    "beforehand, whose server several commands can share."
                ) from error
            yield

    def _deployment(self, stack: str) -> dict[str, Any]:
        path = self.state / ".pulumi" / "stacks" / PROJECT / f"{stack}.json"
        if not path.exists():
            return {}
        latest = read_json(path)["checkpoint"].get("latest")
        found: dict[str, Any] = latest or {}
        return found


def stack_file(stack: str) -> str:
    """Return where a stack's file is, from the repository."""
    return f"{STACKS_FOLDER}/Pulumi.{stack}.yaml"


def folder_at(root: Path, workspace: Path | None) -> Folder:
    """Return the sandbox of a repository, in a folder of its own where a person named none."""
    return Folder(root, workspace.resolve() if workspace else root / NAME)


def is_alive(pid: int) -> bool:
    """Whether a process is there; one that ended and was not waited for is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z")


def persons_home() -> Path:
    """Return the ``PULUMI_HOME`` of whoever runs this."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")


def _project(root: Path, config: Mapping[str, str]) -> str:
    """Return Pulumi.yaml with ``config`` as the project's own, which leaves stack files as they are."""
    project = yaml.safe_load((root / "Pulumi.yaml").read_text(encoding="utf-8"))
    project["config"] = {**project.get("config", {}), **{key: {"value": value} for key, value in config.items()}}
    return yaml.safe_dump(project, sort_keys=False)


def _link(link: Path, target: Path) -> None:
    if link.is_symlink():
        if link.readlink() == target:
            return
        link.unlink()
    elif link.exists():
        return
    link.symlink_to(target)
