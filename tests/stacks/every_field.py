"""Sections with a value in every field of the model, and for each field another legal value."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from tests.support.places import ORGANISATION
from tests.support.plans import PlannedStack, planned_stack
from training_platform.config.model.stack import PROJECT, Stack, parse_stack
from training_platform.config.reading.source import parse_source
from training_platform.config.workspace import Workspace, cross_check

Path = tuple[str | int, ...]
ENVIRONMENT: dict[str, Any] = yaml.safe_load("""
project: example-reach
labels: {cost-center: one}
deletion_protection: true
admins: ["group:a@example.com"]
google_groups_domain: example.com
encryption:
  keys:
    - projects/example-keys/locations/us-central1/keyRings/one/cryptoKeys/one
    - projects/example-keys/locations/us-west4/keyRings/one/cryptoKeys/one
alerts: {enabled: true, emails: [a@example.com]}
billing_account: 01ABCD-23EF45-67AB89
budget: {a_month: 90000, currency: USD, alert_at_percent: [50, 100], emails: [a@example.com]}
images:
  {location: us-central1, keep_versions: 5, caches: [], remotes: {docker-hub: https://registry-1.docker.io}}
priorities: {low: 1}
fair_sharing: false
cohorts:
  department: {weight: 1, shares: {c: {h100-flex-start: {nominal_quota: 8, borrowing_limit: 8, lending_limit: 8}}}}
  group: {parent: training-platform}
nat_addresses: 1
private_services_range: 10.200.0.0/16
egress: [{cidr: 203.0.113.0/24, ports: [443, 8443], protocol: TCP}]
quota_requests:
  gpus:
    service: compute.googleapis.com
    quota_id: NVIDIA-A100-GPUS-per-project-region
    dimensions: {region: us-central1}
    value: 8
    justification: One.
    contact: a@example.com
image_sources: [us-docker.pkg.dev/example-reach/images/]
node_images: {node-tcpx: mirror.example.com/tcpx:1}
charts:
  kueue: {version: "0.19.1"}
  jobset: {chart: oci://mirror.example.com/jobset}
  jupyterhub: {repository: https://charts.example.com}
filestore:
  a:
    location: us-central1-a
    tier: ZONAL
    capacity_gib: 1024
    share: one
    protocol: NFS_V3
    reserved_range: 10.9.0.0/26
    iops: 4000
    exports: [{ranges: [10.0.0.0/20], access: read-only, squash: root, anonymous_id: 1000}, {ranges: [10.3.0.0/20]}]
    backups:
      {start_hour: 1, end_hour: 7, time_zone: UTC, keep_days: 7, locked_days: 2}
  b: {location: us-central1-a, capacity_gib: 1024, iops_per_tib: 4000, share: two}
  e: {location: us-central1-a, capacity_gib: 1024}
network_attachments: {us-central1: 10.30.0.0/24}
lustre:
  x: {location: us-central1-a, capacity_gib: 36000, mbps_per_tib: 1000, filesystem: lustre}
data_sets:
  images:
    writer: team
    size_gib: 5
    teams: [team]
    bucket: {name: example-images, location: us-central1, path: food101, profile: training, file_cache_gib: 100}
  plain: {bucket: {name: example-plain, location: us-central1}}
  files: {filestore: {instance: b, path: food101}}
  reading: {hyperdisk_ml: {zone: us-central1-a, size_gib: 100}, writer: team}
  disk: {hyperdisk_ml: {zone: us-central1-a, size_gib: 100, throughput_mibps: 1200, filled: true}}
  fast: {lustre: {instance: one, location: us-central1-a, address: 10.90.0.2, filesystem: lustre}}
clusters:
  c:
    location: us-central1-a
    subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
    software: {kueue: installed, jobset: installed, metrics: true}
    release_channel: REGULAR
    accelerator_networks: multi-network
    serving: true
    operators: [trainer, slice-controller]
    version: "1.33"
    fqdn_policies: true
    system_pool:
      machine_type: e2-standard-8
      min_nodes: 1
      max_nodes: 3
      fallback_machine_types: [n2-standard-16]
      boot_disk: {type: pd-balanced, size_gb: 100}
    cpu_pools:
      general: {machine_type: e2-standard-8, min_nodes: 1, max_nodes: 3, boot_disk: {type: pd-balanced, size_gb: 100}}
    pathways: {machine_type: n2-standard-64, max_nodes: 3, boot_disk: {type: pd-balanced, size_gb: 100}}
    node_pools:
      gpu:
        machine_type: a2-highgpu-8g
        zone: us-central1-a
        capacity: spot
        min_nodes: 2
        min_provision_nodes: 1
        max_nodes: 3
        labels: {tier: a}
      flex: {machine_type: a3-highgpu-8g, capacity: flex-start, max_run_hours: 10, max_nodes: 2}
      reserved: {machine_type: a3-highgpu-8g, capacity: reservation, reservation: one}
      block:
        machine_type: a3-highgpu-8g
        capacity: reservation
        reservation:
          {name: one, project: example-one, block: one, sub_block: one, starts: "2026-12-01", ends: "2026-12-31"}
      classed: {machine_type: a3-highgpu-8g}
      tpu: {machine_type: ct5lp-hightpu-4t, topology: 4x4, slices: 2, min_slices: 1}
      deep:
        machine_type: n1-standard-16
        accelerator: t4
        accelerator_count: 1
        driver: default
        partition: 1g.5gb
        sharing: {strategy: mps, max_clients: 4}
        local_ssd: {count: 1, use: ephemeral}
        preload_images: [projects/example/global/images/one]
        max_pods: 32
        taints: {team: {value: one, effect: NO_SCHEDULE}}
        provider_inputs: {node_config: {linux_node_config: {sysctls: {net.core.somaxconn: "1024"}}}}
        upgrades:
          {auto_repair: true, auto_upgrade: true, strategy: surge, max_surge: 0, max_unavailable: 1}
      soaking: {machine_type: a2-highgpu-1g, upgrades: {strategy: blue-green}}
    gpu_networks: {range: 192.168.0.0/16}
    maintenance:
      start: "2026-01-03T06:00:00Z"
      end: "2026-01-03T18:00:00Z"
      recurrence: FREQ=WEEKLY;BYDAY=SA,SU
      upgrade_freeze: true
      exclusions:
        one: {start: "2026-12-01T00:00:00Z", end: "2026-12-20T00:00:00Z", scope: no-upgrades}
    auto_provisioning:
      cpu: 1000
      memory_gb: 10000
      accelerators: {nvidia-h100-80gb: 64}
      zones: [us-central1-a]
      boot_disk: {type: pd-balanced, size_gb: 100}
    compute_classes:
      best:
        active_migration: false
        priorities:
          - node_pools: [classed]
          - machine_type: a3-highgpu-8g
            capacity: flex-start
            zones: [us-central1-a]
            max_run_hours: 10
            max_wait_minutes: 10
            boot_disk: {size_gb: 200}
      slices: {priorities: [{machine_type: ct5lp-hightpu-4t, topology: 4x4, capacity: reservation, reservation: one}]}
    storage_classes:
      wide: {tier: ENTERPRISE}
      shared: {tier: ENTERPRISE, multishare: true, largest_share_gib: 128, teams: {team: 1024}}
    notebooks:
      filestore: a
      host: one.example.com
      gateway: {address: one, certificate_map: one, members: ["group:a@example.com"]}
      oauth_client_id: one
      oauth_secret: {name: one, key: one}
      allowed_domain: one.example.com
      image: us-docker.pkg.dev/example-reach/images/notebook:1
      home_gib: 100
      idle_minutes: 60
      teams: {team: {users: [ada@one.example.com], pools: [gpu]}}
""")
REQUEST = ("quota_requests", "gpus")
CLUSTER = ("clusters", "c")
POOLS = ("clusters", "c", "node_pools")
HUB = ("clusters", "c", "notebooks")
NAP = (*CLUSTER, "auto_provisioning")
BEST = (*CLUSTER, "compute_classes", "best")
FIRST = (*BEST, "priorities", 0)
SECOND = (*BEST, "priorities", 1)
SLICES = (*CLUSTER, "compute_classes", "slices", "priorities", 0)
DEEP = (*POOLS, "deep")
EXPORT = ("filestore", "a", "exports", 0)
BACKUPS = ("filestore", "a", "backups")
FLEX = {"flex": ENVIRONMENT["clusters"]["c"]["node_pools"]["flex"]}  # of which a cohort has a share
COHORT_SHARE = ("cohorts", "department", "shares", "c", "h100-flex-start")
ENVIRONMENT_CHANGES: dict[Path, Any] = {
    ("project",): "example-other",
    ("labels",): {"cost-center": "two"},
    ("deletion_protection",): False,
    ("admins",): ["group:b@example.com"],
    ("nightly_account",): "nightly@example-admin.iam.gserviceaccount.com",
    ("google_groups_domain",): "other.example.com",
    ("encryption",): None,
    ("encryption", "keys"): [
        f"projects/example-keys/locations/{region}/keyRings/two/cryptoKeys/two"
        for region in ("us-central1", "us-west4")
    ],
    ("alerts", "enabled"): False,
    ("alerts", "undocumented"): True,
    ("max_grace_seconds",): 600,
    ("dashboards",): False,
    ("alerts", "emails"): ["b@example.com"],
    ("images", "location"): "us-west4",
    ("images", "keep_versions"): 6,
    ("images", "caches"): ["us-west4"],
    ("images", "remotes"): {"docker-hub": "https://ghcr.io"},
    ("python_repository",): "us-west4",
    ("priorities",): {"low": 2},
    ("nat_addresses",): 2,
    ("charts", "kueue", "version"): "0.19.0",
    ("charts", "kueue", "ready_minutes"): 30,
    ("charts", "kueue", "digest"): f"sha256:{'5e' * 32}",
    ("charts", "jobset", "chart"): "oci://other.example.com/jobset",
    ("charts", "jupyterhub", "repository"): "https://other.example.com",
    ("quota_requests",): {},
    (*REQUEST, "service"): "file.googleapis.com",
    (*REQUEST, "quota_id"): "NVIDIA-L4-GPUS-per-project-region",
    (*REQUEST, "dimensions"): {"region": "us-west4"},
    (*REQUEST, "value"): 16,
    (*REQUEST, "justification"): "Two.",
    (*REQUEST, "contact"): "b@example.com",
    (*REQUEST, "ignore_safety_check"): "QUOTA_DECREASE_BELOW_USAGE",
    ("filestore", "a", "location"): "us-central1-b",
    ("filestore", "a", "tier"): "BASIC_HDD",
    ("filestore", "a", "capacity_gib"): 2048,
    ("filestore", "a", "share"): "two",
    ("filestore", "a", "protocol"): "NFS_V4_1",
    ("filestore", "a", "reserved_range"): "10.8.0.0/26",
    ("filestore", "a", "deletion_protection"): False,
    ("data_sets", "disk", "hyperdisk_ml", "zone"): "us-central1-c",
    ("data_sets", "disk", "hyperdisk_ml", "size_gib"): 200,
    ("data_sets", "disk", "hyperdisk_ml", "throughput_mibps"): 2400,
    ("data_sets", "disk", "hyperdisk_ml", "filled"): False,
    ("data_sets", "fast"): {"bucket": {"name": "example-plain", "location": "us-central1"}},
    ("filestore", "a", "connection"): "private-service-access",
    ("filestore", "e", "team"): "team",
    ("filestore", "a", "exports"): [],
    (*EXPORT, "ranges"): ["10.1.0.0/20"],
    (*EXPORT, "access"): "read-write",
    (*EXPORT, "anonymous_id"): 1001,
    ("filestore", "a", "exports", 1, "squash"): "root",
    ("filestore", "a", "iops"): 5000,
    ("filestore", "b", "iops_per_tib"): 5000,
    ("filestore", "a", "snapshots"): ["before"],
    ("filestore", "a", "restore_from"): "projects/example-reach/locations/us-central1/backups/one",
    ("filestore", "a", "backups"): None,
    (*BACKUPS, "every_hours"): 6,
    (*BACKUPS, "weekdays"): ["SUNDAY"],
    (*BACKUPS, "start_hour"): 2,
    (*BACKUPS, "end_hour"): 8,
    (*BACKUPS, "time_zone"): "Europe/Berlin",
    (*BACKUPS, "keep_days"): 8,
    (*BACKUPS, "locked_days"): 3,
    ("private_services_range",): "10.201.0.0/16",
    ("network_attachments",): {"us-central1": "10.31.0.0/24"},
    (*CLUSTER, "storage_classes"): {},
    (*CLUSTER, "storage_classes", "wide", "tier"): "REGIONAL",
    (*CLUSTER, "storage_classes", "wide", "multishare"): True,
    (*CLUSTER, "storage_classes", "shared", "largest_share_gib"): 256,
    ("lustre",): {},
    ("lustre", "x", "location"): "us-central1-c",
    ("lustre", "x", "capacity_gib"): 45000,
    ("lustre", "x", "mbps_per_tib"): 500,
    ("lustre", "x", "filesystem"): "other",
    ("lustre", "x", "squash_root"): True,
    ("lustre", "x", "deletion_protection"): False,
    ("google_apis",): "restricted",
    (*CLUSTER, "deletion_protection"): False,
    (*POOLS, "gpu", "deletion_protection"): False,
    (*CLUSTER, "location"): "us-central1-c",
    (*CLUSTER, "subnet", "nodes"): "10.2.0.0/20",
    (*CLUSTER, "subnet", "pods"): "10.65.0.0/16",
    (*CLUSTER, "subnet", "services"): "10.3.0.0/20",
    (*CLUSTER, "subnet", "pods_range"): "other-pods",
    (*CLUSTER, "subnet", "services_range"): "other-services",
    (*CLUSTER, "software"): {"kueue": "existing", "jobset": "existing"},
    (*CLUSTER, "software", "kueue"): "existing",
    (*CLUSTER, "software", "jobset"): "none",
    (*CLUSTER, "software", "metrics"): False,
    (*CLUSTER, "release_channel"): "STABLE",
    (*CLUSTER, "accelerator_networks"): "dranet",
    (*CLUSTER, "serving"): False,
    (*CLUSTER, "operators", 0): "ray",
    (*CLUSTER, "operators", 1): "ml-diagnostics",
    (*CLUSTER, "version"): "1.34",
    (*CLUSTER, "system_pool", "machine_type"): "n2-standard-8",
    (*CLUSTER, "system_pool", "min_nodes"): 2,
    (*CLUSTER, "system_pool", "max_nodes"): 4,
    (*CLUSTER, "system_pool", "fallback_machine_types", 0): "n2d-standard-8",
    (*CLUSTER, "system_pool", "boot_disk", "type"): "pd-ssd",
    (*CLUSTER, "system_pool", "boot_disk", "size_gb"): 200,
    (*CLUSTER, "cpu_pools", "general", "machine_type"): "n2-standard-8",
    (*CLUSTER, "cpu_pools", "general", "min_nodes"): 2,
    (*CLUSTER, "cpu_pools", "general", "max_nodes"): 4,
    (*CLUSTER, "cpu_pools", "general", "boot_disk", "type"): "pd-ssd",
    (*CLUSTER, "cpu_pools", "general", "boot_disk", "size_gb"): 200,
    (*CLUSTER, "pathways", "machine_type"): "n2d-standard-64",
    (*CLUSTER, "pathways", "min_nodes"): 1,
    (*CLUSTER, "pathways", "max_nodes"): 4,
    (*CLUSTER, "pathways", "boot_disk", "type"): "pd-ssd",
    (*CLUSTER, "pathways", "boot_disk", "size_gb"): 200,
    (*POOLS, "gpu", "machine_type"): "a2-highgpu-4g",
    (*POOLS, "gpu", "zone"): "us-central1-b",
    (*POOLS, "gpu", "capacity"): "on-demand",
    (*POOLS, "gpu", "min_nodes"): 3,
    (*POOLS, "gpu", "min_provision_nodes"): 2,
    (*POOLS, "gpu", "max_nodes"): 4,
    (*POOLS, "gpu", "labels"): {"tier": "b"},
    (*POOLS, "gpu", "boot_disk"): {"size_gb": 300},
    (*POOLS, "flex", "max_run_hours"): 11,
    (*POOLS, "flex", "gpu_direct"): False,
    (*POOLS, "gpu", "compact"): True,
    (*POOLS, "flex", "topology_aware"): True,
    (*DEEP, "accelerator_count"): 2,
    (*DEEP, "driver"): "latest",
    (*DEEP, "partition"): "2g.10gb",
    (*DEEP, "sharing"): None,
    (*DEEP, "sharing", "strategy"): "time-sharing",
    (*DEEP, "sharing", "max_clients"): 5,
    (*DEEP, "local_ssd"): {"count": 2},
    (*DEEP, "local_ssd", "count"): 4,
    (*DEEP, "local_ssd", "use"): "block",
    (*DEEP, "preload_images"): ["projects/example/global/images/two"],
    (*DEEP, "max_pods"): 64,
    (*DEEP, "taints"): {},
    (*DEEP, "provider_inputs"): {"node_config": {"linux_node_config": {"sysctls": {"net.core.somaxconn": "4096"}}}},
    (*DEEP, "taints", "team", "value"): "two",
    (*DEEP, "taints", "team", "effect"): "NO_EXECUTE",
    (*DEEP, "upgrades"): {"max_surge": 2},
    (*DEEP, "upgrades", "auto_repair"): False,
    (*DEEP, "upgrades", "auto_upgrade"): False,
    (*DEEP, "upgrades", "strategy"): "blue-green",
    (*DEEP, "upgrades", "max_surge"): 1,
    (*DEEP, "upgrades", "max_unavailable"): 2,
    (*CLUSTER, "gpu_networks"): {"range": "172.16.0.0/16"},
    (*CLUSTER, "gpu_networks", "range"): "172.17.0.0/16",
    (*CLUSTER, "maintenance"): {},
    (*CLUSTER, "maintenance", "start"): "2026-01-03T07:00:00Z",
    (*CLUSTER, "maintenance", "end"): "2026-01-03T19:00:00Z",
    (*CLUSTER, "maintenance", "recurrence"): "FREQ=DAILY",
    (*CLUSTER, "maintenance", "upgrade_freeze"): False,
    (*CLUSTER, "maintenance", "exclusions"): {},
    (*CLUSTER, "maintenance", "exclusions", "one", "start"): "2026-12-02T00:00:00Z",
    (*CLUSTER, "maintenance", "exclusions", "one", "end"): "2026-12-21T00:00:00Z",
    (*CLUSTER, "maintenance", "exclusions", "one", "scope"): "no-minor-upgrades",
    ("node_images",): {},
    ("image_sources",): ["us-docker.pkg.dev/example-other/images/"],
    (*POOLS, "reserved", "reservation"): "two",
    (*POOLS, "block", "reservation", "name"): "two",
    (*POOLS, "block", "reservation", "project"): "example-two",
    (*POOLS, "block", "reservation", "block"): "two",
    (*POOLS, "block", "reservation", "sub_block"): "two",
    (*POOLS, "block", "reservation", "starts"): "2026-12-02",
    (*POOLS, "block", "reservation", "ends"): "2026-12-30",
    (*CLUSTER, "auto_provisioning"): None,
    (*NAP, "cpu"): 2000,
    (*NAP, "memory_gb"): 20000,
    (*NAP, "accelerators"): {"nvidia-h100-80gb": 72},
    (*NAP, "zones"): ["us-central1-c"],
    (*NAP, "boot_disk"): {"type": "pd-ssd"},
    (*CLUSTER, "provider_inputs"): {
        "enable_intranode_visibility": True,
        "cluster_autoscaling": {"autoscaling_profile": "BALANCED"},
    },
    ("filestore", "a", "provider_inputs"): {"description": "Home directories"},
    (*CLUSTER, "binary_authorization"): True,
    (*CLUSTER, "fqdn_policies"): False,
    (*CLUSTER, "compute_classes"): {},
    (*BEST, "active_migration"): True,
    (*BEST, "priorities"): [{"node_pools": ["classed"]}],
    (*FIRST, "node_pools"): ["gpu"],
    (*SECOND, "machine_type"): "a3-megagpu-8g",
    (*SECOND, "capacity"): "spot",
    (*SECOND, "zones"): ["us-central1-c"],
    (*SECOND, "max_run_hours"): 11,
    (*SECOND, "max_wait_minutes"): 11,
    (*SECOND, "boot_disk"): {"size_gb": 300},
    (*SLICES, "topology"): "4x8",
    (*SLICES, "reservation"): "two",
    (*POOLS, "tpu", "topology"): "4x8",
    (*POOLS, "tpu", "slices"): 3,
    (*POOLS, "tpu", "min_slices"): 0,
    (*HUB, "filestore"): "e",
    (*HUB, "host"): "two.example.com",
    (*HUB, "oauth_client_id"): "two",
    (*HUB, "oauth_secret", "name"): "two",
    (*HUB, "oauth_secret", "key"): "two",
    (*HUB, "allowed_domain"): "two.example.com",
    (*HUB, "image"): "us-docker.pkg.dev/example-reach/images/notebook:2",
    (*HUB, "oauth_secret", "secret_manager"): True,
    (*HUB, "idle_minutes"): 30,
    (*HUB, "buckets"): True,
    (*HUB, "gateway"): None,
    (*HUB, "gateway", "address"): "two",
    (*HUB, "gateway", "certificate_map"): "two",
    (*HUB, "gateway", "members"): ["group:b@example.com"],
    (*HUB, "teams"): {},
    (*HUB, "teams", "team", "users"): ["bob@one.example.com"],
    (*HUB, "teams", "team", "pools"): ["flex"],
    (*HUB, "pools"): ["reserved"],
    (*HUB, "home_gib"): 200,
    ("clusters",): {
        "c": {name: ENVIRONMENT["clusters"]["c"][name] for name in ("location", "subnet")} | {"node_pools": FLEX},
        "d": {
            "location": "us-central1-a",
            "subnet": {"nodes": "10.40.0.0/20", "pods": "10.90.0.0/16", "services": "10.41.0.0/20"},
        },
    },
    ("filestore",): {**ENVIRONMENT["filestore"], "new": {"location": "us-central1-a", "capacity_gib": 1024}},
    ("images",): None,
    ("charts",): {},
    ("alerts",): {"enabled": False},
    ("fair_sharing",): True,
    ("lend_unpromised",): True,
    ("budget",): None,
    ("budget", "a_month"): 80000,
    ("budget", "currency"): "EUR",
    ("budget", "alert_at_percent"): [80],
    ("budget", "emails"): ["b@example.com"],
    ("cohorts",): {"group": {}, "department": {}},
    ("cohorts", "group", "parent"): "department",
    ("cohorts", "department", "weight"): 2,
    ("cohorts", "department", "shares"): {},
    (*COHORT_SHARE, "nominal_quota"): 16,
    (*COHORT_SHARE, "borrowing_limit"): 0,
    (*COHORT_SHARE, "lending_limit"): 0,
    (*CLUSTER, "subnet"): {"nodes": "10.4.0.0/20", "pods": "10.66.0.0/16", "services": "10.5.0.0/20"},
    (*CLUSTER, "system_pool"): {"max_nodes": 9},
    (*CLUSTER, "cpu_pools"): {},
    (*CLUSTER, "cpu_pools", "general"): {"max_nodes": 9},
    (*CLUSTER, "pathways"): None,
    (*CLUSTER, "node_pools"): {
        "classed": {"machine_type": "a3-highgpu-8g"},
        **FLEX,
        "gpu": ENVIRONMENT["clusters"]["c"]["node_pools"]["gpu"],
    },
    (*CLUSTER, "notebooks"): None,
    (*CLUSTER, "system_pool", "boot_disk"): {"size_gb": 300},
    (*CLUSTER, "cpu_pools", "general", "boot_disk"): {"size_gb": 300},
    (*CLUSTER, "pathways", "boot_disk"): {"size_gb": 300},
    (*HUB, "oauth_secret"): {"name": "three"},
}
BORROWED: dict[str, Any] = yaml.safe_load("""
project: example-reach
network: {name: one, project: example-host, grant_roles: false}
clusters:
  a:
    location: us-central1
    subnet: {name: one, nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
  b: {location: us-central1, existing: one, node_pools: {gpu: {machine_type: a2-highgpu-8g, zone: us-central1-a}}}
""")
"""An environment in a network, and with a cluster, that are somebody else's."""
PLAIN_TEAM = {"environment": "env", "name": "team", "members": ["group:a@example.com"]}
BORROWED_CHANGES: dict[Path, Any] = {
    ("network",): {"name": "one", "project": "example-other"},
    ("network", "name"): "two",
    ("network", "project"): "example-other",
    ("network", "grant_roles"): True,
    ("clusters", "a", "subnet", "name"): "two",
    ("clusters", "b", "existing"): "two",
}
DATA = ("data_sets",)
DATA_SET_CHANGES: dict[Path, Any] = {
    DATA: {},
    (*DATA, "images", "size_gib"): 6,
    (*DATA, "plain", "teams"): ["others"],
    (*DATA, "images", "writer"): None,
    (*DATA, "images", "bucket"): {"name": "example-other", "location": "us-central1"},
    (*DATA, "images", "bucket", "name"): "example-other",
    (*DATA, "images", "bucket", "path"): "other",
    (*DATA, "images", "bucket", "profile"): "checkpointing",
    (*DATA, "images", "bucket", "file_cache_gib"): 200,
    (*DATA, "files", "filestore"): {"instance": "e", "path": "other"},
    (*DATA, "files", "filestore", "instance"): "e",
    (*DATA, "files", "filestore", "path"): "other",
    (*DATA, "disk", "hyperdisk_ml"): {"zone": "us-central1-c", "size_gib": 100, "filled": True},
    (*DATA, "disk", "hyperdisk_ml", "zone"): "us-central1-c",
    (*DATA, "disk", "hyperdisk_ml", "size_gib"): 200,
    (*DATA, "reading", "hyperdisk_ml", "filled"): True,
    (*DATA, "fast", "lustre"): {"instance": "x"},
    (*CLUSTER, "storage_classes", "shared", "teams"): {"team": 2048},
    (*DATA, "fast", "lustre", "instance"): "two",
    (*DATA, "fast", "lustre", "location"): "us-central1-c",
    (*DATA, "fast", "lustre", "address"): "10.90.0.3",
    (*DATA, "fast", "lustre", "filesystem"): "other",
}
"""Changes of an environment that teams' stacks show."""
TEAM: dict[str, Any] = yaml.safe_load("""
environment: env
name: team
project: example-team
labels: {cost-center: one}
members: ["group:a@example.com"]
shares:
  c:
    a100-40-spot: {nominal_quota: 8, borrowing_limit: 8, lending_limit: 4}
    h100-flex-start: {nominal_quota: 8}
preemption: {within_queue: LowerPriority, reclaim: Any, borrow_within_cohort: Never}
fallback: {when_can_borrow: MayStopSearch, when_can_preempt: TryNextFlavor, order: {}}
egress: [{host: "*.example.com"}, {cidr: 203.0.114.0/24}]
directories:
  d: {filestore: e, size_gib: 100}
buckets:
  k: {location: us-central1, storage_class: STANDARD, delete_after_days: 10, versioning: false}
data_sets:
  own: {bucket: {name: example-own, location: us-central1}}
secrets: [token]
serving:
  c:
    s:
      flavor: a100-40-spot
      image: us-docker.pkg.dev/example-reach/images/vllm:1
      command: [vllm]
      args: [serve]
      env: {A: one}
      secrets: {TOKEN: token}
      chips: 2
      vms: 2
      worker_command: [ray]
      min_replicas: 1
      max_replicas: 2
      metric: some_queue
      target: 5
wandb_launch:
  c: {entity: example-team, queues: [gpus], max_jobs: 4, base_url: "https://wandb.example.com"}
budget: {a_month: 5000, currency: USD, alert_at_percent: [50, 100], emails: [a@example.com]}
vertex:
  tensorboards: [us-central1]
  persistent_resources:
    r:
      region: us-central1
      machine_type: a2-highgpu-1g
      replicas: 1
      max_replicas: 3
      boot_disk: {type: pd-ssd, size_gb: 200}
      more_pools:
        p:
          machine_type: n1-standard-4
          replicas: 1
          max_replicas: 3
          boot_disk: {type: pd-ssd, size_gb: 200}
    gpus:
      region: us-central1
      machine_type: n1-standard-8
      accelerator: t4
      more_pools: {v: {machine_type: n1-standard-8, accelerator: t4}}
""")
SERVER = ("serving", "c", "s")
AGENT = ("wandb_launch", "c")
SHARE = ("shares", "c", "a100-40-spot")
RESOURCE = ("vertex", "persistent_resources", "r")
GPUS = ("vertex", "persistent_resources", "gpus")
POOL = (*RESOURCE, "more_pools", "p")
TEAM_CHANGES: dict[Path, Any] = {
    ("cohort",): "group",
    ("weight",): 2,
    ("preemption",): {"reclaim": "Never"},
    ("preemption", "within_queue"): "Never",
    ("preemption", "reclaim"): "LowerPriority",
    ("preemption", "borrow_within_cohort"): "LowerPriority",
    ("hold",): {"c": "HoldAndDrain"},
    ("environment",): "other",
    ("name",): "mates",
    ("project",): "example-mates",
    ("labels",): {"cost-center": "two"},
    ("members",): ["group:b@example.com"],
    ("shares",): {"c": {"a100-40-spot": {"nominal_quota": 8}}},
    ("fallback",): {"when_can_borrow": "TryNextFlavor"},
    ("fallback", "when_can_borrow"): "TryNextFlavor",
    ("fallback", "when_can_preempt"): "MayStopSearch",
    ("fallback", "order"): {"c": ["a100-40-spot"]},
    ("host_network",): True,
    ("confined",): True,
    ("max_run_hours",): 600,
    ("egress",): [],
    ("egress", 0, "host"): "example.com",
    ("egress", 0, "ports"): [80],
    ("egress", 0, "protocol"): "UDP",
    ("egress", 1, "cidr"): "203.0.115.0/24",
    ("egress", 1, "ports"): [80],
    ("egress", 1, "protocol"): "UDP",
    (*SHARE, "nominal_quota"): 16,
    (*SHARE, "borrowing_limit"): 16,
    (*SHARE, "lending_limit"): 2,
    ("directories",): {},
    ("directories", "d", "filestore"): "b",
    ("directories", "d", "size_gib"): 200,
    ("directories", "d", "whole_share"): True,
    ("data_sets",): {},
    ("data_sets", "own", "bucket"): {"name": "example-two", "location": "us-central1"},
    ("data_sets", "own", "bucket", "name"): "example-two",
    ("data_sets", "own", "bucket", "path"): "crops",
    ("data_sets", "own", "bucket", "profile"): "training",
    ("data_sets", "own", "bucket", "file_cache_gib"): 100,
    ("data_sets", "own", "size_gib"): 5,
    ("data_sets", "own", "writable"): True,
    ("buckets",): {},
    ("buckets", "k", "location"): "us-west4",
    ("buckets", "k", "storage_class"): "NEARLINE",
    ("buckets", "k", "delete_after_days"): 20,
    ("buckets", "k", "versioning"): True,
    ("buckets", "k", "members_write"): True,
    ("buckets", "k", "hierarchical_namespace"): True,
    ("buckets", "k", "provider_inputs"): {"logging": {"log_bucket": "example-logs"}},
    (*RESOURCE, "provider_inputs"): {"resource_runtime_spec": {"ray_spec": {}}},
    ("secrets",): ["token", "other"],
    ("serving",): {},
    (*SERVER, "flavor"): "h100-flex-start",
    (*SERVER, "server"): "sglang",
    (*SERVER, "image"): "us-docker.pkg.dev/example-reach/images/vllm:2",
    (*SERVER, "command"): ["other"],
    (*SERVER, "args"): ["other"],
    (*SERVER, "port"): 9000,
    (*SERVER, "env"): {"A": "two"},
    (*SERVER, "secrets"): {},
    (*SERVER, "chips"): 4,
    (*SERVER, "vms"): 3,
    (*SERVER, "worker_command"): ["other"],
    (*SERVER, "min_replicas"): 2,
    (*SERVER, "max_replicas"): 3,
    (*SERVER, "metric"): "other_queue",
    (*SERVER, "target"): 6,
    (*SERVER, "priority"): "low",
    ("wandb_launch",): {},
    (*AGENT, "entity"): "example-mates",
    (*AGENT, "queues"): ["gpus", "tpus"],
    (*AGENT, "max_jobs"): 5,
    (*AGENT, "base_url"): "https://wandb2.example.com",
    (*AGENT, "image"): "us-docker.pkg.dev/example-reach/images/launch-agent:1",
    ("budget",): None,
    ("budget", "a_month"): 6000,
    ("budget", "currency"): "EUR",
    ("budget", "alert_at_percent"): [50, 90],
    ("budget", "emails"): [],
    ("vertex",): {},
    ("vertex", "tensorboards"): ["us-west4"],
    ("vertex", "registry"): True,
    ("writes_metrics",): True,
    ("vertex", "members_submit"): True,
    ("vertex", "persistent_resources"): {},
    (*RESOURCE, "region"): "us-west4",
    (*RESOURCE, "machine_type"): "a2-highgpu-2g",
    (*RESOURCE, "replicas"): 2,
    (*RESOURCE, "max_replicas"): 4,
    (*RESOURCE, "deletion_protection"): False,
    (*RESOURCE, "boot_disk"): {"type": "pd-ssd", "size_gb": 300},
    (*RESOURCE, "boot_disk", "type"): "pd-standard",
    (*RESOURCE, "boot_disk", "size_gb"): 400,
    (*RESOURCE, "network_attachment"): "projects/example-team/regions/us-central1/networkAttachments/vertex",
    (*RESOURCE, "more_pools"): {},
    (*GPUS, "accelerator"): None,
    (*GPUS, "accelerator_count"): 2,
    (*GPUS, "more_pools", "v", "accelerator"): None,
    (*GPUS, "more_pools", "v", "accelerator_count"): 2,
    (*POOL, "machine_type"): "n1-standard-8",
    (*POOL, "replicas"): 2,
    (*POOL, "max_replicas"): 4,
    (*POOL, "boot_disk"): {"type": "pd-ssd", "size_gb": 300},
    (*POOL, "boot_disk", "type"): "pd-standard",
    (*POOL, "boot_disk", "size_gb"): 400,
}


TEAM_WITHOUT_SHARES = {**TEAM, "shares": {}, "directories": {}, "serving": {}, "wandb_launch": {}}
FOR_TEAMS = {
    **DATA_SET_CHANGES,
    ("billing_account",): "01ABCD-23EF45-67AB80",
    ("google_apis",): "restricted",
    ("max_run_hours",): 600,
    ("vertex_submitters",): ["serviceAccount:b@example-ci.iam.gserviceaccount.com"],
    ("team_logs_days",): 60,
    ("open_egress",): True,
    ("egress",): [],
    ("egress", 0, "cidr"): "203.0.112.0/24",
    ("egress", 0, "ports"): [443],
    ("egress", 0, "protocol"): "UDP",
}


def changed(value: dict[str, Any], path: Path, new: Any) -> dict[str, Any]:
    result = copy.deepcopy(value)
    inner: Any = result
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = new
    return result


def stacks_of(environment: dict[str, Any], team: dict[str, Any]) -> Workspace:
    """Return the stacks of an environment and a team, and the environment that a team may move to."""
    sections = {"env": {"environment": environment}, "other": {"environment": ENVIRONMENT}, "team": {"team": team}}
    workspace = Workspace(ORGANISATION, {name: parsed(name, section) for name, section in sections.items()})
    workspace = cross_check(workspace)
    findings = [finding for stack in workspace.stacks.values() for finding in stack.findings]
    assert not [str(finding) for finding in findings if finding.severity == "error"]
    return workspace


def parsed(name: str, sections: Mapping[str, Any]) -> Stack:
    """Return a stack of sections by their kind, parsed once while tests change another file."""
    return _parsed(name, json.dumps({"config": {f"{PROJECT}:{kind}": section for kind, section in sections.items()}}))


@lru_cache(maxsize=8)
def _parsed(name: str, text: str) -> Stack:
    return parse_stack(name, parse_source(text, f"stacks/Pulumi.{name}.yaml"))  # YAML has all of JSON


def planned(environment: dict[str, Any], team: dict[str, Any], stack: str) -> PlannedStack:
    """Return the plan of two files' environment or team. Tests share it, so it must not be changed."""
    return _planned(json.dumps([environment, team]), stack)


@lru_cache(maxsize=16)
def _planned(files: str, stack: str) -> PlannedStack:
    workspace = stacks_of(*json.loads(files))
    return planned_stack(workspace.stacks[stack], workspace)


def steps(model: Any, path: Path) -> Iterator[tuple[type[BaseModel], str]]:
    """The section and the field that each part of a path goes through; only the last is what the path changes."""
    sections: list[tuple[type[BaseModel], str]] = []
    for part in path:
        model = inner(model)
        if isinstance(model, type) and issubclass(model, BaseModel):
            sections.append((model, str(part)))
            model = model.model_fields[str(part)].annotation
        else:
            model = get_args(model)[0 if isinstance(part, int) else 1]
    yield from sections[-1:]


def sections(model: Any) -> Iterator[type[BaseModel]]:
    model = inner(model)
    if isinstance(model, type) and issubclass(model, BaseModel):
        yield model
        for field in model.model_fields.values():
            yield from sections(field.annotation)
    else:
        for argument in get_args(model):
            yield from sections(argument)


def inner(annotation: Any) -> Any:
    """Return the type inside ``X | None`` and ``Annotated[X, ...]``."""
    arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
    plain = isinstance(annotation, type) or getattr(annotation, "__origin__", None) in (dict, tuple)
    return annotation if plain or not arguments else inner(arguments[0])
