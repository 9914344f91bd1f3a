"""A whole object before the rules of documents."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from training_platform.config.reading.finding import Finding
from training_platform.resources.stack_resource import StackResource
from training_platform.rules import evaluate, program, view_rules, views_of_plan

POOL = "gcp:container/nodePool:NodePool"
JOB = "kubernetes:batch/v1:Job"
NETWORK = "kubernetes:networking.gke.io/v1:Network"
DOCUMENTS = [rule for rule in view_rules() if rule.ruleset == "documents"]


def found(kind: str, **inputs: Any) -> list[Finding]:
    views = views_of_plan([StackResource(stack="dev", type=kind, name="thing", inputs=inputs)])
    whole = program(views, stack="dev", environment="dev", team=None, production=False)
    return evaluate(whole, DOCUMENTS)


def of(kind: str, path: str, value: Any) -> dict[str, Any]:
    """Return inputs that nothing is wrong with but the value at a path; a number in it is a place in a list."""
    inputs: Any = {"cluster": "main"} if kind == POOL else {}
    if kind == NETWORK:
        inputs = {"spec": {"type": "L2"}}
    if kind == JOB:
        container = {"name": "train", "image": "registry.example.com/train"}
        inputs = {"spec": {"template": {"spec": {"containers": [container], "restartPolicy": "OnFailure"}}}}
    part = inputs
    keys = path.split(".")
    for key, after in pairwise(keys):
        part = part[int(key)] if isinstance(part, list) else part.setdefault(key, [{}] if after.isdecimal() else {})
    part[int(keys[-1]) if isinstance(part, list) else keys[-1]] = value
    return dict(inputs)
