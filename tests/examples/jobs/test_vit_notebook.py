"""The notebook of the experiment, its cells run in order by the Python that has their libraries, on CPUs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from tests.examples.jobs.data_sets import MAKE_IMAGES
from tests.support.places import ROOT
from training_platform.catalog import IMAGES

EXPERIMENT = ROOT / "examples" / "experiments" / "vit_storage"
NOTEBOOK = EXPERIMENT / "vit.ipynb"


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_jobs_and_the_image_of_the_notebook_have_the_same_libraries() -> None:
    jobs = [EXPERIMENT / "vit-bucket.yaml", EXPERIMENT / "vit-filestore.yaml", ROOT / "examples/jobs/dws/sdk.yaml"]
    requirements = [yaml.safe_load(job.read_text(encoding="utf-8"))["source"]["requirements"] for job in jobs]
    _, base, install = (EXPERIMENT / "notebook" / "Dockerfile").read_text(encoding="utf-8").splitlines()

    assert requirements == requirements[:1] * len(jobs)
    torch, _, transformers = (Requirement(text) for text in requirements[0])
    assert "2.4" not in torch.specifier  # the version of the prebuilt image, which transformers 5 does not use
    assert str(transformers) in [str(Requirement(word.strip('"'))) for word in install.split()[4:]]
    assert base == f"FROM {IMAGES['notebook-gpu']}"


@pytest.mark.examples
@pytest.mark.timeout(400)
def test_the_notebook_prints_the_seconds_of_both_sources(tmp_path: Path, python: str) -> None:
    subprocess.run([python, "-c", MAKE_IMAGES, str(tmp_path)], check=True, capture_output=True)
    variables = {
        "DATA_SET_FOOD101_BUCKET": str(tmp_path),
        "DATA_SET_FOOD101_FILES": str(tmp_path),
        "VIT_MODEL": str(tmp_path / "model"),
        "VIT_IMAGES": "8",
        "VIT_BATCH": "4",
        "VIT_WORKERS": "0",
    }

    ran = subprocess.run(
        [python, "-c", "\n".join(cells())], env={**os.environ, **variables}, check=True, capture_output=True, text=True
    )

    lines = ran.stdout.splitlines()
    assert [line.split("  ")[0].strip() for line in lines[-3:-1]] == ["Cloud Storage", "Filestore"]
    assert lines[-1].startswith("first / second")
