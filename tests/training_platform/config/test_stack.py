"""One stack file: parsing, its schema, and the names of its resources."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import stack_files
from tests.support.places import ORGANISATION
from tests.support.stack_files import cluster, workspace_of
from training_platform.catalog import ACCELERATORS, CHARTS, DISK_TYPES, FILESTORE_TIERS, MACHINE_TYPES, REGIONS
from training_platform.config.model.environment import Environment
from training_platform.config.model.stack import Stack, parse_stack, read_stack, stack_name
from training_platform.config.model.team import Team
from training_platform.config.names import Locator, clashes, declared_name
from training_platform.config.reading.source import UnreadableError, parse_source
from training_platform.config.schema import stack_schema

FILES = sorted((ORGANISATION / "stacks").glob("Pulumi.*.yaml"))
PROD = (ORGANISATION / "stacks" / "Pulumi.prod.yaml").read_text(encoding="utf-8")
ENVIRONMENT = "training-platform:environment"


def edited(old: str, new: str, text: str = PROD) -> Stack:
    assert text.count(old) >= 1, f"{old!r} is not in the file"
    return parse_stack("prod", parse_source(text.replace(old, new, 1), "stacks/Pulumi.prod.yaml"))


def line_of(needle: str, text: str = PROD) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if needle in line)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_model_takes_every_shipped_stack(path: Path) -> None:
    stack = read_stack(path, ORGANISATION)

    assert not stack.findings
    assert (stack.environment is None) != (stack.team is None)


def test_a_machine_without_accelerators_is_no_pool_of_the_file() -> None:
    (finding,) = edited("machine_type: a3-highgpu-8g", "machine_type: n2-standard-8").findings

    assert "is not a machine type with TPUs or GPUs" in finding.message


def test_an_unknown_key_is_found_with_what_is_allowed() -> None:
    (finding,) = edited("max_nodes: 8", "max_node: 8").findings

    assert finding.message == "is not a field of this section"
    assert finding.nearest == "max_nodes"
    assert "max_nodes" in (finding.allowed or "")


def test_every_wrong_value_is_reported_at_once() -> None:
    text = PROD.replace("capacity: spot", "capacity: sport").replace("tier: ZONAL", "tier: ZONALE", 1)
    text = text.replace("slices: 8", "slices: 0")

    findings = parse_stack("prod", parse_source(text, "stacks/Pulumi.prod.yaml")).findings

    assert {finding.nearest for finding in findings} == {"spot", "ZONAL", "1"}


def test_a_tpu_pool_needs_a_topology() -> None:
    (finding,) = edited("            topology: 4x4x4\n", "").findings

    assert finding.path == "clusters.us-central2.node_pools.v4-cube.topology"
    assert finding.message.startswith("is missing")
    assert finding.nearest == "topology: 2x2x1"


def test_what_the_owner_of_an_existing_cluster_decides_is_no_field_of_it() -> None:
    text = """\
config:
  training-platform:environment:
    project: example-lab
    network: {name: vpc}
    clusters:
      main: {location: us-central1, existing: theirs, software: {kueue: existing, jobset: existing}}
"""

    assert not parse_stack("lab", parse_source(text, "stacks/Pulumi.lab.yaml")).findings
    (finding,) = edited("existing: theirs,", "existing: theirs, version: 1.35.1-gke.1000000,", text).findings
    assert (finding.path, finding.nearest) == ("clusters.main.version", "leave it out")
    assert "the owner of theirs decides this" in finding.message


def test_a_reservation_without_the_capacity_is_found() -> None:
    line = "            reservation: {name: h100"
    (finding,) = edited(f"            capacity: reservation\n{line}", line).findings

    assert finding.path is not None
    assert finding.path.endswith("h100.reservation")
    assert finding.message == "capacity on-demand does not use a reservation"
    assert finding.nearest == "capacity: reservation"


def test_homes_on_an_unknown_filestore_are_found_at_their_line() -> None:
    (finding,) = edited("filestore: homes", "filestore: home").findings

    assert finding.position is not None
    assert finding.position.line == line_of("filestore: homes")
    assert finding.nearest == "homes"


@pytest.mark.parametrize(
    ("range_", "nearest"), [("10.80.0.1/16", "10.80.0.0/16"), ("10.80.0.0/33", None), ("ten", None)]
)
def test_a_range_that_is_no_network_is_found(range_: str, nearest: str | None) -> None:
    (finding,) = edited("pods: 10.80.0.0/16", f"pods: {range_}").findings

    assert finding.nearest == nearest


def test_a_section_at_the_top_is_sent_below_config() -> None:
    stack = parse_stack("x", parse_source("environment: {}\nconfig: {}\n", "f"))

    assert stack.findings[0].nearest == f"config: {ENVIRONMENT}"


def test_both_sections_at_once_are_refused() -> None:
    text = f"config:\n  {ENVIRONMENT}: {{}}\n  training-platform:team: {{}}\n"

    (finding,) = parse_stack("x", parse_source(text, "f")).findings

    assert "has both sections" in finding.message


def test_settings_of_providers_and_of_the_engine_pass() -> None:
    head = "encryptionsalt: v1:abc\nsecretsprovider: gcpkms://x\n"
    stack = edited("config:\n", f"{head}config:\n  gcp:region: us-central1\n  gcp:accessToken: {{secure: v1:xyz}}\n")

    assert not stack.findings


def test_environments_of_esc_pass() -> None:
    names = "[dev, platform/dev, platform/dev@stable]"

    assert not edited("config:\n", f"environment: {names}\nconfig:\n").findings


@pytest.mark.parametrize(
    ("value", "message", "nearest"),
    [
        ("dev", "is not a list of Pulumi ESC environments", "[dev]"),
        ("[platform/dev, a b]", "'a b' is not the name of a Pulumi ESC environment", None),
        ("[{imports: [dev]}]", "{'imports': ['dev']} is not the name of a Pulumi ESC environment", None),
    ],
)
def test_what_is_no_list_of_environments_is_refused(value: str, message: str, nearest: str | None) -> None:
    (finding,) = edited("config:\n", f"environment: {value}\nconfig:\n").findings

    assert (finding.message, finding.nearest) == (message, nearest)


def test_a_teams_environment_at_the_top_is_a_field_of_its_section() -> None:
    text = "environment: dev\nconfig:\n  training-platform:team: {name: vision}\n"

    (finding, *_) = parse_stack("x", parse_source(text, "f")).findings

    assert finding.message == "is a field of training-platform:team"


def test_an_unknown_setting_of_ours_is_refused() -> None:
    (finding,) = edited("config:\n", "config:\n  training-platform:enviroment: x\n").findings

    assert finding.nearest == ENVIRONMENT


@pytest.mark.parametrize(
    "text", ["", "- a\n", "config: 3\n", "config: x\nfoo: 1\n", "config:\n", "config: {training-platform:team: 3}\n"]
)
def test_a_file_of_another_shape_is_a_finding(text: str) -> None:
    stack = parse_stack("x", parse_source(text, "f"))

    assert stack.findings
    assert stack.section is None


@pytest.mark.parametrize(("name", "stack"), [("Pulumi.dev.yaml", "dev"), ("Pulumi.yaml", None), ("dev.yaml", None)])
def test_the_stack_is_in_the_name_of_the_file(name: str, stack: str | None) -> None:
    assert stack_name(Path(name)) == stack


# Any value in any place: the model may take it or not, but never fails.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))


VALUES = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES]
PLACES = [(value, path) for value in VALUES for path in paths(value)]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    result = copy.deepcopy(value)
    inner = result
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = new
    return result


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(range(len(PLACES))), JSON)
def test_no_value_anywhere_in_a_stack_makes_a_traceback(place: int, new: Any) -> None:
    text = yaml.safe_dump(replaced(*PLACES[place], new), allow_unicode=True)

    check_any_text(text, lambda source: parse_stack("x", source))


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(FILES), st.integers(0, 4000), st.integers(1, 40), st.text(max_size=10))
def test_no_damage_to_a_file_makes_a_traceback(path: Path, start: int, length: int, junk: str) -> None:
    text = path.read_text(encoding="utf-8")

    check_any_text(text[:start] + junk + text[start + length :], lambda source: parse_stack("x", source))


def check_any_text(text: str, parse: Callable[[Any], Stack]) -> None:
    try:
        source = parse_source(text, "stacks/Pulumi.x.yaml")
    except UnreadableError:
        return
    stack = parse(source)
    for finding in stack.findings:
        assert finding.message
        assert finding.position is not None
        assert finding.position.line >= 1
        assert str(finding).startswith("stacks/Pulumi.x.yaml:")
    assert stack.section is not None or stack.findings


def pools_of(count: int, **fields: Any) -> Stack:
    pool = {"machine_type": "ct5lp-hightpu-4t", "topology": "4x8", **fields}
    west = cluster("us-west4-a", node_pools={f"p{index}": pool for index in range(count)})
    return workspace_of({"dev": {"environment": stack_files.environment({"west": west})}}).stacks["dev"]


def test_a_pool_has_at_most_100_000_slices() -> None:
    assert pools_of(1, slices=100_000).findings == ()

    (finding,) = pools_of(1, slices=100_001).findings
    assert finding.path == "clusters.west.node_pools.p0.slices"
    assert (finding.allowed, finding.nearest) == ("at most 100000", "100000")


def test_a_stack_has_at_most_100_000_slices_and_pools() -> None:
    assert pools_of(2, slices=50_000).findings == ()

    (finding,) = pools_of(3, slices=33_334).findings
    assert (finding.path, finding.allowed) == ("clusters", "at most 100,000")


SCHEMA = stack_schema()


@pytest.mark.parametrize(
    ("definition", "field", "names"),
    [
        ("NodePoolSpec", "machine_type", {name for name, row in MACHINE_TYPES.items() if row.kind != "cpu"}),
        ("BootDiskSpec", "type", set(DISK_TYPES)),
        ("FilestoreSpec", "tier", set(FILESTORE_TIERS)),
        ("FilestoreSpec", "location", {"us-central1", "us-central1-a"}),
        ("BucketSpec", "location", set(REGIONS)),
        ("NodePoolSpec", "accelerator", {row.name for row in ACCELERATORS.values() if row.attachment}),
    ],
)
def test_names_of_the_catalogue_are_offered(definition: str, field: str, names: set[str]) -> None:
    described = SCHEMA["$defs"][definition]["properties"][field]
    offered = {name for part in (described, *described.get("anyOf", ())) for name in part.get("enum", ())}

    assert names <= offered


def test_charts_are_offered_as_keys() -> None:
    assert SCHEMA["$defs"]["Environment"]["properties"]["charts"]["propertyNames"]["enum"] == sorted(CHARTS)


def test_the_schema_refuses_a_cluster_s_name_of_another_form() -> None:
    assert SCHEMA["$defs"]["Environment"]["properties"]["clusters"]["additionalProperties"] is False


@pytest.mark.parametrize("model", [Environment, Team])
def test_the_schema_offers_every_field_of_a_section(model: type[Environment] | type[Team]) -> None:
    assert SCHEMA["$defs"][model.__name__]["properties"].keys() == model.model_fields.keys()


GPU = {"machine_type": "a3-highgpu-8g"}
TEAM = Team.model_validate(stack_files.team("dev"), strict=False)


def environment(**clusters: object) -> Environment:
    specs = {name: cluster(node_pools=pools) for name, pools in clusters.items()}
    return Environment.model_validate(stack_files.environment(specs))


def test_a_directory_s_volume_is_named_after_its_cluster_too() -> None:
    assert declared_name("directories", "data") == "directory-data"
    assert declared_name("directories", "data", "us-west4") == "directory-data-us-west4"


def test_a_pool_may_be_called_notebooks_where_the_cluster_has_none() -> None:
    assert clashes(environment(c={"notebooks": GPU})) == {}


def test_a_cluster_and_a_pool_of_another_that_read_alike_clash() -> None:
    assert list(clashes(environment(**{"a": {"b-c": GPU}, "a-b": {"c": GPU}}))) == ["a-b-c"]


def test_the_longest_name_wins() -> None:
    locator = Locator(environment(**{"a": {"b": GPU}, "a-b-c": {}}))

    assert locator.path("a-b-pool") == ("clusters", "a", "node_pools", "b")
    assert locator.path("a-b-c-cluster") == ("clusters", "a-b-c")
    assert locator.path("elsewhere") == ()
    assert Locator(TEAM).path("account") == ()


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("        capacity_gib: 2560", "        capacity_gbi: 2560", ["capacity_gbi", "capacity_gib"]),
        ("        capacity_gib: 2560", "        capacity_gib: 2560\n        qqqq: 1", ["qqqq", "qqqq"]),
        ("      homes:", "      Homes:", ["Homes", "homes"]),
        ("        tier: ZONAL", "        tier: ZONLA", ["ZONAL"]),
    ],
)
def test_a_name_that_is_rejected_spoils_what_it_names_and_what_was_meant(old: str, new: str, names: list[str]) -> None:
    places = [place for finding in edited(old, new).findings for place in finding.spoils]

    assert [place[-1] for place in places if len(place) > 1] == names
