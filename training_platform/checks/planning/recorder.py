"""Runs a Pulumi program without an engine and records everything that it registers, as a preview would see it.

The recorder takes the place of the engine's resource monitor. It answers as a preview does: inputs come back as
outputs, ids and computed properties stay unknown. Unlike Pulumi's own mocks it keeps what was registered beside the
inputs (``protect``, ``ignoreChanges``, parent, time-outs) and refuses a second resource of the same type and name.

A provider's own preview knows more (names that it makes up, addresses of service accounts) and less (an input read back
as an output, where the provider adds fields to it later). Tests under the engine hold our stacks' plans equal to it.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from types import FrameType
from typing import Any, TypeVar, TypeVarTuple

import pulumi
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import mocks, proto, settings
from pulumi.runtime.stack import run_in_stack

from training_platform.checks.planning.outcome import PlanningError
from training_platform.checks.planning.wire import as_sent, plain, plain_struct, readable, wire_struct
from training_platform.checks.process import ENDING, collector_off
from training_platform.config.model.stack import PROJECT, Stack
from training_platform.config.reading.secrets import SECRETS, marked
from training_platform.config.workspace import Workspace
from training_platform.resources.planned import PROVIDER_TYPES, Planned
from training_platform.views.inputs import holds_unknown

ORGANIZATION = "organization"  # what a self-managed backend calls the one organisation it has
_STACK = "pulumi:pulumi:Stack"
_REFERENCE = "pulumi:pulumi:StackReference"
Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


def plan_stacks(workspace: Workspace, stacks: Iterable[Stack]) -> Iterator[tuple[Stack, Plan]]:
    """Plan stacks one by one, handing each environment's outputs to its teams. Raises PlanningError."""
    references: dict[str, Mapping[str, Any]] = {}
    for stack in stacks:
        plan = plan_stack(workspace.root, stack, references)
        references[reference(stack.name)] = plan.outputs
        yield stack, plan


def plan_stack(root: FilePath, stack: Stack, references: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Plan one stack by running ``__main__.py``. Raises PlanningError."""
    try:
        return record(
            lambda: _run_program(root),
            project=PROJECT,
            stack_name=stack.name,
            config=stack.config,
            references=references,
            root=root,
        )
    except ProgramError as error:
        raise PlanningError(f"stack {stack.name}: {error}.") from error
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{FilePath(last.filename).name}:{last.lineno}"
        raise PlanningError(f"stack {stack.name}: the program stopped at {place}: {error!r}.") from error


def reference(stack: str) -> str:
    """Return the full name by which another stack's program refers to a stack."""
    return f"{ORGANIZATION}/{PROJECT}/{stack}"


def _run_program(root: FilePath) -> None:
    """Run the program with its own folder on the path, as Python and the engine do: ``modules`` is the repository's."""
    sys.path.insert(0, str(root))
    try:
        runpy.run_path(str(root / "__main__.py"), run_name="__main__")
    finally:
        sys.path.remove(str(root))


def record(
    program: Callable[[], object],
    *,
    project: str,
    stack_name: str,
    config: Mapping[str, Any] | None = None,
    references: Mapping[str, Mapping[str, Any]] | None = None,
    root: FilePath = FilePath(),
) -> Plan:
    """Run a program and return its plan.

    ``config`` holds values as a stack file gives them. ``references`` holds the outputs of other stacks by their full
    name (``organization/project/stack``). ``root`` is the folder of ``Pulumi.yaml``. Raises ProgramError for what the
    engine would refuse; errors of the program itself pass through.
    """
    monitor = Recorder(stack_name, references or {})
    settings.configure(_settings(monitor, project, stack_name, root))
    settings.set_root_resource(None)  # type: ignore[arg-type] # the last plan's root survives in a context variable
    pulumi.runtime.set_all_config({key: _text(value) for key, value in (config or {}).items()})
    run_in_loop(run_in_stack(lambda: _finish(program)))
    return monitor.plan


@dataclass
class Plan:
    """What a program registered, in order, and what it exports."""

    resources: list[Planned] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    def of(self, resource_type: str) -> list[Planned]:
        """Return the resources of one type."""
        return [resource for resource in self.resources if resource.type == resource_type]

    def one(self, resource_type: str, name: str | None = None) -> Planned:
        """Return the only resource of a type (and name). Raises LookupError where there is none, or more than one."""
        found = [resource for resource in self.of(resource_type) if name in (None, resource.name)]
        if len(found) != 1:
            there = ", ".join(f"{resource.type} {resource.name}" for resource in found or self.resources)
            raise LookupError(f"{len(found)} resources are {resource_type} {name or ''}; there are: {there}")
        return found[0]


class ProgramError(Exception):
    """A Pulumi program that cannot be planned; the message says what it did."""


def _text(value: Any) -> str:
    """Return a value of the configuration as the engine hands it over: null as no text, else JSON with sorted keys."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


async def _finish(program: Callable[[], object]) -> None:
    """Run a program, and wait for its outputs together: the SDK goes through all of them again after each that comes.

    What the program returns is dropped: anything awaitable in it is not ours to await. Errors are the SDK's to raise.
    """
    program()
    while waiting := [output for output in settings.SETTINGS.outputs if not output.done()]:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        if any(not output.cancelled() and output.exception() for output in done):
            return


def _settings(monitor: Recorder, project: str, stack_name: str, root: FilePath) -> mocks.MockSettings:
    features = set(monitor.GetDeploymentInfo(empty_pb2.Empty()).supportedFeatures)  # type: ignore[no-untyped-call]
    return mocks.MockSettings(  # type: ignore[no-untyped-call]
        monitor=monitor,
        monitor_features=features,
        engine=mocks.MockEngine(None),
        project=project,
        stack=stack_name,
        dry_run=True,
        organization=ORGANIZATION,
        root_directory=str(root),
        callbacks=None,
        outputs=set(),
    )


class Recorder(mocks.MockMonitor):
    """A resource monitor that records the whole registration."""

    def __init__(self, stack_name: str, references: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(_NoMocks())
        self.plan = Plan()
        self._stack_name = stack_name
        self._references = references
        self._urns: dict[str, tuple[str, str]] = {}
        self._keys: set[tuple[str, str]] = set()
        self._blind: set[str] = set()  # providers whose own settings are not known yet

    def RegisterResource(self, request: Any) -> Any:
        """Record a resource and answer as a preview does: inputs as outputs, no id.

        Nothing comes back of a resource whose provider has settings that are not known yet: it cannot be asked.
        """
        urn = self.make_urn(request.parent, request.type, request.name)
        self._urns[urn] = (request.type, request.name)
        if request.type != _STACK:
            self._record(request)
        if request.type.startswith(PROVIDER_TYPES) and holds_unknown(self.plan.resources[-1].inputs):
            self._blind.add(urn)
        outputs = None if _provider_urn(request) in self._blind else request.object
        return proto.resource_pb2.RegisterResourceResponse(urn=urn, id="", object=outputs)

    def ReadResource(self, request: Any) -> Any:
        """Answer a stack reference from the outputs at hand, and any other read with the request's own properties."""
        urn = self.make_urn(request.parent, request.type, request.name)
        self._urns[urn] = (request.type, request.name)
        properties: struct_pb2.Struct = request.properties
        if request.type == _REFERENCE:
            if request.id not in self._references:
                raise ProgramError(f"stack {request.id} has no outputs to read: plan or deploy it first")
            outputs = dict(self._references[request.id])
            properties = wire_struct({"name": request.id, "outputs": outputs, "secretOutputNames": []})
        return proto.resource_pb2.ReadResourceResponse(urn=urn, properties=properties)

    def RegisterResourceOutputs(self, request: Any) -> Any:
        """Keep what the stack exports."""
        if self._urns.get(request.urn, ("", ""))[0] == _STACK:
            self.plan.outputs = plain_struct(request.outputs)
        return empty_pb2.Empty()

    def _record(self, request: Any) -> None:
        key = (request.type, request.name)
        if key in self._keys:
            raise ProgramError(f"two resources are {request.type} {request.name}")
        self._keys.add(key)
        parent = self._urns.get(request.parent)
        sent = {key: as_sent(value) for key, value in request.object.fields.items()}
        secrets = tuple(marked(sent))
        self.plan.resources.append(
            Planned(
                stack=self._stack_name,
                type=request.type,
                name=request.name,
                inputs=readable(sent),
                custom=request.custom,
                parent=None if parent is None or parent[0] == _STACK else parent,
                options=self._options(request) | ({SECRETS: secrets} if secrets else {}),
                inputs_from={
                    name: self._known(given.urns) for name, given in request.propertyDependencies.items() if given.urns
                },
            )
        )

    def _known(self, urns: Iterable[str]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted({self._urns[urn] for urn in urns if urn in self._urns}))

    def _options(self, request: Any) -> dict[str, Any]:
        times = request.customTimeouts
        options = {
            "protect": request.protect,
            "retainOnDelete": request.retainOnDelete,
            "deleteBeforeReplace": request.deleteBeforeReplace,
            "ignoreChanges": list(request.ignoreChanges),
            "replaceOnChanges": list(request.replaceOnChanges),
            "replacementTrigger": plain(request.replacement_trigger),
            "dependsOn": list(self._known(request.dependencies)),
            "provider": self._urns.get(_provider_urn(request), (None, None))[1],
            "customTimeouts": {k: getattr(times, k) for k in ("create", "update", "delete") if getattr(times, k)},
        }
        return {name: value for name, value in options.items() if value}


class _NoMocks(mocks.Mocks):
    """Nothing is left for mocks to do; the base class wants one."""

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:
        raise ProgramError(f"the program calls {args.token}, which only a cloud can answer")

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError


def _provider_urn(request: Any) -> str:
    return str(request.provider.rpartition("::")[0])  # what follows is the provider's id


def run_in_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a loop of its own; what it leaves waiting ends with it, and would warn in the next plan.

    Raises KeyboardInterrupt after an interrupt, once the program's own code is through.
    """
    loop = _Loop()
    asyncio.set_event_loop(loop)
    try:
        with collector_off(), _no_stack_traces(), _interrupts_stop(loop):
            try:
                return loop.run_until_complete(main)
            finally:
                loop.run_until_complete(_settle())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _settle() -> None:
    """End all tasks that are left."""
    waiting = asyncio.all_tasks() - {asyncio.current_task()}
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


class _Loop(asyncio.SelectorEventLoop):
    """A loop that calls the recorder where the SDK hands a call over to a thread, to wait for an engine's answer.

    A thread that has nothing to wait for costs a tenth of a plan.
    """

    def __init__(self) -> None:
        super().__init__()
        # Errors that nobody awaited repeat, for every output, the one that was raised.
        self.set_exception_handler(lambda _loop, _context: None)

    def run_in_executor(
        self, _executor: Executor | None, func: Callable[[*Arguments], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """Return a future that is done: with the result of ``func``, or with its error."""
        answer: asyncio.Future[Result] = self.create_future()
        try:
            answer.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 # whoever awaits the future raises it
            answer.set_exception(error)
        return answer


@contextmanager
def _interrupts_stop(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let an interrupt stop a loop, and raise it then: raised within the SDK it would be caught, and the plan go on."""
    if threading.current_thread() is not threading.main_thread():  # others never get one
        yield
        return
    came: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        loop.call_soon_threadsafe(loop.stop)

    handled = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    before = {number: handler for number, handler in handled.items() if callable(handler)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except RuntimeError:  # what a stopped loop raises
        if not came:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
        raise KeyboardInterrupt


@contextmanager
def _no_stack_traces() -> Iterator[None]:
    """Let the SDK see one frame of the stack: for the engine's messages it describes all of them for each resource.

    That is a seventh of a plan, for nothing. Errors keep their tracebacks; whoever prints one does so afterwards.
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = 1
    try:
        yield
    finally:
        sys.tracebacklimit = before
