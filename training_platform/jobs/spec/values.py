"""Texts of a job file that have a form of their own."""

from __future__ import annotations

from typing import Annotated

from training_platform.config.reading.texts import form

_PROJECT = r"projects/[a-z0-9.:-]+"
_PART = r"[A-Za-z0-9._-]+"

Module = Annotated[str, form(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "a Python module", "such as finetune.train")]
Parameter = Annotated[
    str, form(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", "a parameter's name", "letters, digits, ., _ and -, a letter first")
]
InFolder = Annotated[
    str,
    form(r"(?!/)(?!.*(^|/)\.\.(/|$))[^\0]+", "a path below the repository's folder", "such as src/train.py"),
]
Absolute = Annotated[
    str, form(r"(/(?!\.{1,2}(/|$))[\w.{}-]+)+", "an absolute path of the container", "such as /mnt/data")
]
ExperimentName = Annotated[
    str, form(r"[a-z0-9][a-z0-9-]{0,127}", "an experiment's name", "lower-case letters, digits and dashes")
]
Topic = Annotated[str, form(rf"{_PROJECT}/topics/{_PART}", "a Pub/Sub topic", "projects/PROJECT/topics/TOPIC")]
Network = Annotated[
    str,
    form(
        rf"projects/[0-9]+/global/networks/{_PART}",
        "a peered network by its project's number",
        "projects/NUMBER/global/networks/NAME",
    ),
]
NetworkAttachment = Annotated[
    str,
    form(
        rf"environment|{_PROJECT}/regions/{_PART}/networkAttachments/{_PART}",
        "a network attachment",
        "environment, or projects/PROJECT/regions/REGION/networkAttachments/NAME",
    ),
]
KmsKey = Annotated[
    str,
    form(
        rf"{_PROJECT}/locations/{_PART}/keyRings/{_PART}/cryptoKeys/{_PART}",
        "a key of Cloud KMS",
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
]
Reservation = Annotated[
    str,
    form(
        rf"{_PROJECT}/zones/{_PART}/reservations/{_PART}",
        "a reservation",
        "projects/PROJECT/zones/ZONE/reservations/NAME",
    ),
]
