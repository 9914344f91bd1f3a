"""Inputs of Google Cloud's resources: the provider's own parameters to the type checker, dictionaries at run time.

``gcp.network(project=..., mtu=...)`` is a dictionary. mypy names inputs that ``pulumi_gcp.compute.Network`` lacks, in
blocks too. Nothing of the provider is imported, which would take longer than ``check --fast`` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, ParamSpec

    from pulumi_gcp import (
        artifactregistry,
        backupdisasterrecovery,
        billing,
        compute,
        container,
        dns,
        monitoring,
        projects,
        secretmanager,
        serviceaccount,
        servicenetworking,
        storage,
        vertex,
    )
    from pulumi_gcp import (
        filestore as filestores,
    )
    from pulumi_gcp import (
        lustre as lustres,
    )
    from pulumi_gcp import (
        workbench as workbenches,
    )

    Taken = ParamSpec("Taken")

    def _taken_by(constructor: Callable[Concatenate[Any, str, Taken], Any]) -> Callable[Taken, dict[str, Any]]:
        raise NotImplementedError

    address = _taken_by(compute.Address._internal_init)
    alert_policy = _taken_by(monitoring.AlertPolicy._internal_init)
    backup_plan = _taken_by(backupdisasterrecovery.BackupPlan._internal_init)
    backup_plan_association = _taken_by(backupdisasterrecovery.BackupPlanAssociation._internal_init)
    backup_vault = _taken_by(backupdisasterrecovery.BackupVault._internal_init)
    bucket = _taken_by(storage.Bucket._internal_init)
    budget = _taken_by(billing.Budget._internal_init)
    cluster = _taken_by(container.Cluster._internal_init)
    dashboard = _taken_by(monitoring.Dashboard._internal_init)
    disk = _taken_by(compute.Disk._internal_init)
    filestore = _taken_by(filestores.Instance._internal_init)
    filestore_snapshot = _taken_by(filestores.Snapshot._internal_init)
    firewall = _taken_by(compute.Firewall._internal_init)
    global_address = _taken_by(compute.GlobalAddress._internal_init)
    iam_member = _taken_by(projects.IAMMember._internal_init)
    lustre = _taken_by(lustres.Instance._internal_init)
    managed_zone = _taken_by(dns.ManagedZone._internal_init)
    metadata_store = _taken_by(vertex.AiMetadataStore._internal_init)
    network = _taken_by(compute.Network._internal_init)
    network_attachment = _taken_by(compute.NetworkAttachment._internal_init)
    node_pool = _taken_by(container.NodePool._internal_init)
    notification_channel = _taken_by(monitoring.NotificationChannel._internal_init)
    persistent_resource = _taken_by(vertex.AiPersistentResource._internal_init)
    record_set = _taken_by(dns.RecordSet._internal_init)
    repository = _taken_by(artifactregistry.Repository._internal_init)
    resource_policy = _taken_by(compute.ResourcePolicy._internal_init)
    router = _taken_by(compute.Router._internal_init)
    router_nat = _taken_by(compute.RouterNat._internal_init)
    secret = _taken_by(secretmanager.Secret._internal_init)
    service_account = _taken_by(serviceaccount.Account._internal_init)
    service_connection = _taken_by(servicenetworking.Connection._internal_init)
    subnetwork = _taken_by(compute.Subnetwork._internal_init)
    tensorboard = _taken_by(vertex.AiTensorboard._internal_init)
    workbench = _taken_by(workbenches.Instance._internal_init)
else:

    def __getattr__(_name):
        return dict
