"""A command of ``training-platform sandbox`` on one stack, from tools and servers to the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pulumi.automation import PulumiCommand
from rich.console import Console

from training_platform.catalog.nearest import find_nearest
from training_platform.checks.planning.order import PlanningError, plan_order
from training_platform.checks.planning.stack_plan import plan_stacks
from training_platform.config.model.stack import Stack
from training_platform.config.workspace import Workspace, read_workspace
from training_platform.sandbox.cloud.endpoints import endpoints
from training_platform.sandbox.run.engine import tools
from training_platform.sandbox.run.engine.engine import PARALLEL, Engine, open_engine
from training_platform.sandbox.run.engine.environment import engine_environment, without_personal_settings
from training_platform.sandbox.run.engine.protection import ENABLED, protected
from training_platform.sandbox.run.faults import Faults, check_scenario, fault_lines, playing, remove, unprotect
from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.kubernetes import api_server_programs, kubernetes_notes
from training_platform.sandbox.run.problems import CannotRun, RunFailed
from training_platform.sandbox.run.recovery.half_made import half_made, without_others
from training_platform.sandbox.run.recovery.pending_creates import Holdings, clusters_of, holdings, pending_creates
from training_platform.sandbox.run.reports import progress
from training_platform.sandbox.run.reports.critical_path import needs_of, reversed_needs
from training_platform.sandbox.run.reports.status import quota_rows
from training_platform.sandbox.run.reports.summary import Summary, as_json, summarize
from training_platform.sandbox.run.reports.timeline import Timeline
from training_platform.sandbox.run.servers import Servers, provider_settings, running


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a person can say about a run; durations are seconds by kind of the local cloud, ``container.clusters``."""

    durations: Mapping[str, float] = field(default_factory=dict)
    parallel: int = PARALLEL
    crds: Sequence[Path] = ()
    api_server: bool = False
    scenario: Path | None = None


@dataclass(frozen=True)
class Session:
    """Everything that a run needs, found and started. ``say`` tells a person what comes next."""

    folder: Folder
    workspace: Workspace
    servers: Servers
    command: PulumiCommand
    options: Options
    console: Console
    say: Callable[[str], None]

    def up(self, name: str, *, resume: bool = False) -> Iterator[Summary]:
        """Bring a stack up, and before it the environment that it reads; yields a summary for each."""
        stack = self.workspace.stacks[name]
        if stack.team and not self.is_up(stack.environment_name):
            self.say(f"{name} reads what {stack.environment_name} exports: bringing that up first")
            yield from self.up(stack.environment_name, resume=resume)
        with self.engine(name) as engine:
            notes = self._resumed(name, engine) if resume else []
            yield self._run(name, "up", engine.up, notes=notes)

    def preview(self, name: str) -> Summary:
        """Say what an ``up`` would do. Raises CannotRun where a team's environment is not up."""
        self._require_environment(name)
        with self.engine(name) as engine:
            return self._run(name, "preview", engine.preview)

    def refresh(self, name: str) -> Summary:
        """Take what the cloud holds into the state."""
        with self.engine(name) as engine:
            return self._run(name, "refresh", engine.refresh)

    def destroy(self, name: str, *, lift: bool = False) -> Summary:
        """Delete everything of a stack. Raises RunFailed where it is protected, or a team still lives in it."""
        self._refuse_destroy(name, lift)
        notes = self._lifted(name) if lift else []
        with self.engine(name) as engine:
            return self._run(name, "destroy", engine.destroy, notes=notes)

    def is_up(self, name: str) -> bool:
        """Whether a stack's state has what the program exports, which is written last."""
        resources = self.folder.resources(name)
        return any(each.get("outputs") for each in resources if each["type"] == "pulumi:pulumi:Stack")

    @contextmanager
    def engine(self, name: str, *, lift: bool = False) -> Iterator[Engine]:
        """Give the engine for a stack, in a fresh copy of the program."""
        config = {
            **provider_settings(self.servers.durations),
            "gcp:disableGlobalProjectWarning": "true",  # every resource here names its project
        }
        stack = self.workspace.stacks.get(name)
        home = stack.environment_name if stack else None

        def copy() -> Path:
            return self.folder.copy(name, config, lift_protection=home if lift else None)

        def new() -> None:
            self.folder.keep_salt(name)
            copy()  # without the engine's changes, which would move lines

        checkout = copy()
        if self.folder.holder(name) is None:
            self.folder.mend(name)
        environment = engine_environment(self.folder, checkout, self.servers, endpoints(self.servers.cloud))
        with without_personal_settings():
            yield open_engine(self.command, checkout, environment, name, parallel=self.options.parallel, new=new)

    def _run(self, name: str, command: str, call: Callable[[Timeline], None], notes: Sequence[str] = ()) -> Summary:
        """Run a command and leave its summary in the folder; where it fails, the summary is left all the same."""
        before = self.folder.resources(name)
        faults = Faults(self.servers.cloud)
        hits = {each["name"]: each["fired"] for each in faults.listed()}
        timeline = Timeline()
        problem: RunFailed | None = None
        total = self._total(name, command, len(before))
        stack = self.workspace.stacks.get(name)
        with progress.patient(self.say), progress.shown(self.console, f"{command} {name}", timeline, total):
            try:
                call(timeline)
            except RunFailed as error:
                problem = error
        if problem is not None and not timeline.steps:
            raise problem  # nothing was done, and the summary of the run before stays
        needs = needs_of([*before, *self.folder.resources(name)])
        objects = kubernetes_notes(self.folder, name, self.options.crds, self.servers.controllers)
        summary = summarize(
            name,
            command,
            timeline,
            reversed_needs(needs) if command == "destroy" else needs,
            failed=problem is not None,
            quotas=quota_rows(self.folder, self.workspace, self.workspace.project_of(stack) if stack else None),
            notes=[*notes, *fault_lines(faults.listed(), hits), *objects],
            file=self.folder.summary(name),
        )
        self.folder.summary(name).write_text(as_json(summary), encoding="utf-8")
        if command == "up":
            self.folder.remember(name, timeline.failed_creates if problem else [])
        if problem is not None:
            raise RunFailed(str(problem) + _way_on(name, timeline), summary)
        return summary

    def _total(self, name: str, command: str, kept: int) -> int | None:
        """Return how many resources a run will look at; planned offline where a person watches and nobody knows."""
        if kept or not self.console.is_terminal or command not in {"up", "preview"}:
            return kept or None
        try:
            plans = {each.name: plan for each, plan in plan_stacks(self.workspace, plan_order(self.workspace, [name]))}
        except PlanningError:
            return None  # the engine runs into the same, and says more
        return len(plans[name].resources)

    def _resumed(self, name: str, engine: Engine) -> list[str]:
        """Take over from a killed run: lift its lock, and take what it had begun to create into the state."""
        notes = self._unlocked(name, engine)
        operations = self.folder.pending(name)
        notes += self._cleared(name, engine, operations)
        if not operations:
            return notes
        found = pending_creates(operations, self._held(name), clusters_of(self.folder.resources(name)))
        made = [each for each in found if each.id is not None]
        self.say(f"resuming: {len(made)} of {len(found)} creates under way had taken place")
        self.folder.remember(name, operations)
        engine.settle_pending(found)
        self.folder.remember(name, [])
        notes += [f"Resumed: imported {each.name} as {each.id}." for each in made]
        lost = [each.name for each in found if each.id is None]
        return notes + ([f"Resumed: to be created anew: {', '.join(lost)}."] if lost else [])

    def _cleared(self, name: str, engine: Engine, operations: Sequence[Mapping[str, Any]]) -> list[str]:
        """Delete what failed creates left half-made, so that it is made anew."""
        found = half_made(self.folder.resources(name), operations, self._held(name))
        for each in found:
            remove(self.servers.cloud, each.id)
        gone = [f"--target={each.urn}" for each in found if each.in_state]
        if gone:  # a refresh forgets what others depend on too, which `pulumi state delete` refuses
            engine.run("refresh", "--yes", "--skip-preview", *gone)
        return [f"Resumed: deleted {each.name}, which was half made." for each in found]

    def _held(self, name: str) -> Holdings:
        """Return what the stand-ins hold, but for what other stacks own."""
        others = [each for stack in self.folder.stacks() if stack != name for each in self.folder.resources(stack)]
        return without_others(holdings(self.folder), others)

    def _unlocked(self, name: str, engine: Engine) -> list[str]:
        pid = self.folder.holder(name)
        if pid is not None:
            raise CannotRun(
                f"the run that holds the lock of {name} is still under way, as process {pid}: end it first."
            )
        if not self.folder.locks(name):
            return []
        engine.cancel()
        return ["Resumed: lifted the lock of the killed run."]

    def _require_environment(self, name: str) -> None:
        stack = self.workspace.stacks[name]
        if stack.team and not self.is_up(stack.environment_name):
            raise CannotRun(
                f"{name} reads what {stack.environment_name} exports, which is not up in this sandbox: run "
                f"`training-platform sandbox up {stack.environment_name}` first."
            )

    def _refuse_destroy(self, name: str, lift: bool) -> None:
        if not self.folder.resources(name):
            return
        if teams := self.folder.readers(name):
            raise RunFailed(f"{', '.join(teams)} is still up in {name}: destroy it first.")
        names = protected(self.folder.resources(name))
        if names and not lift:
            raise RunFailed(
                f"{name} is protected: {', '.join(names[:5])}{' and others' if len(names) > 5 else ''}. For a real "
                "project, set deletion_protection to false and deploy that first; here, --lift-protection does it."
            )

    def _lifted(self, name: str) -> list[str]:
        """Take all protection from a stack, by an update of what is protected with ``deletion_protection: false``.

        Where the stack's file is gone, no program can say that: it is said in the state, and to the local cloud.
        """
        resources = self.folder.resources(name)
        names = protected(resources)
        if not names:
            return []
        self.say(f"lifting the protection of {len(names)} resources")
        if name not in self.workspace.stacks:
            with self.engine(name) as engine:
                engine.lift()
            for each in resources:
                if (each.get("outputs") or {}).get(ENABLED):
                    unprotect(self.servers.cloud, each["id"])
            return [f"Lifted the protection of {len(names)} resources in the state: {', '.join(names)}."]
        with self.engine(name, lift=True) as engine:
            engine.up(Timeline(), target=[each["urn"] for each in resources if protected([each])])
            engine.unprotect()
        said = f"Lifted the protection of {len(names)} resources, Pulumi's and the API's"
        return [f"{said}, by an update with deletion_protection off: {', '.join(names)}."]


@contextmanager
def session(
    folder: Folder,
    names: Sequence[str],
    options: Options,
    *,
    console: Console,
    ask: Callable[[str], bool],
    kept: bool = False,
) -> Iterator[Session]:
    """Find tools, check stacks, start servers. Raises CannotRun, or RunFailed where a stack file is rejected.

    ``kept`` says that a stack without a file, or with one that is rejected, will do that has a state, to be destroyed.
    """
    if options.scenario is not None:
        check_scenario(options.scenario)
    command = tools.pulumi_command(ask)
    tools.require_gcp()
    workspace = read_stacks(folder.root, [])
    by_state = {name for name in names if kept and name in folder.stacks() and not _is_taken(name, workspace)}
    _require(workspace, [name for name in names if name not in by_state])
    kept_stacks = {name: stack for name, stack in workspace.stacks.items() if name not in by_state}
    workspace = replace(workspace, stacks=kept_stacks)
    folder.prepare()
    programs = api_server_programs(folder, asked_for=options.api_server)
    with (
        running(folder, workspace, durations=options.durations, crds=options.crds, programs=programs) as servers,
        playing(servers.cloud, options.scenario),
    ):
        yield Session(folder, workspace, servers, command, options, console, progress.status(console))


def read_stacks(root: Path, names: Sequence[str]) -> Workspace:
    """Read the stack files. Raises CannotRun for an unknown name, RunFailed where the model rejects a file."""
    workspace = read_workspace(root)
    if workspace.unreadable:
        raise CannotRun(" ".join(workspace.unreadable))
    _require(workspace, names)
    return workspace


def _require(workspace: Workspace, names: Iterable[str]) -> None:
    """Raise CannotRun for a name that is no stack's, RunFailed where the model rejects one or its environment."""
    for name in names:
        stack = workspace.stacks.get(name)
        if stack is None:
            nearest = find_nearest(name, workspace.stacks)
            hint = f" Nearest: {nearest!r}" if nearest else ""
            raise CannotRun(f"{name!r} is not a stack. Allowed: {', '.join(workspace.stacks)}.{hint}")
        if findings := _rejections(stack, workspace):
            raise RunFailed("\n".join(findings))


def _is_taken(name: str, workspace: Workspace) -> bool:
    """Return whether a stack has a file that the model takes, with that of its environment."""
    stack = workspace.stacks.get(name)
    return stack is not None and not _rejections(stack, workspace)


def _rejections(stack: Stack, workspace: Workspace) -> list[str]:
    home = workspace.stacks.get(stack.environment_name, stack)
    return [str(each) for one in {stack.name: stack, home.name: home}.values() for each in one.findings]


def _way_on(name: str, timeline: Timeline) -> str:
    """Return what to do once creates have failed; another ``up`` might find in its way what they left behind."""
    if not timeline.failed_creates:
        return ""
    return f"\nTo go on: `training-platform sandbox up {name} --resume`, which first clears away what is half made."
