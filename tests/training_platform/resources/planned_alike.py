"""Whether what the model says of a stack's resources is what its program registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from training_platform.resources.planned import Planned

NOT_OF_THE_MODEL = ("provider", "dependsOn")
"""Options that components alone decide: what waits for what; the model's dependencies are some of the plan's."""

LEFT_OUT = {
    "gcp:projects/iAMMember:IAMMember",  # but those of nodes
    "gcp:serviceaccount/account:Account",  # of jobs
    "kubernetes:core/v1:PersistentVolumeClaim",
    "kubernetes:helm.sh/v3:Release",
}
"""Types with views, some or all of whose resources are in the plan alone."""


def differences(of_model: Iterable[Planned], of_plan: Iterable[Planned], viewed: Iterable[str]) -> list[str]:
    """Return a sentence for every resource, input and option that is not the same; ``viewed`` are types with views."""
    model, plan = {each.key: each for each in of_model}, {each.key: each for each in of_plan}
    found = [f"{key} is in the model alone" for key in model.keys() - plan.keys()]
    found += [f"{key} is in the plan alone" for key in plan.keys() - model.keys() if key[0] in {*viewed} - LEFT_OUT]
    for key in model.keys() & plan.keys():
        found += [f"{key}: {each}" for each in _of_one(model[key], plan[key])]
    return sorted(found)


def _of_one(of_model: Planned, of_plan: Planned) -> Iterable[str]:
    yield from _inputs("", of_model.inputs, of_plan.inputs)
    mine, theirs = dict(of_model.options), dict(of_plan.options)
    if not set(mine.get("dependsOn", ())) <= set(theirs.get("dependsOn", ())):
        yield f"depends on {mine['dependsOn']}"
    for name in NOT_OF_THE_MODEL:
        mine.pop(name, None)
        theirs.pop(name, None)
    if mine != theirs:
        yield f"options {mine}, in the plan {theirs}"


def _inputs(path: str, of_model: Any, of_plan: Any) -> Iterable[str]:
    if isinstance(of_model, dict) and isinstance(of_plan, dict):
        for key in sorted({*of_model, *of_plan}):
            yield from _inputs(f"{path}.{key}", of_model.get(key, "left out"), of_plan.get(key, "left out"))
    elif isinstance(of_model, list) and isinstance(of_plan, list) and len(of_model) == len(of_plan):
        for index, pair in enumerate(zip(of_model, of_plan, strict=True)):
            yield from _inputs(f"{path}[{index}]", *pair)
    elif isinstance(of_model, bool) is not isinstance(of_plan, bool) or of_model != of_plan:  # a plan's 1 is our 1.0
        yield f"{path} is {of_model!r}, in the plan {of_plan!r}"
