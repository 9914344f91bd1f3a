"""The real engine, called through Pulumi's Automation API, for one stack in the sandbox's copy of the program.

The engine has none of the user's accounts and no network access. Its tools are the released Pulumi CLI and plugins,
from PATH or from Pulumi's own folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pulumi.automation import LocalWorkspace, PulumiCommand, Stack
from pulumi.automation._stack import ImportResource  # a parameter of a public method, and exported nowhere
from pulumi.automation.errors import CommandError, ConcurrentUpdateError, InvalidVersionError, StackNotFoundError
from semver import VersionInfo

from training_platform.parts.sandbox.run.folder import CannotRun, SandboxFolder, users_pulumi_home
from training_platform.parts.sandbox.run.guardian import MARK, end_marked
from training_platform.parts.sandbox.run.recovery import PendingCreate
from training_platform.parts.sandbox.run.reports import RunFailed, Timeline, name_of
from training_platform.parts.sandbox.run.servers import TOKEN, Servers
from training_platform.parts.sandbox.run.user_cluster import UserCluster, cluster_variables

# More operations than any graph here is wide, so that operations wait only for their dependencies.
PARALLEL: Final = 1000
PASSPHRASE: Final = "sandbox"  # noqa: S105 # the state has no real secrets
CLI: Final = "https://www.pulumi.com/docs/install/"
OLDEST_CLI: Final = "3.260.0"
"""The oldest Pulumi CLI that the tests have run. Pulumi.yaml makes older versions of the CLI refuse to run."""
# Inputs of the gcp provider: a cluster's is only in the state, Filestore's is in the API too.
ENABLED: Final = "deletionProtectionEnabled"
API_FIELDS: Final = ("deletionProtection", ENABLED)
_SIGNAL_SECONDS: Final = 0.5  # a signal that comes just before a wait is seen after it
_ENGINES_REFUSAL: Final = re.compile(r"marked for protection|because it is protected")
# Requests to it are refused at once: port 9 is the discard service, which machines no longer run.
_NOWHERE: Final = "http://127.0.0.1:9"
_PERSONAL: Final = re.compile(
    r"(PULUMI|GOOGLE|GCLOUD|CLOUDSDK|GCE|HELM)_|KUBECONFIG\Z|(HTTPS?|ALL|NO)_PROXY\Z", re.IGNORECASE
)


Result = TypeVar("Result")
Command = Literal["up", "preview", "refresh", "destroy"]


@dataclass(frozen=True)
class Engine:
    """The engine for one stack. Each method runs a command until it ends, and raises RunFailed if it fails."""

    stack: Stack
    parallel: int = PARALLEL

    def perform(self, command: Command, timeline: Timeline, target: list[str] | None = None) -> None:
        """Run ``up``, ``preview``, ``refresh`` or ``destroy``. ``target`` limits the command to these URNs."""
        call: Callable[..., object] = getattr(self.stack, command)
        options = {"parallel": self.parallel, "on_event": timeline.take, "color": "never", "suppress_progress": True}
        _run(timeline, lambda: call(target=target, **options))

    def cancel(self) -> None:
        """Remove the lock of a killed run."""
        _run(Timeline(), self.stack.cancel)

    def settle_pending(self, creates: Iterable[PendingCreate]) -> None:
        """Remove pending operations from the state, and import the resources whose creation succeeded.

        ``pulumi refresh --import-pending-creates`` would do this, but 3.259 drops its arguments (tried on 2026-11-21).
        So this method uses ``pulumi import``.
        """
        self.run("refresh", "--yes", "--skip-preview", "--clear-pending-creates", f"--parallel={self.parallel}")
        created = [create for create in creates if create.id is not None]
        state = self.stack.export_stack().deployment or {}
        urns = {resource["urn"] for resource in state.get("resources", ())}
        missing = [create for create in created if create.urn not in urns]
        if missing:
            _run(Timeline(), lambda: self._import(missing))
        if created:
            _run(Timeline(), lambda: self._restore_inputs(created))

    def _import(self, creates: Sequence[PendingCreate]) -> None:
        """Import resources with their parents and providers. Resources without a parent get the stack as parent."""
        urns = {create.parent for create in creates if "::pulumi:pulumi:Stack::" not in create.parent}
        urns |= {create.provider for create in creates}
        names = {urn: f"r{index}" for index, urn in enumerate(sorted(urns - {""}))}
        resources: list[ImportResource] = []
        for create in creates:
            resource: ImportResource = {"type": create.type, "name": name_of(create.urn), "id": create.id or ""}
            if create.parent in names:
                resource["parent"] = names[create.parent]
            if create.provider in names:
                resource["provider"] = names[create.provider]
            resources.append(resource)
        table = {name: urn for urn, name in names.items()}
        self.stack.import_resources(resources=resources, name_table=table, protect=False, generate_code=False)

    def _restore_inputs(self, creates: Sequence[PendingCreate]) -> None:
        """Restore the inputs that were recorded when the creation of a resource began.

        An import uses the API's values as inputs. A field with ignored changes would keep these values permanently, but
        the provider rejects the upgrade settings that GKE chooses for a flex-start pool.
        """
        state = self.stack.export_stack()
        inputs = {create.urn: create.inputs for create in creates if create.inputs}
        for resource in (state.deployment or {}).get("resources", ()):
            if resource["urn"] in inputs:
                resource["inputs"] = inputs[resource["urn"]]
                resource.pop("importID", None)
        self.stack.import_stack(state)

    def lift(self) -> None:
        """Remove all deletion protection from the state: Pulumi's own, and that of the APIs."""
        state = self.stack.export_stack()
        for resource in (state.deployment or {}).get("resources", ()):
            resource["protect"] = False
            for values in (resource.get("inputs") or {}, resource.get("outputs") or {}):
                values.update({name: False for name in API_FIELDS if values.get(name) is True})
        self.stack.import_stack(state)

    def unprotect(self) -> None:
        """Remove Pulumi's protection from every resource in the state."""
        self.run("state", "unprotect", "--all", "--yes")

    def run(self, *args: str) -> str:
        """Run a command that the Automation API does not offer, and return its output."""
        workspace = self.stack.workspace
        environment = dict(workspace.env_vars)
        printed: list[str] = []

        def call() -> None:
            command = [*args, "--stack", self.stack.name]
            printed.append(workspace.pulumi_command.run(command, workspace.work_dir, environment).stdout)

        _run(Timeline(), call)
        return printed[0]


def open_engine(
    command: PulumiCommand,
    checkout: Path,
    environment: Mapping[str, str],
    name: str,
    *,
    parallel: int,
    new: Callable[[], None],
) -> Engine:
    """Return the engine for a stack. If the stack does not exist, create it and then call ``new``."""
    workspace = LocalWorkspace(work_dir=str(checkout), env_vars=dict(environment), pulumi_command=command)
    try:
        stack = uninterrupted(lambda: Stack.select(name, workspace))
    except StackNotFoundError:
        stack = uninterrupted(lambda: Stack.create(name, workspace))
        new()
    except CommandError as error:
        raise RunFailed(_last_lines(str(error))) from error
    return Engine(stack, parallel)


def _run(timeline: Timeline, call: Callable[[], object]) -> None:
    try:
        uninterrupted(call)
    except ConcurrentUpdateError as error:
        raise RunFailed(
            "the stack is locked: another run is in progress, or was killed. If none is in progress, run this command "
            "with --resume."
        ) from error
    except CommandError as error:
        raise RunFailed(with_remedy("\n".join(timeline.errors)) or _last_lines(str(error))) from error


def uninterrupted(call: Callable[[], Result]) -> Result:
    """Call the Automation API and return the result. On an interrupt, end the engine and wait for the call.

    An interrupt inside the call would close the engine's pipes, which other threads read, and the engine would
    continue.
    """
    with ThreadPoolExecutor(1) as thread:
        try:
            running = thread.submit(call)
            while not running.done():
                wait([running], _SIGNAL_SECONDS)
        except KeyboardInterrupt:
            end_marked(f"{MARK}={os.getpid()}")
            raise
    return running.result()


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-20:])


def with_remedy(message: str) -> str:
    """Add the stack file's field to the engine's message about protection, which only names a program's option."""
    if not _ENGINES_REFUSAL.search(message):
        return message
    return (
        f"{message.rstrip()}\nTo lift the protection, set deletion_protection: false in the section that is deleted. "
        "Set it in the same change as a replacement, but in an earlier deployment than a removal: docs/changes.md."
    )


def protected(resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the logical names of resources in a state that Pulumi or an API protects from deletion."""
    names = []
    for resource in resources:
        stays = resource.get("external") or resource.get("retainOnDelete")  # no run deletes it
        outputs = {} if stays else resource.get("outputs") or {}
        if resource.get("protect") or any(outputs.get(name) is True for name in API_FIELDS):
            names.append(name_of(resource["urn"]))
    return names


def engine_environment(
    folder: SandboxFolder,
    checkout: Path,
    servers: Servers,
    endpoints: Mapping[str, str],
    *,
    member: str | None = None,
    cluster: UserCluster | None = None,
) -> dict[str, str]:
    """Return the engine's variables. ``endpoints`` are settings of the gcp provider: ``gcp:fileCustomEndpoint``.

    The run has the permissions of ``member`` in the local cloud, by default those of the owner of the projects. With a
    ``cluster`` of the user, the released Kubernetes plugin runs, with the user's network.

    Endpoints are variables instead of configuration, since configuration is saved in the state. If they were saved and
    the port changed, every run would find the provider changed, and a destroy would call the old port.
    """
    variables = {
        MARK: str(os.getpid()),
        "PULUMI_BACKEND_URL": folder.state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_GCP_SKIP_REGION_VALIDATION": "true",
        "PULUMI_HOME": str(folder.home),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PYTHONPATH": str(checkout),  # the copy, even if the package is installed elsewhere
        "GOOGLE_OAUTH_ACCESS_TOKEN": f"as:{member}" if member else TOKEN,
        "CLOUDSDK_CONFIG": str(folder.path / "gcloud"),
        "GCE_METADATA_HOST": _NOWHERE.removeprefix("http://"),
        "KUBECONFIG": str(folder.kubeconfig),
        "HTTP_PROXY": _NOWHERE,
        "HTTPS_PROXY": _NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
    }
    if cluster is None:
        variables["PULUMI_DEBUG_PROVIDERS"] = f"kubernetes:{servers.kubernetes}"
    else:
        variables |= cluster_variables(cluster)
    return variables | {variable(setting): url for setting, url in endpoints.items()}


def variable(setting: str) -> str:
    """Return the variable for a gcp setting.

    For ``gcp:vertexAiCustomEndpoint``, it is ``GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT``.
    """
    name = setting.removeprefix("gcp:")
    return "GOOGLE_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


@contextmanager
def without_personal_settings() -> Iterator[None]:
    """Hide the user's accounts, proxies and Pulumi settings from processes that start inside the block."""
    hidden = {name: value for name, value in os.environ.items() if _PERSONAL.match(name)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


def pulumi_command(may_install: Callable[[str], bool]) -> PulumiCommand:
    """Return the CLI: from PATH, else the one that an earlier run installed, else a newly installed one.

    ``may_install`` decides whether to download a version. Raises CannotRun with a message about how to get the CLI.
    """
    sdk_version = version("pulumi")
    installed = Path.home() / ".pulumi" / "versions" / sdk_version
    try:
        if shutil.which("pulumi"):
            return PulumiCommand(version=VersionInfo.parse(OLDEST_CLI))
        if (installed / "bin" / "pulumi").exists():
            return PulumiCommand(root=str(installed))
    except (InvalidVersionError, OSError, subprocess.SubprocessError) as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        raise CannotRun(f"the Pulumi CLI does not work: {reason}. See {CLI}.") from error
    if not may_install(sdk_version):
        raise CannotRun(f"the Pulumi CLI is not on PATH: install version {OLDEST_CLI} or later from {CLI}.")
    try:
        return PulumiCommand.install()
    except Exception as error:
        raise CannotRun(
            f"the Pulumi CLI is not on PATH and could not be downloaded: install version {OLDEST_CLI} or later on a "
            f"machine with network access, from {CLI}, and put its folder on PATH."
        ) from error


def require_plugin(name: str) -> None:
    """Raise CannotRun if a resource plugin is missing."""
    if not has_plugin(name):
        command = f"pulumi plugin install resource {name} v{version(f'pulumi-{name}')}"
        raise CannotRun(f"the {name} plugin is neither on PATH nor installed: run `{command}`.")


def has_plugin(name: str) -> bool:
    """Return True if a resource plugin is on PATH, or if Pulumi's folder contains any version of it."""
    folder = users_pulumi_home() / "plugins"
    return shutil.which(f"pulumi-resource-{name}") is not None or any(folder.glob(f"resource-{name}-v*/"))
