"""The local cloud takes the real provider's requests for a pool of every machine."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from local_google_cloud.api import endpoints, serve
from tests.engine.workspace import Workspace
from tests.stacks.every_machine import environment
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.parts.sandbox.run.engine import variable
from training_platform.parts.sandbox.run.servers import provider_settings

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


def test_a_pool_of_every_family_comes_up(tmp_path: Path, kubernetes: int) -> None:
    section = environment()
    settings = provider_settings({}) | {"training-platform:environment": section}
    cloud = judged_cloud([section["project"]])  # without a snapshot of its quotas, so without limits
    place = Workspace(tmp_path, kubernetes)
    # Nobody asks for this state, and writing it after every operation takes the engine longer than the rest.
    place.environment |= {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
    (place.root / "stacks" / "Pulumi.every.yaml").write_text(yaml.safe_dump({"config": settings}), encoding="utf-8")
    place.init("every")

    with serve(cloud) as port:
        place.environment |= {variable(setting): url for setting, url in endpoints(port).items()}
        ran = place.run("up", "--stack", "every", "--yes", "--skip-preview", "--parallel", "1000")

    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-5000:]
    pools = {entity.name: entity.body["status"] for entity in cloud.store.all() if "/nodePools/" in entity.name}
    clusters = section["clusters"].values()
    pool_count = sum(len(cluster["node_pools"]) + 1 for cluster in clusters)  # and a system pool each
    assert len(pools) == pool_count
    assert set(pools.values()) == {"RUNNING"}
