"""Writes values of stack files and resources as the text that acknowledgements in ``stacks/exemptions.yaml`` repeat."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from training_platform.config.reading.finding import Path
from training_platform.config.reading.secrets import can_be_secret

_DIGEST = "sha256:"
_LONGEST = 80  # characters of a mapping that an acknowledgement has as it is


class AcknowledgedValue(NamedTuple):
    """A value as an acknowledgement writes it. ``is_digest`` is True if the text is a digest instead of the value."""

    text: str
    is_digest: bool = False


def as_acknowledged(value: Any) -> AcknowledgedValue:
    """Return a value as an acknowledgement writes it: a list as its items, a long mapping or a secret as a digest."""
    if isinstance(value, list | tuple):
        items = [as_acknowledged(item) for item in value]
        return AcknowledgedValue(", ".join(item.text for item in items), any(item.is_digest for item in items))
    if not isinstance(value, Mapping):
        return AcknowledgedValue(_flow(value))
    text = _flow(value)
    secret = any(can_be_secret(path) for path, _ in leaves(value))
    if secret or len(text) > _LONGEST:
        return AcknowledgedValue(_digest(value), is_digest=True)
    return AcknowledgedValue(text)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the values inside mappings, each with its path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def _flow(value: Any) -> str:
    """Return a value as one line of YAML."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    return str(value)


def _digest(value: Any) -> str:
    """Return a digest of a value that is not a scalar. An acknowledgement then applies to exactly this value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return f"{_DIGEST}{hashlib.sha256(text.encode()).hexdigest()[:12]}"
