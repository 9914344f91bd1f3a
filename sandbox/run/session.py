"""A command of ``training-platform sandbox`` on one stack, from tools and servers to the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pulumi.automation import PulumiCommand
from rich.console import Console

from checks.planning import PlanningError, plan_order, plan_stacks
from modules.catalog.nearest import find_nearest
from modules.config.stack import PROJECT, Stack
from modules.config.workspace import Workspace, read_workspace
from modules.gke.kubernetes_provider import RENDER_TO
from sandbox.cloud.endpoints import endpoints
from sandbox.run import progress, tools
from sandbox.run.critical_path import needs_of, reversed_needs
from sandbox.run.engine import PARALLEL, Engine, open_engine
from sandbox.run.environment import engine_environment, without_personal_settings
from sandbox.run.folder import Folder
from sandbox.run.problems import CannotRun, RunFailed
from sandbox.run.protection import protected
from sandbox.run.resume import clusters_of, holdings, pending_creates
from sandbox.run.servers import Servers, poll_interval, running
from sandbox.run.status import quota_rows
from sandbox.run.summary import Summary, as_json, summarize
from sandbox.run.timeline import Timeline

STOOD_IN: Final = "A stand-in for the kubernetes provider kept the Kubernetes objects and Helm releases"
RENDERED: Final = "Kubernetes objects are in {}; Helm releases are not rendered"


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a person can say about a run; durations are seconds by kind of the local cloud, ``container.clusters``."""

    durations: Mapping[str, float] = field(default_factory=dict)
    parallel: int = PARALLEL
    crds: Sequence[Path] = ()
    render: Path | None = None


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
            "gcp:pollInterval": poll_interval(self.servers.durations),
            "gcp:disableGlobalProjectWarning": "true",  # every resource here names its project
        }
        if self.options.render is not None:
            config[f"{PROJECT}:{RENDER_TO}"] = str(self.options.render.resolve())
        home = self.workspace.stacks[name].environment_name

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
        timeline = Timeline()
        problem: RunFailed | None = None
        total = self._total(name, command, len(before))
        with progress.patient(self.say), progress.shown(self.console, f"{command} {name}", timeline, total):
            try:
                call(timeline)
            except RunFailed as error:
                problem = error
        if problem is not None and not timeline.steps:
            raise problem  # nothing was done, and the summary of the run before stays
        needs = needs_of([*before, *self.folder.resources(name)])
        summary = summarize(
            name,
            command,
            timeline,
            reversed_needs(needs) if command == "destroy" else needs,
            failed=problem is not None,
            quotas=quota_rows(self.folder, self.workspace, self.workspace.project_of(self.workspace.stacks[name])),
            notes=[*notes, self._kubernetes_note()],
            file=self.folder.summary(name),
        )
        self.folder.summary(name).write_text(as_json(summary), encoding="utf-8")
        if problem is not None:
            raise RunFailed(str(problem), summary)
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

    def _kubernetes_note(self) -> str:
        if self.options.render is not None:
            return RENDERED.format(self.options.render) + "."
        judged = f", judged by the CRDs in {', '.join(map(str, self.options.crds))}" if self.options.crds else ""
        return f"{STOOD_IN}{judged}."

    def _resumed(self, name: str, engine: Engine) -> list[str]:
        """Take over from a killed run: lift its lock, and take what it had begun to create into the state."""
        notes = self._unlocked(name, engine)
        operations = self.folder.pending(name)
        if not operations:
            return notes
        found = pending_creates(operations, holdings(self.folder), clusters_of(self.folder.resources(name)))
        made = [each for each in found if each.id is not None]
        self.say(f"resuming: {len(made)} of {len(found)} creates under way had taken place")
        self.folder.remember(name, operations)
        engine.settle_pending(found)
        self.folder.remember(name, [])
        notes += [f"Resumed: imported {each.name} as {each.id}." for each in made]
        lost = [each.name for each in found if each.id is None]
        return notes + ([f"Resumed: to be created anew: {', '.join(lost)}."] if lost else [])

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
        teams = [
            each.name
            for each in self.workspace.stacks.values()
            if each.team and each.environment_name == name and self.folder.resources(each.name)
        ]
        if teams:
            raise RunFailed(f"{', '.join(teams)} is still up in {name}: destroy it first.")
        names = protected(self.folder.resources(name))
        if names and not lift:
            raise RunFailed(
                f"{name} is protected: {', '.join(names[:5])}{' and others' if len(names) > 5 else ''}. For a real "
                "project, set deletion_protection to false and deploy that first; here, --lift-protection does it."
            )

    def _lifted(self, name: str) -> list[str]:
        """Take all protection from a stack, by an update of what is protected with ``deletion_protection: false``."""
        resources = self.folder.resources(name)
        names = protected(resources)
        if not names:
            return []
        self.say(f"lifting the protection of {len(names)} resources")
        with self.engine(name, lift=True) as engine:
            engine.up(Timeline(), target=[each["urn"] for each in resources if protected([each])])
            engine.unprotect()
        said = f"Lifted the protection of {len(names)} resources, Pulumi's and the API's"
        return [f"{said}, by an update with deletion_protection off: {', '.join(names)}."]


@contextmanager
def session(
    folder: Folder, names: Sequence[str], options: Options, *, console: Console, ask: Callable[[str], bool]
) -> Iterator[Session]:
    """Find tools, check stacks, start servers. Raises CannotRun, or RunFailed where a stack file is rejected."""
    command = tools.pulumi_command(ask)
    tools.require_gcp()
    if options.render is not None:
        tools.require_kubernetes()
    workspace = read_stacks(folder.root, names)
    folder.prepare()
    stand_in = options.render is None
    with running(folder, workspace, durations=options.durations, crds=options.crds, stand_in=stand_in) as servers:
        yield Session(folder, workspace, servers, command, options, console, progress.status(console))


def read_stacks(root: Path, names: Sequence[str]) -> Workspace:
    """Read the stack files. Raises CannotRun for a name that is none, RunFailed where the model rejects a file."""
    workspace = read_workspace(root)
    if workspace.unreadable:
        raise CannotRun(" ".join(workspace.unreadable))
    for name in names:
        stack = workspace.stacks.get(name)
        if stack is None:
            nearest = find_nearest(name, workspace.stacks)
            hint = f" Nearest: {nearest!r}" if nearest else ""
            raise CannotRun(f"{name!r} is no stack. Allowed: {', '.join(workspace.stacks)}.{hint}")
        _refuse_rejected(stack, workspace)
    return workspace


def _refuse_rejected(stack: Stack, workspace: Workspace) -> None:
    home = workspace.stacks.get(stack.environment_name, stack)
    findings = [str(each) for one in {stack.name: stack, home.name: home}.values() for each in one.findings]
    if findings:
        raise RunFailed("\n".join(findings))
