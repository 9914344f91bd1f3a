"""The environment in which the engine runs: nothing of the person's own accounts, and nothing of the network."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from training_platform.sandbox.run.folder import Folder
from training_platform.sandbox.run.servers import Servers

PASSPHRASE: Final = "sandbox"  # noqa: S105 # the state holds no real secret
TOKEN: Final = "dummy"  # noqa: S105 # the local cloud asks for a token, not for whose
# Whoever goes there is refused at once: port 9 is the discard service, which no machine runs any more.
_NOWHERE: Final = "http://127.0.0.1:9"
_PERSONAL: Final = re.compile(
    r"(PULUMI|GOOGLE|GCLOUD|CLOUDSDK|GCE|HELM)_|KUBECONFIG\Z|(HTTPS?|ALL|NO)_PROXY\Z", re.IGNORECASE
)


def engine_environment(
    folder: Folder, checkout: Path, servers: Servers, endpoints: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables for the engine; ``endpoints`` are the gcp provider's settings, ``gcp:fileCustomEndpoint``.

    Endpoints are variables and not configuration, since configuration stays in the state: on another port, every run
    would find the provider changed, and a destroy would ask the old port.
    """
    found = {
        "PULUMI_BACKEND_URL": folder.state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_GCP_SKIP_REGION_VALIDATION": "true",
        "PULUMI_HOME": str(folder.home),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PYTHONPATH": str(checkout),  # the copy, wherever the repository is installed from
        "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN,
        "CLOUDSDK_CONFIG": str(folder.path / "gcloud"),
        "GCE_METADATA_HOST": _NOWHERE.removeprefix("http://"),
        "KUBECONFIG": str(folder.kubeconfig),
        "HTTP_PROXY": _NOWHERE,
        "HTTPS_PROXY": _NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
        "PULUMI_DEBUG_PROVIDERS": f"kubernetes:{servers.kubernetes}",
    }
    return found | {variable(setting): url for setting, url in endpoints.items()}


def variable(setting: str) -> str:
    """Return the variable of a gcp setting: ``GOOGLE_VERTEX_AI_CUSTOM_ENDPOINT`` for ``gcp:vertexAiCustomEndpoint``."""
    name = setting.removeprefix("gcp:")
    return "GOOGLE_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


@contextmanager
def without_personal_settings() -> Iterator[None]:
    """Hide the person's accounts, proxies and Pulumi settings, which every process started meanwhile would inherit."""
    hidden = {name: value for name, value in os.environ.items() if _PERSONAL.match(name)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
