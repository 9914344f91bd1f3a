#!/usr/bin/env python3
"""Checks a stack's clusters for problems that Pulumi does not detect, given the output of `pulumi stack export`.

- ``clusters.py reach`` fails if a cluster cannot be reached. A preview would report "unchanged" in this case.
- ``clusters.py queues`` fails if a cluster has Kueue objects that belong to no stack. With such objects, a
  destroy would never end.
- ``clusters.py events`` prints the newest warnings about charts. They remain after Helm rolls back a release that did
  not become ready.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from training_platform.clients.deployed_clusters import chart_warnings, deployed_clusters, objects_without_stack
from training_platform.clients.kubernetes_api import ClusterError

QUESTIONS = ("reach", "queues", "events")


def main(question: str, resources: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the reason to stop the pipeline, or None if it may continue."""
    try:
        for cluster in deployed_clusters(resources):
            if question == "reach":
                cluster.kinds("v1")
            elif question == "events":
                for line in chart_warnings(cluster):
                    sys.stdout.write(f"cluster {cluster.name}: {line}\n")
            elif names := list(objects_without_stack(cluster, resources)):
                return (
                    f"cluster {cluster.name} has Kueue objects that belong to no stack: {', '.join(names)}. "
                    "Delete them first: docs/lifecycle.md#retire-an-environment"
                )
    except ClusterError as error:
        return str(error)
    return None


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in QUESTIONS:
        sys.stderr.write(f"usage: clusters.py {'|'.join(QUESTIONS)} < EXPORT\n")
        sys.exit(2)
    try:
        deployment = json.load(sys.stdin).get("deployment") or {}
    except (ValueError, AttributeError):
        sys.stderr.write("clusters.py: standard input is not what `pulumi stack export` prints\n")
        sys.exit(2)
    sys.exit(main(sys.argv[1], deployment.get("resources") or []))
