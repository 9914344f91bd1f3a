"""The components as programs in other languages have them: the schema, and the way from their spelling to ours."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import tomllib
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pulumi.errors import InputPropertiesError
from pulumi.provider.experimental.analyzer import Analyzer

from tests.support.places import ROOT
from tools.component_args import FILE, ArgsWriter
from training_platform.config.component_arguments import COMPONENTS, flat_fields
from training_platform.modules import args, components
from training_platform.modules.host import NAME, Host
from training_platform.resources.spelling import camel_case

HOST = Host("0.1.0")
SCHEMA: dict[str, Any] = json.loads(HOST.schema or "")
TOKEN = f"{NAME}:index:"
POOL = {"machineType": "a3-highgpu-8g", "zone": "us-central1-a", "maxNodes": 4.0}
ARGS: dict[str, Any] = {
    "place": {"project": "example-train-dev", "environment": "dev", "deletionProtection": False},
    "location": "us-central1",
    "existing": "shared",
    "nodePools": {"h100": POOL},
}


def test_the_arguments_are_those_of_the_models() -> None:
    assert FILE.read_text(encoding="utf-8") == f"{ArgsWriter().text()}\n", "run `make schema`"


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_has_a_token_and_every_property_with_a_description_in_one_line(name: str) -> None:
    resource = SCHEMA["resources"][f"{TOKEN}{name}"]
    outputs = inspect.get_annotations(getattr(components, name))

    assert resource["isComponent"]
    assert resource["inputProperties"].keys() == {camel_case(field) for field in flat_fields(COMPONENTS[name])}
    assert resource.get("properties", {}).keys() == {camel_case(output) for output in outputs}
    properties = [*resource["inputProperties"].values(), *resource.get("properties", {}).values()]
    texts = [resource["description"], *(value["description"] for value in properties)]
    assert all(text and "\n" not in text for text in texts)


def test_only_strings_that_a_deployment_may_know_are_inputs() -> None:
    inputs = {
        (token.removeprefix(TOKEN), name)
        for token, resource in SCHEMA["resources"].items()
        for name, value in resource["inputProperties"].items()
        if not value.get("plain")
    }

    assert inputs == {
        ("FilestoreInstance", "network"), ("FilestoreInstance", "servicesRange"),
        ("GkeCluster", "network"), ("GkeCluster", "serviceAccount"),
        ("JupyterHub", "homeClaim"),
        ("NodePools", "cluster"), ("NodePools", "serviceAccount"),
        ("PersistentResource", "networkAttachment"),
        ("TeamBucket", "jobs"), ("TeamNamespace", "googleServiceAccount"), ("TeamQueues", "namespace"),
    }  # fmt: skip
    assert all(value.get("plain") for row in SCHEMA["types"].values() for value in row["properties"].values())


def test_nested_types_have_the_names_of_the_models() -> None:
    names = {token.removeprefix(TOKEN) for token in SCHEMA["types"]}

    assert {"NodePoolSpec", "Place", "SubnetSpec"} <= names
    assert [name for name in names if name.endswith("Args")] == []


@pytest.mark.parametrize("annotation", [Literal["a", "b"], Annotated[str, "x"], str | int, tuple[str, ...]], ids=str)
def test_pulumis_analyser_refuses_what_the_generated_classes_avoid(annotation: Any) -> None:
    fields = TypedDict("fields", {"a": annotation})  # noqa: UP013 # a type of the table

    with pytest.raises(Exception, match=r"class|Union|Unsupported"):
        Analyzer("test").analyze_type(fields, is_component_output=False)


def test_pulumis_analyser_takes_a_deferred_annotation_for_a_class_of_its_own() -> None:
    fields = TypedDict("fields", {"a": "str"})  # noqa: UP013 # in quotes, as every annotation of a deferring module
    analyzer = Analyzer("test")
    analyzer.analyze_type(fields, is_component_output=False)

    assert analyzer.unresolved_forward_refs.keys() == {"str"}


class Access(Enum):
    """A choice as Pulumi's guide has it."""

    READ = "read"


def test_pulumis_host_loses_the_items_of_a_list_of_enums_which_no_generated_class_has() -> None:
    host = Host("0.1.0")
    fields = TypedDict("fields", {"access": list[Access]})  # noqa: UP013 # annotations of this file are deferred
    properties, mapping = host.analyzer.analyze_type(fields, is_component_output=False)
    enums = {token for token, row in SCHEMA["types"].items() if "enum" in row}

    assert host.map_input_properties({"access": ["read"]}, properties, mapping, "test", "") == {"access": [{}]}
    assert enums == set()
    assert respelt("GkeCluster", {"operators": ["ml-diagnostics"]}) == {"operators": ["ml-diagnostics"]}


def test_choices_are_strings_when_a_program_runs_and_literals_to_a_type_checker() -> None:
    assert vars(args)["PrometheusController"] is str
    assert 'PrometheusController = Literal["jobset", "kueue"]' in FILE.read_text(encoding="utf-8")


def respelt(component: str, inputs: dict[str, Any]) -> dict[str, Any]:
    definitions = HOST.analyzer.analyze([getattr(components, component)])["component_definitions"]
    return HOST.map_inputs(inputs, definitions[component])


def test_keys_of_fields_are_respelt_below_maps_and_lists_and_those_of_maps_are_not() -> None:
    share = {"nominalQuota": 16.0}
    inputs = {"cohorts": {"research": {"shares": {"main": {"nodePools": share}}}}, "nodePools": {"maxNodes": POOL}}

    assert respelt("ResourceFlavors", inputs) == {
        "cohorts": {"research": {"shares": {"main": {"nodePools": {"nominal_quota": 16.0}}}}},
        "node_pools": {"maxNodes": {"machine_type": "a3-highgpu-8g", "zone": "us-central1-a", "max_nodes": 4.0}},
    }
    exports = {"exports": [{"ranges": ["10.0.0.0/8"], "anonymousId": 1.0}]}
    assert respelt("FilestoreInstance", exports) == {"exports": [{"ranges": ["10.0.0.0/8"], "anonymous_id": 1.0}]}


def rejected(inputs: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InputPropertiesError) as error:
        HOST.construct("main", f"{TOKEN}GkeCluster", inputs)
    return {row["property_path"]: row["reason"] for row in error.value.errors or ()}


def test_every_wrong_property_is_named_as_the_caller_spells_it() -> None:
    pool = {**POOL, "machineType": "a3-higpu-8g", "slices": 2.0, "bootDisk": {"sizeGB": 10.0}}

    reasons = rejected({**ARGS, "releaseChanel": "RAPID", "nodePools": {"h100": pool}})

    assert reasons.keys() == {"releaseChanel", "nodePools.h100.machineType", "nodePools.h100.bootDisk.sizeGB"}
    assert reasons["releaseChanel"].endswith("Nearest: releaseChannel")
    assert "binaryAuthorization" in reasons["releaseChanel"]
    assert reasons["nodePools.h100.bootDisk.sizeGB"].endswith("Nearest: sizeGb")


def test_a_missing_property_is_named_with_the_others_that_are_wrong() -> None:
    assert rejected({"releaseChannel": "FAST"}).keys() == {"place", "location", "releaseChannel"}


def test_the_folder_that_the_engine_runs_finds_the_package_beside_it() -> None:
    script = (
        "import sys, runpy; sys.path[:] = [path for path in sys.path if path != ''];"
        "print(runpy.run_path('__main__.py', run_name='host')['serve'].__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], cwd=ROOT / "modules", capture_output=True, text=True, check=True
    )
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

    assert done.stdout.strip() == "training_platform.modules.host"
    assert Host(version).version == version
