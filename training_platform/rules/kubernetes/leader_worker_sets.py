"""Groups of LeaderWorkerSet."""

from __future__ import annotations

from collections.abc import Iterator

from training_platform.rules.kubernetes.objects import Json, Wrong, block, object_rule, text, whole

_SOURCE = "LeaderWorkerSet 0.10.0, pkg/webhooks/leaderworkerset_webhook.go, read 2026-11-22"


@object_rule("lws-subgroup-size", "leaderworkerset.x-k8s.io:LeaderWorkerSet", ruleset="objects", source=_SOURCE)
def lws_subgroup_size(inputs: Json) -> Iterator[Wrong]:
    """Find subgroups of a LeaderWorkerSet into which the pods of a group cannot be divided.

    Where LeaderExcluded is their type, only the workers are divided; otherwise the leader is of the first one, or
    beside all. A group is 1 pod unless it says another size.
    """
    group = block(inputs, "spec", "leaderWorkerTemplate")
    policy, size = block(group, "subGroupPolicy"), whole(group, "size")
    part = whole(policy, "subGroupSize")
    size = 1 if "size" not in group else size
    if part is None or size is None:
        return
    divided = (size - 1,) if text(policy, "type") == "LeaderExcluded" else (size, size - 1)
    if part < 1 or part > size or all(pods % part for pods in divided):
        fitting = [each for each in range(1, size + 1) if not all(pods % each for pods in divided)]
        path = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
        nearest = min(fitting, key=lambda each: abs(each - part))
        yield Wrong(path, f"{size} pods cannot be divided by {part}", ", ".join(map(str, fitting)), str(nearest))
