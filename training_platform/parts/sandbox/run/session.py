"""Runs a command of ``training-platform sandbox`` on one stack, from finding the tools to printing the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pulumi.automation import PulumiCommand
from rich.console import Console
from rich.text import Text

from local_google_cloud.api import endpoints
from training_platform.catalog.nearest import find_nearest
from training_platform.config.model.stack import Stack
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.parts.sandbox.run.engine import (
    ENABLED,
    PARALLEL,
    Command,
    Engine,
    engine_environment,
    open_engine,
    protected,
    pulumi_command,
    require_plugin,
    without_personal_settings,
)
from training_platform.parts.sandbox.run.faults import (
    FaultControl,
    check_faults,
    fault_lines,
    injected,
    remove,
    unprotect,
)
from training_platform.parts.sandbox.run.folder import CannotRun, SandboxFolder
from training_platform.parts.sandbox.run.guardian import guarded
from training_platform.parts.sandbox.run.recovery import (
    Holdings,
    clusters_of,
    find_half_created,
    find_pending_creates,
    holdings,
    lost_creates,
)
from training_platform.parts.sandbox.run.reports import (
    REFERENCE,
    RunFailed,
    Summary,
    Timeline,
    as_json,
    first_interrupt_for_engine,
    live_progress,
    name_of,
    summarize,
)
from training_platform.parts.sandbox.run.servers import Servers, provider_settings, running
from training_platform.parts.sandbox.run.status import kubernetes_notes, quota_rows
from training_platform.parts.sandbox.run.user_cluster import (
    UserCluster,
    chosen_cluster,
    claim,
    created_objects,
    forget_killed_releases,
    program,
    refuse_objects_without_stack,
    release,
)
from training_platform.resources.stack_plan import plannable, stack_plan


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run. Durations are in seconds, keyed by kind of the local cloud, such as ``container.clusters``.

    The run has the permissions of ``member`` in the local cloud, by default those of the owner of the projects.
    """

    durations: Mapping[str, float] = field(default_factory=dict)
    parallel: int = PARALLEL
    member: str | None = None
    crds: Sequence[Path] = ()
    faults: Sequence[str] = ()
    kubeconfig: Path | None = None
    context: str | None = None


@dataclass(frozen=True)
class Session:
    """The tools, servers and options of a run. ``cluster`` is the user's cluster, if it has the Kubernetes objects.

    ``say`` prints the next step.
    """

    folder: SandboxFolder
    workspace: Workspace
    servers: Servers
    command: PulumiCommand
    options: RunOptions
    console: Console
    say: Callable[[str], None]
    cluster: UserCluster | None = None

    def up(self, name: str, *, resume: bool = False) -> Iterator[Summary]:
        """Bring a stack up, after the environment that it reads. Yield a summary for each."""
        stack = self.workspace.stacks[name]
        home = stack.environment_name
        if resume:
            for stack_to_restore in dict.fromkeys((home, name)):
                self.folder.restore(stack_to_restore)
        if stack.team and (self.folder.is_restored(home) or not self.is_up(home)):
            self.say(f"bringing up {home} first, since {name} reads its exports")
            yield from self.up(home, resume=resume)
        self._claim(home, mark=True)
        with self.engine(name) as engine:
            notes = self._resumed(name, engine) if resume else []
            if self.servers.existing:
                notes.append(f"Existing resources of the stack files: {', '.join(self.servers.existing)}.")
            yield self._run(name, "up", engine, notes)

    def preview(self, name: str) -> Summary:
        """Return the changes that ``up`` would make. Raises CannotRun if a team's environment is not up."""
        stack = self.workspace.stacks[name]
        if stack.team and not self.is_up(stack.environment_name):
            raise CannotRun(
                f"{name} reads the exports of {stack.environment_name}, which is not up in this sandbox: run "
                f"`training-platform sandbox up {stack.environment_name}` first."
            )
        self._claim(stack.environment_name)
        with self.engine(name) as engine:
            return self._run(name, "preview", engine)

    def refresh(self, name: str) -> Summary:
        """Update the state from the cloud."""
        self._claim()
        with self.engine(name) as engine:
            return self._run(name, "refresh", engine)

    def destroy(self, name: str, *, lift: bool = False) -> Summary:
        """Delete a stack's resources. Raises RunFailed if it is protected, or an environment with a team that is up."""
        self._refuse_destroy(name, lift)
        self._claim()
        if self.cluster is not None:
            refuse_objects_without_stack(self.cluster, self.folder, name)
        notes = self._lifted(name) if lift else []
        with self.engine(name) as engine:
            summary = self._run(name, "destroy", engine, notes)
        if self.cluster is not None:
            release(self.cluster, self.folder)
        return summary

    def _claim(self, environment: str | None = None, *, mark: bool = False) -> None:
        """Check that the user's cluster, and its objects in any state, belong to the sandbox. Raises CannotRun."""
        if self.cluster is not None:
            names = (name for name, stack in self.workspace.stacks.items() if stack.environment_name == environment)
            plans = (stack_plan(stack, self.workspace) for stack in plannable(self.workspace, names))
            claim(self.cluster, self.folder, [plan for plan in plans if plan is not None], mark=mark)

    def is_up(self, name: str) -> bool:
        """Return True if a stack's state has exports, which are written at the end of a run."""
        resources = self.folder.resources(name)
        return any(resource.get("outputs") for resource in resources if resource["type"] == "pulumi:pulumi:Stack")

    @contextmanager
    def engine(self, name: str, *, lift: bool = False) -> Iterator[Engine]:
        """Yield the engine for a stack, in a new copy of the program."""
        config = {
            **provider_settings(self.servers.durations),
            "gcp:disableGlobalProjectWarning": "true",  # every resource names its project
        }
        stack = self.workspace.stacks.get(name)
        home = stack.environment_name if stack else None

        main = program(self.folder, self.cluster) if self.cluster else None

        def copy() -> Path:
            return self.folder.copy(name, config, lift_protection=home if lift else None, main=main)

        def new() -> None:
            self.folder.keep_salt(name)
            copy()  # undoes the engine's changes, which would shift lines

        checkout = copy()
        if self.folder.holder(name) is None:
            self.folder.remove_partial_files(name)
        environment = engine_environment(
            self.folder,
            checkout,
            self.servers,
            endpoints(self.servers.cloud),
            member=self.options.member,
            cluster=self.cluster,
        )
        with without_personal_settings(), guarded():
            yield open_engine(self.command, checkout, environment, name, parallel=self.options.parallel, new=new)

    def _run(self, name: str, command: Command, engine: Engine, notes: Sequence[str] = ()) -> Summary:
        """Run a command and write its summary, even if it fails."""
        before = self.folder.resources(name)
        faults = FaultControl(self.servers.cloud)
        hits = {fault["fault"]: fault["fired"] for fault in faults.listed()}
        timeline = Timeline()
        problem: RunFailed | None = None
        stack = self.workspace.stacks.get(name)
        with first_interrupt_for_engine(self.say), live_progress(self.console, f"{command} {name}", timeline):
            try:
                engine.perform(command, timeline)
            except RunFailed as error:
                problem = error
        if problem is not None and not timeline.steps:
            raise problem  # it did nothing, so the previous summary stays
        without_events = 0
        if command == "refresh":
            without_events = sum(not resource["custom"] or resource["type"] == REFERENCE for resource in before)
        objects = kubernetes_notes(self.folder, name, self.options.crds, self.cluster)
        summary = summarize(
            name,
            command,
            timeline,
            without_events=without_events,
            failed=problem is not None,
            quotas=quota_rows(self.folder, self.workspace, self.workspace.project_of(stack) if stack else None),
            notes=[*notes, *fault_lines(faults.listed(), hits), *objects],
            file=self.folder.summary(name),
        )
        self.folder.summary(name).write_text(as_json(summary), encoding="utf-8")
        if command == "up":
            self.folder.save_pending(name, timeline.failed_creates if problem else [])
        if problem is not None:
            message = str(problem)
            if timeline.failed_creates:  # a plain ``up`` might collide with the resources that they left behind
                resume = f"`training-platform sandbox up {name} --resume`"
                message += f"\nTo continue: {resume}, which first deletes half-created resources."
            raise RunFailed(message, summary)
        return summary

    def _resumed(self, name: str, engine: Engine) -> list[str]:
        """Continue after a killed run: remove its lock, and import the resources whose creation succeeded."""
        notes = []
        pid = self.folder.holder(name)
        if pid is not None:
            raise CannotRun(f"process {pid} holds the lock of {name} and is still running: end it first.")
        if self.folder.locks(name):
            engine.cancel()
            notes.append("Resumed: removed the lock of the killed run.")
        operations = self.folder.pending(name)
        notes += self._cleared(name, engine, operations)
        if self.cluster is not None:
            for release_name, status in forget_killed_releases(self.cluster, self.folder, operations):
                notes.append(f"Resumed: release {release_name}, left in {status}, will be deployed again.")
        if operations:
            notes += self._imported(name, engine, operations)
        if self.folder.is_restored(name):
            notes.append("Resumed: restored the backup of the broken state.")
            preview = Timeline()
            engine.perform("preview", preview)
            held = self._held(name, preview.creates)
            lost = lost_creates(preview.creates, held.without(self.folder.resources(name)))
            if lost:
                notes += self._imported(name, engine, lost)
            self.folder.forget_broken(name)
        return notes

    def _imported(self, name: str, engine: Engine, operations: list[dict[str, Any]]) -> list[str]:
        """Import the unfinished creations that succeeded, and drop all others."""
        held = self._held(name, operations)
        creates = find_pending_creates(operations, held, clusters_of(self.folder.resources(name)))
        created = [create for create in creates if create.id is not None]
        self.say(f"resuming: {len(created)} of {len(creates)} unfinished creates succeeded")
        self.folder.save_pending(name, operations)
        engine.settle_pending(creates)
        self.folder.save_pending(name, [])
        notes = [f"Resumed: imported {name_of(create.urn)} as {create.id}." for create in created]
        lost = [name_of(create.urn) for create in creates if create.id is None]
        if lost:
            notes.append(f"Resumed: these resources will be created again: {', '.join(lost)}.")
        return notes

    def _cleared(self, name: str, engine: Engine, operations: Sequence[Mapping[str, Any]]) -> list[str]:
        """Delete half-created resources, which failed creations left behind, so that they are created again."""
        broken = find_half_created(self.folder.resources(name), operations, self._held(name, ()))
        for resource in broken:
            remove(self.servers.cloud, resource.id)
        targets = [f"--target={resource.urn}" for resource in broken if resource.in_state]
        if targets:  # `pulumi state delete` refuses resources with dependents, a refresh does not
            engine.run("refresh", "--yes", "--skip-preview", *targets)
        return [f"Resumed: deleted {name_of(resource.urn)}, which was half created." for resource in broken]

    def _held(self, name: str, creates: Iterable[Mapping[str, Any]]) -> Holdings:
        """Return the contents of the local clouds without resources of other stacks.

        For a user's cluster, the contents are only the objects of ``creates``.
        """
        held = holdings(self.folder)
        if self.cluster is not None:
            objects = list(created_objects(self.cluster, self.folder, creates))
            clusters = {"", *clusters_of(self.folder.resources(name)).values()}  # only one has objects there
            ids = {(cluster, type_.rpartition(":")[2], identity) for cluster in clusters for type_, identity in objects}
            held = held._replace(objects=frozenset(ids))
        stacks = (stack for stack in self.folder.stacks() if stack != name)
        return held.without(resource for stack in stacks for resource in self.folder.resources(stack))

    def _refuse_destroy(self, name: str, lift: bool) -> None:
        if not self.folder.resources(name):
            return
        if teams := self.folder.readers(name):
            raise RunFailed(f"{', '.join(teams)} is still up in {name}: destroy it first.")
        names = protected(self.folder.resources(name))
        if names and not lift:
            raise RunFailed(
                f"{name} is protected: {', '.join(names[:5])}{' and others' if len(names) > 5 else ''}. For a real "
                "project, set deletion_protection to false and deploy that first; here, use --lift-protection."
            )

    def _lifted(self, name: str) -> list[str]:
        """Lift all protection of a stack, by an update of its protected resources with ``deletion_protection: false``.

        Without the stack's file, there is no program for this update. Then the state and the local cloud are changed
        directly.
        """
        resources = self.folder.resources(name)
        names = protected(resources)
        if not names:
            return []
        self.say(f"lifting the protection of {len(names)} resources")
        if name not in self.workspace.stacks:
            with self.engine(name) as engine:
                engine.lift()
            for resource in resources:
                if (resource.get("outputs") or {}).get(ENABLED):
                    unprotect(self.servers.cloud, resource["id"])
            return [f"Lifted the protection of {len(names)} resources in the state: {', '.join(names)}."]
        with self.engine(name, lift=True) as engine:
            targets = [resource["urn"] for resource in resources if protected([resource])]
            engine.perform("up", Timeline(), targets)
            engine.unprotect()
        count = f"Lifted the protection of {len(names)} resources, Pulumi's and the API's"
        return [f"{count}, by an update with deletion_protection off: {', '.join(names)}."]


@contextmanager
def session(
    folder: SandboxFolder,
    names: Sequence[str],
    options: RunOptions,
    *,
    console: Console,
    ask: Callable[[str], bool],
    by_state: bool = False,
) -> Iterator[Session]:
    """Find tools, check stacks and start servers. Raises CannotRun, or RunFailed if a stack file is invalid.

    With ``by_state``, a stack that has a state may have no file or an invalid one, since it is going to be destroyed.
    """
    check_faults(options.faults)
    command = pulumi_command(ask)
    require_plugin("gcp")
    cluster = chosen_cluster(folder, options.kubeconfig, options.context)
    if cluster is not None:
        require_plugin("kubernetes")
    workspace = read_stacks(folder.root, [])
    without_file = set()
    if by_state:
        for name in sorted({*names} & {*folder.stacks()}):
            stack = workspace.stacks.get(name)
            if stack is None or _rejections(stack, workspace):
                without_file.add(name)
    _require(workspace, [name for name in names if name not in without_file])
    stacks = {name: stack for name, stack in workspace.stacks.items() if name not in without_file}
    workspace = replace(workspace, stacks=stacks)
    folder.prepare()

    def say(text: str) -> None:
        if console.is_terminal:
            console.print(Text(text, style="dim"))

    with (
        running(folder, workspace, durations=options.durations, crds=options.crds) as servers,
        injected(servers.cloud, options.faults),
    ):
        yield Session(
            folder,
            workspace,
            servers=servers,
            command=command,
            options=options,
            console=console,
            say=say,
            cluster=cluster,
        )


def read_stacks(root: Path, names: Sequence[str]) -> Workspace:
    """Read the stack files. Raises CannotRun for an unknown name, and RunFailed for an invalid file."""
    workspace = read_workspace(root)
    if workspace.unreadable:
        raise CannotRun(" ".join(workspace.unreadable.values()))
    _require(workspace, names)
    return workspace


def _require(workspace: Workspace, names: Iterable[str]) -> None:
    """Raise CannotRun for an unknown stack, and RunFailed if its file or that of its environment is invalid."""
    for name in names:
        stack = workspace.stacks.get(name)
        if stack is None:
            nearest = find_nearest(name, workspace.stacks)
            hint = f" Nearest: {nearest!r}" if nearest else ""
            raise CannotRun(f"{name!r} is not a stack. Allowed: {', '.join(workspace.stacks)}.{hint}")
        if findings := _rejections(stack, workspace):
            raise RunFailed("\n".join(findings))


def _rejections(stack: Stack, workspace: Workspace) -> list[str]:
    home = workspace.stacks.get(stack.environment_name, stack)
    return [str(finding) for read in {stack.name: stack, home.name: home}.values() for finding in read.findings]
