"""Runs in the hub, after the chart's own configuration: whose profiles a user sees, and where the OAuth secret is.

The standard library alone; the account's token comes from the metadata server.
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
CLAIM = "data-set."  # what the names of claims on data sets begin with
_OWN = re.compile(rf"{re.escape(CLAIM)}[a-z]([a-z0-9-]{{0,28}}[a-z0-9])?")  # a name that a volume can have


def call(url: str, headers: dict[str, str]) -> Any:
    """Return the JSON that a URL answers."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=SECONDS) as answer:
        return json.loads(answer.read())


def secret(version: str) -> str:
    """Return the value of a version of a secret, ``projects/*/secrets/*/versions/*``."""
    token = call(TOKEN_URL, {"Metadata-Flavor": "Google"})["access_token"]
    payload = call(f"{SECRETS}/{version}:access", {"Authorization": f"Bearer {token}"})["payload"]
    return base64.b64decode(payload["data"]).decode().strip()


async def add_own_data(spawner: Any, pod: Any, environment_claims: list[str]) -> Any:
    """Add a team's own data sets to its notebook: buckets that its deployment made claims of in its namespace.

    The environment's file does not know them; those of its own are in the profile, where the notebook may have them.
    """
    if spawner.namespace == HUB_NAMESPACE:
        return pod
    found = await spawner.api.list_namespaced_persistent_volume_claim(spawner.namespace)
    # A claim that nothing is bound to, such as one that a member made by hand, would hold every notebook of the team.
    names = [each.metadata.name for each in found.items if each.status.phase == "Bound"]
    own = [name for name in names if _OWN.fullmatch(name) and name not in environment_claims]
    container = pod.spec.containers[0]
    for claim in own:
        key = claim.removeprefix(CLAIM)
        volume, path = f"data-set-{key}", f"/data/{key}"
        reading = {"claimName": claim, "readOnly": True}
        pod.spec.volumes = [*(pod.spec.volumes or []), {"name": volume, "persistentVolumeClaim": reading}]
        mount = {"name": volume, "mountPath": path, "readOnly": True}
        container.volume_mounts = [*(container.volume_mounts or []), mount]
        variable = {"name": f"DATA_SET_{key.upper().replace('-', '_')}", "value": path}
        container.env = [*(container.env or []), variable]
        pod.metadata.annotations = {**(pod.metadata.annotations or {}), "gke-gcsfuse/volumes": "true"}
    return pod


def configure(c: Any, common: list[dict[str, Any]], custom: dict[str, Any]) -> None:
    """Change the hub's configuration ``c``; ``common`` are everybody's profiles, ``custom`` the values of ours."""
    teams = custom.get("teamProfiles", [])

    def profiles(spawner: Any) -> list[dict[str, Any]]:
        own = (each["profiles"] for each in teams if spawner.user.name in each["users"])
        return [*common, *(profile for each in own for profile in each)]

    async def own_data(spawner: Any, pod: Any) -> Any:
        return await add_own_data(spawner, pod, custom.get("environmentClaims", []))

    c.KubeSpawner.profile_list = profiles
    if teams:
        c.KubeSpawner.modify_pod_hook = own_data
    # Notebooks of teams are in other namespaces, where the hub's short name is nobody's.
    c.JupyterHub.hub_connect_url = custom["hubUrl"]
    if "oauthSecret" in custom:
        c.GoogleOAuthenticator.client_secret = secret(custom["oauthSecret"])
