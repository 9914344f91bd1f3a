"""Runs the Pulumi program without an engine and keeps each request that it makes, as the engine would get it.

The monitor answers as a preview does: inputs are outputs, ids and computed properties are unknown. Every error is
raised, also one that the program's event loop would only log.
"""

from __future__ import annotations

import asyncio
import gc
import json
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pulumi
from google.protobuf import empty_pb2
from pulumi.runtime import mocks, proto, settings
from pulumi.runtime.stack import run_in_stack

from local_google_cloud.kubernetes import plain_struct, wire_struct
from training_platform.config.model.stack import PROJECT, Stack
from training_platform.config.reading.unknown import holds_unknown
from training_platform.resources.stack_resource import PROVIDER_TYPES, UNKNOWN, ResourceKey
from training_platform.resources.team import ORGANIZATION

STACK = "pulumi:pulumi:Stack"
REFERENCE = "pulumi:pulumi:StackReference"


class RecordingMonitor(mocks.MockMonitor):
    """A resource monitor that keeps requests, in order; ``references`` are the outputs that any other stack has."""

    def __init__(self, references: Mapping[str, Any] | None = None) -> None:
        super().__init__(_NoMocks())
        self.registrations: list[Any] = []
        self.reads: list[Any] = []
        self.outputs: dict[str, Any] = {}
        self.component_outputs: dict[ResourceKey, dict[str, Any]] = {}
        self._references = references
        self._keys: dict[str, ResourceKey] = {}
        self._unknown_providers: set[str] = set()

    def key_of(self, urn: str) -> ResourceKey:
        """Return the type and name of a registered or read resource."""
        return self._keys[urn]

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 # the name is Pulumi's
        """Keep the request; of an object whose provider has unknown settings, no output is known."""
        urn = self._urn(request)
        if request.type != STACK:
            self.registrations.append(request)
        if request.type.startswith(PROVIDER_TYPES) and holds_unknown(plain_struct(request.object)):
            self._unknown_providers.add(urn)
        outputs = None if request.provider.rpartition("::")[0] in self._unknown_providers else request.object
        return proto.resource_pb2.RegisterResourceResponse(urn=urn, id="", object=outputs)

    def ReadResource(self, request: Any) -> Any:  # noqa: N802
        """Keep the request; a stack reference has the outputs at hand, or unknown ones."""
        self.reads.append(request)
        properties = request.properties
        if request.type == REFERENCE:
            outputs = UNKNOWN if self._references is None else dict(self._references)
            properties = wire_struct({"name": request.id, "outputs": outputs, "secretOutputNames": []})
        return proto.resource_pb2.ReadResourceResponse(urn=self._urn(request), properties=properties)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        """Keep what the stack exports, and the outputs of its components."""
        key = self._keys[request.urn]
        if key[0] == STACK:
            self.outputs = plain_struct(request.outputs)
        else:
            self.component_outputs[key] = plain_struct(request.outputs)
        return empty_pb2.Empty()

    def _urn(self, request: Any) -> str:
        urn = self.make_urn(request.parent, request.type, request.name)
        assert urn not in self._keys, f"{urn} is registered twice"
        self._keys[urn] = (request.type, request.name)
        return urn


class _NoMocks(mocks.Mocks):
    """Nothing is left for mocks to do; the base class wants one."""

    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError(f"the program calls {args.token}")

    def new_resource(self, args: mocks.MockResourceArgs) -> Any:
        raise AssertionError(f"mocks are asked for {args.typ}")


def run_program(root: Path, stack: Stack, references: Mapping[str, Any] | None = None) -> RecordingMonitor:
    """Run ``__main__.py`` in a folder for one of its stacks, and return the monitor with all requests."""
    config = {key: json.dumps(value) for key, value in stack.config.items()}
    main = str(root / "__main__.py")
    return record(lambda: runpy.run_path(main, run_name="__main__"), stack.name, config, root, references)


def record(
    program: Callable[[], object],
    stack: str = "dev",
    config: Mapping[str, str] | None = None,
    root: Path = Path(),
    references: Mapping[str, Any] | None = None,
) -> RecordingMonitor:
    """Run any program, and return the monitor with all requests. Raises whatever the program raises, now or later."""
    monitor = RecordingMonitor(references)
    features = set(monitor.GetDeploymentInfo(empty_pb2.Empty()).supportedFeatures)  # type: ignore[no-untyped-call]
    settings.configure(
        mocks.MockSettings(  # type: ignore[no-untyped-call]
            monitor=monitor,
            monitor_features=features,
            engine=mocks.MockEngine(None),
            project=PROJECT,
            stack=stack,
            dry_run=True,
            organization=ORGANIZATION,
            root_directory=str(root),
            callbacks=None,
            outputs=set(),
        )
    )
    settings.set_root_resource(None)  # type: ignore[arg-type] # that of an earlier program is in a context variable
    pulumi.runtime.set_all_config(dict(config or {}))
    _run(program)
    return monitor


def _run(program: Callable[[], object]) -> None:
    """Run a program in its own event loop. Raises an error of the program, or else errors of unawaited tasks."""
    errors: list[BaseException] = []

    def keep(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        errors.append(context.get("exception") or AssertionError(context["message"]))

    def without_result() -> None:
        program()

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(keep)
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(run_in_stack(without_result))
        loop.run_until_complete(loop.shutdown_default_executor())
        gc.collect()  # an error that nobody awaited is told when its future is gone
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    if errors:
        raise BaseExceptionGroup("errors that nobody awaited", errors)
