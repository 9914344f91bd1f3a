"""An organisation of two clusters and two teams that jobs and usage are tried on, as files."""

from __future__ import annotations

from datetime import date
from pathlib import Path

TODAY = date(2026, 11, 21)
ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    labels: {cost-center: lab}
    vertex_submitters: ["serviceAccount:submit@example-ci.iam.gserviceaccount.com"]
    filestore:
      shared: {location: us-central1-a, capacity_gib: 1024}
      regional: {location: us-central1, tier: REGIONAL, capacity_gib: 1024, share: vol1}
    private_services_range: 10.200.0.0/20
    network_attachments: {us-central1: 10.30.0.0/24}
    lustre: {scratch: {location: us-central1-a, capacity_gib: 9000, filesystem: own}}
    data_sets:
      own: {lustre: {instance: scratch}}
      images: {size_gib: 5, bucket: {name: example-images, location: us-central1, path: food101}}
      far: {size_gib: 5, bucket: {name: example-far, location: europe-west4}}
      files: {filestore: {instance: shared, path: food101}, writer: vision}
      disk: {hyperdisk_ml: {zone: us-central1-a, size_gib: 100, filled: true}}
      empty: {hyperdisk_ml: {zone: us-central1-a, size_gib: 100}, writer: nlp}
      fast: {lustre: {instance: one, location: us-central1-a, address: 10.90.0.2, filesystem: lustre}}
      theirs: {bucket: {name: example-theirs, location: us-central1}, teams: [nlp]}
    clusters:
      tpus:
        location: us-west4
        subnet: {nodes: 10.10.0.0/20, pods: 10.64.0.0/16, services: 10.10.16.0/20}
        pathways: {max_nodes: 2}
        node_pools:
          slices: {machine_type: ct5lp-hightpu-4t, zone: us-west4-a, topology: 4x8, slices: 4, min_slices: 2}
          hosts: {machine_type: ct5lp-hightpu-8t, zone: us-west4-a, topology: 2x4, slices: 8}
          many: {machine_type: ct5lp-hightpu-4t, zone: us-west4-a, topology: 4x4, slices: 12, min_slices: 12,
                 capacity: spot}
          one: {machine_type: ct5lp-hightpu-8t, zone: us-west4-a, topology: 2x4, capacity: flex-start}
          two: {machine_type: ct5lp-hightpu-4t, zone: us-west4-a, topology: 2x4, capacity: flex-start}
      gpus:
        location: us-central1
        subnet: {nodes: 10.11.0.0/20, pods: 10.65.0.0/16, services: 10.11.16.0/20}
        node_pools:
          h100: {machine_type: a3-highgpu-8g, zone: us-central1-a, max_nodes: 8}
          small: {machine_type: a2-highgpu-1g, zone: us-central1-a, max_nodes: 8}
          large: {machine_type: a2-highgpu-4g, zone: us-central1-a, max_nodes: 2}
"""
VISION = """\
config:
  training-platform:team:
    environment: lab
    name: vision
    labels: {cost-center: vision}
    members: ["group:vision@example.com"]
    shares:
      tpus:
        tpu-v5e-4x8: {nominal_quota: 32, borrowing_limit: 96}
        tpu-v5e-2x4: {nominal_quota: 64}
        tpu-v5e-4x4-spot: {nominal_quota: 192}
        tpu-v5e-2x4-flex-start: {nominal_quota: 16}
      gpus:
        h100: {nominal_quota: 32, borrowing_limit: 8}
        a100-40: {nominal_quota: 16}
    buckets:
      checkpoints: {location: us-central1}
      far: {location: europe-west4}
    directories:
      data: {filestore: shared, size_gib: 512}
      more: {filestore: shared, size_gib: 512}
      own: {filestore: regional, size_gib: 1024, whole_share: true}
    secrets: [token]
    vertex:
      tensorboards: [us-central1]
      persistent_resources:
        tuning:
          region: us-central1
          machine_type: a2-highgpu-1g
          replicas: 1
          max_replicas: 4
          boot_disk: {type: pd-ssd, size_gb: 200}
"""
NLP = """\
config:
  training-platform:team:
    environment: lab
    name: nlp
    members: ["group:nlp@example.com"]
    shares:
      tpus:
        tpu-v5e-4x8: {nominal_quota: 96, lending_limit: 64}
      gpus:
        h100: {nominal_quota: 32}
"""
QUOTAS = """\
project: example-lab
taken: "2026-11-01"
limits:
  aiplatform.googleapis.com:
    CustomModelTrainingA100GPUsPerProjectPerRegion:
      - {limit: 8, region: us-central1}
    CustomModelTrainingPreemptibleH100GPUsPerProjectPerRegion:
      - {limit: 32, region: us-central1}
    CustomModelTrainingPDSSDPerProjectPerRegion:
      - {limit: 4000, region: us-central1}
      - {limit: -1, region: us-west4}
    CustomModelTrainingV5ETPUPerProjectPerRegion:
      - {limit: 64, region: us-west4}
"""
STACKS = {"Pulumi.lab.yaml": ENVIRONMENT, "Pulumi.lab-vision.yaml": VISION, "Pulumi.lab-nlp.yaml": NLP}


def write_lab(root: Path, **replaced: str) -> Path:
    """Write the organisation below ``root``; a keyword such as ``lab_nlp`` replaces the text of that stack."""
    (root / "stacks" / "quotas").mkdir(parents=True)
    (root / "jobs" / "vision").mkdir(parents=True)
    (root / "Pulumi.yaml").write_text("name: training-platform\n")
    (root / "stacks" / "clock.yaml").write_text('today: "2026-11-21"\n')
    (root / "stacks" / "quotas" / "example-lab.yaml").write_text(QUOTAS)
    texts = STACKS | {f"Pulumi.{key.replace('_', '-')}.yaml": text for key, text in replaced.items()}
    for name, text in texts.items():
        (root / "stacks" / name).write_text(text)
    return root
