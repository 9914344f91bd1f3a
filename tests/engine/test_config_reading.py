"""A stack file is read alike by the engine, which hands it to the program, and by ``check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engine.workspace import Workspace
from training_platform.config.model.stack import parse_stack
from training_platform.config.reading.source import parse_source

STACK = "dev"
FILE = r"""
config:
  gcp:whole: 1
  gcp:negative: -3
  gcp:decimal: 1.5
  gcp:whole_decimal: 1.0
  gcp:boolean: true
  gcp:text: us-central1
  gcp:quoted: "yes"
  gcp:empty: ""
  gcp:nothing: null
  gcp:absent:
  gcp:list: [1, a, null]
  gcp:map: {b: 1, a: 2}
  gcp:block: |
    one
    two
  training-platform:environment:
    integers: [0, -0, 7, +3, -3, 9007199254740992]
    decimals: [1.5, -0.25, +2.5, 0.1, 0.30000000000000004, 123456789.125]
    whole decimals: [1.0, 2.50, 0.0, -0.0, 100000000000000000000.0]
    booleans: [true, false]
    nothing: [null, ~, ]
    nothing below:
    plain text: [abc, us-central1-a, 4x8, 2x2x4, 10.0.0.0/20, 1.2.3, v1beta2, a:b, http://x/y, 5Gi, 1k, nan, yess, tRUE]
    text with spaces: one  two   # and a comment
    text with a sharp: a#b
    text with a question: http://x/y?z=1
    text with a tab:	a
    text over lines: one
      two

      three
    in single quotes: ['yes', '0777', '1.30', 'true', 'null', '~', '', '2026-11-21', 'it''s', '[a]']
    in double quotes: ["no", "1_000", "1e3", "12:30", ".inf", "", "\t\n\"\\\x41\u00e9\U0001F600", "<a>&"]
    quotes over lines: ['a
      b', "a
      b \
      c"]
    literal: |
      a
        b

      c
    literal without end: |-
      1.30
    literal with ends: |+
      yes

    folded: >
      a
      b

      c
    folded without end: >-
      true
    beyond ascii: é ü 漢字 😀
    empty: [{}, []]
    flow: {a: 1, b: [1, 'x', {c: }], d}
    lists:
    - a
    - - b
      - c: 1
        d: 2
    -
      - e
    -
    named: &text shared
    named map: &map {x: 1, z: [1, 2.0]}
    named again: [*text, *map, *map]
    zebra: order
    apple: order
    yes-and-no: dash
    1: whole
    "1.50": quoted
    'no': quoted
    true: word
    é: beyond ascii
"""

PROGRAM = """
import json
from pathlib import Path

import pulumi

names = {names}
gcp = {{name: pulumi.Config("gcp").get(name) for name in names}}
environment = pulumi.Config("training-platform").get_object("environment")
Path("seen.json").write_text(json.dumps({{"gcp": gcp, "environment": environment}}), encoding="utf-8")
"""


def read_here() -> dict[str, Any]:
    source = parse_source(FILE, "stacks/Pulumi.dev.yaml")
    assert [str(finding) for finding in source.findings] == []
    config: dict[str, Any] = source.value["config"]
    return config


def program() -> str:
    names = [key.removeprefix("gcp:") for key in read_here() if key.startswith("gcp:")]
    return PROGRAM.format(names=names)


@pytest.fixture(scope="module")
def seen_by_engine(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the program saw under the engine, as text, so that 1 and 1.0 and true are three things."""
    workspace = Workspace(tmp_path_factory.mktemp("reading"), program=program())
    workspace.init(STACK)
    with (workspace.root / "stacks" / f"Pulumi.{STACK}.yaml").open("a", encoding="utf-8") as file:
        file.write(FILE)
    preview = workspace.preview(STACK)
    assert (preview.code, preview.errors) == (0, [])
    return (workspace.root / "seen.json").read_text(encoding="utf-8")


@pytest.mark.engine
@pytest.mark.timeout(300)
def test_the_reader_of_stack_files_gives_the_values_that_the_engine_hands_over(seen_by_engine: str) -> None:
    here = read_here()["training-platform:environment"]

    there = json.loads(seen_by_engine)["environment"]
    for name in here.keys() | there.keys():
        assert repr(there.get(name)) == repr(here.get(name)), name


@pytest.mark.parametrize(
    "line",
    [
        *("null: x", "~: x", "True: x", "1.0: x", "1.50: x", "0x10: x", "010: x", "+3: x", "-0: x", "1e3: x"),
        *("2026-11-21: x", "1_000: x", ".inf: x", "9007199254740993000000000000000000000000001: x"),
        *("x: !!str 1", "x: !!int '3'", "x: !!float 1", "x: !!null ''", "x: !!binary aGVsbG8=", "x: !own {a: 1}"),
        *("!!str x: 1", "x: [!!str 1]", "<<: {a: 1}", "'<<': {a: 1}", "x: 9007199254740993", "x: yes", "x: 0777"),
    ],
)
def test_what_the_engine_reads_in_its_own_way_is_a_finding_at_its_line(line: str) -> None:
    source = parse_source(f"a: 1\n{line}\n", "stacks/Pulumi.dev.yaml")

    assert [finding.rule for finding in source.findings] == ["stack-yaml"]
    assert source.findings[0].position is not None
    assert source.findings[0].position.line == 2


@pytest.mark.engine
@pytest.mark.timeout(300)
def test_the_engine_keeps_environments_of_esc_and_opens_them(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, program="")
    file = workspace.root / "stacks" / f"Pulumi.{STACK}.yaml"
    file.write_text("environment:\n  - platform/dev\nconfig:\n  gcp:region: us-central1\n", encoding="utf-8")

    workspace.init(STACK)
    changed = workspace.run("config", "set", "gcp:zone", "us-central1-a", "--stack", STACK)
    stack = parse_stack(STACK, parse_source(file.read_text(encoding="utf-8"), file.name))

    assert changed.returncode == 0, changed.stderr
    assert stack.source.value["environment"] == ["platform/dev"]
    assert stack.source.value["config"]["gcp:zone"] == "us-central1-a"
    assert [finding.path for finding in stack.findings] == ["config"]  # only that it has no section of ours
    assert "does not support environments" in workspace.preview(STACK).text  # state in files has none
