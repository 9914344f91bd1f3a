"""Texts that have a form of their own, whatever file they stand in."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def form(pattern: str, what: str, allowed: str) -> AfterValidator:
    """Return a check that the whole text has a form; its error says what it should be, and how that looks."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            message = f"{value!r} is not {what}".replace("{", "{{")
            raise PydanticCustomError("malformed", message, {"allowed": allowed, "nearest": None})
        return value

    return AfterValidator(check)


Image = Annotated[
    str,
    form(
        r"[^\s@]+(:\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})",
        "a container image with its tag or digest",
        "REGISTRY/IMAGE:TAG",
    ),
]
Variable = Annotated[
    str, form(r"[A-Za-z_][A-Za-z0-9_]*", "a name of a variable", "letters, digits and _, no digit first")
]
SecretVersion = Annotated[
    str,
    form(
        r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?(:(latest|[1-9][0-9]*))?",
        "a secret of the team's stack",
        "its name there, or NAME:VERSION",
    ),
]
