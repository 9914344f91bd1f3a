"""What stands in the way of a destroy: Pulumi's ``protect``, and what the APIs themselves refuse to delete."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

# Inputs of the gcp provider; of a cluster's it keeps a note of its own, Filestore's is the API's.
ENABLED: Final = "deletionProtectionEnabled"
API_FIELDS: Final = ("deletionProtection", ENABLED)
_ENGINES_REFUSAL: Final = re.compile(r"marked for protection|because it is protected")


def protected(resources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the logical names of a state's resources that are protected in either way; what is only read stays."""
    return [each["urn"].split("::", 3)[-1] for each in resources if _is_protected(each)]


def with_way_out(message: str) -> str:
    """Add how a stack file lifts a protection to what the engine says of one: it speaks of flags in programs."""
    if not _ENGINES_REFUSAL.search(message):
        return message
    return (
        f"{message.rstrip()}\nIn the stack file the flag is deletion_protection: false, in the section that may go. It "
        "is set together with a change that replaces, and deployed before a removal: docs/changes.md."
    )


def _is_protected(resource: Mapping[str, Any]) -> bool:
    outputs = {} if resource.get("external") else resource.get("outputs") or {}
    return bool(resource.get("protect")) or any(outputs.get(name) is True for name in API_FIELDS)
