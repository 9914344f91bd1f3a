"""The sandbox's folder: a copy of the program for each stack, Pulumi's state, and the servers' data.

Nothing is written outside this folder. The engine rewrites stack files and keeps its login under ``PULUMI_HOME``, so it
gets copies of the files and its own ``PULUMI_HOME``. Packages that are not written to are linked.
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

from local_google_cloud.api import BrokenFile, read_json
from training_platform.config.model.stack import ENVIRONMENTS, PROJECT, stack_name
from training_platform.config.reading.finding import UserError
from training_platform.config.workspace import STACKS_FOLDER, stack_file
from training_platform.resources.plan import OWN_RESOURCES

NAME: Final = ".sandbox"
SECRET: Final = "sandbox"  # noqa: S105 # replaces every secret, since the key that encrypted it is not used
ENVIRONMENT: Final = f"{PROJECT}:environment"
_REFERENCE: Final = "pulumi:pulumi:StackReference"
_LINKED: Final = ("policies", "training_platform")
_LEFT_OUT: Final = ("encryptionsalt", "encryptedkey", "secretsprovider", ENVIRONMENTS)
"""The engine's keys in stack files: for encryption of the real state, and for Pulumi ESC (not in a local backend)."""
_REAL_CLOUD: Final = re.compile(
    r"gcp:(credentials|accessToken|externalCredentials|impersonate\w+|universeDomain|pollInterval|batching"
    r"|requestTimeout|\w+CustomEndpoint)\Z"
)


class CannotRun(UserError):
    """Raised if a tool, a stack or a precondition is missing, so that the command cannot start. Exit code 2."""


class SandboxFolder:
    """The paths and files of a sandbox. ``root`` is the repository."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root = root
        self.path = path
        self.state = path / "state"  # Pulumi's local backend
        self.home = path / "home"  # PULUMI_HOME, with the user's plugins
        self.cloud = path / "cloud.json"  # the local cloud's resources
        self.kubernetes = path / "kubernetes.json"  # the objects in the clusters
        self.kubeconfig = path / "no-clusters"  # empty, so that the user's clusters are out of reach

    def checkout(self, stack: str) -> Path:
        """Return the folder with the copy of the program in which a stack runs."""
        return self.path / "stacks" / stack / "checkout"

    def summary(self, stack: str) -> Path:
        """Return the path of the summary of a stack's last run."""
        return self.path / "stacks" / stack / "summary.json"

    def prepare(self) -> None:
        """Create the files and folders that all stacks share."""
        self.state.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.kubeconfig.touch()
        (self.path / "gcloud").mkdir(exist_ok=True)
        plugins = self.home / "plugins"
        users_plugins = users_pulumi_home() / "plugins"
        if users_plugins.is_dir() and users_plugins.resolve() != plugins.resolve():
            _link(plugins, users_plugins)

    def remove_partial_files(self, stack: str) -> None:
        """Remove the files of a stack that a killed engine left half-written in its local backend.

        The backend replaces a state atomically, but not the file with its attributes. If that file is empty, the state
        is unreadable (engine 3.259, observed on 2026-11-21); if it is missing, the state is readable.
        """
        stacks = self.state / ".pulumi" / "stacks" / PROJECT
        for path in stacks.glob(f"{stack}.json*"):
            if path.suffix == ".tmp" or (path.suffix == ".attrs" and path.stat().st_size == 0):
                path.unlink()

    def holder(self, stack: str) -> int | None:
        """Return the id of the running process that holds a stack's lock, or None."""
        for path in self.locks(stack):
            pid = read_json(path).get("pid") if path.stat().st_size else None
            if isinstance(pid, int) and is_alive(pid):
                return pid
        return None

    def copy(
        self, stack: str, config: Mapping[str, str], *, lift_protection: str | None = None, main: str | None = None
    ) -> Path:
        """Copy the program and return the folder of the copy. ``config`` is added to the project's configuration.

        ``lift_protection`` names the environment whose ``deletion_protection`` is turned off in the copy. ``main`` is
        the text of a main file that runs the user's program as ``program.py``.
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
            own_file.write_text(f"encryptionsalt: {salt}\n", encoding="utf-8")  # enough for a destroy
        shutil.copy(self.root / "__main__.py", checkout / ("program.py" if main else "__main__.py"))
        if main:
            (checkout / "__main__.py").write_text(main, encoding="utf-8")
        (checkout / OWN_RESOURCES).unlink(missing_ok=True)
        if (self.root / OWN_RESOURCES).is_file():
            shutil.copy(self.root / OWN_RESOURCES, checkout / OWN_RESOURCES)
        # In the project's configuration, ``config`` does not change stack files.
        project = yaml.safe_load((self.root / "Pulumi.yaml").read_text(encoding="utf-8"))
        project["config"] = {**project.get("config", {}), **{key: {"value": value} for key, value in config.items()}}
        (checkout / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False), encoding="utf-8")
        for name in _LINKED:
            if (self.root / name).is_dir():
                _link(checkout / name, self.root / name)
        _link(checkout / ".venv", Path(sys.prefix))
        return checkout

    def keep_salt(self, stack: str) -> None:
        """Save the salt that the engine wrote into the copied file of a new stack, for later copies."""
        file = self.checkout(stack) / stack_file(stack)
        salt = salt_of(file.read_text(encoding="utf-8"))
        if salt:
            (self.checkout(stack).parent / "salt").write_text(salt, encoding="utf-8")

    def locks(self, stack: str) -> list[Path]:
        """Return the locks of a stack's runs, including killed ones."""
        return sorted((self.state / ".pulumi" / "locks" / "organization" / PROJECT / stack).glob("*.json"))

    def resources(self, stack: str) -> list[dict[str, Any]]:
        """Return the resources in a stack's state, or [] if it was never up."""
        return list(self._deployment(stack).get("resources") or ())

    def pending(self, stack: str) -> list[dict[str, Any]]:
        """Return the unfinished operations of a stack's last run, and those saved at the start of its last resume."""
        path = self.checkout(stack).parent / "pending.json"
        saved = read_json(path) if path.exists() else []
        return [*saved, *(self._deployment(stack).get("pending_operations") or ())]

    def save_pending(self, stack: str, operations: list[dict[str, Any]]) -> None:
        """Save pending operations in a separate file, since a resume removes them from the state; [] deletes it."""
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
        """Return the stacks whose state reads an environment's exports, even if they have no stack file."""
        return [
            stack
            for stack in self.stacks()
            for resource in self.resources(stack)
            if resource["type"] == _REFERENCE
            and resource.get("inputs", {}).get("name", "").rpartition("/")[2] == environment
        ]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the sandbox for the servers of this process. Raises CannotRun if another process holds the lock."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CannotRun(
                    f"another command uses {self.path}: wait until it ends. Several commands can share the server of "
                    "`training-platform sandbox serve`."
                ) from error
            yield

    def restore(self, stack: str) -> None:
        """Replace a broken state with the engine's backup, and keep the broken one as ``.broken``.

        The backup is the state before the last write. Raises CannotRun if it is broken too.
        """
        path = self._state(stack)
        backup = self._state(stack, ".bak")
        if path.exists() and not _is_whole(path):
            if not _is_whole(backup):
                raise CannotRun(f"{path} is broken, and so is its backup: delete {self.path} to start again.")
            path.replace(self._state(stack, ".broken"))
            self._state(stack, ".attrs").unlink(missing_ok=True)
            shutil.copy(backup, path)

    def is_restored(self, stack: str) -> bool:
        """Return True if a stack's state is a backup that has not been compared with the cloud yet."""
        return self._state(stack, ".broken").exists()

    def forget_broken(self, stack: str) -> None:
        """Delete the broken state of a stack whose restored state is complete again."""
        self._state(stack, ".broken").unlink(missing_ok=True)

    def _state(self, stack: str, suffix: str = "") -> Path:
        return self.state / ".pulumi" / "stacks" / PROJECT / f"{stack}.json{suffix}"

    def _deployment(self, stack: str) -> dict[str, Any]:
        path = self._state(stack)
        if path.exists() and not _is_whole(path):
            raise CannotRun(
                f"{path} is broken: `training-platform sandbox up {stack} --resume` restores its backup, and imports "
                "resources created since."
            )
        latest: dict[str, Any] = (read_json(path)["checkpoint"].get("latest") if path.exists() else None) or {}
        return latest


def _is_whole(path: Path) -> bool:
    """Return True if a state file can be read."""
    try:
        return isinstance(read_json(path)["checkpoint"], dict)
    except (BrokenFile, KeyError, TypeError):
        return False


def folder_at(root: Path, workspace: Path | None) -> SandboxFolder:
    """Return the sandbox of a repository, by default in its folder ``.sandbox``."""
    return SandboxFolder(root, workspace.resolve() if workspace else root / NAME)


def is_alive(pid: int) -> bool:
    """Return True if a process is running. A zombie is not running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _status(pid)[:1] != ["Z"]


def start_of(pid: int) -> str | None:
    """Return the start time of a process in ticks since boot, or None without /proc.

    It distinguishes the process from a later one with the same id.
    """
    return next(iter(_status(pid)[19:20]), None)


def _status(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat``, starting with the process's state, the third field in proc(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def users_pulumi_home() -> Path:
    """Return the user's ``PULUMI_HOME``."""
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
    """A range of a text, and its replacement."""

    start: int
    end: int
    text: str


def sandboxed(text: str, *, salt: str | None = None, lift_protection: bool = False) -> str:
    """Return a stack file's text for the sandbox, without secrets, credentials and endpoints of a real cloud.

    The text is edited in place, so that findings have the line numbers of the original. ``salt`` is the
    ``encryptionsalt`` of the sandbox's state. ``lift_protection`` turns off the ``deletion_protection`` of an
    environment. Raises CannotRun for a file that is not YAML, or that cannot be edited line by line.
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
    """Return the ``encryptionsalt`` in a stack file, if any."""
    salt = re.search(r"^encryptionsalt: (\S+)$", text, re.MULTILINE)
    return salt[1] if salt else None


def _edits(text: str, root: yaml.MappingNode, lift: bool) -> Iterator[Edit]:
    for key, value in root.value:
        if key.value in _LEFT_OUT:
            yield _comment(text, root, key, value)
    config = next((value for key, value in root.value if key.value == "config"), None)
    if not isinstance(config, yaml.MappingNode):
        return
    for key, value in config.value:
        if _REAL_CLOUD.match(key.value):
            yield _comment(text, config, key, value)
            continue
        for node in _secrets(value):
            start, end = _extent(text, node)
            yield Edit(start, end, text=SECRET)
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
            return Edit(value.start_mark.index, value.end_mark.index, text="false")
    first = section.value[0][0].start_mark
    after = ", " if section.flow_style else "\n" + " " * first.column
    return Edit(first.index, first.index, text=f"deletion_protection: false{after}")


def _comment(text: str, parent: yaml.MappingNode, key: yaml.Node, value: yaml.Node) -> Edit:
    if parent.flow_style:
        raise CannotRun(
            f"{key.value} is in a mapping in braces: write one key per line, so that the sandbox can leave it out."
        )
    start = key.start_mark.index
    _, end = _extent(text, value)
    return Edit(start, end, text="\n".join(f"# {line}" for line in text[start:end].split("\n")))


def _extent(text: str, node: Any) -> tuple[int, int]:
    """Return the start and end of a value. PyYAML's end mark of a block node is at the start of the next node."""
    start = node.start_mark.index
    return start, start + len(text[start : node.end_mark.index].rstrip())
