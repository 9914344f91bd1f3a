"""Which things of a project are adopted: all, or those that a person names by the end of their path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fnmatch import fnmatchcase

from training_platform.catalog.nearest import find_nearest
from training_platform.clients.project_contents import Contents
from training_platform.config.reading.finding import UserError
from training_platform.resources.register import BUCKET, CLUSTER, FILESTORE, NODE_POOL, PERSISTENT_RESOURCE

SELECTABLE = (CLUSTER, NODE_POOL, FILESTORE, BUCKET, PERSISTENT_RESOURCE)
"""What a person may name; networks, accounts and alerts are adopted where what is left needs them."""


def selected(contents: Contents, only: Sequence[str] = (), leave_out: Sequence[str] = ()) -> Contents:
    """Return the contents without what was not asked for. Raises UserError.

    A name is the end of a path, ``dev-main`` or ``us-west4/clusters/dev-main``, where ``*`` is any text. What stands
    below something goes with it.
    """
    paths = [path for kind in SELECTABLE for path in contents.of(kind)]
    for option, names in (("--only", only), ("--leave-out", leave_out)):
        for name in names:
            if not any(_named(path, name) for path in paths):
                nearest = find_nearest(name, [path.rpartition("/")[2] for path in paths])
                hint = f" Nearest: {nearest}." if nearest else ""
                raise UserError(f"{option} {name}: nothing in {contents.project} is called so.{hint}")
    chosen = set(paths)

    def leave(path: str) -> bool:
        if path not in chosen:
            return False
        if any(_covered(path, name) for name in leave_out):
            return True
        return bool(only) and not any(_covered(path, name) or _above(path, name, paths) for name in only)

    kept = contents.without(leave)
    _refuse_twins(kept)
    return kept


def _named(path: str, name: str) -> bool:
    return fnmatchcase(f"/{path}", f"*/{name}")


def _covered(path: str, name: str) -> bool:
    """Whether a name means a path, or something above it."""
    parts = path.split("/")
    return any(_named("/".join(parts[:end]), name) for end in range(1, len(parts) + 1))


def _above(path: str, name: str, paths: Sequence[str]) -> bool:
    """Whether something below a path is meant: a pool is in its cluster."""
    return any(each.startswith(f"{path}/") and _named(each, name) for each in paths)


def _refuse_twins(contents: Contents) -> None:
    """Refuse things of one kind and name in several locations: a stack file has one key for them."""
    for kind in (CLUSTER, FILESTORE):
        by_name = defaultdict(list)
        for path in contents.of(kind):
            by_name[path.rpartition("/")[2]].append(path)
        for name, paths in by_name.items():
            if len(paths) > 1:
                ends = [each.split("/locations/")[-1] for each in sorted(paths)]
                raise UserError(
                    f"{name} is there {len(paths)} times, and a stack can have only one of that name: leave the others "
                    f"out, such as --leave-out {ends[-1]} (there are {', '.join(ends)})."
                )
