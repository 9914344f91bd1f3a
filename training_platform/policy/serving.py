"""Starts the pack, refuses a config with names that the pack has not, and reads no resource more often than needed.

The engine passes such names over: a misspelt policy would stay at its default level. The SDK has no place to look at a
whole config before the policies run, and turns a resource over anew for each policy, which was three quarters of the
time of the judging: by its public parts it takes 0.77 s of CPU, and here 0.16 s. So its private servicer is
extended, in this file alone, with three of its methods (``_get_enforcement_level``, ``_get_resource_options`` and
``_configure_runtime_settings``); the SDK's version is pinned, and tests of the pack in a process of its own say when
another version works otherwise. A servicer of our own on the engine's Analyzer protocol would have to repeat the SDK's
500 lines of settings, levels, remediations and reports. This file becomes a call of ``PolicyPack`` once the SDK reads a
resource once for all policies, and a pack may refuse a config.
"""

from __future__ import annotations

import gc
import signal
import threading
from contextlib import suppress
from typing import Any, ClassVar, NoReturn

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyPack,
    PolicyResource,
    ResourceValidationArgs,
    deserialize,
    policy,
)

from training_platform.config.reading.finding import printable
from training_platform.config.reading.secrets import marked
from training_platform.policy.pack import Pack, ResourcePolicy
from training_platform.policy.settings import wrong_settings

NAME = "training-platform"
DESCRIPTION = "What Google Cloud, Kueue and the house refuse, on every planned resource"
LOADER = "rules"
"""The thread that loads them."""
_NEW_OBJECTS = 100_000  # before Python looks for cycles; after its 700 it walks resources again and again


def serve(pack: Pack) -> NoReturn:
    """Answer the engine until it ends this process."""
    gc.set_threshold(_NEW_OBJECTS)
    signal.signal(signal.SIGINT, _interrupted)
    CheckedServicer.pack = pack
    policy._PolicyAnalyzerServicer = CheckedServicer  # type: ignore[misc] # noqa: SLF001 # see above
    with suppress(KeyboardInterrupt):
        PolicyPack(NAME, pack.policies, enforcement_level=EnforcementLevel.MANDATORY, description=DESCRIPTION)
    raise SystemExit


class CheckedServicer(policy._PolicyAnalyzerServicer):  # noqa: SLF001 # see above
    """The SDK's servicer with a check of the config before it is taken, and one reading of each resource.

    The request is cleared once it is read: the SDK would turn its resources over for every policy.
    """

    pack: ClassVar[Pack]
    _asked: ClassVar = threading.local()  # the resource that a thread is asked for

    def Analyze(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 # gRPC's name
        """Judge a resource by the policies that it concerns."""
        options = self._get_resource_options(request)
        sent = json_format.MessageToDict(request.properties)
        inputs = deserialize.deserialize_properties(sent)
        arguments = ResourceValidationArgs(request.type, inputs, request.urn, request.name, options, None)
        self.pack.evaluation.read_resource(arguments, tuple(marked(sent)))
        request.ClearField("properties")
        request.ClearField("provider")
        self._asked.resource = request
        try:
            return super().Analyze(request, context)  # type: ignore[no-untyped-call]
        finally:
            self._asked.resource = None

    def AnalyzeStack(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 # gRPC's name
        """Judge a stack; the inputs of its resources were kept as they were judged one by one."""
        evaluation, resources = self.pack.evaluation, dict[str, PolicyResource]()
        for row in request.resources:
            inputs = {} if row.urn in evaluation.seen else _inputs(row)
            options = self._get_resource_options(row)
            resources[row.urn] = PolicyResource(row.type, inputs, row.urn, row.name, options, None, None, [], {})
        for row in request.resources:
            resources[row.urn].dependencies += (resources[urn] for urn in row.dependencies if urn in resources)
        evaluation.read_stacks(resources.values())
        request.ClearField("resources")
        return super().AnalyzeStack(request, context)  # type: ignore[no-untyped-call]

    def Remediate(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 # gRPC's name
        """Remediate a resource; it is read only where a policy's level asks for remediation, which is rare."""
        levels = map(self._get_enforcement_level, self.pack.policies)
        if EnforcementLevel.REMEDIATE not in levels:
            return analyzer_pb2.RemediateResponse()
        return super().Remediate(request, context)  # type: ignore[no-untyped-call]

    def _configure_runtime_settings(self) -> None:
        """Leave them as they were at the start, where no policy reads them; the SDK goes through them in each call."""

    def _get_enforcement_level(self, policy: Policy) -> EnforcementLevel:
        """Return a policy's level; it is off for a resource that it does not concern: the SDK goes on to the next."""
        resource = getattr(self._asked, "resource", None)
        if resource and isinstance(policy, ResourcePolicy) and not policy.concerns(resource.type, resource.urn):
            return EnforcementLevel.DISABLED
        level: EnforcementLevel = super()._get_enforcement_level(policy)
        return level

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 # gRPC's name
        """Take a config, or end the call with all that is wrong with it.

        It is the last that the engine asks before it starts the program: the rules are loaded meanwhile.
        """
        configs = request.policyConfig
        config = {name: json_format.MessageToDict(configs[name].properties) for name in configs}
        if wrong := list(map(str, wrong_settings(config))):
            message = printable("the policy config is wrong: " + "\n  ".join(wrong))
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)
        threading.Thread(target=self.pack.load, name=LOADER, daemon=True).start()
        return super().Configure(request, context)  # type: ignore[no-untyped-call]


def _inputs(message: Any) -> dict[str, Any]:
    """Return a message's properties: unknown values by their marks, secrets by what they hold."""
    return deserialize.deserialize_properties(json_format.MessageToDict(message.properties))


def _interrupted(*_: object) -> NoReturn:
    """End the wait for the engine, once: it may interrupt again while this process ends, which would print where."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
