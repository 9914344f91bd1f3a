"""Resources of Google Cloud: to the type checker each function takes the provider's own parameters.

``gcp.network("network-vpc", options, project=..., mtu=...)`` is a resource of a plan. mypy reports inputs that
``pulumi_gcp.compute.Network`` lacks, in blocks too. The provider is not imported: that would take several times as long
as a check.
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
    """Returns a resource of one type, called ``name`` in the plan."""

    def __call__(self, name: str, options: Options = PLAIN, /, *args: Inputs.args, **inputs: Inputs.kwargs) -> Resource:
        """Return the resource."""


def _creates(
    resource_type: str, _constructor: Callable[[], Callable[Concatenate[Any, str, Inputs], Any]]
) -> Create[Inputs]:
    """Return the function for a type; only the type checker uses the constructor of the provider's class."""

    def create(name: str, options: Options = PLAIN, /, *positional: Any, **inputs: Any) -> Resource:
        if positional:
            raise TypeError(f"{resource_type} takes its inputs by name")
        return Resource(type=resource_type, name=name, inputs=inputs, options=options)

    return create


address = _creates(ADDRESS, lambda: compute.Address._internal_init)
alert_policy = _creates(ALERT_POLICY, lambda: monitoring.AlertPolicy._internal_init)
backup_plan = _creates(BACKUP_PLAN, lambda: backupdisasterrecovery.BackupPlan._internal_init)
backup_plan_association = _creates(
    BACKUP_PLAN_ASSOCIATION, lambda: backupdisasterrecovery.BackupPlanAssociation._internal_init
)
backup_vault = _creates(BACKUP_VAULT, lambda: backupdisasterrecovery.BackupVault._internal_init)
bucket = _creates(BUCKET, lambda: storage.Bucket._internal_init)
bucket_member = _creates(BUCKET_MEMBER, lambda: storage.BucketIAMMember._internal_init)
budget = _creates(BUDGET, lambda: billing.Budget._internal_init)
cluster = _creates(CLUSTER, lambda: container.Cluster._internal_init)
crypto_key_member = _creates(CRYPTO_KEY_MEMBER, lambda: kms.CryptoKeyIAMMember._internal_init)
dashboard = _creates(DASHBOARD, lambda: monitoring.Dashboard._internal_init)
disk = _creates(DISK, lambda: compute.Disk._internal_init)
filestore = _creates(FILESTORE, lambda: filestores.Instance._internal_init)
filestore_snapshot = _creates(FILESTORE_SNAPSHOT, lambda: filestores.Snapshot._internal_init)
firewall = _creates(FIREWALL, lambda: compute.Firewall._internal_init)
global_address = _creates(GLOBAL_ADDRESS, lambda: compute.GlobalAddress._internal_init)
iam_member = _creates(IAM_MEMBER, lambda: projects.IAMMember._internal_init)
log_bucket = _creates(LOG_BUCKET, lambda: logging.ProjectBucketConfig._internal_init)
log_sink = _creates(LOG_SINK, lambda: logging.ProjectSink._internal_init)
log_view = _creates(LOG_VIEW, lambda: logging.LogView._internal_init)
log_view_member = _creates(LOG_VIEW_MEMBER, lambda: logging.LogViewIamMember._internal_init)
lustre = _creates(LUSTRE, lambda: lustres.Instance._internal_init)
managed_zone = _creates(MANAGED_ZONE, lambda: dns.ManagedZone._internal_init)
network = _creates(NETWORK, lambda: compute.Network._internal_init)
network_attachment = _creates(NETWORK_ATTACHMENT, lambda: compute.NetworkAttachment._internal_init)
node_pool = _creates(NODE_POOL, lambda: container.NodePool._internal_init)
notification_channel = _creates(NOTIFICATION_CHANNEL, lambda: monitoring.NotificationChannel._internal_init)
persistent_resource = _creates(PERSISTENT_RESOURCE, lambda: vertex.AiPersistentResource._internal_init)
quota_preference = _creates(QUOTA_PREFERENCE, lambda: cloudquota.SQuotaPreference._internal_init)
record_set = _creates(RECORD_SET, lambda: dns.RecordSet._internal_init)
repository = _creates(REPOSITORY, lambda: artifactregistry.Repository._internal_init)
repository_member = _creates(REPOSITORY_MEMBER, lambda: artifactregistry.RepositoryIamMember._internal_init)
resource_policy = _creates(RESOURCE_POLICY, lambda: compute.ResourcePolicy._internal_init)
router = _creates(ROUTER, lambda: compute.Router._internal_init)
router_nat = _creates(ROUTER_NAT, lambda: compute.RouterNat._internal_init)
secret = _creates(SECRET, lambda: secretmanager.Secret._internal_init)
secret_member = _creates(SECRET_MEMBER, lambda: secretmanager.SecretIamMember._internal_init)
service = _creates(SERVICE, lambda: projects.Service._internal_init)
service_account = _creates(SERVICE_ACCOUNT, lambda: serviceaccount.Account._internal_init)
service_account_member = _creates(SERVICE_ACCOUNT_MEMBER, lambda: serviceaccount.IAMMember._internal_init)
service_connection = _creates(SERVICE_CONNECTION, lambda: servicenetworking.Connection._internal_init)
service_identity = _creates(SERVICE_IDENTITY, lambda: projects.ServiceIdentity._internal_init)
subnetwork = _creates(SUBNETWORK, lambda: compute.Subnetwork._internal_init)
tensorboard = _creates(TENSORBOARD, lambda: vertex.AiTensorboard._internal_init)
