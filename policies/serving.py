"""Starts the pack, and refuses a config with names that the pack has not.

The engine passes such names over: a misspelt policy would stay at its default level. The SDK has no place to look at a
whole config before the policies run, so its private servicer is extended; the SDK's version is pinned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.protobuf import json_format
from pulumi_policy import EnforcementLevel, Policy, PolicyPack, policy

from policies.settings import wrong_settings

NAME = "training-platform"
DESCRIPTION = "What Google Cloud, Kueue and the house refuse, on every planned resource"


def serve(policies: Sequence[Policy]) -> NoReturn:
    """Answer the engine until it ends this process."""
    policy._PolicyAnalyzerServicer = servicer(policies)  # type: ignore[misc] # noqa: SLF001 # see above
    PolicyPack(NAME, list(policies), enforcement_level=EnforcementLevel.MANDATORY, description=DESCRIPTION)
    raise SystemExit


def servicer(policies: Sequence[Policy]) -> type[policy._PolicyAnalyzerServicer]:
    """Return the SDK's servicer with a check of the config before it is taken."""

    class Checked(policy._PolicyAnalyzerServicer):  # noqa: SLF001 # see above
        def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 # gRPC's name
            given = request.policyConfig
            config = {name: json_format.MessageToDict(given[name].properties) for name in given}
            if wrong := wrong_settings(policies, config):
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the policy config is wrong: " + "\n  ".join(wrong))
            return super().Configure(request, context)  # type: ignore[no-untyped-call]

    return Checked
