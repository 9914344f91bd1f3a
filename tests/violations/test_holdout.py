"""``make holdout`` draws the right objects from a checkout, and refuses checkouts that were used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.violations.holdout import NOT_KNOWN, everything, in_turns, refuse_what_was_used
from tests.violations.records import VALID

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME, namespace: elsewhere, uid: "1"}
spec: {accessModes: [ReadWriteOnce], storageClassName: odd, resources: {requests: {storage: 7Gi}}}
"""
FIREWALL = """
apiVersion: compute.cnrm.cloud.google.com/v1beta1
kind: ComputeFirewall
metadata: {name: odd}
spec: {networkRef: {name: odd}, deny: [{protocol: tcp}], sourceRanges: [10.7.0.0/16]}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    files = {
        "docs/claim.yaml": CLAIM,
        "docs/same.yaml": CLAIM.replace("NAME", "other"),
        "docs/template.yaml": CLAIM.replace("7Gi", "{{ size }}").replace("odd", "template"),
        "tests/claim.yaml": CLAIM.replace("odd", "tests"),
        "tests/invalid/claim.yaml": CLAIM.replace("odd", "invalid"),
        "firewall.yml": f"{FIREWALL}---\nkind: [",
        "broken/firewall.yml": FIREWALL.replace("odd", "two") + "---\n" + CLAIM.replace("odd", "three"),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(tmp_path)]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "All"]):
        subprocess.run([*git, *command], check=True)
    (tmp_path / "docs/claim.yaml").write_text("", encoding="utf-8")  # what is committed counts
    return tmp_path


def test_an_object_is_drawn_once_and_none_of_tests_or_templates_is(checkout: Path) -> None:
    objects, invalid = everything([checkout])

    assert [drawn_object.path for drawn_object in objects] == [
        "broken/firewall.yml",
        "broken/firewall.yml",
        "docs/claim.yaml",
    ]
    assert [drawn_object.path for drawn_object in invalid] == ["tests/invalid/claim.yaml"]


def test_an_object_is_as_its_authority_takes_it(checkout: Path) -> None:
    firewall, _, claim = everything([checkout])[0]

    assert firewall.type == "gcp:compute/firewall:Firewall"
    assert firewall.inputs == {
        "name": "two", "network": NOT_KNOWN, "denies": [{"protocol": "tcp"}], "sourceRanges": ["10.7.0.0/16"],
    }  # fmt: skip
    assert claim.inputs["metadata"] == {"name": "NAME", "namespace": "default"}


def test_an_object_of_the_tests_is_not_drawn(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, claim = everything([checkout])[0]
    monkeypatch.setitem(VALID, "drawn", {"type": claim.type, "inputs": claim.inputs})
    monkeypatch.setattr("tests.violations.holdout.valid", lambda: VALID)

    assert claim not in everything([checkout])[0]


def test_a_seed_and_a_commit_are_used_once() -> None:
    refuse_what_was_used(5, {Path("own"): "e70d1c8"[::-1] * 6})

    with pytest.raises(SystemExit, match="seed 911"):
        refuse_what_was_used(911, {})
    with pytest.raises(SystemExit, match="own at 4184780d7507"):
        refuse_what_was_used(5, {Path("own"): "4184780d7507525b5411dbfe73644bb0c8572675"})
    assert "4184780d7507" in (ROOT / "docs/development/fidelity.md").read_text(encoding="utf-8")


def test_kinds_take_turns() -> None:
    assert in_turns(["a1", "a2", "a3", "b1", "c1", "c2"], lambda row: row[0]) == ["a1", "b1", "c1", "a2", "c2", "a3"]
