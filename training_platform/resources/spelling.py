"""From the names of pulumi-gcp's Python to those of its wire: ``node_config`` is ``nodeConfig``, but for keys of users.

A test holds both against pulumi_gcp, for every type that components register.
"""

from __future__ import annotations

# Inputs that are maps: their keys are users', and go as they are.
MAP_FIELDS = frozenset(
    {
        "dimensions",
        "label_extractors",
        "labels",
        "metadata",
        "resource_labels",
        "resource_manager_tags",
        "sysctls",
        "user_labels",
    }
)


class _Names(dict[str, str]):
    """Names as the wire has them, each worked out once."""

    def __missing__(self, name: str) -> str:
        self[name] = camel_case(name)
        return self[name]


def camel_case(name: str) -> str:
    """Return a name as the wire has it."""
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


NAMES = _Names()
