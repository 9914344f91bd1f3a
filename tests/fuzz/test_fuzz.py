"""Every reader answers inputs that nobody would write, and never with a traceback.

``make test`` runs a short round, the same each time. A long one by hand, which finds other cases each time:
``TRAINING_PLATFORM_FUZZ=20000 .venv/bin/python -m pytest tests/fuzz --hypothesis-profile=random --timeout=0``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_google_cloud.api import Clock, Store
from tests.support.places import ORGANISATION, ROOT
from tests.training_platform.rules.corpus import accepted, as_registered
from tests.violations.draw import entries, valid
from training_platform.checks.run import run_check
from training_platform.checks.stacks import CheckOptions
from training_platform.cli.main import app
from training_platform.parts.sandbox.google_rules import judged_cloud
from training_platform.quota.demand import demand_of_views
from training_platform.resources.resource_types import RELEASE
from training_platform.resources.stack_resource import UNKNOWN, StackResource
from training_platform.rules import evaluate, program, views_of_plan
from training_platform.views.access import ReleaseView
from training_platform.views.adapters import VIEWS_OF

ROUNDS = int(os.environ.get("TRAINING_PLATFORM_FUZZ", "60"))
TODAY = date(2026, 11, 21)
PROJECT = "example-lab"
FILES = {
    "stack": "stacks/Pulumi.prod.yaml",
    "team": "stacks/Pulumi.prod-vision.yaml",
    "snapshot": "stacks/quotas/example-train-prod.yaml",
    "exemptions": "stacks/exemptions.yaml",
    "job": "jobs/vision/finetune.yaml",
}
TEXTS = {kind: (ORGANISATION / file).read_text(encoding="utf-8") for kind, file in FILES.items()}
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 20)
)
SEEDS = {
    "26,000 brackets": "[" * 26_000,
    "26,000 mappings": "{a: " * 26_000,
    "26,000 lists": "- " * 26_000,
    "a bomb of aliases": BOMB,
    "an alias of itself": "a: &a [*a]\n",
    "a number of 4,000 digits": f"config: {'9' * 4_000}\n",
    "control characters": "config: \x07\x1b[31m\n",
    "another encoding": "config: \ufeff\u2028\u202e\n",
    "nothing": "",
    "a list": "- config\n",
    "two documents": "a: 1\n---\nb: 2\n",
}
TOKENS = (
    "[",
    "]",
    "{",
    "}",
    "&x ",
    "*x",
    "!!str ",
    ": ",
    "\n",
    "- ",
    "? ",
    "#",
    '"',
    "<<: ",
    "null",
    "1e999",
    "0x1f",
    "-1",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository that a test may spoil."""
    for file in (*FILES.values(), "stacks/Pulumi.prod-nlp.yaml"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes((ORGANISATION / file).read_bytes())
    (tmp_path / "Pulumi.yaml").write_bytes((ROOT / "Pulumi.yaml").read_bytes())
    return tmp_path


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_seed_ends_a_command_but_with_its_exit_code(root: Path, kind: str, seed: str) -> None:
    (root / FILES[kind]).write_text(SEEDS[seed], encoding="utf-8")

    check = ["check"] if kind != "job" else ["job", "check", str(root / FILES["job"])]
    done = CliRunner().invoke(app, [*check, "--today", str(TODAY), "--root", str(root)])

    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.exit_code in ((0, 1, 2) if seed == "nothing" else (1, 2))


def test_more_slices_than_a_project_could_hold_are_a_finding(root: Path) -> None:
    path = root / FILES["stack"]
    path.write_text(TEXTS["stack"].replace("slices: 2", "slices: 1000000", 1), encoding="utf-8")

    report = run_check(root, CheckOptions(today=TODAY))

    assert any("slices" in finding.path and "100000" in str(finding.allowed) for finding in report.all_findings())


EDITS = st.lists(
    st.tuples(st.integers(0, 6_000), st.integers(0, 12), st.sampled_from(TOKENS) | st.text(max_size=4)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=ROUNDS, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from([kind for kind in FILES if kind != "job"]), edits=EDITS)
def test_no_damage_ends_a_check(root: Path, kind: str, edits: list[tuple[int, int, str]]) -> None:
    (root / FILES[kind]).write_text(damaged(TEXTS[kind], edits), encoding="utf-8")

    report = run_check(root, CheckOptions(today=TODAY))

    assert all(
        finding.message and finding.severity in ("error", "warning", "note") for finding in report.all_findings()
    )
    (root / FILES[kind]).write_text(TEXTS[kind], encoding="utf-8")


@settings(max_examples=ROUNDS, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_no_damage_to_a_job_ends_its_check(root: Path, edits: list[tuple[int, int, str]]) -> None:
    path = root / FILES["job"]
    path.write_text(damaged(TEXTS["job"], edits), encoding="utf-8")

    done = CliRunner().invoke(app, ["job", "check", str(path), "--today", str(TODAY), "--root", str(root)])

    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.exit_code in (0, 1, 2)


def damaged(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, length, junk in edits:
        place = start % (len(text) + 1)
        text = text[:place] + junk + text[place + length :]
    return text


ODD: tuple[Any, ...] = (
    UNKNOWN, [UNKNOWN], [[UNKNOWN]], {"name": UNKNOWN}, [{"name": UNKNOWN}], None, True, -1, 0, 1.5, 1e30, 10**30,
    -1e308, math.inf, math.nan,
    "", "x", "²", "10.0.0.0/99", "1" + "0" * 30, "9" * 5_000, "1." + "9" * 5_000, "1e400", "1Ei",
    "a\ud800\0", [], {}, [None], [[]], [{}], ["a", "a"], ["", 1], {"": None}, {"a": {"b": {}}},
)  # fmt: skip
"""Values of every type, and unknown ones at every depth: a program may hold any of them anywhere."""


def _inputs() -> list[tuple[str, Any]]:
    """Return valid objects, those that others deploy, and of each type that a rule reads one with all that it reads."""
    rows = [*valid().values(), *(row for entry in accepted().values() for row in entry.get("resources", {}).values())]
    inputs = [(row["type"], as_registered(row["inputs"])) for row in rows]
    for token, kinds in VIEWS_OF.items():
        fields = [field for kind in kinds for field in kind.FIELDS.values()]
        names = {path.split(".")[0] for field in fields for path in field.inputs}
        inputs.append((token, dict.fromkeys(sorted(names), "x")))
    return inputs


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    for key, part in entries(value):
        yield from _places(part, (*place, key))


def _put(value: Any, place: tuple[Any, ...], odd: Any, *, all_of: bool) -> Any:
    """Return a value with an odd one at a place, or in the place of each part of the mapping there."""
    if place:
        changed = dict(value) if isinstance(value, dict) else list(value)
        changed[place[0]] = _put(value[place[0]], place[1:], odd, all_of=all_of)
        return changed
    return dict.fromkeys(value, odd) if all_of and isinstance(value, dict) else odd


INPUTS = _inputs()


@settings(max_examples=ROUNDS * 5, deadline=None)
@given(st.data())
def test_no_value_of_a_program_ends_a_rule(data: st.DataObject) -> None:
    token, inputs = data.draw(st.sampled_from(INPUTS))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(list(_places(inputs))))
        odd = data.draw(st.sampled_from(ODD))
        inputs = _put(inputs, place, odd, all_of=not place or data.draw(st.booleans()))

    views = views_of_plan([StackResource(stack="dev", type=token, name="one", inputs=inputs)])
    whole = program(views, stack="dev", environment="dev", team=None, production=True)

    assert [str(finding) for finding in evaluate(whole) if finding.failed] == []
    demand_of_views(views, "example-train")


DEVICES = [{"resources": {"limits": {"nvidia.com/gpu": "1" + "0" * 30}}}]
KNOWN = {
    "a device in an amount of 10^30": ("v1:Pod", "containers", DEVICES),
    "a quota of 10^30 pods": ("v1:ResourceQuota", "hard", {"pods": 1e30}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_an_amount_beyond_every_quantity_ends_no_rule(name: str) -> None:
    kind, field, value = KNOWN[name]
    planned = StackResource(stack="dev", type=f"kubernetes:core/{kind}", name="one", inputs={"spec": {field: value}})
    whole = program(views_of_plan([planned]), stack="dev", environment="dev", team=None, production=True)

    assert [str(finding) for finding in evaluate(whole) if finding.failed] == []


def test_a_release_of_unknown_lists_ends_no_rule() -> None:
    inputs = {key: [UNKNOWN] for key in ("name", "chart", "version", "values", "repositoryOpts")}
    planned = StackResource(stack="dev", type=RELEASE, name="one", inputs=inputs)

    views = list(ReleaseView.of(planned, ("clusters", "one")))

    assert evaluate(program(views, stack="dev", environment="dev", team=None, production=True))


NAMES = st.sampled_from(
    ["name", "cluster", "nodePool", "initialNodeCount", "network", "ipCidrRange", "labels", "tier", "fileShares",
     "autoscaling", "config", "machineType", "location", "displayName", "bindings", "policy"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12) | NAMES, inner, max_size=4),
    max_leaves=12,
)
ROUTES = (
    ("POST", "container/v1/projects/example-lab/locations/us-central1/clusters"),
    ("PUT", "container/v1/projects/example-lab/locations/us-central1/clusters/one"),
    ("POST", "container/v1/projects/example-lab/locations/us-central1/clusters/one/nodePools"),
    ("POST", "compute/v1/projects/example-lab/global/networks"),
    ("POST", "compute/v1/projects/example-lab/regions/us-central1/subnetworks"),
    ("POST", "file/v1/projects/example-lab/locations/us-central1-a/instances"),
    ("POST", "storage/v1/b"),
    ("POST", "iam/v1/projects/example-lab/serviceAccounts"),
    ("POST", "aiplatform/v1/projects/example-lab/locations/us-central1/tensorboards"),
    ("GET", "container/v1/projects/example-lab/locations/-/clusters"),
    ("DELETE", "compute/v1/projects/example-lab/global/networks/net"),
)


@pytest.fixture
def ask() -> Callable[[str, str, Any], tuple[int, Any]]:
    """Return a client of a local cloud in which the project has its APIs."""
    cloud = judged_cloud([PROJECT], store=Store(None), clock=Clock(lambda: 1.8e9))

    def asked(verb: str, path: str, body: Any) -> tuple[int, Any]:
        service, _, service_path = path.partition("/")
        return cloud.handle(service, verb, service_path, [], body)

    apis = [f"{api}.googleapis.com" for api in ("aiplatform", "compute", "container", "file", "iam", "storage")]
    assert asked("POST", f"serviceusage/v1/projects/{PROJECT}/services:batchEnable", {"serviceIds": apis})[0] == 200
    return asked


@settings(max_examples=ROUNDS * 5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(route=st.sampled_from(ROUTES), body=JSON, query=st.text(max_size=10))
def test_the_local_cloud_answers_whatever_is_asked(
    ask: Callable[[str, str, Any], tuple[int, Any]], route: tuple[str, str], body: Any, query: str
) -> None:
    verb, path = route

    code, answer = ask(verb, path, body)

    assert code in {200, 400, 403, 404, 409, 412, 429, 501}, answer
    json.dumps(answer, allow_nan=False).encode()
    assert ask("GET", f"container/v1/projects/{PROJECT}/locations/-/clusters", None)[0] == 200
