"""Changes of the sample organisation as people make them, with and without effects on somebody."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

Edit = Callable[[Path], None]


class SampleChange(NamedTuple):
    """A change by its author's own sentence; ``effects`` are those that affect somebody.

    ``before`` is an edit of the base, of which the change is part of a longer story.
    """

    name: str
    edit: Edit
    effects: frozenset[str] = frozenset()
    before: Edit | None = None


def _stack(root: Path, name: str) -> Path:
    return root / "stacks" / f"Pulumi.{name}.yaml"


def write(stack: str, old: str, new: str) -> Edit:
    """Return an edit that replaces a text of a stack file; the file must have it."""
    return replace_text(f"stacks/Pulumi.{stack}.yaml", old, new)


def replace_text(file: str, old: str, new: str) -> Edit:
    """Return an edit that replaces a text of a file; the file must have it."""

    def edit(root: Path) -> None:
        path = root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{path} has no {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return edit


def remove(*paths: str) -> Edit:
    """Return an edit that removes files and folders."""

    def edit(root: Path) -> None:
        for name in paths:
            path = root / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    return edit


def rename(old: str, new: str, *edits: Edit) -> Edit:
    """Return an edit that renames a stack and then makes further edits."""

    def edit(root: Path) -> None:
        _stack(root, old).rename(_stack(root, new))
        for step in edits:
            step(root)

    return edit


def all_of(*edits: Edit) -> Edit:
    """Return one edit for several."""

    def edit(root: Path) -> None:
        for step in edits:
            step(root)

    return edit


def part(stack: str, key: str, indent: int, after: str = "") -> Edit:
    """Return an edit that removes a key and its value: the first one with this indent after a text."""

    def edit(root: Path) -> None:
        path = _stack(root, stack)
        text = path.read_text(encoding="utf-8")
        start = text.index(f"\n{' ' * indent}{key}:", text.index(after)) + 1
        end = re.compile(rf"^ {{0,{indent}}}\S", re.MULTILINE).search(text, text.index("\n", start) + 1)
        path.write_text(text[:start] + (text[end.start() :] if end else ""), encoding="utf-8")

    return edit


def add_file(name: str, text: str) -> Edit:
    """Return an edit that adds a file."""

    def edit(root: Path) -> None:
        (root / name).write_text(text, encoding="utf-8")

    return edit


def _loss(name: str, edit: Edit, *effects: str) -> SampleChange:
    return SampleChange(name, edit, frozenset(effects))


H100 = """\
            zone: us-central1-a
            capacity: reservation
            reservation: {name: h100-training, chips: 64}
"""
CHECKPOINTS = "      checkpoints:\n        location: us-central1\n        delete_after_days: 90\n"
VISION_HEAD = "    environment: prod\n    name: vision\n"
PROD_HEAD = "    project: example-train-prod\n"
A100 = "          a100:\n            machine_type: a2-highgpu-8g\n"
V5E = "            topology: 4x8\n            slices: 4\n            min_slices: 2\n"
NEW_TEAM = """\
config:
  training-platform:team:
    environment: prod
    name: audio
    members: [group:audio@example.com]
    buckets:
      clips: {location: us-central1}
"""

LOSSES: tuple[SampleChange, ...] = (
    _loss("a team leaves", remove("stacks/Pulumi.prod-vision.yaml", "jobs/vision"), "stack"),
    _loss(
        "a team gets another name",
        rename("prod-vision", "prod-sight", write("prod-sight", "name: vision", "name: sight")),
        "stack",
    ),
    _loss(
        "the H100 machines move to another zone", write("prod", H100, H100.replace("central1-a", "central1-b")), "jobs"
    ),
    _loss("checkpoints are kept for a day", write("prod-vision", CHECKPOINTS, CHECKPOINTS.replace("90", "1")), "data"),
    _loss("data sets have no versions", write("prod-vision", "        versioning: true\n", ""), "data"),
    _loss("prod is no production", write("prod", "production: true", "production: false"), "protection"),
    _loss(
        "half of the H100 machines go",
        write(
            "prod",
            f"{H100}            min_nodes: 4\n            max_nodes: 8",
            f"{H100}            min_nodes: 4\n            max_nodes: 4",
        ),
        "promises",
    ),
    _loss(
        "the cluster in us-west4 goes",
        all_of(
            part("prod", "us-west4", 6, "    clusters:"),
            part("prod-vision", "us-west4", 6, "    shares:"),
            part("prod-nlp", "us-west4", 6, "    shares:"),
        ),
        "jobs",
        "promises",
    ),
    _loss("the bucket for pretraining goes", part("prod-nlp", "pretraining", 6), "data"),
    _loss(
        "larger boot disks of the A100 machines",
        write("prod", "boot_disk: {type: pd-balanced, size_gb: 200}", "boot_disk: {type: pd-balanced, size_gb: 500}"),
        "jobs",
    ),
    _loss("two v5e slices go", write("prod", V5E, V5E.replace("slices: 4", "slices: 2")), "jobs", "promises"),
    _loss("scratch goes", all_of(part("dev", "scratch", 6), part("dev-vision", "directories", 4)), "data", "jobs"),
    _loss("less room for data sets", write("prod", "capacity_gib: 10240", "capacity_gib: 5120"), "promises"),
    _loss("no persistent resource", part("prod-vision", "persistent_resources", 6), "jobs"),
    _loss("vision has another cost center", write("prod-vision", "cost-center: vision", "cost-center: cv"), "jobs"),
    _loss(
        "vision gets a third of its H100",
        write("prod-vision", "h100-reservation: {nominal_quota: 24", "h100-reservation: {nominal_quota: 8"),
        "promises",
    ),
    _loss("vision may borrow less", write("prod-vision", "borrowing_limit: 40", "borrowing_limit: 8"), "promises"),
    _loss(
        "vision is put on hold at once",
        write("prod-vision", VISION_HEAD, f"{VISION_HEAD}    hold: {{us-central1: HoldAndDrain}}\n"),
        "jobs",
    ),
    _loss(
        "nothing in prod is protected",
        write("prod", PROD_HEAD, f"{PROD_HEAD}    deletion_protection: false\n"),
        "protection",
    ),
    _loss(
        "GKE upgrades nodes when it likes",
        write(
            "prod",
            "        location: us-west4\n",
            "        location: us-west4\n        maintenance: {upgrade_freeze: false}\n",
        ),
        "protection",
    ),
    _loss("pods may connect to anything", write("prod", PROD_HEAD, f"{PROD_HEAD}    open_egress: true\n"), "opens"),
    _loss(
        "prod moves to another project",
        write("prod", "project: example-train-prod", "project: example-train-next"),
        "data",
        "jobs",
    ),
    _loss(
        "nobody is told of alerts",
        write(
            "prod",
            "      emails: [ml-platform-oncall@example.com]",
            "      emails: [ml-platform-oncall@example.com]\n      enabled: false",
        ),
        "protection",
    ),
    _loss(
        "two versions of each image",
        write("prod", "      location: us\n", "      location: us\n      keep_versions: 2\n"),
        "data",
    ),
    _loss(
        "pods that are no research leave the A100 machines",
        write("prod", A100, f"{A100}            taints: {{dedicated: {{value: research, effect: NO_EXECUTE}}}}\n"),
        "jobs",
    ),
    _loss("shorter runs of H100 Mega", write("prod", "max_run_hours: 168", "max_run_hours: 100"), "jobs"),
)
"""Changes that take data, jobs, capacity, protection or more from somebody than their author may know."""

HARMLESS: tuple[SampleChange, ...] = (
    _loss("a comment", write("prod", "config:\n", "# Reviewed.\nconfig:\n")),
    _loss(
        "more H100 machines",
        write(
            "prod",
            "            min_nodes: 4\n            max_nodes: 8",
            "            min_nodes: 4\n            max_nodes: 9",
        ),
    ),
    _loss("fewer idle H100 machines", write("prod", "            min_nodes: 4\n", "            min_nodes: 2\n")),
    _loss("checkpoints are kept for longer", write("prod-vision", CHECKPOINTS, CHECKPOINTS.replace("90", "120"))),
    _loss(
        "checkpoints are kept for ever",
        write("prod-vision", CHECKPOINTS, CHECKPOINTS.replace("        delete_after_days: 90\n", "")),
    ),
    _loss("a team more", add_file("stacks/Pulumi.prod-audio.yaml", NEW_TEAM), "grants"),
    _loss(
        "a pool more",
        write("prod", A100, "          l4: {machine_type: g2-standard-8, zone: us-central1-a, max_nodes: 1}\n" + A100),
    ),
    _loss(
        "a member more",
        write(
            "prod-vision",
            "      - group:vision@example.com\n",
            "      - group:vision@example.com\n      - user:ada@example.com\n",
        ),
        "grants",
    ),
    _loss("prod has another cost center", write("prod", "cost-center: ml-production", "cost-center: ml-training")),
    _loss(
        "vision reaches more addresses",
        write("prod-vision", VISION_HEAD, f"{VISION_HEAD}    egress: [{{cidr: 203.0.113.0/24}}]\n"),
        "grants",
    ),
    _loss("no dashboards", write("prod", PROD_HEAD, f"{PROD_HEAD}    dashboards: false\n")),
    _loss("protection as it is, in words", write("prod", PROD_HEAD, f"{PROD_HEAD}    deletion_protection: true\n")),
    _loss(
        "a request for quota",
        write(
            "prod",
            PROD_HEAD,
            f"""{PROD_HEAD}    quota_requests:
      more: {{service: compute.googleapis.com, quota_id: GPUS-PER-GPU-FAMILY-per-project-region, value: 96,
        dimensions: {{region: us-central1, gpu_family: NVIDIA_H100}}, justification: Two., contact: ml@example.com}}
""",
        ),
    ),
    _loss("a secret more", write("prod-vision", VISION_HEAD, f"{VISION_HEAD}    secrets: [hugging-face]\n"), "grants"),
    _loss(
        "a stack has another name",
        rename(
            "prod-vision",
            "prod-sight",
            write("prod-sight", VISION_HEAD, f"{VISION_HEAD}    renamed_from: prod-vision\n"),
        ),
    ),
    _loss(
        "keys in another order",
        write(
            "prod",
            "    project: example-train-prod\n    production: true\n",
            "    production: true\n    project: example-train-prod\n",
        ),
    ),
)
"""Changes that take nothing from anybody, though some look as if they did."""


def _in_story(name: str, before: Edit, edit: Edit, *effects: str) -> SampleChange:
    return SampleChange(name, edit, frozenset(effects), before)


RETIRED = '    retired: {since: "2026-12-15", keeps: [buckets.checkpoints], paid_by: ml@example.com}\n'
FLEX = "            capacity: flex-start\n            max_run_hours: 168\n"
US_EAST5 = """\
      us-east5:
        location: us-east5
        subnet: {nodes: 10.23.0.0/20, pods: 10.83.0.0/16, services: 10.23.16.0/20}
        system_pool: {machine_type: e2-standard-8, min_nodes: 3, max_nodes: 6}
        node_pools:
          a100: {machine_type: a2-ultragpu-8g, zone: us-east5-b, max_nodes: 1}
"""
CLUSTERS = "    clusters:\n"
MOVED = (("location: us-west4\n", "location: us-east5\n"), ("zone: us-west4-a", "zone: us-east5-a"))
BUDGET = "    billing_account: 01AB23-45CD67-89EF01\n    budget: {a_month: 90000}\n"
COHORTS = "    cohorts: {research: {}, products: {}}\n"
EXEMPTION = """\
exemptions:
- {rule: boot-disk-size, stack: prod, path: clusters, reason: Old, owner: ml@example.com, expires: "2027-01-31"}
"""

YEAR: tuple[SampleChange, ...] = (
    _loss(
        "vision is retired and keeps its checkpoints",
        write("prod-vision", VISION_HEAD, f"{VISION_HEAD}{RETIRED}"),
        "data",
        "jobs",
        "promises",
        "protection",
    ),
    _loss(
        "a team gets another name, and its file says so",
        rename(
            "prod-vision",
            "prod-sight",
            write("prod-sight", VISION_HEAD, "    environment: prod\n    name: sight\n    renamed_from: prod-vision\n"),
        ),
        "data",
        "jobs",
    ),
    _loss(
        "the A100 machines get 80 GB and another zone",
        write(
            "prod",
            f"{A100}            zone: us-central1-c\n",
            A100.replace("highgpu", "ultragpu") + "            zone: us-central1-a\n",
        ),
        "jobs",
    ),
    _loss("the H100 machines get another type", write("prod", "a3-highgpu-8g", "a3-highgpu-4g"), "jobs", "promises"),
    _loss(
        "GKE of us-west4 is upgraded",
        write("prod", "        location: us-west4\n", '        location: us-west4\n        version: "1.36"\n'),
    ),
    _loss("Kueue is upgraded", write("prod", PROD_HEAD, f'{PROD_HEAD}    charts: {{kueue: {{version: "0.20.7"}}}}\n')),
    _loss("a cluster more", write("prod", CLUSTERS, f"{CLUSTERS}{US_EAST5}"), "grants"),
    _loss(
        "the cluster in us-west4 moves",
        all_of(
            write("prod", *MOVED[0]),
            write("prod", *MOVED[1]),
            write("prod", *MOVED[1]),
        ),
        "jobs",
    ),
    _loss("more room for homes", write("prod", "capacity_gib: 2560", "capacity_gib: 5120")),
    _loss("slightly less room for data sets", write("prod", "capacity_gib: 10240", "capacity_gib: 10000"), "promises"),
    _in_story(
        "data sets shrink below their band",
        write("prod", "tier: REGIONAL", "tier: ZONAL"),
        write("prod", "capacity_gib: 10240", "capacity_gib: 9984"),
        "promises",
    ),
    _loss("vision lends less", write("prod-vision", "lending_limit: 32", "lending_limit: 8"), "promises"),
    _in_story(
        "vision is in another cohort",
        all_of(
            write("prod", PROD_HEAD, f"{PROD_HEAD}{COHORTS}"),
            write("prod-vision", VISION_HEAD, f"{VISION_HEAD}    cohort: research\n"),
        ),
        write("prod-vision", "cohort: research", "cohort: products"),
        "promises",
    ),
    _loss(
        "notebooks on another instance",
        write("prod", "          filestore: homes", "          filestore: datasets"),
        "jobs",
    ),
    _in_story(
        "a smaller budget",
        write("prod", PROD_HEAD, f"{PROD_HEAD}{BUDGET}"),
        write("prod", "a_month: 90000", "a_month: 60000"),
    ),
    _loss(
        "vision loses its member",
        write("prod-vision", "      - group:vision@example.com\n", "      - group:sight@example.com\n"),
        "revokes",
        "grants",
    ),
    _in_story(
        "a network attachment goes",
        write("prod", PROD_HEAD, f"{PROD_HEAD}    network_attachments: {{us-central1: 10.24.0.0/24}}\n"),
        write("prod", "    network_attachments: {us-central1: 10.24.0.0/24}\n", ""),
        "jobs",
    ),
    _loss("another reservation of H100", write("prod", "name: h100-training", "name: h100-next"), "jobs"),
    _loss(
        "spot in place of reserved v5e",
        write(
            "prod",
            "            capacity: reservation\n            reservation: {name: v5e-training, chips: 128}\n",
            "            capacity: spot\n",
        ),
        "jobs",
    ),
    _loss(
        "A100 machines by flex-start",
        write("prod", A100, f"{A100}            capacity: flex-start\n            max_run_hours: 100\n"),
        "jobs",
    ),
    _loss(
        "H100 Mega machines by queued provisioning",
        write("prod", FLEX, FLEX.replace("flex-start", "queued-provisioning")),
        "jobs",
    ),
    _in_story(
        "vision keeps less at its end",
        write("prod-vision", VISION_HEAD, f"{VISION_HEAD}{RETIRED}"),
        write("prod-vision", "keeps: [buckets.checkpoints], paid_by: ml@example.com", "keeps: []"),
        "data",
    ),
    _loss("the job gets more time", replace_text("jobs/vision/finetune.yaml", "priority: normal", "priority: high")),
    _loss(
        "a higher limit of the project",
        replace_text(
            "stacks/quotas/example-train-prod.yaml",
            "{limit: 864, region: us-central1}",
            "{limit: 960, region: us-central1}",
        ),
    ),
    _loss(
        "an exemption",
        replace_text("stacks/exemptions.yaml", "exemptions: []", EXEMPTION),
    ),
)
"""Further changes of a year, so that each kind that people make is in one of these tables."""
