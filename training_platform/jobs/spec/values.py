"""Texts of a job file that have a form of their own."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _form(pattern: str, what: str, allowed: str) -> AfterValidator:
    """Return a check that the whole text has a form; its error says what it should be, and how that looks."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            message = f"{value!r} is not {what}".replace("{", "{{")
            raise PydanticCustomError("malformed", message, {"allowed": allowed, "nearest": None})
        return value

    return AfterValidator(check)


_PROJECT = r"projects/[a-z0-9.:-]+"
_PART = r"[A-Za-z0-9._-]+"

Image = Annotated[
    str,
    _form(
        r"[^\s@]+(:\w[\w.-]{0,127}|@sha256:[0-9a-f]{64})",
        "a container image with its tag or digest",
        "REGISTRY/IMAGE:TAG",
    ),
]
Variable = Annotated[
    str, _form(r"[A-Za-z_][A-Za-z0-9_]*", "a name of a variable", "letters, digits and _, no digit first")
]
Module = Annotated[str, _form(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "a Python module", "such as finetune.train")]
Parameter = Annotated[
    str, _form(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", "a parameter's name", "letters, digits, ., _ and -, a letter first")
]
SecretVersion = Annotated[
    str,
    _form(
        r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?(:(latest|[1-9][0-9]*))?",
        "a secret of the team's stack",
        "its name there, or NAME:VERSION",
    ),
]
InFolder = Annotated[
    str,
    _form(r"(?!/)(?!.*(^|/)\.\.(/|$))[^\0]+", "a path below the repository's folder", "such as src/train.py"),
]
Absolute = Annotated[
    str, _form(r"(/(?!\.{1,2}(/|$))[\w.{}-]+)+", "an absolute path of the container", "such as /mnt/data")
]
ExperimentName = Annotated[
    str, _form(r"[a-z0-9][a-z0-9-]{0,127}", "an experiment's name", "lower-case letters, digits and dashes")
]
Topic = Annotated[str, _form(rf"{_PROJECT}/topics/{_PART}", "a Pub/Sub topic", "projects/PROJECT/topics/TOPIC")]
Network = Annotated[
    str,
    _form(
        rf"projects/[0-9]+/global/networks/{_PART}",
        "a peered network by its project's number",
        "projects/NUMBER/global/networks/NAME",
    ),
]
NetworkAttachment = Annotated[
    str,
    _form(
        rf"{_PROJECT}/regions/{_PART}/networkAttachments/{_PART}",
        "a network attachment",
        "projects/PROJECT/regions/REGION/networkAttachments/NAME",
    ),
]
KmsKey = Annotated[
    str,
    _form(
        rf"{_PROJECT}/locations/{_PART}/keyRings/{_PART}/cryptoKeys/{_PART}",
        "a key of Cloud KMS",
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
]
Reservation = Annotated[
    str,
    _form(
        rf"{_PROJECT}/zones/{_PART}/reservations/{_PART}",
        "a reservation",
        "projects/PROJECT/zones/ZONE/reservations/NAME",
    ),
]
