"""What the tests of in-cluster monitoring share: a scope, and the upstream CRDs of Managed Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest

from training_platform.sandbox.kubernetes.definitions import CrdSchema, load_crds


@pytest.fixture(scope="session")
def crds() -> dict[tuple[str, str, str], CrdSchema]:
    """The upstream CRDs, which are not part of this repository."""
    folder = Path(__file__).parents[3].parent / "shared" / "schemas" / "gmp"
    if not folder.is_dir():
        pytest.skip("the upstream CRDs are not beside this checkout, in ../shared/schemas")
    return load_crds(folder)
