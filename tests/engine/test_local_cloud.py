"""The local cloud takes the real provider's requests: keys of one's own, and pools of every machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from local_google_cloud.api import endpoints, serve
from tests.engine.workspace import Workspace
from tests.stacks.every_machine import environment
from tests.stacks.keyed import CENTRAL, ENVIRONMENT, FULL, FULL_TEAM
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.parts.sandbox.run.engine import variable
from training_platform.parts.sandbox.run.servers import provider_settings

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
STACKS = {
    "env": {"training-platform:environment": FULL},
    "env-vision": {"training-platform:team": {**FULL_TEAM, "secrets": ["token"]}},
}


def write(place: Workspace, settings: dict[str, Any]) -> None:
    for name, section in STACKS.items():
        text = yaml.safe_dump({"config": {**settings, **section}})
        (place.root / "stacks" / f"Pulumi.{name}.yaml").write_text(text, encoding="utf-8")


def test_an_environment_and_a_team_with_keys_come_up_and_stay_as_they_are(tmp_path: Path, kubernetes: int) -> None:
    cloud = judged_cloud([ENVIRONMENT["project"], CENTRAL.split("/")[1]])  # without snapshots, so without limits
    place = Workspace(tmp_path, kubernetes)
    write(place, provider_settings({}))

    with serve(cloud) as port:
        place.environment |= {variable(setting): url for setting, url in endpoints(port).items()}
        for stack in STACKS:
            place.init(stack)
            up = place.run("up", "--stack", stack, "--yes", "--skip-preview", "--parallel", "100")
            assert up.returncode == 0, up.stdout[-5000:] + up.stderr[-5000:]
            again = place.run("preview", "--stack", stack, "--expect-no-changes", "--refresh")
            assert again.returncode == 0, again.stdout[-5000:] + again.stderr[-5000:]

    policy = next(entity.meta["policy"] for entity in cloud.store.all() if entity.name == f"cloudkms/{CENTRAL}")
    agents = ["cloud-filer", "compute-system", "container-engine-robot", "gcp-sa-aiplatform"]
    agents += ["gcp-sa-artifactregistry", "gs-project-accounts"]
    number = cloud.judge.project_number(ENVIRONMENT["project"])
    expected = {f"serviceAccount:service-{number}@{agent}.iam.gserviceaccount.com" for agent in agents}
    assert {member for binding in policy["bindings"] for member in binding["members"]} == expected

    (secret,) = [entity for entity in cloud.store.all() if entity.name.startswith("secretmanager/")]
    members = {binding["role"]: binding["members"] for binding in secret.meta["policy"]["bindings"]}
    readers = members["roles/secretmanager.secretAccessor"]
    assert secret.name.endswith("/secrets/env-vision-token")
    assert [member.partition("@")[0] for member in readers] == ["serviceAccount:env-vision-jobs"]


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
