"""The projects of the local cloud: id, number, and limits."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping

from training_platform.quota.snapshot import Snapshot
from training_platform.sandbox.cloud.requests.errors import ApiError


class Projects:
    """Projects by id and by number; each has the quota limits of its snapshot, or none."""

    def __init__(self, snapshots: Mapping[str, Snapshot], more: Iterable[str] = ()) -> None:
        self.snapshots = dict(snapshots)
        self._ids = {*snapshots, *more}

    def add(self, project: str) -> None:
        """Add a project, as somebody with the rights would have made it."""
        self._ids.add(project)

    def ids(self) -> list[str]:
        """Return every project id."""
        return sorted(self._ids)

    def resolve(self, text: str) -> str:
        """Return the id of a project named by id or number. Raises ApiError: Google does not say which is missing."""
        found = next((each for each in self._ids if text in (each, number(each))), None)
        if found is None:
            raise ApiError(403, f"Permission denied on resource project {text} (or it may not exist).")
        return found


def number(project: str) -> str:
    """Return a project's number, always the same for an id."""
    return str(100_000_000_000 + zlib.crc32(project.encode()))
