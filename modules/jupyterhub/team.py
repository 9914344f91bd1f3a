"""What a team's namespace has for its notebooks."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_kubernetes import rbac
from pulumi_kubernetes.apiextensions import CustomResource

from modules.filestore.volume import FilestoreVolume, FilestoreVolumeArgs
from modules.manifest import metadata
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.workloads import Notebooks
from training_platform.resources.jupyterhub.profiles import HUB_NAMESPACE, TEAM_HOMES
from training_platform.resources.jupyterhub.teams import HUB_ACCOUNT, RULES, network_policy
from training_platform.resources.network.egress import POLICY_KIND, POLICY_VERSION
from training_platform.resources.scope import Scope

_NAME = "notebooks"


@dataclass(frozen=True, kw_only=True)
class TeamNotebooksArgs:
    """``filestore`` is the instance of all homes, at ``ip``; ``namespace`` is the team's."""

    scope: Scope
    notebooks: Notebooks
    filestore: FilestoreSpec
    ip: pulumi.Input[str]
    namespace: pulumi.Input[str]
    closed: bool  # whether its pods connect to nothing that no policy opens


class TeamNotebooks(pulumi.ComponentResource):
    """The hub's rights in a team's namespace, the ways between hub and notebooks, and the claim on homes.

    Notebooks mount a folder of the team's name, and in it one of the user's: admission holds all pods of the team to
    the first, and nothing keeps people of one team from each other's, as nothing does from each other's jobs.
    """

    def __init__(self, name: str, args: TeamNotebooksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:jupyterhub:TeamNotebooks", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        about = metadata(args.scope, _NAME, args.namespace)
        role = rbac.v1.Role(
            f"{name}-role", metadata=about, rules=[rbac.v1.PolicyRuleArgs(**rule) for rule in RULES], opts=child
        )
        rbac.v1.RoleBinding(
            f"{name}-role-binding",
            metadata=about,
            role_ref=rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind="Role", name=_NAME),
            subjects=[rbac.v1.SubjectArgs(kind="ServiceAccount", name=HUB_ACCOUNT, namespace=HUB_NAMESPACE)],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
        CustomResource(
            f"{name}-network-policy",
            api_version=POLICY_VERSION,
            kind=POLICY_KIND,
            metadata=about,
            spec=network_policy(closed=args.closed),
            opts=child,
        )
        FilestoreVolume(
            f"{name}-homes",
            FilestoreVolumeArgs(
                scope=args.scope,
                key=args.notebooks.filestore,
                spec=args.filestore,
                ip=args.ip,
                namespace=args.namespace,
                claim=TEAM_HOMES,
                size_gib=args.notebooks.home_gib,
            ),
            child,
        )
        self.register_outputs({})
