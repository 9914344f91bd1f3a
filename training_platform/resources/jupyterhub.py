"""JupyterHub in one cluster: the values of its chart, and its gateway to the internet.

The gateway is a GKE Gateway with Identity-Aware Proxy. Without an OAuth client of its own, the proxy uses one that
Google manages, for the organisation's accounts.

Sources: jupyterhub/zero-to-jupyterhub-k8s 4.4.0 (values and their schema, the Service and the health path) and
oauthenticator 17.4.0, read 2026-11-21; GKE docs, deploying Gateways, securing a Gateway and configuring Gateway
resources with Policies; IAP docs, enabling IAP for GKE, read 2026-11-22. The Gateway was not tried on a cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from training_platform.catalog import CHARTS, IMAGES
from training_platform.config.expansion import SYSTEM_TOLERATIONS
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.workloads import GatewaySpec, Notebooks
from training_platform.config.names import data_claim
from training_platform.resources.data_sets import NotebookDataSets
from training_platform.resources.kubernetes_objects import (
    IDENTITY,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT_OBJECT,
    account_subject,
    binding,
    kubernetes_object,
    object_type,
    release,
    rules_of_role,
)
from training_platform.resources.notebooks import (
    FUSE_ANNOTATION,
    HOME,
    HUB_ACCOUNT,
    HUB_NAMESPACE,
    RULES,
    TEAM_HOMES,
    folder_owner,
    network_policy,
    notebook_variables,
    profiles,
    team_profiles,
    volumes_beside_home,
)
from training_platform.resources.plan import Component, Options, Resource
from training_platform.resources.resource_types import NAMESPACE
from training_platform.resources.scope import Scope, account_id, secret_id, slug
from training_platform.resources.storage import ACCESSOR, secret_grant, team_secret
from training_platform.resources.team_account import (
    WORKLOAD_USER,
    KubernetesAccount,
    acting,
    bucket_grants,
    project_role,
    service_account,
)
from training_platform.resources.tenancy import POD_SECURITY, POLICY_KIND, POLICY_VERSION
from training_platform.resources.volumes import FILESTORE_VOLUME, filestore_volume

_NOTEBOOKS = "notebooks"  # the name of objects in a team's namespace

START_SECONDS = 1800  # the autoscaler starts a VM, which installs drivers and pulls an image of several GB
READER = "notebooks"  # the Kubernetes account of notebooks that read buckets
LOCAL_PORT = 8000  # of `kubectl port-forward`, if the hub has no host name
_PROGRAM = Path(__file__).with_name("hub_program.py")
_HOME_MOUNT = {"name": "home", "mountPath": HOME, "subPath": "{username}"}
TeamData = Mapping[str, NotebookDataSets]  # the data sets of each team


class HubSecret(NamedTuple):
    """The secret of the OAuth client in Secret Manager: its latest version, and the account that reads it.

    The account is given by its e-mail address.
    """

    version: str
    account: str


def hub_values(
    cluster_name: str,
    cluster: ClusterSpec,
    notebooks: Notebooks,
    home_claim: Any,
    data_sets: NotebookDataSets | None = None,
    *,
    team_data: TeamData | None = None,
    environment_data: Collection[str] = (),
    secret: HubSecret | None = None,
) -> dict[str, Any]:
    """Return the chart's values; ``home_claim`` is the PersistentVolumeClaim for all home directories.

    ``data_sets`` are mounted read-only at ``/data/NAME``. Team notebooks mount the data sets in ``team_data`` instead.
    They also mount all claims in their namespace, except claims on data sets in ``environment_data``, which lists all
    data sets of the environment. ``secret`` is the OAuth client's secret, if it is in Secret Manager.
    """
    profiles_of_teams = []
    for team in notebooks.teams:
        team_sets = (team_data or {}).get(team, {})
        offered = team_profiles(cluster_name, cluster, notebooks, team, team_sets)
        profiles_of_teams.append({"users": _user_names(notebooks, team), "profiles": offered})
    custom: dict[str, Any] = {
        "hubUrl": f"http://hub.{HUB_NAMESPACE}:8081",
        "teamProfiles": profiles_of_teams,
        "environmentClaims": [data_claim(name) for name in environment_data],
    }
    if secret:
        custom["oauthSecret"] = secret.version
    return {
        "hub": hub(notebooks, secret),
        "custom": custom,
        # Reached through the organisation's own entrance; a LoadBalancer would be on the internet.
        "proxy": {"service": {"type": "ClusterIP"}},
        "singleuser": {
            **single_user(notebooks, home_claim, data_sets or {}),
            "profileList": profiles(cluster_name, cluster, notebooks),
        },
        # GKE's scheduler places pods, with the autoscaler; the chart's would name itself in every notebook's pod.
        "scheduling": {
            "userScheduler": {"enabled": False},
            "userPlaceholder": {"enabled": False},
            "corePods": {"tolerations": list(SYSTEM_TOLERATIONS)},
        },
        # Pullers would pull every notebook image on every node, those for training included.
        "prePuller": {"hook": {"enabled": False}, "continuous": {"enabled": False}},
        "cull": {"enabled": True, "timeout": notebooks.idle_minutes * 60, "every": 300},
    }


def hub(notebooks: Notebooks, secret: HubSecret | None = None) -> dict[str, Any]:
    """Return the hub's values: Google accounts of the domain may sign in, and nobody is an administrator."""
    values: dict[str, Any] = {
        "config": {
            "JupyterHub": {"authenticator_class": "google", "admin_access": False},
            "GoogleOAuthenticator": {
                "client_id": notebooks.oauth_client_id,
                "oauth_callback_url": f"{address(notebooks)}/hub/oauth_callback",
                # Shuts out other domains; allow_all lets in everybody else. One domain also shortens names to the part
                # before the @, and with them the folders of homes: a second domain would rename them all.
                "hosted_domain": [notebooks.allowed_domain],
                "allow_all": True,
            },
        },
    }
    if secret:
        values["serviceAccount"] = {"annotations": {"iam.gke.io/gcp-service-account": secret.account}}
    else:
        # The authenticator reads its environment, so that neither values nor state contain the secret.
        reference = {"name": notebooks.oauth_secret.name, "key": notebooks.oauth_secret.key}
        values["extraEnv"] = {"OAUTH_CLIENT_SECRET": {"valueFrom": {"secretKeyRef": reference}}}
    values["extraConfig"] = {"training-platform": _program()}
    if notebooks.teams:
        # Notebooks of teams call the hub from their namespaces, with the label that the chart gives to all.
        values["networkPolicy"] = {"interNamespaceAccessLabels": "accept"}
    return values


def hub_account_id(scope: Scope, cluster: str) -> str:
    """Return the id of the hub's service account in Google Cloud."""
    return account_id(scope.prefix, cluster, "hub")


def reader_account_id(scope: Scope, cluster: str) -> str:
    """Return the id of the service account that reads buckets for notebooks without a team."""
    return account_id(scope.prefix, cluster, "notebooks")


def hub_secret(scope: Scope, cluster: str, notebooks: Notebooks) -> HubSecret:
    """Return the OAuth client's secret in Secret Manager. Its names are known before any deployment."""
    version = f"projects/{scope.project}/secrets/{secret_id(scope, notebooks.oauth_secret.name)}/versions/latest"
    return HubSecret(version, f"{hub_account_id(scope, cluster)}@{scope.project}.iam.gserviceaccount.com")


def address(notebooks: Notebooks) -> str:
    """Return the hub's address for browsers. Google accepts http only for localhost."""
    return f"https://{notebooks.host}" if notebooks.host else f"http://localhost:{LOCAL_PORT}"


def _program() -> str:
    """Return the program that the hub runs after the chart's configuration, which defines ``c`` and ``get_config``."""
    call = 'configure(c, get_config("singleuser.profileList", []), get_config("custom", {}))'
    return f"{_PROGRAM.read_text(encoding='utf-8')}\n\n{call}\n"


def _user_names(notebooks: Notebooks, team: str) -> list[str]:
    """Return the names that the hub gives to a team's users: the part of the e-mail address before the @."""
    return [user.partition("@")[0] for user in notebooks.teams[team].users]


def single_user(notebooks: Notebooks, home_claim: Any, data_sets: NotebookDataSets) -> dict[str, Any]:
    """Return the settings that all notebooks share."""
    image = notebooks.image or IMAGES["notebook"]
    volumes, mounts = volumes_beside_home(data_sets)
    settings: dict[str, Any] = {
        "image": split_image(image)._asdict(),
        "startTimeout": START_SECONDS,
        "storage": {
            "type": "static",
            "homeMountPath": HOME,
            "static": {"pvcName": home_claim, "subPath": _HOME_MOUNT["subPath"]},
            "extraVolumes": volumes,
            "extraVolumeMounts": mounts,
        },
        "extraEnv": notebook_variables(data_sets),
    }
    if any(data_set.bucket for data_set in data_sets.values()):
        settings["serviceAccountName"] = READER
        settings["extraAnnotations"] = FUSE_ANNOTATION
    settings["initContainers"] = [folder_owner(image, _HOME_MOUNT)]
    # Google credentials come from the metadata server: neither the chart's iptables nor its policy may block it.
    settings["cloudMetadata"] = {"blockWithIptables": False}
    settings["networkPolicy"] = {"egressAllowRules": {"cloudMetadataServer": True}}
    return settings


class HubImage(NamedTuple):
    """The parts of an image before and after the last colon; ``tag`` is empty without one."""

    name: str
    tag: str


def split_image(image: str) -> HubImage:
    """Split ``registry:port/path:tag`` or ``path@sha256:hex`` into the parts of a HubImage.

    A port is not taken for a tag. A digest is returned as the tag, because the chart treats it as one.
    """
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:
        return HubImage(image, "")
    return HubImage(name, tag)


ACCESS_ROLE: Final = "roles/iap.httpsResourceAccessor"
NAME: Final = "notebooks"
_SERVICE: Final = "proxy-public"
_PORT: Final = 80
_CLASS: Final = "gke-l7-global-external-managed"
_GATEWAY: Final = "gateway.networking.k8s.io/v1"
_GKE: Final = "networking.gke.io/v1"
_DAY_SECONDS: Final = 24 * 3600  # the longest life of a notebook's web socket, by default 30 seconds


class GatewayObject(NamedTuple):
    """A Kubernetes object of the gateway. All of them have the name ``NAME``."""

    api_version: str
    kind: str
    spec: dict[str, Any]
    annotations: dict[str, str] | None = None


def gateway_objects(gateway: GatewaySpec, host: str) -> Iterator[GatewayObject]:
    """Yield the load balancer, its route to the hub, and the policies on the hub's Service."""
    listener = {"name": "https", "protocol": "HTTPS", "port": 443, "hostname": host}
    address = {"type": "NamedAddress", "value": gateway.address}
    yield GatewayObject(
        _GATEWAY,
        "Gateway",
        spec={"gatewayClassName": _CLASS, "listeners": [listener], "addresses": [address]},
        annotations={"networking.gke.io/certmap": gateway.certificate_map},
    )
    rules = [{"backendRefs": [{"name": _SERVICE, "port": _PORT}]}]
    yield GatewayObject(
        _GATEWAY, "HTTPRoute", spec={"parentRefs": [{"name": NAME}], "hostnames": [host], "rules": rules}
    )
    target = {"targetRef": {"group": "", "kind": "Service", "name": _SERVICE}}
    # The default is explicit, since the CRD's checks refuse a policy without it (gke-gateway-api fc40d60).
    http = {"requestPath": "/hub/health", "portSpecification": "USE_SERVING_PORT"}
    check = {"type": "HTTP", "httpHealthCheck": http}
    yield GatewayObject(_GKE, "HealthCheckPolicy", spec={"default": {"config": check}, **target})
    guard = {"iap": {"enabled": True}, "timeoutSec": _DAY_SECONDS}
    yield GatewayObject(_GKE, "GCPBackendPolicy", spec={"default": guard, **target})


def jupyterhub(
    into: Component,
    scope: Scope,
    cluster_name: str,
    cluster: ClusterSpec,
    notebooks: Notebooks,
    *,
    home_claim: Any,
    data_sets: NotebookDataSets,
    team_data: TeamData | None = None,
    environment_data: Collection[str] = (),
    chart: ChartOverride | None = None,
) -> Any:
    """Add JupyterHub for accounts of the organisation's domain, with a profile for each single-host pool.

    ``home_claim`` is the name of a PersistentVolumeClaim in the hub's namespace, which may be created after the hub.
    See ``hub_values`` about ``data_sets``, ``team_data`` and ``environment_data``. Returns the name of the namespace.

    The hub's pod waits for the Secret of the OAuth client (``notebooks.oauth_secret``), which somebody creates by hand
    once the namespace exists. If the secret is in Secret Manager, somebody adds its value there instead.
    """
    name = into.name
    hub_chart = CHARTS["jupyterhub"]
    created = kubernetes_object(
        NAMESPACE,
        f"{name}-namespace",
        scope,
        hub_chart.namespace,
        {},
        labels={f"{POD_SECURITY}enforce": "baseline"},
        # Deleting it deletes the hub's users and the claim for all homes.
        options=Options(protect=scope.deletion_protection),
    )
    namespace = into.add(created)
    values = hub_values(
        cluster_name,
        cluster,
        notebooks,
        home_claim,
        data_sets,
        team_data=team_data,
        environment_data=environment_data,
        secret=_oauth_secret(into, scope, cluster_name, notebooks),
    )
    # The release refers to the namespace only by name, so it has to wait explicitly. A deployment that waited for the
    # hub's pods would fail: their Secret is created later.
    release(into, hub_chart, chart, values, after=[namespace], prepared=hub_chart.namespace)
    buckets = {key: data.bucket for key, data in data_sets.items() if data.bucket}
    if buckets:
        _reader(into, scope, cluster_name, buckets, namespace)
    name_once_created = namespace.output("metadata", "name")
    into.outputs = {"namespace": name_once_created}
    return name_once_created


def _oauth_secret(into: Component, scope: Scope, cluster_name: str, notebooks: Notebooks) -> HubSecret | None:
    """Add the OAuth client's secret and the account that reads it, if the secret is in Secret Manager."""
    if not notebooks.oauth_secret.secret_manager:
        return None
    name = into.name
    secret = into.add(team_secret(notebooks.oauth_secret.name, scope, f"{name}-oauth"))
    title = f"JupyterHub of {scope.prefix} in {cluster_name}"
    account = into.add(service_account(f"{name}-account", scope, hub_account_id(scope, cluster_name), title))
    into.add(secret_grant(f"{name}-oauth-reader", scope, secret, ACCESSOR, account.output("member")))
    _act_as(into, f"{name}-workload", account, HUB_ACCOUNT, scope)
    return hub_secret(scope, cluster_name, notebooks)


def _reader(into: Component, scope: Scope, cluster_name: str, buckets: Mapping[str, str], namespace: Resource) -> None:
    """Add the service account that reads buckets for notebooks without a team. It has no other permissions."""
    name = f"{into.name}-reader"
    title = f"Notebooks outside of teams in {cluster_name} of {scope.prefix}"
    account = into.add(service_account(f"{name}-account", scope, reader_account_id(scope, cluster_name), title))
    pods = kubernetes_object(
        SERVICE_ACCOUNT_OBJECT,
        f"{name}-kubernetes-account",
        scope,
        READER,
        {"automountServiceAccountToken": False},
        namespace=HUB_NAMESPACE,
        annotations={IDENTITY: account.output("email")},
    )
    into.add(pods, [namespace])
    _act_as(into, f"{name}-workload", account, READER, scope)
    member = account.output("member")
    for key, bucket in buckets.items():
        for grant in bucket_grants(f"{name}-bucket-{key}", bucket, "roles/storage.objectViewer", member):
            into.add(grant)


def _act_as(into: Component, name: str, account: Resource, kubernetes_account: str, scope: Scope) -> None:
    """Allow a Kubernetes service account in the hub's namespace to act as a Google Cloud service account."""
    pod = KubernetesAccount(project=scope.project, namespace=HUB_NAMESPACE, name=kubernetes_account)
    into.add(acting(name, account, WORKLOAD_USER, pod.member))


def hub_gateway(into: Component, scope: Scope, notebooks: Notebooks, gateway: GatewaySpec, namespace: Any) -> None:
    """Add a load balancer for the hub, and let its members pass Identity-Aware Proxy in the whole project.

    ``gateway`` is the gateway of ``notebooks``; ``namespace`` is the hub's namespace.
    """
    for member in gateway.members:
        into.add(project_role(f"{into.name}-{slug(member)}", scope.project, ACCESS_ROLE, member))
    for manifest in gateway_objects(gateway, notebooks.host or ""):
        into.add(
            kubernetes_object(
                object_type(manifest.api_version, manifest.kind),
                f"{into.name}-{manifest.kind.lower()}",
                scope,
                NAME,
                {"spec": manifest.spec},
                namespace=namespace,
                annotations=manifest.annotations,
            )
        )


def team_notebooks(
    into: Component,
    scope: Scope,
    notebooks: Notebooks,
    filestore: FilestoreSpec,
    *,
    address: Any,
    team: str,
    namespace: Any,
    closed: bool,
) -> None:
    """Add the hub's permissions in a team's namespace, the policy between hub and notebooks, and the home claim.

    ``filestore`` is the instance with all home directories, at ``address``. If ``closed`` is set, pods of the team may
    connect only to destinations that network policies allow. The claim is the folder with the team's name, in which
    each user's notebooks mount a subfolder. Members of a team can access each other's home directories, as they can
    access each other's jobs.
    """
    name = into.name
    rights = kubernetes_object(ROLE, f"{name}-role", scope, _NOTEBOOKS, rules_of_role(*RULES), namespace=namespace)
    role = into.add(rights)
    bound = binding("Role", _NOTEBOOKS, [account_subject(HUB_ACCOUNT, HUB_NAMESPACE)])
    into.add(
        kubernetes_object(ROLE_BINDING, f"{name}-role-binding", scope, _NOTEBOOKS, bound, namespace=namespace), [role]
    )
    policy = {"spec": network_policy(closed=closed)}
    kind = object_type(POLICY_VERSION, POLICY_KIND)
    into.add(kubernetes_object(kind, f"{name}-network-policy", scope, _NOTEBOOKS, policy, namespace=namespace))
    homes = into.component(FILESTORE_VOLUME, f"{name}-homes")
    filestore_volume(
        homes,
        scope,
        filestore,
        address=address,
        namespace=namespace,
        claim=TEAM_HOMES,
        size_gib=notebooks.home_gib,
        folder=team,
    )
