"""An environment and a team whose files, disks and images are under keys, and the inputs that name a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from training_platform.resources import resource_types

RING = "projects/example-keys/locations/{}/keyRings/training/cryptoKeys/data"
CENTRAL = RING.format("us-central1")
WEST = RING.format("us-west4")
ENVIRONMENT: dict[str, Any] = yaml.safe_load(f"""
project: example-keyed
production: false
encryption:
  keys:
    - {CENTRAL}
    - {WEST}
images: {{location: us-west4}}
filestore:
  homes: {{location: us-central1-a, capacity_gib: 1024}}
clusters:
  c:
    location: us-central1-a
    subnet: {{nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}}
    node_pools:
      gpu: {{machine_type: a2-highgpu-8g}}
      slices: {{machine_type: ct5lp-hightpu-4t, topology: 4x4, slices: 2}}
    auto_provisioning: {{cpu: 100, memory_gb: 1000}}
    compute_classes:
      best: {{priorities: [{{machine_type: a3-highgpu-8g, capacity: spot}}]}}
""")
TEAM: dict[str, Any] = yaml.safe_load("""
environment: env
name: vision
members: ["group:vision@example.com"]
buckets:
  data: {location: us-west4}
vertex:
  tensorboards: [us-central1]
  persistent_resources:
    tuning: {region: us-west4, machine_type: a2-highgpu-1g}
""")
FIELDS: Mapping[str, tuple[str, ...]] = {
    resource_types.BUCKET: ("encryption", "defaultKmsKeyName"),
    resource_types.CLUSTER: ("databaseEncryption", "keyName"),
    resource_types.FILESTORE: ("kmsKeyName",),
    resource_types.NODE_POOL: ("nodeConfig", "bootDiskKmsKey"),
    resource_types.PERSISTENT_RESOURCE: ("encryptionSpec", "kmsKeyName"),
    resource_types.REPOSITORY: ("kmsKeyName",),
    resource_types.TENSORBOARD: ("encryptionSpec", "kmsKeyName"),
}


def below(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = (value or {}).get(key)
    return value
