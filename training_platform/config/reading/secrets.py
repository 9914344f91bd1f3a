"""Recognizes by their names the inputs that may contain a secret. Their values are never shown or logged.

The names include those that Pulumi's SDKs mark as secret, for types with documents; a test compares both. They also
include the places where programs put secrets: variables, arguments and data of containers and jobs, and names with
words such as password or key.
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
# Marks of values on Pulumi's wire: the key, and its values for a secret and for an output, which may be one.
# Source of these published constants: pulumi/pulumi v3.259 pkg/resource/plugin/rpc.go, read 2026-11-21.
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
RUN_KEY: Final = "TRAINING_PLATFORM_RUN_KEY"  # an environment variable
_HOLDERS: Final = frozenset({
    "args", "binaryData", "command", "commands", "content", "credentials", "customerEncryption", "data", "env",
    "environmentVariables", "headers", "sensitiveLabels", "stringData",
})  # fmt: skip
"""Keys below which any value may be a secret, except the names of the entries in ``env`` and ``headers``."""
_NAMED: Final[Mapping[str, tuple[str, ...]]] = {"env": ("name", "valueFrom"), "headers": ("name",)}
_SCALARS: Final = re.compile(
    r"(password|passwd|passphrase|(?<!account)token|secretData|parameterData|secretKey|sharedSecret|clientSecret"
    r"|siteSecret|privateKey|privateKeyPem|apiKey|accessKey|keyValue|keyString|macKey|authString|plaintext|rawKey"
    r"|startupScript)(wo)?$",
    re.IGNORECASE,
)
_SHORTEST: Final = 6  # characters of a secret to find in a message: many words are shorter
_WINDOW: Final = 16  # characters that identify a part of a longer secret


def can_be_secret(keys: Sequence[object]) -> bool:
    """Return True if the value at a path may be or contain a secret.

    An example of a path is ``spec``, ``containers``, 0, ``env``, 0, ``value``.
    """
    return _can_be_secret(tuple(key for key in keys if isinstance(key, str)))


@lru_cache(maxsize=100_000)
def _can_be_secret(named: tuple[str, ...]) -> bool:
    for index, key in enumerate(named):
        if key in _HOLDERS:
            below = named[index + 1 :]
            return not below or below[0] not in _NAMED.get(key, ())
    return bool(named) and _SCALARS.search(named[-1].replace("_", "")) is not None


def secrets_in(inputs: Any, keys: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield the values of inputs that may be secrets. ``keys`` is the path to the inputs, without list indices."""
    if isinstance(inputs, Mapping):
        for key, value in inputs.items():
            yield from secrets_in(value, (*keys, str(key)))
    elif isinstance(inputs, (list, tuple)):
        for value in inputs:
            yield from secrets_in(value, keys)
    elif _can_be_secret(keys):
        yield inputs


def shows(text: str, secrets: Iterable[Any]) -> bool:
    """Return True if a text contains one of the secrets, or sixteen consecutive characters of one."""
    windows = {text[start : start + _WINDOW] for start in range(len(text) - _WINDOW + 1)}
    plain = text.replace(",", "")
    return any(
        written in plain or written in text or any(window in written for window in windows)
        for value in secrets
        for written in _written(value)
    )


def _written(value: Any) -> Iterator[str]:
    """Yield the forms of a value that are long enough to search for, including rounded forms of a float."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):  # None, or unknown
        return
    forms = {str(value).removesuffix(".0")}
    if isinstance(value, float) and isfinite(value):
        forms |= {f"{value:g}", f"{value:.0f}", str(int(value))}
    yield from (form for form in forms if len(form) >= _SHORTEST)


class Secrets:
    """The secrets of several resources, which findings about other resources must not show.

    Since messages truncate long values, a text shows a secret if it contains the secret's first characters.
    """

    def __init__(self) -> None:
        self._beginnings: set[str] = set()

    def add(self, inputs: Any) -> None:
        """Add the secrets of a resource."""
        for value in secrets_in(inputs):
            self._beginnings.update(written[:_WINDOW] for written in _written(value))

    def shown_in(self, text: str) -> bool:
        """Return True if a text shows one of the secrets."""
        plain = text.replace(",", "")
        return any(beginning in text or beginning in plain for beginning in self._beginnings)


def digest(value: Any) -> str:
    """Return a text that distinguishes secrets within this run, without revealing them."""
    return f"{HIDDEN} {hmac.new(run_key().encode(), repr(value).encode(), hashlib.sha256).hexdigest()}"


@cache
def run_key() -> str:
    """Return the key for the digests of this run. Child processes get it in the variable ``RUN_KEY``."""
    return os.environ.get(RUN_KEY) or token_hex()
