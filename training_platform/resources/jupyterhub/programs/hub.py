"""Runs in the hub, after the chart's own configuration: whose profiles a user sees, and where the OAuth secret is.

The standard library alone; the account's token comes from the metadata server.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any

TOKEN_URL = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
SECRETS = "https://secretmanager.googleapis.com/v1"
SECONDS = 30


def call(url: str, headers: dict[str, str]) -> Any:
    """Return the JSON that a URL answers."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=SECONDS) as answer:
        return json.loads(answer.read())


def secret(version: str) -> str:
    """Return the value of a version of a secret, ``projects/*/secrets/*/versions/*``."""
    token = call(TOKEN_URL, {"Metadata-Flavor": "Google"})["access_token"]
    payload = call(f"{SECRETS}/{version}:access", {"Authorization": f"Bearer {token}"})["payload"]
    return base64.b64decode(payload["data"]).decode().strip()


def configure(c: Any, common: list[dict[str, Any]], custom: dict[str, Any]) -> None:
    """Change the hub's configuration ``c``; ``common`` are everybody's profiles, ``custom`` the values of ours."""
    teams = custom.get("teamProfiles", [])

    def profiles(spawner: Any) -> list[dict[str, Any]]:
        own = (each["profiles"] for each in teams if spawner.user.name in each["users"])
        return [*common, *(profile for each in own for profile in each)]

    c.KubeSpawner.profile_list = profiles
    # Notebooks of teams are in other namespaces, where the hub's short name is nobody's.
    c.JupyterHub.hub_connect_url = custom["hubUrl"]
    if "oauthSecret" in custom:
        c.GoogleOAuthenticator.client_secret = secret(custom["oauthSecret"])
