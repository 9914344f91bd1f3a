"""Code that JupyterHub runs after the chart's own configuration. It selects users' profiles and reads the OAuth secret.

It uses only the standard library. The service account's token is from the metadata server.
"""

from __future__ import annotations

import base64
import json
import re
import urllib.request
from typing import Any

TOKEN_URL = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
SECRETS = "https://secretmanager.googleapis.com/v1"
SECONDS = 30
HUB_NAMESPACE = "jupyterhub"
CLAIM = "data-set."  # the prefix of the names of claims on data sets
_OWN = re.compile(rf"{re.escape(CLAIM)}[a-z]([a-z0-9-]{{0,28}}[a-z0-9])?")  # a name that a volume can have


def call(url: str, headers: dict[str, str]) -> Any:
    """Return the JSON response of a URL."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=SECONDS) as response:
        return json.loads(response.read())


def secret(version: str) -> str:
    """Return the value of a secret version, ``projects/*/secrets/*/versions/*``."""
    token = call(TOKEN_URL, {"Metadata-Flavor": "Google"})["access_token"]
    payload = call(f"{SECRETS}/{version}:access", {"Authorization": f"Bearer {token}"})["payload"]
    return base64.b64decode(payload["data"]).decode().strip()


async def add_own_data(spawner: Any, pod: Any, environment_claims: list[str]) -> Any:
    """Add a team's own data sets to its notebook: buckets that have a PersistentVolumeClaim in the team's namespace.

    The environment's stack file does not contain them. The environment's own data sets are in the profile, if the
    notebook may use them.
    """
    if spawner.namespace == HUB_NAMESPACE:
        return pod
    claims = await spawner.api.list_namespaced_persistent_volume_claim(spawner.namespace)
    # An unbound claim, such as one that a member created by hand, would hold every notebook of the team.
    bound = [claim.metadata.name for claim in claims.items if claim.status.phase == "Bound"]
    team_claims = [name for name in bound if _OWN.fullmatch(name) and name not in environment_claims]
    container = pod.spec.containers[0]
    for name in team_claims:
        key = name.removeprefix(CLAIM)
        volume = f"data-set-{key}"
        path = f"/data/{key}"
        source = {"claimName": name, "readOnly": True}
        pod.spec.volumes = [*(pod.spec.volumes or []), {"name": volume, "persistentVolumeClaim": source}]
        mount = {"name": volume, "mountPath": path, "readOnly": True}
        container.volume_mounts = [*(container.volume_mounts or []), mount]
        variable = {"name": f"DATA_SET_{key.upper().replace('-', '_')}", "value": path}
        container.env = [*(container.env or []), variable]
        pod.metadata.annotations = {**(pod.metadata.annotations or {}), "gke-gcsfuse/volumes": "true"}
    return pod


def configure(c: Any, common: list[dict[str, Any]], custom: dict[str, Any]) -> None:
    """Change the hub's configuration ``c``. ``common`` are the profiles of all users, ``custom`` the chart's values."""
    teams = custom.get("teamProfiles", [])

    def profiles(spawner: Any) -> list[dict[str, Any]]:
        offered = list(common)
        for team in teams:
            if spawner.user.name in team["users"]:
                offered += team["profiles"]
        return offered

    async def own_data(spawner: Any, pod: Any) -> Any:
        return await add_own_data(spawner, pod, custom.get("environmentClaims", []))

    c.KubeSpawner.profile_list = profiles
    if teams:
        c.KubeSpawner.modify_pod_hook = own_data
    # Notebooks of teams are in other namespaces, where the hub's short name does not resolve.
    c.JupyterHub.hub_connect_url = custom["hubUrl"]
    if "oauthSecret" in custom:
        c.GoogleOAuthenticator.client_secret = secret(custom["oauthSecret"])
