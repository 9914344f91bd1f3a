"""Write the permissions of methods and roles: ``python -m tools.permissions --methods CHECKOUT --roles CHECKOUT``.

``--methods`` is a checkout of github.com/iann0036/iam-dataset (gcp/map.json, gcp/roles), and ``--roles`` is one of
github.com/jdyke/gcp_iam_update_bot (roles). Both dump IAM's roles. The newer dump is used, and their agreement proves
nothing, since both have the same source. The output contains only the methods in operations.yaml and the roles in
by_hand.yaml.

A method is unverified if the map gives only one way in which its permissions were discovered. A permission that no role
contains is an error in its row. IAM writes some permissions in another letter case (``dockerimages``), and the output
uses IAM's spelling.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from training_platform.catalog.operations import called_methods
from training_platform.catalog.reading import table

TARGET = Path(__file__).parents[2] / "training_platform" / "catalog" / "permissions.yaml"
BY_HAND: Mapping[str, Any] = table(__file__, "by_hand.yaml")
_HEAD = """\
# Permissions of IAM, written by `python -m tools.permissions`, which says from what; corrections go into
# tools/permissions/by_hand.yaml. Rows of `unverified` methods have a single source. Roles are restricted to permissions
# that a method here requires; `count` is of all.
"""


class RoleRepository(NamedTuple):
    """A repository with roles: its folder, ``owner/name``, its last commit, and the date of this commit."""

    folder: Path
    repository: str
    commit: str
    day: str

    def read(self, folder: str) -> Iterator[tuple[str, Any]]:
        """Yield the JSON files of a folder in the last commit, with their names. ``folder`` may also be a file."""
        with tarfile.open(fileobj=BytesIO(_git(self.folder, "archive", "HEAD", folder))) as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None:
                    yield member.name.rpartition("/")[2], json.load(content)

    @property
    def source(self) -> dict[str, str]:
        """The source that the output states: repository, commit and day."""
        return {"repository": self.repository, "commit": self.commit, "day": self.day}


def checkout(folder: Path, repository: str) -> RoleRepository:
    """Return the repository at a path, which may be a checkout or its git directory."""
    commit, day = _git(folder, "log", "-1", "--format=%H %cs").decode().split()
    return RoleRepository(folder, repository, commit=commit, day=day)


def _git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True).stdout  # noqa: S603, S607 # read only


def document(methods: RoleRepository, roles: RoleRepository) -> dict[str, Any]:
    """Return the content of the file. Raises ValueError with every wrong row."""
    newest = max((methods, roles), key=lambda checkout: checkout.day)
    every_role = {
        f"roles/{file.removesuffix('.json')}": frozenset(role.get("includedPermissions", ()))
        for file, role in newest.read("gcp/roles" if newest is methods else "roles")
    }
    spellings = {permission.lower(): permission for held in every_role.values() for permission in held}
    ((_, mapped),) = methods.read("gcp/map.json")
    api = mapped["api"]
    rows: dict[str, list[Any]] = {}
    unverified: set[str] = set()
    problems = []
    for method in sorted(called_methods()):
        row = api.get(method.partition(".")[0], {}).get("methods", {}).get(method, {}).get("permissions", [])
        needs, sure = _needs(method, row)
        rows[method] = [_spelled(need, spellings) for need in needs]
        problems += [f"{method}: {problem}" for problem in _problems(method, row, needs, spellings)]
        if not sure:
            unverified.add(method)
    unused = BY_HAND["methods"].keys() - rows.keys()
    problems += [f"{method}: no operation of operations.yaml calls it" for method in sorted(unused)]
    granted = {*BY_HAND["roles"], *(role for agent in BY_HAND["agents"].values() for role in agent["roles"])}
    problems += [f"{role}: IAM has no such role" for role in sorted(granted - every_role.keys())]
    if problems:
        raise ValueError("\n".join(problems))
    required = {_permission(need) for needs in rows.values() for need in needs}
    return {
        "sources": {"methods": methods.source, "roles": newest.source},
        "methods": {method: needs for method, needs in rows.items() if method not in unverified},
        "unverified": {method: needs for method, needs in rows.items() if method in unverified},
        "roles": {
            role: {"count": len(every_role[role]), "holds": _by_collection(every_role[role] & required)}
            for role in sorted(granted)
        },
        "agents": BY_HAND["agents"],
    }


def _needs(method: str, row: Sequence[Mapping[str, Any]]) -> tuple[list[Any], bool]:
    """Return the permissions that a method needs, and whether they are verified.

    They come from by_hand.yaml or from the map. Those from the map are verified if it gives more than one way of
    discovery, and those from by_hand.yaml unless the reason given there says "unverified".
    """
    by_hand = BY_HAND["methods"].get(method, {})
    mapped = [entry["name"] for entry in row]
    needs = [*by_hand.get("permissions", mapped), *by_hand.get("add", ())]
    methods = {name for entry in row for name in entry.get("discoveryMethodologies", ())}
    sure = len(methods) > 1
    if "permissions" in by_hand:
        sure = "unverified" not in by_hand.get("reason", "")
    return list({json.dumps(need): need for need in needs}.values()), sure


def _problems(
    method: str, row: Sequence[Mapping[str, Any]], needs: Sequence[Any], spellings: Mapping[str, str]
) -> Iterator[str]:
    by_hand = BY_HAND["methods"].get(method)
    if by_hand is None and not row:
        yield "neither the map nor by_hand.yaml has a row"
    if by_hand is not None and not by_hand.get("reason"):
        yield "a row in by_hand.yaml needs a reason"
    for need in needs:
        if _permission(need).lower() not in spellings:
            yield f"no role has {_permission(need)}"


def _by_collection(permissions: Iterable[str]) -> dict[str, str]:
    verbs: dict[str, list[str]] = {}
    for permission in sorted(permissions):
        collection, _, verb = permission.rpartition(".")
        verbs.setdefault(collection, []).append(verb)
    return {collection: " ".join(words) for collection, words in verbs.items()}


def _permission(need: Any) -> str:
    return str(need["permission"] if isinstance(need, Mapping) else need)


def _spelled(need: Any, spellings: Mapping[str, str]) -> Any:
    """Return a need whose permission is written in upper and lower case as roles write it."""
    permission = spellings.get(_permission(need).lower(), _permission(need))
    return {**need, "permission": permission} if isinstance(need, Mapping) else permission


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", type=Path, required=True, help="A checkout of iann0036/iam-dataset.")
    parser.add_argument("--roles", type=Path, required=True, help="A checkout of jdyke/gcp_iam_update_bot.")
    folders = parser.parse_args()
    try:
        content = document(
            checkout(folders.methods, "iann0036/iam-dataset"), checkout(folders.roles, "jdyke/gcp_iam_update_bot")
        )
    except ValueError as error:
        sys.exit(str(error))
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)
    TARGET.write_text(_HEAD + text, encoding="utf-8")


if __name__ == "__main__":
    main()
