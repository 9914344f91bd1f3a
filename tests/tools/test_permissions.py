from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tools.permissions import __main__ as tool

HELD = ["compute.networks.create", "artifactregistry.dockerimages.list"]


def checkout_of(folder: Path, files: Mapping[str, Any]) -> tool.RoleRepository:
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    git = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "dump"]):
        subprocess.run([*git, *command], check=True)  # git, in a folder of the test
    return tool.checkout(folder, "owner/name")


def sources(folder: Path, row: list[Mapping[str, Any]]) -> tuple[tool.RoleRepository, tool.RoleRepository]:
    role = {"includedPermissions": HELD}
    api = {"compute": {"methods": {"compute.networks.insert": {"permissions": row}}}}
    return (
        checkout_of(folder / "methods", {"gcp/map.json": {"api": api}, "gcp/roles/net.admin.json": role}),
        checkout_of(folder / "roles", {"roles/net.admin": role}),
    )


@pytest.fixture(autouse=True)
def one_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "called_methods", lambda: frozenset({"compute.networks.insert"}))
    monkeypatch.setattr(tool, "BY_HAND", {"methods": {}, "roles": ["roles/net.admin"], "agents": {}})


def row(permission: str, *methods: str) -> list[Mapping[str, Any]]:
    return [{"name": permission, "discoveryMethodologies": list(methods)}]


def test_roles_are_restricted_to_what_methods_require(tmp_path: Path) -> None:
    content = tool.document(*sources(tmp_path, row("compute.networks.create", "manual", "crawl")))

    assert content["methods"] == {"compute.networks.insert": ["compute.networks.create"]}
    assert content["unverified"] == {}
    assert content["roles"] == {"roles/net.admin": {"count": len(HELD), "holds": {"compute.networks": "create"}}}


def test_a_row_of_one_source_is_unverified(tmp_path: Path) -> None:
    content = tool.document(*sources(tmp_path, row("compute.networks.create", "manual")))

    assert content["unverified"] == {"compute.networks.insert": ["compute.networks.create"]}


def test_a_permission_is_spelled_as_roles_spell_it(tmp_path: Path) -> None:
    content = tool.document(*sources(tmp_path, row("artifactregistry.dockerImages.list", "manual")))

    assert content["unverified"] == {"compute.networks.insert": ["artifactregistry.dockerimages.list"]}


def test_every_wrong_row_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hand = {"compute.networks.insert": {"permissions": ["compute.networks.make"]}, "a.b": {"reason": "none"}}
    monkeypatch.setattr(tool, "BY_HAND", {"methods": by_hand, "roles": ["roles/none"], "agents": {}})

    with pytest.raises(ValueError, match="no role has") as error:
        tool.document(*sources(tmp_path, []))

    assert str(error.value).splitlines() == [
        "compute.networks.insert: a row in by_hand.yaml needs a reason",
        "compute.networks.insert: no role has compute.networks.make",
        "a.b: no operation of operations.yaml calls it",
        "roles/none: IAM has no such role",
    ]


def test_a_method_without_a_row_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"compute\.networks\.insert: neither the map nor by_hand\.yaml has a row"):
        tool.document(*sources(tmp_path, []))
