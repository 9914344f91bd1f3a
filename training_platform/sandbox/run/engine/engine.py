"""The real engine, through Pulumi's Automation API: one stack, in the sandbox's copy of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pulumi.automation import LocalWorkspace, PulumiCommand, Stack
from pulumi.automation._stack import ImportResource  # a parameter of a public method, and exported nowhere
from pulumi.automation.errors import CommandError, ConcurrentUpdateError, StackNotFoundError

from training_platform.sandbox.run.engine.protection import API_FIELDS, with_way_out
from training_platform.sandbox.run.problems import RunFailed
from training_platform.sandbox.run.recovery.pending_creates import Pending
from training_platform.sandbox.run.reports.timeline import Timeline

# More operations than any graph here is wide, so that only needs make one wait for another.
PARALLEL: Final = 1000


@dataclass(frozen=True)
class Engine:
    """The engine for one stack; each method runs one command to its end, and raises RunFailed where it fails."""

    stack: Stack
    parallel: int = PARALLEL

    def up(self, timeline: Timeline, *, target: list[str] | None = None) -> None:
        """Create and change what the program asks for; ``target`` limits it to some URNs."""
        _run(timeline, lambda: self.stack.up(target=target, **self._options(timeline)))

    def preview(self, timeline: Timeline) -> None:
        """Say what an ``up`` would do."""
        _run(timeline, lambda: self.stack.preview(**self._options(timeline)))

    def refresh(self, timeline: Timeline) -> None:
        """Take what the cloud holds into the state."""
        _run(timeline, lambda: self.stack.refresh(**self._options(timeline)))

    def destroy(self, timeline: Timeline) -> None:
        """Delete everything of the stack."""
        _run(timeline, lambda: self.stack.destroy(**self._options(timeline)))

    def cancel(self) -> None:
        """Take away the lock of a run that was killed."""
        _run(Timeline(), self.stack.cancel)

    def settle_pending(self, found: Iterable[Pending]) -> None:
        """Forget pending operations, and take those creates into the state that took place.

        ``pulumi refresh --import-pending-creates`` is meant for this, but 3.259 drops what it is given (tried on
        2026-11-21), so ``pulumi import`` does it.
        """
        self.run("refresh", "--yes", "--skip-preview", "--clear-pending-creates", f"--parallel={self.parallel}")
        made = [each for each in found if each.id is not None]
        there = {each["urn"] for each in (self.stack.export_stack().deployment or {}).get("resources", ())}
        wanted = [each for each in made if each.urn not in there]
        if wanted:
            _run(Timeline(), lambda: self._import(wanted))
        if made:
            _run(Timeline(), lambda: self._restore_inputs(made))

    def _import(self, made: Sequence[Pending]) -> None:
        """Import resources under their parents, by their providers; no parent is the stack itself."""
        urns = {each.parent for each in made if _is_named(each.parent)} | {each.provider for each in made}
        names = {urn: f"r{index}" for index, urn in enumerate(sorted(urns - {""}))}
        resources: list[ImportResource] = []
        for each in made:
            resource: ImportResource = {"type": each.type, "name": each.name, "id": each.id or ""}
            if each.parent in names:
                resource["parent"] = names[each.parent]
            if each.provider in names:
                resource["provider"] = names[each.provider]
            resources.append(resource)
        table = {name: urn for urn, name in names.items()}
        self.stack.import_resources(resources=resources, name_table=table, protect=False, generate_code=False)

    def _restore_inputs(self, made: Sequence[Pending]) -> None:
        """Put back the inputs that were written down when the create began.

        An import takes what the API answers for inputs. Of a field whose changes the program ignores, that would stay
        for good: a flex-start pool's upgrade settings, which GKE chooses, are none that the provider takes.
        """
        state = self.stack.export_stack()
        inputs = {each.urn: each.inputs for each in made}
        for resource in (state.deployment or {}).get("resources", ()):
            if resource["urn"] in inputs:
                resource["inputs"] = inputs[resource["urn"]]
                resource.pop("importID", None)
        self.stack.import_stack(state)

    def lift(self) -> None:
        """Take every protection from the state, Pulumi's and what it has of the APIs'."""
        state = self.stack.export_stack()
        for resource in (state.deployment or {}).get("resources", ()):
            resource["protect"] = False
            for values in (resource.get("inputs") or {}, resource.get("outputs") or {}):
                values.update({name: False for name in API_FIELDS if values.get(name) is True})
        self.stack.import_stack(state)

    def unprotect(self) -> None:
        """Take Pulumi's protection from every resource of the state."""
        self.run("state", "unprotect", "--all", "--yes")

    def run(self, *args: str) -> str:
        """Run a command that the Automation API has no method for, and return what it printed."""
        workspace = self.stack.workspace
        command = workspace.pulumi_command
        environment = dict(workspace.env_vars)
        printed: list[str] = []

        def call() -> None:
            given = [*args, "--stack", self.stack.name]
            printed.append(command.run(given, workspace.work_dir, environment).stdout)

        _run(Timeline(), call)
        return printed[0]

    def _options(self, timeline: Timeline) -> dict[str, Any]:
        return {"parallel": self.parallel, "on_event": timeline.take, "color": "never", "suppress_progress": True}


def open_engine(
    command: PulumiCommand,
    checkout: Path,
    environment: Mapping[str, str],
    name: str,
    *,
    parallel: int,
    new: Callable[[], None],
) -> Engine:
    """Return the engine for a stack, which is made where there is none; then ``new`` is called."""
    workspace = LocalWorkspace(work_dir=str(checkout), env_vars=dict(environment), pulumi_command=command)
    try:
        stack = Stack.select(name, workspace)
    except StackNotFoundError:
        stack = Stack.create(name, workspace)
        new()
    except CommandError as error:
        raise RunFailed(_last_words(str(error))) from error
    return Engine(stack, parallel)


def _is_named(parent: str) -> bool:
    return bool(parent) and "::pulumi:pulumi:Stack::" not in parent


def _run(timeline: Timeline, call: Callable[[], object]) -> None:
    try:
        call()
    except ConcurrentUpdateError as error:
        raise RunFailed(
            "an earlier run was killed, or is still under way: the stack is locked. If none is, run the same command "
            "with --resume."
        ) from error
    except CommandError as error:
        raise RunFailed(with_way_out("\n".join(timeline.errors)) or _last_words(str(error))) from error


def _last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-20:])
