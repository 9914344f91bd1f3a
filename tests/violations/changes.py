"""One random change of a valid object, such as one makes by mistake, and what the rules find that a server would."""

from __future__ import annotations

import copy
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from tests.training_platform.rules.corpus import accepted, judged
from tests.violations.draw import Json, Keys, entries, valid
from tests.violations.refusers import NOT_SERVED
from training_platform.rules import RULES

_TEXTS: Final = ("", " ", "Not Valid!", "UPPER", "a_b", "-a", "a.b", "a/b", "../a", "a" * 64, "a" * 254, "0", "101%",
                 "*", "None", "10.0.0.5", "a=b", "1Gi", "-1", "Always", "example.com/x")  # fmt: skip
_NUMBERS: Final = (-1, 0, 1, 3, 101, 65536, 2**31 - 1, 2**31, 10**12)
_SERVERS: Final = (
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "apiVersion",
    "kind",
)  # what an object is
OWNERS: Final = frozenset({"documents", "kubernetes", "kueue"})  # of rules about what a server refuses
# What a server takes and its controller cannot use: jobs and pods that are never made, Prometheus' own settings, a
# selector of metrics. All that is found elsewhere has to be refused by the server.
LATER: Final = re.compile(
    r"(JobSet|CronJob) .*[tT]emplate|JobSet spec\.replicatedJobs\[\d+\]\.name|PodMonitoring .*(interval|timeout|port)"
    r"|HorizontalPodAutoscaler .*metric\.selector|.* \S*template\.metadata"
)
# What is refused when pods are made of a template, or of a flavor's tolerations. Annotations of templates are judged
# by the webhooks, as all of them are at once, but for the names of keys.
LATER_FOR_WEBHOOKS: Final = re.compile(
    r"(JobSet|LeaderWorkerSet) \S*[tT]emplate\S*(?<!annotations): |ResourceFlavor spec\.tolerations"
    r"|\S+ \S*[tT]emplate\S* .* is not in the form of a key"
)
Drawn = tuple[str, Json]


def bases() -> list[Drawn]:
    """Return the objects that are changed: valid ones, and those that others deploy as far as they are known."""
    rows = [*valid().values(), *(row for entry in accepted().values() for row in entry.get("resources", {}).values())]
    drawn = [(row["type"], row["inputs"]) for row in rows if row["type"].startswith("kubernetes:")]
    return [
        (kind, inputs) for kind, inputs in drawn
        if not kind.endswith(NOT_SERVED) and inputs["metadata"].get("name") and len(inputs) > 1
        and "<unknown>" not in json.dumps(inputs)
    ]  # fmt: skip


class Changes:
    """Draws changes; values of inputs with the same name, and names of their neighbours, are from all objects."""

    def __init__(self, drawn: list[Drawn], seed: int) -> None:
        self._random = random.Random(seed)  # nothing is kept secret by it
        self._values: dict[str | int, list[Any]] = defaultdict(list)
        self._beside: dict[str | int, dict[str, Any]] = defaultdict(dict)
        for _, inputs in drawn:
            for keys, value in _walk(inputs):
                name = next((key for key in reversed(keys) if isinstance(key, str)), "")
                self._values[name].append(value)
                self._beside[name] |= value if isinstance(value, dict) else {}

    def changed(self, inputs: Json) -> Json:
        """Return an object with one change; places are as likely as they are different."""
        changed = copy.deepcopy(inputs)
        places: dict[Keys, list[Keys]] = defaultdict(list)
        for keys, _ in _walk(changed):
            if keys not in ((), ("metadata",), ("metadata", "name"), ("metadata", "namespace")):
                places[tuple(0 if isinstance(key, int) else key for key in keys)].append(keys)
        *above, last = self._random.choice(self._random.choice(list(places.values())))
        block: Any = changed
        for key in above:
            block = block[key]
        if self._random.random() < 0.15:
            del block[last]
        else:
            name = next((key for key in reversed((*above, last)) if isinstance(key, str)), "")
            block[last] = self._worse(name, block[last])
        return changed

    def _worse(self, name: str | int, value: Any) -> Any:
        pick = self._random.choice
        if self._random.random() < 0.25 and self._values[name]:
            return copy.deepcopy(pick(self._values[name]))
        if isinstance(value, dict) and self._beside[name]:
            key = pick([key for key in self._beside[name] if key not in _SERVERS] or [""])
            return pick(({}, {**value, "bad key": "a"}, {**value, key: copy.deepcopy(self._beside[name].get(key))}))
        if isinstance(value, list):
            return pick(([], [*value, *copy.deepcopy(value[:1])], [*value, *copy.deepcopy(self._values[name][:1])]))
        if isinstance(value, bool):
            return not value
        return pick(_NUMBERS) if isinstance(value, (int, float)) else pick(_TEXTS)


def _walk(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    yield keys, value
    for key, part in entries(value):
        yield from _walk(part, (*keys, key))


def errors(kind: str, inputs: Json) -> list[str]:
    """Return where the rules find an error that a server would."""
    findings = judged({"resources": {"thing": {"type": kind, "inputs": inputs}}})
    return [f"{kind.rpartition(':')[2]} {finding.path}: {finding.message}" for finding in findings
            if finding.severity == "error" and RULES[finding.rule].owner in OWNERS]  # fmt: skip
