"""What importing the catalogue costs, and what it gives."""

from __future__ import annotations

import subprocess
import sys

import pytest

from training_platform import catalog
from training_platform.catalog.loader import default
from training_platform.catalog.types import QuotaId


def run(program: str) -> str:
    """Run a program in a Python of its own, where nothing has been imported before."""
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_the_catalogue_reads_nothing_and_reading_it_never_imports_pulumi() -> None:
    printed = run(
        "import sys, training_platform.catalog as catalog\n"
        "print('yaml' in sys.modules, 'training_platform.catalog.loader' in sys.modules)\n"
        "catalog.MACHINE_TYPES\n"
        "import training_platform.catalog.locations, training_platform.catalog.topologies\n"
        "print('yaml' in sys.modules, [name for name in sys.modules if name.startswith(('pulumi', 'pydantic'))])"
    )

    assert printed.splitlines() == ["False False", "True []"]


def test_the_facts_are_read_once() -> None:
    assert catalog.QUOTAS is catalog.QUOTAS
    assert catalog.MACHINE_TYPES is default().machine_types


def test_every_public_name_has_facts() -> None:
    assert [name for name in catalog.__all__ if not getattr(catalog, name)] == []


def test_a_name_that_is_not_public_is_refused_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'MACHINES'"):
        _ = catalog.MACHINES  # type: ignore[attr-defined]


def test_quotas_that_no_family_owns_have_short_names() -> None:
    assert {
        "gpus-all-regions", "cpus", "cpus-all-regions", "preemptible-cpus", "instances", "in-use-addresses",
        "local-ssd", "vertex-pd-ssd", "vertex-pd-standard", "vertex-hyperdisk-balanced", "vertex-cpus",
    } <= set(catalog.GENERAL_QUOTAS)  # fmt: skip
    assert catalog.GENERAL_QUOTAS["gpus-all-regions"] == QuotaId(
        "compute.googleapis.com", "GPUS-ALL-REGIONS-per-project", "GPUs", "project"
    )
    assert not {"tpu-v4", "h100", "filestore-ssd"} & set(catalog.GENERAL_QUOTAS)


def test_every_quota_is_known_by_its_id_with_its_source() -> None:
    assert len(catalog.QUOTAS) == len(default().quotas)  # no id under two names
    assert set(catalog.GENERAL_QUOTAS.values()) < set(catalog.QUOTAS)
    assert catalog.QUOTAS[catalog.GENERAL_QUOTAS["vertex-pd-ssd"]].unverified == ("quota_id",)
    assert catalog.QUOTAS[catalog.GENERAL_QUOTAS["cpus"]].unverified == ()


def test_charts_and_images_are_those_the_platform_installs() -> None:
    charts = {name: (chart.chart, chart.version, chart.namespace) for name, chart in catalog.CHARTS.items()}

    assert charts == {
        "kueue": ("oci://registry.k8s.io/kueue/charts/kueue", "0.19.2", "kueue-system"),
        "jobset": ("oci://registry.k8s.io/jobset/charts/jobset", "0.12.0", "jobset-system"),
        "jupyterhub": ("jupyterhub", "4.4.0", "jupyterhub"),
        "ray": ("kuberay-operator", "1.7.0", "kuberay-system"),
        "trainer": ("oci://ghcr.io/kubeflow/charts/kubeflow-trainer", "2.3.0", "kubeflow-system"),
        "leader-worker-set": ("oci://registry.k8s.io/lws/charts/lws", "0.10.0", "lws-system"),
        "wandb-launch": ("launch-agent", "0.13.12", "wandb"),
    }
    assert catalog.CHARTS["jupyterhub"].repository == "https://hub.jupyter.org/helm-chart/"
    assert all(":" in image.rpartition("/")[2] for image in catalog.IMAGES.values())  # each with a tag
    assert {"notebook", "vertex-training-gpu", "vertex-training-tpu"} <= set(catalog.IMAGES)
