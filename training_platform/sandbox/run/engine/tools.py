"""The released tools that a run needs: the Pulumi CLI and its plugins, from PATH or Pulumi's own folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pulumi.automation import PulumiCommand
from pulumi.automation.errors import InvalidVersionError

from training_platform.sandbox.kubernetes.api_servers import API_SERVER, ETCD
from training_platform.sandbox.run.folder import persons_home
from training_platform.sandbox.run.problems import CannotRun

ASSETS: Final = "KUBEBUILDER_ASSETS"  # as the tools of kubernetes-sigs/controller-runtime call it
CLI: Final = "https://www.pulumi.com/docs/install/"


def pulumi_command(may_install: Callable[[str], bool]) -> PulumiCommand:
    """Return the CLI: from PATH, else the one that was installed before, else newly installed if allowed.

    ``may_install`` is asked with the version. Raises CannotRun, whose one sentence says how to get the CLI.
    """
    wanted = version("pulumi")
    installed = Path.home() / ".pulumi" / "versions" / wanted
    try:
        if shutil.which("pulumi"):
            return PulumiCommand()
        if (installed / "bin" / "pulumi").exists():
            return PulumiCommand(root=str(installed))
    except (InvalidVersionError, OSError, subprocess.SubprocessError) as error:
        raise CannotRun(f"the Pulumi CLI does not work: {_one_line(error)} See {CLI}.") from error
    if not may_install(wanted):
        raise CannotRun(f"the Pulumi CLI is not on PATH: install version {wanted} or later from {CLI}.")
    try:
        return PulumiCommand.install()
    except Exception as error:
        raise CannotRun(
            f"the Pulumi CLI is not on PATH and could not be downloaded: install version {wanted} or later on a "
            f"machine with network access, from {CLI}, and put its folder on PATH."
        ) from error


def require_gcp() -> None:
    """Raise CannotRun unless the gcp plugin is at hand."""
    if not has_plugin("gcp"):
        wanted = version("pulumi-gcp")
        raise CannotRun(
            f"the gcp plugin is neither on PATH nor installed: run `pulumi plugin install resource gcp v{wanted}`."
        )


def kubebuilder_assets() -> Path:
    """Return the folder of etcd and kube-apiserver, which ``KUBEBUILDER_ASSETS`` names. Raises CannotRun."""
    folder = Path(os.environ.get(ASSETS) or "-")
    missing = [name for name in (ETCD, API_SERVER) if shutil.which(name, path=str(folder)) is None]
    if missing:
        raise CannotRun(
            f"a real API server needs {' and '.join(missing)} in the folder that {ASSETS} names: run "
            f"`setup-envtest use -p env` of kubernetes-sigs/controller-runtime, which gets them and prints the setting."
        )
    return folder.resolve()


def has_plugin(name: str) -> bool:
    """Whether a resource plugin is on PATH, or in Pulumi's folder in whichever version."""
    folder = persons_home() / "plugins"
    return shutil.which(f"pulumi-resource-{name}") is not None or any(folder.glob(f"resource-{name}-v*/"))


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if text.endswith(".") else f"{text}."
