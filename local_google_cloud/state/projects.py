"""The projects of a local cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from local_google_cloud.requests.errors import Refusal


class Projects:
    """Projects by id and by number."""

    def __init__(self, ids: Iterable[str], number: Callable[[str], str]) -> None:
        self._numbers = {project: number(project) for project in ids}

    @property
    def numbers(self) -> dict[str, str]:
        """The number of every project by its id."""
        return dict(self._numbers)

    def ids(self) -> list[str]:
        """Return every project id."""
        return sorted(self._numbers)

    def resolve(self, text: str) -> str:
        """Return a project's id, given its id or number. Raises Refusal; like Google's, it does not say why."""
        for project, number in self._numbers.items():
            if text in (project, number):
                return project
        raise Refusal(403, f"Permission denied on resource project {text} (or it may not exist).")
