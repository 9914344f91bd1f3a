from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest


@pytest.fixture
def http(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client
