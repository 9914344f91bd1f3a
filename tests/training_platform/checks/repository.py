"""A small repository under git, to compare a change with the committed files."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path

from training_platform.checks.report import Report
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions

TODAY = date(2026, 11, 21)
ENVIRONMENT = """\
config:
  training-platform:environment:
    project: example-small
    production: false
    filestore:
      homes: {location: us-central1-a, capacity_gib: 1024}
    clusters:
      c:
        location: us-central1-a
        subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
        node_pools:
          gpu:
            machine_type: a2-highgpu-8g
            capacity: on-demand
            max_nodes: 2
          tpu:
            machine_type: ct5lp-hightpu-4t
            topology: 4x4
            slices: 2
    alerts: {emails: [ml-platform@example.com]}
"""
TEAM = """\
config:
  training-platform:team:
    environment: small
    name: vision
    members: [group:vision@example.com]
    shares:
      c:
        a100-40: {nominal_quota: 8}
    vertex:
      persistent_resources:
        tuning: {region: us-central1, machine_type: a2-highgpu-1g}
"""


def signed(entry: str, expires: str = "2026-12-31") -> str:
    """Return an entry of ``stacks/exemptions.yaml`` as printed, with a reason, an owner and a last day."""
    text = entry.replace('reason: ""', "reason: Agreed.").replace('owner: ""', "owner: ml@example.com")
    return text.replace("YYYY-MM-DD", expires)


class Repository:
    """A repository whose first commit is on ``main``, with a change in the work tree."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *arguments: str, root: Path | None = None) -> str:
        """Run git and return its output."""
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
        done = subprocess.run(command, cwd=root or self.root, check=True, capture_output=True, text=True)
        return done.stdout

    def path(self, stack: str) -> Path:
        """Return the path of a stack's file."""
        return self.root / "stacks" / f"Pulumi.{stack}.yaml"

    def edit(self, stack: str, old: str, new: str) -> int:
        """Replace a text in a stack's file, and return the number of the new text's last line."""
        path = self.path(stack)
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return text[: text.index(old)].count("\n") + 1 + new.rstrip("\n").count("\n")

    def rename(self, stack: str, name: str) -> None:
        """Rename a stack, and declare in its file that the deployed stack was renamed."""
        self.path(stack).rename(self.path(name))
        section = "environment" if name.count("-") == 0 else "team"
        head = f"  training-platform:{section}:\n"
        self.edit(name, head, f"{head}    renamed_from: {stack}\n")

    def commit(self) -> None:
        """Commit the work tree."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")

    def compare(
        self, *, base: str = "main", selected: tuple[str, ...] = (), new: bool = False, **deployed: tuple[Path, ...]
    ) -> Report:
        """Check the work tree against a base; ``deployed`` are ``states`` and ``previews``."""
        options = CheckOptions(today=TODAY)
        return run_check(self.root, options, selected=selected, base=base, new_only=new, **deployed)
