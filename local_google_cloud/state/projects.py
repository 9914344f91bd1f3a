"""The projects of a local cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from local_google_cloud.requests.errors import Refusal


class Projects:
    """The projects, with their ids and numbers."""

    def __init__(self, ids: Iterable[str], number: Callable[[str], str]) -> None:
        self._numbers = {project: number(project) for project in ids}

    @property
    def numbers(self) -> dict[str, str]:
        """The number of each project, keyed by id."""
        return dict(self._numbers)

    def ids(self) -> list[str]:
        """Return every project id."""
        return sorted(self._numbers)

    def resolve(self, text: str) -> str:
        """Return the id of a project, given its id or number.

        Raises Refusal if there is none. As with Google, the message does not say whether the project exists.
        """
        for project, number in self._numbers.items():
            if text in (project, number):
                return project
        raise Refusal(403, f"Permission denied on resource project {text} (or it may not exist).")
