"""Every probe, in the order of a run. Each probe comes after those that its field ``after`` names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.finding import UserError
from training_platform.parts.verify import (
    cluster_probes,
    google_cloud,
    grant_probes,
    pod_probes,
    queue_probes,
    tenancy_probes,
)
from training_platform.parts.verify.probes import Probe
from training_platform.resources.resource_types import CLUSTER, FILESTORE, LUSTRE, NODE_POOL, PERSISTENT_RESOURCE

_IMPERSONATION: Final = "a ClusterRole and its binding, which let you impersonate only the test group"
_TABLE: Final = (
    Probe(
        name="project-rights",
        stage="project",
        proves="The user of this command has the rights of an environment's administrators.",
        answers=google_cloud.project_rights,
        roles=["viewer"],
    ),
    Probe(
        name="project-quotas",
        stage="project",
        proves="The project's limits cover the stacks at the autoscaling maximum.",
        answers=google_cloud.project_quotas,
        roles=["cloudquotas.viewer"],
    ),
    Probe(
        name="cluster-running",
        stage="cluster",
        proves="Clusters exist and run.",
        answers=partial(google_cloud.ready, types=[CLUSTER]),
        roles=["container.clusterViewer"],
    ),
    Probe(
        name="cluster-answers",
        stage="cluster",
        proves="The control plane of each cluster answers.",
        answers=cluster_probes.cluster_answers,
        roles=["container.clusterViewer"],
        after=["cluster-running"],
        needs=["kubeconfig"],
    ),
    Probe(
        name="network-egress",
        stage="network",
        proves="Pods of a team resolve names, and reach Google's APIs but nothing else.",
        answers=pod_probes.network_egress,
        roles=["container.admin"],
        after=["cluster-answers"],
        needs=["kubeconfig"],
        makes="a namespace with a team's network policies, and a pod",
        minutes=4,
    ),
    Probe(
        name="cluster-controllers",
        stage="cluster",
        proves="Pods of installed controllers run; their images were pulled.",
        answers=cluster_probes.cluster_controllers,
        roles=["container.viewer"],
        after=["cluster-answers"],
        needs=["kubeconfig"],
        minutes=4,
    ),
    Probe(
        name="cluster-objects",
        stage="cluster",
        proves="Objects in clusters have every planned value: no field was dropped or changed.",
        answers=cluster_probes.cluster_objects,
        roles=["container.viewer"],
        after=["cluster-answers"],
        needs=["kubeconfig"],
    ),
    Probe(
        name="cluster-images",
        stage="cluster",
        proves="Nodes pull an image from the multi-region registry nearest to the cluster, and stream it.",
        answers=pod_probes.cluster_images,
        roles=["container.admin"],
        after=["cluster-answers"],
        needs=["kubeconfig"],
        makes="a pod that ends immediately",
        minutes=5,
    ),
    Probe(
        name="pools-running",
        stage="pools",
        proves="Node pools exist and run.",
        answers=partial(google_cloud.ready, types=[NODE_POOL]),
        roles=["container.clusterViewer"],
        after=["cluster-running"],
    ),
    Probe(
        name="pools-nodes",
        stage="pools",
        proves="Nodes are ready and private, and offer all chips of their machines.",
        answers=cluster_probes.pools_nodes,
        roles=["container.viewer"],
        after=["cluster-answers"],
        needs=["kubeconfig"],
    ),
    Probe(
        name="queues-active",
        stage="queues",
        proves="Kueue serves every queue and cohort.",
        answers=queue_probes.queues_active,
        roles=["container.viewer"],
        after=["cluster-answers"],
        needs=["kubeconfig"],
    ),
    Probe(
        name="queues-admission",
        stage="queues",
        proves="Kueue admits, borrows, reclaims and preempts.",
        answers=queue_probes.queues_admission,
        roles=["container.admin"],
        after=["queues-active"],
        needs=["kubeconfig"],
        makes="a namespace, a flavor, a cohort of two queues, and four jobs whose pods never run",
        minutes=3,
    ),
    Probe(
        name="queues-job",
        stage="queues",
        proves="A job fails once, restarts and ends; its logs and the record of its end exist.",
        answers=queue_probes.queues_job,
        roles=["container.admin", "logging.viewer"],
        after=["queues-active"],
        needs=["kubeconfig"],
        makes="a namespace, a flavor, a queue, and a JobSet of one pod",
        minutes=8,
    ),
    Probe(
        name="storage-ready",
        stage="storage",
        proves="Instances of Filestore and Managed Lustre exist and are ready.",
        answers=partial(google_cloud.ready, types=[FILESTORE, LUSTRE]),
        roles=["viewer"],
    ),
    Probe(
        name="storage-disk",
        stage="storage",
        proves="A disk of the cluster's default class mounts, and delivers 100 MB/s.",
        answers=pod_probes.storage_disk,
        roles=["container.admin"],
        after=["cluster-answers"],
        needs=["kubeconfig"],
        makes="a claim of 20 GiB and a pod",
        minutes=5,
    ),
    Probe(
        name="storage-files",
        stage="storage",
        proves="Each Filestore instance mounts, and delivers 40 MB/s to one pod.",
        answers=pod_probes.storage_files,
        roles=["container.admin"],
        after=["cluster-answers", "storage-ready"],
        needs=["kubeconfig"],
        makes="a volume on the instance, a claim and a pod, whose test file is unlinked while it is open",
        minutes=5,
    ),
    Probe(
        name="storage-bucket",
        stage="storage",
        proves="Cloud Storage FUSE mounts a bucket, and reads 50 MB/s.",
        answers=pod_probes.storage_bucket,
        roles=["container.admin"],
        after=["cluster-answers"],
        needs=["kubeconfig"],
        makes="a pod that reads a public bucket of Google's",
        minutes=5,
    ),
    Probe(
        name="storage-lustre",
        stage="storage",
        proves="Each Managed Lustre instance mounts, and delivers 200 MB/s to one pod.",
        answers=pod_probes.storage_lustre,
        roles=["container.admin"],
        after=["cluster-answers", "storage-ready"],
        needs=["kubeconfig"],
        makes="a volume on the instance, a claim and a pod, whose test file is unlinked while it is open",
        minutes=10,
        by_name=True,
    ),
    Probe(
        name="vertex-running",
        stage="vertex",
        proves="Persistent resources exist and run.",
        answers=partial(google_cloud.ready, types=[PERSISTENT_RESOURCE]),
        roles=["aiplatform.viewer"],
    ),
    Probe(
        name="vertex-refusals",
        stage="vertex",
        proves="Google refuses the requests that the sandbox's local cloud refuses.",
        answers=google_cloud.vertex_refusals,
        roles=["viewer"],
    ),
    Probe(
        name="monitoring-series",
        stage="monitoring",
        proves="The series of each alert arrive.",
        answers=google_cloud.monitoring_series,
        roles=["monitoring.viewer"],
        after=["cluster-running"],
    ),
    Probe(
        name="monitoring-refusals",
        stage="monitoring",
        proves="Google refuses, in dry runs, four dashboards that the sandbox's local cloud refuses.",
        answers=google_cloud.monitoring_refusals,
        roles=["monitoring.dashboardEditor"],
    ),
    Probe(
        name="monitoring-page",
        stage="monitoring",
        proves="An alert reaches its addresses.",
        answers=google_cloud.monitoring_page,
        roles=["monitoring.editor"],
        needs=["page"],
        makes="an alert policy that fires immediately, with the environment's channels",
        minutes=15,
        by_name=True,
    ),
    Probe(
        name="tenancy-accounts",
        stage="tenancy",
        proves="Only a team's own pods can use the accounts of its jobs.",
        answers=google_cloud.tenancy_accounts,
        roles=["iam.securityReviewer"],
    ),
    Probe(
        name="tenancy-grants",
        stage="tenancy",
        proves="Accounts of jobs, nodes and pipelines and Google's agents have the rights that stack files promise.",
        answers=grant_probes.tenancy_grants,
        roles=["iam.securityReviewer"],
        minutes=2,
    ),
    Probe(
        name="tenancy-members",
        stage="tenancy",
        proves="An account in the test group has the rights in Google Cloud that its team's file promises.",
        answers=grant_probes.tenancy_members,
        roles=["iam.serviceAccountTokenCreator"],
        needs=["group", "account"],
    ),
    Probe(
        name="tenancy-rights",
        stage="tenancy",
        proves="A member has the rights for daily work, and none beyond the team.",
        answers=tenancy_probes.tenancy_rights,
        roles=["container.admin"],
        after=["cluster-answers"],
        needs=["kubeconfig", "group"],
        makes=_IMPERSONATION,
    ),
    Probe(
        name="tenancy-writes",
        stage="tenancy",
        proves="Policies refuse writes that would bypass the team's queue.",
        answers=tenancy_probes.tenancy_writes,
        roles=["container.admin"],
        after=["tenancy-rights"],
        needs=["kubeconfig", "group"],
        makes=_IMPERSONATION,
    ),
)
PROBES: Final[Mapping[str, Probe]] = {probe.name: probe for probe in _TABLE}


def chosen_probes(
    *, stages: Collection[str] = (), names: Collection[str] = (), further: Collection[str] = ()
) -> list[Probe]:
    """Return the probes to run. Raises UserError for an unknown name.

    If there are ``names``, exactly these probes are chosen. Otherwise every probe of the ``stages`` is chosen, or of
    all stages if none is given, except those that are ``by_name``. Then the ``further`` probes are added, and every
    probe that a chosen one needs in its ``after``.
    """
    for name in (*names, *further):
        if name not in PROBES:
            raise UserError(f"{name!r} is not a probe. Nearest: {find_nearest(name, PROBES)}.")
    chosen = {*names, *further}
    if not names:
        in_stages = (probe for probe in _TABLE if not stages or probe.stage in stages)
        chosen.update(probe.name for probe in in_stages if not probe.by_name)
    for probe in reversed(_TABLE):  # the probes that a chosen one comes after are before it
        if probe.name in chosen:
            chosen.update(probe.after)
    return [probe for probe in _TABLE if probe.name in chosen]
