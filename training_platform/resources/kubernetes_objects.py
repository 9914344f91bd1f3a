"""Kubernetes objects and Helm releases of a plan, and the Pulumi provider for the objects of one cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from training_platform.catalog.types import Chart
from training_platform.config.model.environment import ChartOverride
from training_platform.resources.gke import cluster_identifier, kubeconfig
from training_platform.resources.plan import PLAIN, Component, Node, Options, Resource, compute
from training_platform.resources.resource_types import RELEASE
from training_platform.resources.scope import Scope
from training_platform.resources.stack_resource import KUBERNETES_PROVIDER

RBAC = "rbac.authorization.k8s.io"
ROLE = f"kubernetes:{RBAC}/v1:Role"
ROLE_BINDING = f"kubernetes:{RBAC}/v1:RoleBinding"
CLUSTER_ROLE = f"kubernetes:{RBAC}/v1:ClusterRole"
CLUSTER_ROLE_BINDING = f"kubernetes:{RBAC}/v1:ClusterRoleBinding"

_CORE = "core/v1"


def object_type(api_version: str, kind: str) -> str:
    """Return Pulumi's type for a kind of object: ``kubernetes:core/v1:Service`` for Service in ``v1``."""
    return f"kubernetes:{_CORE if api_version == 'v1' else api_version}:{kind}"


SERVICE_ACCOUNT_OBJECT = object_type("v1", "ServiceAccount")
RESOURCE_QUOTA = object_type("v1", "ResourceQuota")
LIMIT_RANGE = object_type("v1", "LimitRange")
PERSISTENT_VOLUME = object_type("v1", "PersistentVolume")
SECRET_OBJECT = object_type("v1", "Secret")  # a type, which holds no secret
PRIORITY_CLASS = object_type("scheduling.k8s.io/v1", "PriorityClass")
DAEMON_SET = object_type("apps/v1", "DaemonSet")
NETWORK_POLICY = object_type("networking.k8s.io/v1", "NetworkPolicy")
IDENTITY = "iam.gke.io/gcp-service-account"  # annotation: the service account that a Kubernetes account's pods act as


def kubernetes_object(
    type_: str,
    logical_name: str,
    scope: Scope,
    name: Any,
    fields: Mapping[str, Any],
    *,
    namespace: Any = None,
    annotations: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    options: Options = PLAIN,
) -> Resource:
    """Return an object. Its name is set explicitly, because people, jobs or other objects refer to it.

    ``fields`` are the fields other than metadata, such as ``spec``. ``labels`` are added to the scope's labels.
    """
    _, version, kind = type_.split(":")
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {**scope.kubernetes_labels, **(labels or {})},
        "annotations": annotations or None,
    }
    api_version = "v1" if version == _CORE else version
    inputs = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
    return Resource(type=type_, name=logical_name, inputs=inputs, options=options)


def rules_of_role(*rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a Role or ClusterRole; rules use Kubernetes' field names."""
    return {"rules": list(rules)}


def binding(kind: str, role: str, subjects: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the fields of a RoleBinding or ClusterRoleBinding; ``kind`` is the kind of the role."""
    return {"roleRef": {"apiGroup": RBAC, "kind": kind, "name": role}, "subjects": list(subjects)}


def account_subject(name: str, namespace: str) -> dict[str, str]:
    """Return a service account as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def cluster_provider(
    into: Component, name: str, *, endpoint: Any, project: str, location: str, cluster_name: str
) -> Resource:
    """Add the Pulumi provider for a cluster's objects. No other function creates one."""
    inputs = {
        # The objects' cluster. A changed kubeconfig replaces nothing while this stays the same.
        "clusterIdentifier": cluster_identifier(project, location, cluster_name),
        "enableServerSideApply": True,
        # Stack files win over what others set in a cluster; without it one such field stops an update. Source:
        # pulumi/pulumi-kubernetes #2280 and #4242, read 2026-11-28.
        "enablePatchForce": True,
        "kubeconfig": compute(kubeconfig, endpoint),
    }
    return into.add(Resource(type=KUBERNETES_PROVIDER, name=name, inputs=inputs))


_PATHS = ("/", "./", "../")
_REVISIONS = 10  # each is a Secret with all of the chart's objects


class ChartRef(NamedTuple):
    """A reference to a chart for Helm. ``repository`` is None for an OCI reference or a path.

    ``version`` is None for a path, because the chart in the folder has its own version.
    """

    chart: str
    version: str | None
    repository: str | None


def chart_ref(chart: Chart, override: ChartOverride | None = None) -> ChartRef:
    """Return the source of a chart. If only a repository is given, the chart has its own name there."""
    override = override or ChartOverride()
    repository = override.repository or chart.repository
    name = chart.chart.rpartition("/")[2] if override.repository else chart.chart
    reference = override.chart or name
    if reference.startswith(_PATHS):
        return ChartRef(reference, None, repository=None)
    version = override.version or chart.version
    if not reference.startswith("oci://"):
        return ChartRef(reference, version, repository=repository)
    # Helm 3.18 and later compare both. Source: helm/helm #12690 and #13588, read 2026-11-23; that the provider's own
    # Helm is as new is (unverified).
    return ChartRef(f"{reference}@{override.digest}" if override.digest else reference, version, repository=None)


def _content(reference: ChartRef) -> str | None:
    """Return the digest of a chart that is a local folder, otherwise None. A changed template then updates the release.

    The provider compares only the version of a chart. A path is relative to the folder in which Pulumi runs the
    program. Elsewhere, as in a check of another folder, the chart may be missing.
    """
    path = Path(reference.chart)
    if reference.version is not None or not path.exists():
        return None
    digest = hashlib.sha256()
    for file in sorted([path, *path.rglob("*")]):
        if file.is_file():
            digest.update(f"{file.relative_to(path)}\0".encode() + file.read_bytes())
    return f"sha256:{digest.hexdigest()}"


def release(
    into: Component,
    chart: Chart,
    override: ChartOverride | None,
    values: Mapping[str, Any],
    *,
    name: str = "",
    after: Sequence[Node] = (),
    options: Options = PLAIN,
    called: str | None = None,
    prepared: str | None = None,
) -> Resource:
    """Add a Helm release named ``called``, or after its chart. Charts name their objects after the release.

    The deployment ends when its pods are ready, and a failed upgrade is rolled back. ``prepared`` is an existing
    namespace in which pods wait for input from people; the deployment then does not wait for these pods. ``name`` is
    the beginning of the logical name, if it differs from the component's name.
    """
    reference = chart_ref(chart, override)
    inputs = {
        "chart": reference.chart,
        "version": reference.version,
        "repositoryOpts": {"repo": reference.repository} if reference.repository else None,
        "name": called or chart.name,
        "namespace": prepared or chart.namespace,
        "createNamespace": prepared is None,
        "values": values,
        "atomic": prepared is None,
        "skipAwait": prepared is not None,
        "timeout": 60 * (override or ChartOverride()).ready_minutes,
        "maxHistory": _REVISIONS,
        "description": _content(reference),
        "compat": "true",  # the SDK's class always says that its inputs are Helm's own
    }
    return into.add(Resource(type=RELEASE, name=f"{name or into.name}-release", inputs=inputs, options=options), after)
