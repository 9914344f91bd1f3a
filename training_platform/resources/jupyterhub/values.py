"""Values of JupyterHub's chart for one cluster.

Source: jupyterhub/zero-to-jupyterhub-k8s 4.4.0 (values and their schema), oauthenticator 17.4.0, read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from training_platform.catalog import IMAGES
from training_platform.config.names import data_claim
from training_platform.config.spec.cluster import ClusterSpec, Notebooks
from training_platform.resources.jupyterhub.image import split_image
from training_platform.resources.jupyterhub.profiles import profiles

START_SECONDS = 1800  # the autoscaler starts a VM, which installs drivers and pulls an image of several GB
IDLE_SECONDS = 3600
_HOME = "/home/jovyan"
_USER_ID, _GROUP_ID = 1000, 100  # of the user in Jupyter's images, and the chart's own defaults
_HOME_MOUNT = {"name": "home", "mountPath": _HOME, "subPath": "{username}"}


def values(
    cluster_name: str, cluster: ClusterSpec, notebooks: Notebooks, home_claim: str, data_sets: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the chart's values; ``home_claim`` is the PersistentVolumeClaim that holds all homes.

    ``data_sets`` are mounted read-only at ``/data/NAME``.
    """
    return {
        "hub": hub(notebooks),
        # Reached through whatever the organisation puts before it; a LoadBalancer would be on the internet.
        "proxy": {"service": {"type": "ClusterIP"}},
        "singleuser": {
            **single_user(notebooks, home_claim, data_sets),
            "profileList": profiles(cluster_name, cluster, notebooks),
        },
        # GKE's own scheduler decides, with the autoscaler; the chart's would name itself in every notebook's pod.
        "scheduling": {"userScheduler": {"enabled": False}, "userPlaceholder": {"enabled": False}},
        # Pullers would bring every notebook image to every node, those of training included.
        "prePuller": {"hook": {"enabled": False}, "continuous": {"enabled": False}},
        "cull": {"enabled": True, "timeout": IDLE_SECONDS, "every": 300},
    }


def hub(notebooks: Notebooks) -> dict[str, Any]:
    """Return the hub's values: whoever has a Google account of the domain signs in, and nobody is administrator."""
    secret = {"name": notebooks.oauth_secret.name, "key": notebooks.oauth_secret.key}
    return {
        "config": {
            "JupyterHub": {"authenticator_class": "google", "admin_access": False},
            "GoogleOAuthenticator": {
                "client_id": notebooks.oauth_client_id,
                "oauth_callback_url": f"https://{notebooks.host}/hub/oauth_callback",
                # Shuts out other domains; allow_all lets in who is left. One domain also shortens names to what
                # stands before the @, and with them the folders of homes: a second one would rename them all.
                "hosted_domain": [notebooks.allowed_domain],
                "allow_all": True,
            },
        },
        # Read by the authenticator from its environment, so that neither values nor state hold the secret.
        "extraEnv": {"OAUTH_CLIENT_SECRET": {"valueFrom": {"secretKeyRef": secret}}},
    }


def _data_volumes(data_sets: Sequence[str]) -> dict[str, Any]:
    """Return the volumes of data sets, as the chart adds them to every notebook."""
    claims = {f"data-set-{name}": {"claimName": data_claim(name), "readOnly": True} for name in data_sets}
    return {
        "extraVolumes": [{"name": name, "persistentVolumeClaim": claim} for name, claim in claims.items()],
        "extraVolumeMounts": [
            {"name": f"data-set-{name}", "mountPath": f"/data/{name}", "readOnly": True} for name in data_sets
        ],
    }


def single_user(notebooks: Notebooks, home_claim: str, data_sets: Sequence[str] = ()) -> dict[str, Any]:
    """Return what all notebooks have in common."""
    image = notebooks.image or IMAGES["notebook"]
    return {
        "image": split_image(image)._asdict(),
        "startTimeout": START_SECONDS,
        "storage": {
            "type": "static",
            "homeMountPath": _HOME,
            "static": {"pvcName": home_claim, "subPath": _HOME_MOUNT["subPath"]},
            **(_data_volumes(data_sets) if data_sets else {}),
        },
        "initContainers": [_home_owner(image)],
        # Google credentials come from the metadata server: neither the chart's iptables nor its policy may block it.
        "cloudMetadata": {"blockWithIptables": False},
        "networkPolicy": {"egressAllowRules": {"cloudMetadataServer": True}},
    }


def _home_owner(image: str) -> dict[str, Any]:
    """Return the container that gives a user the home: the kubelet makes the folder as root, and NFS ignores fsGroup.

    (Inferred from the Filestore CSI driver's fsGroupPolicy; not tried on a cluster.)
    """
    return {
        "name": "home-owner",
        "image": image,
        "command": ["chown", f"{_USER_ID}:{_GROUP_ID}", _HOME],
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
        "volumeMounts": [dict(_HOME_MOUNT)],
    }
