"""The first file of a job, as text."""

from __future__ import annotations

from training_platform.config.expansion.flavors import Flavor


def job_text(environment: str, image: str, cluster: str, flavor: Flavor) -> str:
    """Return a job on one flavor: one slice, or one VM."""
    return (
        "# yaml-language-server: $schema=../job.schema.json\n"
        f"environment: {environment}\nimage: {image}\ncommand: [python, -m, train]\n"
        f"gke:\n  cluster: {cluster}\n  flavor: {flavor.name}\n"
        f"  {'slices' if flavor.accelerator.kind == 'tpu' else 'nodes'}: 1\n"
    )
