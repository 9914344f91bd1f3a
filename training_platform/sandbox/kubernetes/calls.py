"""The calls about one resource: what they carry, what they answer, and the names that unnamed resources get."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from training_platform.sandbox.kubernetes.changes import Change
from training_platform.sandbox.kubernetes.schemas.kinds import Kind
from training_platform.sandbox.kubernetes.settings import Settings
from training_platform.sandbox.kubernetes.values import Json


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A call about one resource: ``name`` is its logical name, ``settings`` its provider's."""

    urn: str
    name: str
    kind: Kind
    settings: Settings


class AutoName(NamedTuple):
    """How the engine wants unnamed resources called: a seed of its own, or a name it proposes."""

    seed: bytes = b""
    proposed: str = ""
    disabled: bool = False


class Failure(NamedTuple):
    """An input that is refused before anything is tried; ``property`` is a path."""

    property: str
    reason: str


class Verdict(NamedTuple):
    """What to do about changed inputs."""

    replaces: list[str]
    delete_first: bool = False


class Made(NamedTuple):
    """An object after a call; an empty id says that there is none."""

    id: str
    properties: Json
    inputs: Json | None = None


class Kept(ABC):
    """Resources of a family; inputs and answers are values as they came (``values``), except where said."""

    @abstractmethod
    def check(self, ask: Ask, olds: Json, news: Json, how: AutoName) -> tuple[Json, list[Failure]]:
        """Complete new inputs and judge them; ``olds`` is empty for a resource that is new or being replaced."""

    @abstractmethod
    def judge(self, ask: Ask, olds: Json, news: Json, found: list[Change]) -> Verdict:
        """Say what changed inputs, both in readable form, do to the resource."""

    @abstractmethod
    def create(self, ask: Ask, inputs: Json, *, preview: bool) -> Made:
        """Make it; a preview makes nothing and knows no id."""

    @abstractmethod
    def read(self, ask: Ask, identity: str, inputs: Json) -> Made:
        """What is there now; ``inputs`` are the program's last, empty when the resource is being imported."""

    @abstractmethod
    def update(self, ask: Ask, identity: str, inputs: Json, *, preview: bool) -> Made:
        """Change it in place; a preview refuses what it can and changes nothing."""

    @abstractmethod
    def delete(self, ask: Ask, identity: str) -> None:
        """Remove it; deleting it twice is not an error."""


def auto_name(ask: Ask, how: AutoName) -> str:
    """The logical name with eight hex digits after it; equal for equal seeds."""
    if how.proposed:
        return how.proposed
    return f"{ask.name}-{hashlib.sha256(how.seed or ask.urn.encode()).hexdigest()[:8]}"
