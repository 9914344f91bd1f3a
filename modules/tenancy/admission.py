"""What the API server of one cluster refuses in namespaces of teams, beyond what their roles leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from modules.manifest import metadata
from training_platform.catalog import IMAGES
from training_platform.resources.admission.jobs import JobKind
from training_platform.resources.admission.policies import policies
from training_platform.resources.admission.policy import API_VERSION
from training_platform.resources.scope import Scope


@dataclass(frozen=True, kw_only=True)
class AdmissionArgs:
    """``images`` are the stack file's places of what nodes and the daemons of GPUDirect run.

    ``sources`` are what images of teams' pods begin with, where the environment says so; ``kinds`` those of operators.
    """

    scope: Scope
    images: Mapping[str, str]
    sources: Sequence[str] = ()
    kinds: Sequence[JobKind] = ()


class Admission(pulumi.ComponentResource):
    """The ValidatingAdmissionPolicies of one cluster, each with its binding: they hold in every team's namespace."""

    def __init__(self, name: str, args: AdmissionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:tenancy:Admission", name, {}, opts)
        for policy in policies({**IMAGES, **args.images}, args.sources, args.kinds):
            short = policy.name.removeprefix("training-platform-")
            refused = CustomResource(
                f"{name}-{short}",
                api_version=API_VERSION,
                kind="ValidatingAdmissionPolicy",
                metadata=metadata(args.scope, policy.name),
                spec=policy.spec,
                opts=pulumi.ResourceOptions(parent=self),
            )
            CustomResource(
                f"{name}-{short}-binding",
                api_version=API_VERSION,
                kind="ValidatingAdmissionPolicyBinding",
                metadata=metadata(args.scope, policy.name),
                spec=policy.binding,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[refused]),
            )
        self.register_outputs({})
