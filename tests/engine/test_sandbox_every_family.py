"""The local cloud takes what the real provider asks for a pool of every machine, in every way that it can be had."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.engine.workspace import Workspace
from tests.training_platform.catalog.test_every_family_plans import environment
from training_platform.sandbox.cloud.endpoints import endpoints
from training_platform.sandbox.cloud.http.server import serve
from training_platform.sandbox.cloud.local_cloud import LocalCloud
from training_platform.sandbox.cloud.state.quota import Projects
from training_platform.sandbox.run.engine import variable
from training_platform.sandbox.run.servers import provider_settings

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


def test_a_pool_of_every_family_comes_up(tmp_path: Path, kubernetes: int) -> None:
    section = environment()
    settings = provider_settings({}) | {"training-platform:environment": section}
    cloud = LocalCloud(Projects({}, {section["project"]}))  # without a snapshot of its quotas, so without limits
    place = Workspace(tmp_path, kubernetes)
    # Nobody asks for this state, and writing it after every operation takes the engine longer than the rest.
    place.environment |= {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
    (place.root / "stacks" / "Pulumi.every.yaml").write_text(yaml.safe_dump({"config": settings}), encoding="utf-8")
    place.init("every")

    with serve(cloud) as port:
        place.environment |= {variable(setting): url for setting, url in endpoints(port).items()}
        ran = place.run("up", "--stack", "every", "--yes", "--skip-preview", "--parallel", "1000")

    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-5000:]
    pools = {each.name: each.body["status"] for each in cloud.store.all() if "/nodePools/" in each.name}
    wanted = sum(len(cluster["node_pools"]) + 1 for cluster in section["clusters"].values())  # and a system pool each
    assert len(pools) == wanted
    assert set(pools.values()) == {"RUNNING"}
