"""An environment with a Filestore instance that two teams have directories on."""

from __future__ import annotations

from pathlib import Path

from training_platform.config.workspace import Workspace, read_workspace

ENVIRONMENT = """
config:
  training-platform:environment:
    project: example-files
    production: false
    filestore:
      homes: {location: us-central1-a, tier: ZONAL, capacity_gib: 2560}
      data: {location: us-central1-a, tier: TIER, capacity_gib: CAPACITY, EXTRA}
    clusters:
      c:
        location: us-central1-a
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 1, max_nodes: 3}
        notebooks:
          {filestore: homes, host: one.example.com, oauth_client_id: one, allowed_domain: example.com, home_gib: 2048}
"""


TEAM = """
config:
  training-platform:team:
    environment: env
    name: NAME
    members: ["group:a@example.com"]
    directories:
      sets: {filestore: data, size_gib: SIZE}
"""


def workspace(
    root: Path, *, capacity: int, one_gib: int, other_gib: int, tier: str = "ZONAL", extra: str = ""
) -> Workspace:
    (root / "stacks").mkdir(exist_ok=True)
    environment = ENVIRONMENT.replace("CAPACITY", str(capacity)).replace("TIER", tier)
    environment = environment.replace(", EXTRA", f", {extra}" if extra else "")
    (root / "stacks" / "Pulumi.env.yaml").write_text(environment, encoding="utf-8")
    for name, size in (("one", one_gib), ("other", other_gib)):
        team = TEAM.replace("NAME", name).replace("SIZE", str(size))
        (root / "stacks" / f"Pulumi.env-{name}.yaml").write_text(team, encoding="utf-8")
    loaded = read_workspace(root)
    assert not [str(finding) for stack in loaded.stacks.values() for finding in stack.findings]
    return loaded
