"""Functions that create Google Cloud resources of a plan, with the parameters of the provider's classes for mypy.

``gcp.network("network-vpc", options, project=..., mtu=...)`` returns a resource of a plan. mypy reports inputs that
``pulumi_gcp.compute.Network`` does not have, also inside blocks. The provider is not imported, because importing it
would take several times as long as a check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol

from training_platform.resources.plan import PLAIN, Options, Resource
from training_platform.resources.resource_types import (
    ADDRESS,
    ALERT_POLICY,
    BACKUP_PLAN,
    BACKUP_PLAN_ASSOCIATION,
    BACKUP_VAULT,
    BUCKET,
    BUCKET_MEMBER,
    BUDGET,
    CLUSTER,
    CRYPTO_KEY_MEMBER,
    DASHBOARD,
    DISK,
    FILESTORE,
    FILESTORE_SNAPSHOT,
    FIREWALL,
    GLOBAL_ADDRESS,
    IAM_MEMBER,
    LOG_BUCKET,
    LOG_SINK,
    LOG_VIEW,
    LOG_VIEW_MEMBER,
    LUSTRE,
    MANAGED_ZONE,
    NETWORK,
    NETWORK_ATTACHMENT,
    NODE_POOL,
    NOTIFICATION_CHANNEL,
    PERSISTENT_RESOURCE,
    QUOTA_PREFERENCE,
    RECORD_SET,
    REPOSITORY,
    REPOSITORY_MEMBER,
    RESOURCE_POLICY,
    ROUTER,
    ROUTER_NAT,
    SECRET,
    SECRET_MEMBER,
    SERVICE,
    SERVICE_ACCOUNT,
    SERVICE_ACCOUNT_MEMBER,
    SERVICE_CONNECTION,
    SERVICE_IDENTITY,
    SUBNETWORK,
    TENSORBOARD,
)

if TYPE_CHECKING:
    import pulumi
    from pulumi_gcp import (
        artifactregistry,
        backupdisasterrecovery,
        billing,
        cloudquota,
        compute,
        container,
        dns,
        kms,
        logging,
        monitoring,
        projects,
        secretmanager,
        serviceaccount,
        servicenetworking,
        storage,
        vertex,
    )
    from pulumi_gcp import filestore as filestores
    from pulumi_gcp import lustre as lustres

Inputs = ParamSpec("Inputs")


class Create(Protocol[Inputs]):
    """A function that returns a resource of one type, with the given ``name`` in the plan."""

    def __call__(self, name: str, options: Options = PLAIN, /, *args: Inputs.args, **inputs: Inputs.kwargs) -> Resource:
        """Return the resource with these inputs."""


def declares(
    resource_type: str,
    _provider_class: Callable[[], Callable[Concatenate[str, pulumi.ResourceOptions | None, Inputs], Any]],
) -> Create[Inputs]:
    """Return the function that creates resources of a type. Only the type checker uses the provider's class.

    The class is passed as a function that is never called, ``lambda: pubsub.Topic``, so the provider is not imported.
    """

    def create(name: str, options: Options = PLAIN, /, *positional: Any, **inputs: Any) -> Resource:
        if positional:
            raise TypeError(f"{resource_type} takes its inputs by name")
        return Resource(type=resource_type, name=name, inputs=inputs, options=options)

    return create


address = declares(ADDRESS, lambda: compute.Address)
alert_policy = declares(ALERT_POLICY, lambda: monitoring.AlertPolicy)
backup_plan = declares(BACKUP_PLAN, lambda: backupdisasterrecovery.BackupPlan)
backup_plan_association = declares(BACKUP_PLAN_ASSOCIATION, lambda: backupdisasterrecovery.BackupPlanAssociation)
backup_vault = declares(BACKUP_VAULT, lambda: backupdisasterrecovery.BackupVault)
bucket = declares(BUCKET, lambda: storage.Bucket)
bucket_member = declares(BUCKET_MEMBER, lambda: storage.BucketIAMMember)
budget = declares(BUDGET, lambda: billing.Budget)
cluster = declares(CLUSTER, lambda: container.Cluster)
crypto_key_member = declares(CRYPTO_KEY_MEMBER, lambda: kms.CryptoKeyIAMMember)
dashboard = declares(DASHBOARD, lambda: monitoring.Dashboard)
disk = declares(DISK, lambda: compute.Disk)
filestore = declares(FILESTORE, lambda: filestores.Instance)
filestore_snapshot = declares(FILESTORE_SNAPSHOT, lambda: filestores.Snapshot)
firewall = declares(FIREWALL, lambda: compute.Firewall)
global_address = declares(GLOBAL_ADDRESS, lambda: compute.GlobalAddress)
iam_member = declares(IAM_MEMBER, lambda: projects.IAMMember)
log_bucket = declares(LOG_BUCKET, lambda: logging.ProjectBucketConfig)
log_sink = declares(LOG_SINK, lambda: logging.ProjectSink)
log_view = declares(LOG_VIEW, lambda: logging.LogView)
log_view_member = declares(LOG_VIEW_MEMBER, lambda: logging.LogViewIamMember)
lustre = declares(LUSTRE, lambda: lustres.Instance)
managed_zone = declares(MANAGED_ZONE, lambda: dns.ManagedZone)
network = declares(NETWORK, lambda: compute.Network)
network_attachment = declares(NETWORK_ATTACHMENT, lambda: compute.NetworkAttachment)
node_pool = declares(NODE_POOL, lambda: container.NodePool)
notification_channel = declares(NOTIFICATION_CHANNEL, lambda: monitoring.NotificationChannel)
persistent_resource = declares(PERSISTENT_RESOURCE, lambda: vertex.AiPersistentResource)
quota_preference = declares(QUOTA_PREFERENCE, lambda: cloudquota.SQuotaPreference)
record_set = declares(RECORD_SET, lambda: dns.RecordSet)
repository = declares(REPOSITORY, lambda: artifactregistry.Repository)
repository_member = declares(REPOSITORY_MEMBER, lambda: artifactregistry.RepositoryIamMember)
resource_policy = declares(RESOURCE_POLICY, lambda: compute.ResourcePolicy)
router = declares(ROUTER, lambda: compute.Router)
router_nat = declares(ROUTER_NAT, lambda: compute.RouterNat)
secret = declares(SECRET, lambda: secretmanager.Secret)
secret_member = declares(SECRET_MEMBER, lambda: secretmanager.SecretIamMember)
service = declares(SERVICE, lambda: projects.Service)
service_account = declares(SERVICE_ACCOUNT, lambda: serviceaccount.Account)
service_account_member = declares(SERVICE_ACCOUNT_MEMBER, lambda: serviceaccount.IAMMember)
service_connection = declares(SERVICE_CONNECTION, lambda: servicenetworking.Connection)
service_identity = declares(SERVICE_IDENTITY, lambda: projects.ServiceIdentity)
subnetwork = declares(SUBNETWORK, lambda: compute.Subnetwork)
tensorboard = declares(TENSORBOARD, lambda: vertex.AiTensorboard)
