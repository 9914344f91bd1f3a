"""Starts the pack, and refuses a config with names that the pack has not.

The engine passes such names over: a misspelt policy would stay at its default level. The SDK has no place to look at a
whole config before the policies run, so its private servicer is extended; the SDK's version is pinned.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.protobuf import json_format
from pulumi_policy import EnforcementLevel, Policy, PolicyPack, policy

from training_platform.config.reading.printable import printable
from training_platform.policy.settings import wrong_settings

NAME = "training-platform"
DESCRIPTION = "What Google Cloud, Kueue and the house refuse, on every planned resource"


def serve(policies: Sequence[Policy]) -> NoReturn:
    """Answer the engine until it ends this process."""
    signal.signal(signal.SIGINT, _interrupted)
    policy._PolicyAnalyzerServicer = CheckedServicer  # type: ignore[misc] # noqa: SLF001 # see above
    with suppress(KeyboardInterrupt):
        PolicyPack(NAME, list(policies), enforcement_level=EnforcementLevel.MANDATORY, description=DESCRIPTION)
    raise SystemExit


class CheckedServicer(policy._PolicyAnalyzerServicer):  # noqa: SLF001 # see above
    """The SDK's servicer with a check of the config before it is taken."""

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 # gRPC's name
        """Take a config, or end the call with all that is wrong with it."""
        given = request.policyConfig
        config = {name: json_format.MessageToDict(given[name].properties) for name in given}
        if wrong := list(map(str, wrong_settings(config))):
            said = printable("the policy config is wrong: " + "\n  ".join(wrong))
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, said)
        return super().Configure(request, context)  # type: ignore[no-untyped-call]


def _interrupted(*_: object) -> NoReturn:
    """End the wait for the engine, once: it may interrupt again while this process ends, which would print where."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
