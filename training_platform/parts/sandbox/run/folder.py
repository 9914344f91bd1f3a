"""The sandbox's own folder: a copy of the program for each stack, Pulumi's state, and the servers' data.

Nothing outside it is written. The engine rewrites stack files and keeps its log-in under ``PULUMI_HOME``, so it gets
copies of the files and a home of its own; packages that nobody writes to are links.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from training_platform.config.model.stack import PROJECT, stack_name
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import STACKS_FOLDER, stack_file
from training_platform.parts.sandbox.files import BrokenFile, read_json

NAME: Final = ".sandbox"
SECRET: Final = "sandbox"  # noqa: S105 # in the place of every secret: the key that encrypted it is not asked for
ENVIRONMENT: Final = f"{PROJECT}:environment"
_REFERENCE: Final = "pulumi:pulumi:StackReference"
_LINKED: Final = ("modules", "policies", "training_platform")
_ENGINES_OWN: Final = ("encryptionsalt", "encryptedkey", "secretsprovider")
_REAL_CLOUD: Final = re.compile(
    r"gcp:(credentials|accessToken|externalCredentials|impersonate\w+|universeDomain|pollInterval|batching"
    r"|requestTimeout|\w+CustomEndpoint)\Z"
)


class CannotRun(UserError):
    """Nothing was tried: a tool, a stack, or something before it is missing. The command ends with exit code 2."""


class SandboxFolder:
    """The paths of a sandbox, and what is in its files; ``root`` is the repository."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root = root
        self.path = path
        self.state = path / "state"  # Pulumi's local backend
        self.home = path / "home"  # PULUMI_HOME; its plugins are the person's own
        self.cloud = path / "cloud.json"  # the local cloud's resources
        self.kubernetes = path / "kubernetes.json"  # the objects in the clusters
        self.api_servers = path / "api-servers"  # the data of the clusters' API servers, where the sandbox has them
        self.kubeconfig = path / "no-clusters"  # an empty one, so that the person's own clusters stay out of reach

    def checkout(self, stack: str) -> Path:
        """The copy of the program in which a stack runs."""
        return self.path / "stacks" / stack / "checkout"

    def summary(self, stack: str) -> Path:
        """The summary of a stack's last run."""
        return self.path / "stacks" / stack / "summary.json"

    def prepare(self) -> None:
        """Create the files and folders that all stacks share."""
        self.state.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.kubeconfig.touch()
        (self.path / "gcloud").mkdir(exist_ok=True)
        plugins, own = self.home / "plugins", persons_home() / "plugins"
        if own.is_dir() and own.resolve() != plugins.resolve():
            _link(plugins, own)

    def mend(self, stack: str) -> None:
        """Remove the files of a stack that a killed engine left half-written in its local backend.

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
        salt_file = checkout.parent / "salt"
        salt = salt_file.read_text(encoding="utf-8") if salt_file.exists() else None
        shutil.rmtree(stacks, ignore_errors=True)
        shutil.copytree(self.root / STACKS_FOLDER, stacks)
        for path in stacks.glob("Pulumi.*.yaml"):
            own_salt = salt if stack_name(path) == stack else None
            lift = stack_name(path) == lift_protection
            text = sandboxed(path.read_text(encoding="utf-8"), salt=own_salt, lift_protection=lift)
            path.write_text(text, encoding="utf-8")
        if salt and not (own_file := checkout / stack_file(stack)).exists():
            own_file.write_text(f"encryptionsalt: {salt}\n", encoding="utf-8")  # a destroy needs no more of it
        shutil.copy(self.root / "__main__.py", checkout / "__main__.py")
        # With ``config`` as the project's own, stack files stay as they are.
        project = yaml.safe_load((self.root / "Pulumi.yaml").read_text(encoding="utf-8"))
        project["config"] = {**project.get("config", {}), **{key: {"value": value} for key, value in config.items()}}
        (checkout / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False), encoding="utf-8")
        for name in _LINKED:
            if (self.root / name).is_dir():
                _link(checkout / name, self.root / name)
        _link(checkout / ".venv", Path(sys.prefix))
        return checkout

    def keep_salt(self, stack: str) -> None:
        """Keep the salt that the engine wrote into a copied stack file when it created the stack, for later copies."""
        file = self.checkout(stack) / stack_file(stack)
        salt = salt_of(file.read_text(encoding="utf-8"))
        if salt:
            (self.checkout(stack).parent / "salt").write_text(salt, encoding="utf-8")

    def locks(self, stack: str) -> list[Path]:
        """Return the locks that runs of a stack hold, or left behind."""
        return sorted((self.state / ".pulumi" / "locks" / "organization" / PROJECT / stack).glob("*.json"))

    def resources(self, stack: str) -> list[dict[str, Any]]:
        """Return the resources of a stack's state; none where it was never up."""
        return list(self._deployment(stack).get("resources") or ())

    def pending(self, stack: str) -> list[dict[str, Any]]:
        """Return the operations that were under way when the last run of a stack ended, or its last resume began."""
        path = self.checkout(stack).parent / "pending.json"
        remembered = read_json(path) if path.exists() else []
        return [*remembered, *(self._deployment(stack).get("pending_operations") or ())]

    def remember(self, stack: str, operations: list[dict[str, Any]]) -> None:
        """Keep pending operations apart from the state, which forgets them when a resume begins; none to forget."""
        path = self.checkout(stack).parent / "pending.json"
        if operations:
            path.write_text(json.dumps(operations), encoding="utf-8")
        else:
            path.unlink(missing_ok=True)

    def stacks(self) -> list[str]:
        """Return the stacks that have a state."""
        states = (self.state / ".pulumi" / "stacks" / PROJECT).glob("*.json")
        return sorted(path.stem for path in states)

    def readers(self, environment: str) -> list[str]:
        """Return the stacks whose state reads an environment's exports, also those without a file."""
        return [
            stack
            for stack in self.stacks()
            for resource in self.resources(stack)
            if resource["type"] == _REFERENCE
            and resource.get("inputs", {}).get("name", "").rpartition("/")[2] == environment
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

    def restore(self, stack: str) -> None:
        """Put the engine's backup in the place of a state that cannot be read; that one is kept as ``.broken``.

        The backup is one write older. Raises CannotRun where it cannot be read either.
        """
        path, backup = self._state(stack), self._state(stack, ".bak")
        if path.exists() and not _is_whole(path):
            if not _is_whole(backup):
                raise CannotRun(f"{path} is broken, and there is no whole backup: delete {self.path} to begin anew.")
            path.replace(self._state(stack, ".broken"))
            self._state(stack, ".attrs").unlink(missing_ok=True)
            shutil.copy(backup, path)

    def is_restored(self, stack: str) -> bool:
        """Whether a stack's state is a backup that was not yet compared with the cloud."""
        return self._state(stack, ".broken").exists()

    def forget_broken(self, stack: str) -> None:
        """Delete the broken state of a stack whose backup is complete by now."""
        self._state(stack, ".broken").unlink(missing_ok=True)

    def _state(self, stack: str, suffix: str = "") -> Path:
        return self.state / ".pulumi" / "stacks" / PROJECT / f"{stack}.json{suffix}"

    def _deployment(self, stack: str) -> dict[str, Any]:
        path = self._state(stack)
        if path.exists() and not _is_whole(path):
            raise CannotRun(
                f"{path} is broken: `training-platform sandbox up {stack} --resume` restores its backup, and imports "
                "what was created since."
            )
        latest: dict[str, Any] = (read_json(path)["checkpoint"].get("latest") if path.exists() else None) or {}
        return latest


def _is_whole(path: Path) -> bool:
    """Whether a state can be read."""
    try:
        return isinstance(read_json(path)["checkpoint"], dict)
    except (BrokenFile, KeyError, TypeError):
        return False


def folder_at(root: Path, workspace: Path | None) -> SandboxFolder:
    """Return the sandbox of a repository, in a folder of its own where a person named none."""
    return SandboxFolder(root, workspace.resolve() if workspace else root / NAME)


def is_alive(pid: int) -> bool:
    """Whether a process is there; one that ended and was not waited for is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _status(pid)[:1] != ["Z"]


def start_of(pid: int) -> str | None:
    """Return when a process started, in ticks since boot, by which a reused id is known; None without /proc."""
    return next(iter(_status(pid)[19:20]), None)


def _status(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` after the program's name, from the state on: proc(5) counts it as 3."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def persons_home() -> Path:
    """Return the ``PULUMI_HOME`` of whoever runs this."""
    return Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")


def _link(link: Path, target: Path) -> None:
    if link.is_symlink():
        if link.readlink() == target:
            return
        link.unlink()
    elif link.exists():
        return
    link.symlink_to(target)


class Edit(NamedTuple):
    """A part of the text, and its replacement."""

    start: int
    end: int
    text: str


def sandboxed(text: str, *, salt: str | None = None, lift_protection: bool = False) -> str:
    """Return a stack file for the sandbox: without secrets, credentials and endpoints of a real cloud.

    The text is edited in place, so that findings name the lines of the file that the person wrote. ``salt`` is the
    ``encryptionsalt`` that its state was created with. ``lift_protection`` turns an environment's
    ``deletion_protection`` off. Raises CannotRun for a file that is not YAML, or is written so that it cannot be
    edited.
    """
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise CannotRun(f"a stack file is not YAML: {error}") from error
    edits = list(_edits(text, root, lift_protection)) if isinstance(root, yaml.MappingNode) else []
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text if salt is None else f"{text.rstrip()}\nencryptionsalt: {salt}\n"


def salt_of(text: str) -> str | None:
    """Return the ``encryptionsalt`` that the engine wrote into a stack file."""
    salt = re.search(r"^encryptionsalt: (\S+)$", text, re.MULTILINE)
    return salt[1] if salt else None


def _edits(text: str, root: yaml.MappingNode, lift: bool) -> Iterator[Edit]:
    yield from (_comment(text, root, key, value) for key, value in root.value if key.value in _ENGINES_OWN)
    config = next((value for key, value in root.value if key.value == "config"), None)
    if not isinstance(config, yaml.MappingNode):
        return
    for key, value in config.value:
        if _REAL_CLOUD.match(key.value):
            yield _comment(text, config, key, value)
            continue
        yield from (Edit(*_extent(text, node), SECRET) for node in _secrets(value))
        if lift and key.value == ENVIRONMENT and isinstance(value, yaml.MappingNode) and value.value:
            yield _unprotected(value)


def _secrets(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        if [key.value for key, _ in node.value] == ["secure"]:
            yield node
            return
        for _, value in node.value:
            yield from _secrets(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _secrets(item)


def _unprotected(section: yaml.MappingNode) -> Edit:
    for key, value in section.value:
        if key.value == "deletion_protection":
            return Edit(value.start_mark.index, value.end_mark.index, "false")
    first = section.value[0][0].start_mark
    after = ", " if section.flow_style else "\n" + " " * first.column
    return Edit(first.index, first.index, f"deletion_protection: false{after}")


def _comment(text: str, parent: yaml.MappingNode, key: yaml.Node, value: yaml.Node) -> Edit:
    if parent.flow_style:
        raise CannotRun(
            f"{key.value} stands in a mapping in braces; write one key a line, so that a copy can leave it out."
        )
    start, end = key.start_mark.index, _extent(text, value)[1]
    return Edit(start, end, "\n".join(f"# {line}" for line in text[start:end].split("\n")))


def _extent(text: str, node: Any) -> tuple[int, int]:
    """Return where a value begins and ends; a block node's own end is where the next thing begins."""
    start, end = node.start_mark.index, node.end_mark.index
    return start, start + len(text[start:end].rstrip())
