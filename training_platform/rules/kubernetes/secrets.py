"""Secrets: the keys that the API server asks for in one of a known type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from training_platform.rules.kubernetes.objects import Json, Wrong, block, is_unknown, object_rule
from training_platform.rules.kubernetes.pods import SERVER

# Types whose data is used by Kubernetes; of the keys of a tuple in a tuple one is enough.
_KEYS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "kubernetes.io/basic-auth": (("username", "password"),),
    "kubernetes.io/dockercfg": ((".dockercfg",),),
    "kubernetes.io/dockerconfigjson": ((".dockerconfigjson",),),
    "kubernetes.io/ssh-auth": (("ssh-privatekey",),),
    "kubernetes.io/tls": (("tls.crt",), ("tls.key",)),
}


@object_rule("secret-keys", "core:Secret", ruleset="objects", source=SERVER)
def secret_keys(inputs: Json) -> Iterator[Wrong]:
    """Find an object of a known type of Secret without a key that its type has."""
    kind = inputs.get("type")
    if is_unknown(inputs, "data") or is_unknown(inputs, "stringData") or not isinstance(kind, str):
        return
    there = {*block(inputs, "data"), *block(inputs, "stringData")}
    for names in _KEYS.get(kind, ()):
        if not there & set(names):
            wanted = " or ".join(names)
            yield Wrong("stringData", f"a secret of type {kind} has no {wanted}", wanted)
