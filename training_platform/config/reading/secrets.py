"""Inputs that can hold a secret, by their names: no message, report or log has their values.

Names that Pulumi's SDKs mark as secret, of the types with documents, are among them; a test compares both. Others are
where programs write one: variables, arguments and data of containers and jobs, and what is called a password or a key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from math import isfinite
from secrets import token_hex
from typing import Any, Final

HIDDEN: Final = "(not shown)"
# How a value is marked on Pulumi's wire: under this key, as a secret, or as an output with a field that says so.
# Source of these published constants: pulumi/pulumi v3.259 pkg/resource/plugin/rpc.go, read 2026-11-21.
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
RUN_KEY: Final = "TRAINING_PLATFORM_RUN_KEY"  # a variable of the environment
_HOLDERS: Final = frozenset({
    "args", "binaryData", "command", "commands", "content", "credentials", "customerEncryption", "data", "env",
    "environmentVariables", "headers", "sensitiveLabels", "stringData",
})  # fmt: skip
"""All that is below them can be a secret; of the entries of ``env`` and ``headers``, not their names."""
_NAMED: Final[Mapping[str, tuple[str, ...]]] = {"env": ("name", "valueFrom"), "headers": ("name",)}
_SCALARS: Final = re.compile(
    r"(password|passwd|passphrase|(?<!account)token|secretData|parameterData|secretKey|sharedSecret|clientSecret"
    r"|siteSecret|privateKey|privateKeyPem|apiKey|accessKey|keyValue|keyString|macKey|authString|plaintext|rawKey"
    r"|startupScript)(wo)?$",
    re.IGNORECASE,
)
_SHORTEST: Final = 6  # characters of a text that is looked for in a message: many words are shorter ones
_WINDOW: Final = 16  # characters of a longer one by which a part of it is known


def can_be_secret(keys: Sequence[object]) -> bool:
    """Whether the value at some keys, ``spec``, ``containers``, 0, ``env``, 0, ``value``, can be or hold a secret."""
    return _can_be_secret(tuple(key for key in keys if isinstance(key, str)))


@lru_cache(maxsize=100_000)
def _can_be_secret(named: tuple[str, ...]) -> bool:
    for place, key in enumerate(named):
        if key in _HOLDERS:
            return named[place + 1] not in _NAMED.get(key, ()) if named[place + 1 :] else True
    return bool(named) and _SCALARS.search(named[-1].replace("_", "")) is not None


def secrets_in(inputs: Any, keys: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield the values of inputs that can be secrets; ``keys`` lead to the inputs, without places in lists."""
    if isinstance(inputs, Mapping):
        for key, value in inputs.items():
            yield from secrets_in(value, (*keys, str(key)))
    elif isinstance(inputs, (list, tuple)):
        for value in inputs:
            yield from secrets_in(value, keys)
    elif _can_be_secret(keys):
        yield inputs


def shows(text: str, secrets: Iterable[Any]) -> bool:
    """Whether a text has one of some values in it, or sixteen characters of one in a row."""
    windows = {text[start : start + _WINDOW] for start in range(len(text) - _WINDOW + 1)}
    plain = text.replace(",", "")
    return any(
        written in plain or written in text or any(window in written for window in windows)
        for value in secrets
        for written in _written(value)
    )


def _written(value: Any) -> Iterator[str]:
    """Yield the spellings of a value that are long enough to be looked for, those of a float rounded, too."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):  # nothing, or not known
        return
    forms = {str(value).removesuffix(".0")}
    if isinstance(value, float) and isfinite(value):
        forms |= {f"{value:g}", f"{value:.0f}", str(int(value))}
    yield from (form for form in forms if len(form) >= _SHORTEST)


class Secrets:
    """The secrets of several resources, kept out of findings about other resources.

    A text shows one if it has all of it, or the beginning to which a message cuts a long value.
    """

    def __init__(self) -> None:
        self._beginnings: set[str] = set()

    def add(self, inputs: Any) -> None:
        """Add those of a resource."""
        for value in secrets_in(inputs):
            self._beginnings.update(written[:_WINDOW] for written in _written(value))

    def shown_in(self, text: str) -> bool:
        """Whether a text shows one of them."""
        plain = text.replace(",", "")
        return any(beginning in text or beginning in plain for beginning in self._beginnings)


def digest(value: Any) -> str:
    """Return what distinguishes a secret from another one in this run, and from which nobody can guess it."""
    return f"{HIDDEN} {hmac.new(run_key().encode(), repr(value).encode(), hashlib.sha256).hexdigest()}"


@cache
def run_key() -> str:
    """Return the key of this run's digests, which a process that it starts gets by ``RUN_KEY``."""
    return os.environ.get(RUN_KEY) or token_hex()
