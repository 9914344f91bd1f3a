"""The Google Cloud APIs that a stack calls: enabled before anything that needs them, and kept when the stack goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_gcp import projects

from training_platform.resources.register import api_of
from training_platform.resources.scope import Scope

Transformation = Callable[[pulumi.ResourceTransformationArgs], pulumi.ResourceTransformationResult | None]

# Beside the APIs of what a stack creates: the one that turns a Kubernetes service account into a Google one, and the
# two that take what nodes and controllers write; the one that nodes stream images from.
ENVIRONMENT_APIS = (
    "artifactregistry.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "container.googleapis.com",
    "containerfilesystem.googleapis.com",
    "file.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "storage.googleapis.com",
)
BUDGET_API = "billingbudgets.googleapis.com"  # of an environment with a budget
QUOTA_API = "cloudquotas.googleapis.com"  # of an environment that asks for limits
BACKUP_API = "backupdr.googleapis.com"  # of an environment with backups on a schedule
SERVICES_API = "servicenetworking.googleapis.com"  # of an environment with private service access
DNS_API = "dns.googleapis.com"  # of an environment whose VPC has addresses of its own for Google's APIs
BINARY_API = "binaryauthorization.googleapis.com"  # of an environment with a cluster that asks for it
IAP_API = "iap.googleapis.com"  # of an environment with a gateway for notebooks
LUSTRE_API = "lustre.googleapis.com"  # of an environment with instances of it
SECRETS_API = "secretmanager.googleapis.com"  # of a team with secrets
WORKBENCH_API = "notebooks.googleapis.com"  # of a team with Workbench instances
KMS_API = "cloudkms.googleapis.com"  # of a stack whose environment has keys of its own
# The APIs that encrypt what an environment creates.
ENVIRONMENT_KEY_USERS = ("artifactregistry.googleapis.com", "container.googleapis.com", "file.googleapis.com")
AI_PLATFORM, STORAGE = "aiplatform.googleapis.com", "storage.googleapis.com"
# A team's resources may be in a project of its own; access to the environment's images and clusters is granted from
# the team's stack, and each such grant waits for the API of its kind.
TEAM_APIS = (
    AI_PLATFORM,
    "artifactregistry.googleapis.com",
    BUDGET_API,
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "monitoring.googleapis.com",
    STORAGE,
)


@dataclass(frozen=True, kw_only=True)
class ProjectServicesArgs:
    """What a stack enables."""

    scope: Scope
    apis: tuple[str, ...]  # host names, such as container.googleapis.com


class ProjectServices(pulumi.ComponentResource):
    """The APIs of a stack's project. Two stacks that share a project may both enable an API: it stays enabled."""

    by_api: dict[str, projects.Service]

    def __init__(self, name: str, args: ProjectServicesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:project:ProjectServices", name, {}, opts)
        self.by_api = {
            api: projects.Service(
                f"{name}-{short_api(api)}",
                project=args.scope.project,
                service=api,
                # Others in the project may use the API, and switching one off deletes what it holds.
                disable_on_destroy=False,
                disable_dependent_services=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for api in sorted(set(args.apis))
        }
        self.register_outputs({})


def short_api(api: str) -> str:
    """Return an API's name without its domain: ``container`` for ``container.googleapis.com``."""
    return api.removesuffix(".googleapis.com")


def depend_on_services(services: ProjectServices) -> Transformation:
    """Return a stack transformation that lets every Google Cloud resource wait for its API.

    Raises LookupError, when such a resource is created, if its API is not among the stack's.
    """

    def after_its_service(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        api = api_of(args.type_)
        if api is None:
            return None
        if api not in services.by_api:
            raise LookupError(f"{args.type_} needs {api}, which is not among the APIs that this stack enables")
        return wait_for(args, [services.by_api[api]])

    return after_its_service


def wait_for(
    args: pulumi.ResourceTransformationArgs, resources: Sequence[pulumi.Resource]
) -> pulumi.ResourceTransformationResult:
    """Return a resource as it is, but created after ``resources``, beside what it waits for already."""
    after = pulumi.ResourceOptions(depends_on=resources)
    return pulumi.ResourceTransformationResult(args.props, pulumi.ResourceOptions.merge(args.opts, after))
