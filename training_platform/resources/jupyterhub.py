"""JupyterHub in one cluster: the values of its chart, and the way to it from the internet.

That way is GKE's Gateway with Identity-Aware Proxy. Without an OAuth client of its own, the proxy takes one that Google
manages, for the organisation's accounts.
Sources: jupyterhub/zero-to-jupyterhub-k8s 4.4.0 (values and their schema, the Service and the path of health) and
oauthenticator 17.4.0, read 2026-11-21; GKE docs, deploying Gateways, securing a Gateway and configuring Gateway
resources with Policies; IAP docs, enabling IAP for GKE, read 2026-11-22. The Gateway was not tried on a cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from training_platform.catalog import CHARTS, IMAGES
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.workloads import GatewaySpec, Notebooks
from training_platform.config.names import data_claim
from training_platform.config.pools import SYSTEM_TOLERATIONS
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
    home_owner,
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
LOCAL_PORT = 8000  # of `kubectl port-forward`, where no host name leads to the hub
_PROGRAM = Path(__file__).with_name("hub_program.py")
_HOME_MOUNT = {"name": "home", "mountPath": HOME, "subPath": "{username}"}
TeamData = Mapping[str, NotebookDataSets]  # the data sets of each team


class HubSecret(NamedTuple):
    """The OAuth client's secret in Secret Manager: its latest version, and the address of the account that reads it."""

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
    """Return the chart's values; ``home_claim`` is the PersistentVolumeClaim that holds all homes.

    ``data_sets`` are mounted read-only at ``/data/NAME``, by notebooks of teams those of ``team_data`` and what their
    namespace has claims of that are not of ``environment_data``, all data sets of the environment.
    ``secret`` is the OAuth client's, where Secret Manager has it.
    """
    teams = {
        team: team_profiles(cluster_name, cluster, notebooks, team, (team_data or {}).get(team, {}))
        for team in notebooks.teams
    }
    return {
        "hub": hub(notebooks, secret),
        "custom": {
            "hubUrl": f"http://hub.{HUB_NAMESPACE}:8081",
            "teamProfiles": [{"users": _names(notebooks, team), "profiles": own} for team, own in teams.items()],
            "environmentClaims": [data_claim(name) for name in environment_data],
            **({"oauthSecret": secret.version} if secret else {}),
        },
        # Reached through the organisation's own entrance; a LoadBalancer would be on the internet.
        "proxy": {"service": {"type": "ClusterIP"}},
        "singleuser": {
            **single_user(notebooks, home_claim, data_sets or {}),
            "profileList": profiles(cluster_name, cluster, notebooks),
        },
        # GKE's own scheduler decides, with the autoscaler; the chart's would name itself in every notebook's pod.
        "scheduling": {
            "userScheduler": {"enabled": False},
            "userPlaceholder": {"enabled": False},
            "corePods": {"tolerations": list(SYSTEM_TOLERATIONS)},
        },
        # Pullers would bring every notebook image to every node, those of training included.
        "prePuller": {"hook": {"enabled": False}, "continuous": {"enabled": False}},
        "cull": {"enabled": True, "timeout": notebooks.idle_minutes * 60, "every": 300},
    }


def hub(notebooks: Notebooks, secret: HubSecret | None = None) -> dict[str, Any]:
    """Return the hub's values: whoever has a Google account of the domain signs in, and nobody is administrator."""
    by_key = {"name": notebooks.oauth_secret.name, "key": notebooks.oauth_secret.key}
    by_hand = {"OAUTH_CLIENT_SECRET": {"valueFrom": {"secretKeyRef": by_key}}}
    return {
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
        # Read by the authenticator from its environment, so that neither values nor state hold the secret.
        **({} if secret else {"extraEnv": by_hand}),
        **({"serviceAccount": {"annotations": {"iam.gke.io/gcp-service-account": secret.account}}} if secret else {}),
        "extraConfig": {"training-platform": _program()},
        # Notebooks of teams call the hub from their namespaces, with the label that the chart gives to all.
        **({"networkPolicy": {"interNamespaceAccessLabels": "accept"}} if notebooks.teams else {}),
    }


def hub_account_id(scope: Scope, cluster: str) -> str:
    """Return the id of the hub's service account in Google Cloud."""
    return account_id(scope.prefix, cluster, "hub")


def reader_account_id(scope: Scope, cluster: str) -> str:
    """Return the id of the account by which notebooks of everybody read buckets."""
    return account_id(scope.prefix, cluster, "notebooks")


def hub_secret(scope: Scope, cluster: str, notebooks: Notebooks) -> HubSecret:
    """Return the OAuth client's secret in Secret Manager, by names that are known before any deployment."""
    version = f"projects/{scope.project}/secrets/{secret_id(scope, notebooks.oauth_secret.name)}/versions/latest"
    return HubSecret(version, f"{hub_account_id(scope, cluster)}@{scope.project}.iam.gserviceaccount.com")


def address(notebooks: Notebooks) -> str:
    """Return where browsers reach the hub; Google takes http for localhost alone."""
    return f"https://{notebooks.host}" if notebooks.host else f"http://localhost:{LOCAL_PORT}"


def _program() -> str:
    """Return the program that the hub runs after the chart's configuration, which defines ``c`` and ``get_config``."""
    call = 'configure(c, get_config("singleuser.profileList", []), get_config("custom", {}))'
    return f"{_PROGRAM.read_text(encoding='utf-8')}\n\n{call}\n"


def _names(notebooks: Notebooks, team: str) -> list[str]:
    """Return a team's people as the hub knows them: the part before the @."""
    return [user.partition("@")[0] for user in notebooks.teams[team].users]


def single_user(notebooks: Notebooks, home_claim: Any, data_sets: NotebookDataSets) -> dict[str, Any]:
    """Return the settings that all notebooks have in common."""
    image = notebooks.image or IMAGES["notebook"]
    buckets = {"serviceAccountName": READER, "extraAnnotations": FUSE_ANNOTATION}
    volumes, mounts = volumes_beside_home(data_sets)
    return {
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
        **(buckets if any(data_set.bucket for data_set in data_sets.values()) else {}),
        "initContainers": [home_owner(image, _HOME_MOUNT)],
        # Google credentials come from the metadata server: neither the chart's iptables nor its policy may block it.
        "cloudMetadata": {"blockWithIptables": False},
        "networkPolicy": {"egressAllowRules": {"cloudMetadataServer": True}},
    }


class ImageName(NamedTuple):
    """The parts before and after the last colon; ``tag`` is empty where none is written."""

    name: str
    tag: str


def split_image(image: str) -> ImageName:
    """Split ``registry:port/path:tag`` or ``path@sha256:hex``; a port is no tag, and a digest is one to the chart."""
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:
        return ImageName(image, "")
    return ImageName(name, tag)


ACCESS_ROLE: Final = "roles/iap.httpsResourceAccessor"
NAME: Final = "notebooks"
_SERVICE, _PORT = "proxy-public", 80
_CLASS: Final = "gke-l7-global-external-managed"
_GATEWAY, _GKE = "gateway.networking.k8s.io/v1", "networking.gke.io/v1"
_DAY_SECONDS: Final = 24 * 3600  # how long a notebook's web socket may live: 30 seconds otherwise


class GatewayObject(NamedTuple):
    """An object beside the hub; its name is that of all of them."""

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
        {"gatewayClassName": _CLASS, "listeners": [listener], "addresses": [address]},
        {"networking.gke.io/certmap": gateway.certificate_map},
    )
    rules = [{"backendRefs": [{"name": _SERVICE, "port": _PORT}]}]
    yield GatewayObject(_GATEWAY, "HTTPRoute", {"parentRefs": [{"name": NAME}], "hostnames": [host], "rules": rules})
    target = {"targetRef": {"group": "", "kind": "Service", "name": _SERVICE}}
    # The default is written: the CRD's checks read it, and refuse a policy without it (gke-gateway-api fc40d60).
    http = {"requestPath": "/hub/health", "portSpecification": "USE_SERVING_PORT"}
    check = {"type": "HTTP", "httpHealthCheck": http}
    yield GatewayObject(_GKE, "HealthCheckPolicy", {"default": {"config": check}, **target})
    guard = {"iap": {"enabled": True}, "timeoutSec": _DAY_SECONDS}
    yield GatewayObject(_GKE, "GCPBackendPolicy", {"default": guard, **target})


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
    """Add notebooks for everyone of the organisation's domain, with a profile per single-host pool.

    ``home_claim`` is the name of a PersistentVolumeClaim in the hub's namespace, perhaps created after the hub;
    ``data_sets``, ``team_data`` and ``environment_data`` are those of ``hub_values``. Returned is the namespace's name.
    Somebody makes the Secret with the OAuth client's secret by hand (``notebooks.oauth_secret``), once the namespace
    exists; until then the hub's pod waits for it. In Secret Manager, somebody adds its value.
    """
    name, hub_chart = into.name, CHARTS["jupyterhub"]
    created = kubernetes_object(
        NAMESPACE,
        f"{name}-namespace",
        scope,
        hub_chart.namespace,
        {},
        labels={f"{POD_SECURITY}enforce": "baseline"},
        # To delete it is to delete the hub's users and the claim for all homes.
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
    # The release has only the namespace's name, so nothing else creates the namespace first. A deployment that waits
    # would fail on the Secret that is created after it.
    release(into, hub_chart, chart, values, after=[namespace], prepared=hub_chart.namespace)
    buckets = {key: data.bucket for key, data in data_sets.items() if data.bucket}
    if buckets:
        _reader(into, scope, cluster_name, buckets, namespace)
    return namespace.output("metadata", "name")


def _oauth_secret(into: Component, scope: Scope, cluster_name: str, notebooks: Notebooks) -> HubSecret | None:
    """Add the OAuth client's secret, and the account by which the hub reads it, if it is in Secret Manager."""
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
    """Add the account by which notebooks of everybody read buckets, and nothing else."""
    name = f"{into.name}-reader"
    title = f"Notebooks of everybody in {cluster_name} of {scope.prefix}"
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
    for key, bucket in buckets.items():
        for grant in bucket_grants(f"{name}-bucket-{key}", bucket, "roles/storage.objectViewer", account):
            into.add(grant)


def _act_as(into: Component, name: str, account: Resource, kubernetes_account: str, scope: Scope) -> None:
    """Let a Kubernetes account of the hub's namespace act as an account of Google Cloud."""
    pod = KubernetesAccount(project=scope.project, namespace=HUB_NAMESPACE, name=kubernetes_account)
    into.add(acting(name, account, WORKLOAD_USER, pod.member))


def hub_gateway(into: Component, scope: Scope, notebooks: Notebooks, gateway: GatewaySpec, namespace: Any) -> None:
    """Add a load balancer before the hub, and who passes Identity-Aware Proxy: the role is on all that it guards there.

    ``gateway`` is that of ``notebooks``, whose host it is for; ``namespace`` is the hub's.
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
    """Add the hub's rights in a team's namespace, the ways between hub and notebooks, and the claim on homes.

    ``filestore`` is the instance of all homes, at ``address``; ``closed`` says whether pods of the team connect to
    nothing that no policy opens. The claim is the folder of the team's name, and notebooks mount one of the
    user's in it: nothing keeps people of one team from each other's, as nothing does from each other's jobs.
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
