"""Each component of the package: what it registers, and what it says of values that it does not take."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pulumi.errors import InputPropertiesError
from pulumi.provider.experimental.component import ComponentProvider
from pydantic import BaseModel

from components.given import read
from components.models import NetworkSpec, NodePoolsSpec, Place, TensorboardSpec
from components.provider import COMPONENTS, Provider
from components.specs import LEFT_OUT
from tests.places import ROOT
from training_platform.checks.planning.recorder import Plan, record
from training_platform.config.model.cluster import ClusterSpec
from training_platform.config.model.storage import FilestoreSpec
from training_platform.config.model.team import BucketSpec, PersistentResourceSpec
from training_platform.resources.spelling import camel_case

PLACE = {"project": "example-train-dev", "environment": "dev", "labels": {"cost-center": "ml"}}
RANGES = {"nodes": "10.10.0.0/20", "pods": "10.64.0.0/16", "services": "10.10.16.0/20"}
# The wire has no whole numbers.
H100 = {"machineType": "a3-highgpu-8g", "zone": "us-central1-a", "maxNodes": 4.0}
GIVEN: dict[str, dict[str, Any]] = {
    "Bucket": {"spec": {"location": "us-central1", "deleteAfterDays": 30.0}},
    "Cluster": {
        "network": "projects/p/global/networks/n",
        "serviceAccount": "nodes@example.com",
        "spec": {"location": "us-central1", "subnet": RANGES, "nodePools": {"h100": H100}},
    },
    "Filestore": {"network": "n", "spec": {"location": "us-central1-a", "capacityGib": 1024.0}},
    "Network": {"spec": {"regions": ["us-central1"], "natAddresses": 2.0}},
    "NodePools": {
        "cluster": "theirs",
        "serviceAccount": "nodes@example.com",
        "spec": {"location": "us-central1", "nodePools": {"h100": H100}},
    },
    "NodeServiceAccount": {},
    "PersistentResource": {"spec": {"region": "us-central1", "machineType": "a2-highgpu-1g", "replicas": 2.0}},
    "Tensorboard": {"spec": {"region": "us-central1"}},
}
REACHES: dict[str, tuple[str, str, Any]] = {
    "Bucket": ("gcp:storage/bucket:Bucket", "name", "example-train-dev-dev-main"),
    "Cluster": ("gcp:container/cluster:Cluster", "name", "dev-main"),
    "Filestore": (
        "gcp:filestore/instance:Instance",
        "fileShares",
        {"name": "share", "capacityGb": 1024},
    ),
    "Network": ("gcp:compute/router:Router", "region", "us-central1"),
    "NodePools": ("gcp:container/nodePool:NodePool", "cluster", "theirs"),
    "NodeServiceAccount": ("gcp:serviceaccount/account:Account", "accountId", "dev-gke-nodes"),
    "PersistentResource": (
        "gcp:vertex/aiPersistentResource:AiPersistentResource",
        "location",
        "us-central1",
    ),
    "Tensorboard": ("gcp:vertex/aiTensorboard:AiTensorboard", "region", "us-central1"),
}


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider("0.1.0")


def construct(provider: ComponentProvider, component: str, name: str = "main", **changes: Any) -> Plan:
    """Construct a component as the engine asks for it: by its token, with inputs as they come over the wire."""
    inputs = {"place": PLACE, **GIVEN[component], **changes}

    def program() -> None:
        made = provider.construct(name, f"training-platform:index:{component}", inputs)
        pulumi.export("state", made.state)

    return record(program, project="other", stack_name="dev")


def test_every_component_of_the_package_is_constructed_here() -> None:
    assert {each.__name__ for each in COMPONENTS} == GIVEN.keys() == REACHES.keys()


@pytest.mark.parametrize("component", GIVEN)
def test_a_component_registers_its_resource_below_itself(component: str, provider: Provider) -> None:
    kind, field, value = REACHES[component]

    plan = construct(provider, component)

    wrapper = plan.one(f"training-platform:index:{component}", "main")
    inner = [each for each in plan.resources if each.parent == wrapper.key]
    assert [each.inputs[field] for each in plan.of(kind)] == [value]
    assert plan.of(kind)[0].parent in {each.key for each in inner}


@pytest.mark.parametrize("component", GIVEN)
def test_a_component_tells_every_output_of_its_schema(component: str, provider: Provider) -> None:
    schema = json.loads(provider.schema or "")["resources"][f"training-platform:index:{component}"]

    plan = construct(provider, component)

    assert plan.outputs["state"].keys() == schema["properties"].keys()


def test_a_pool_of_a_cluster_has_whole_numbers_and_its_labels(provider: Provider) -> None:
    plan = construct(provider, "Cluster")

    pool = plan.one("gcp:container/nodePool:NodePool", "main-h100-pool").inputs
    assert pool["autoscaling"]["maxNodeCount"] == 4
    assert pool["nodeConfig"]["resourceLabels"]["cost-center"] == "ml"
    assert pool["nodeConfig"]["serviceAccount"] == "nodes@example.com"


def test_a_cluster_in_a_shared_vpc_makes_no_subnet_and_no_firewall_rule(provider: Provider) -> None:
    spec = {"location": "us-central1", "subnet": {**RANGES, "name": "train"}}

    plan = construct(provider, "Cluster", hostProject="example-host", spec=spec)

    subnet = "projects/example-host/regions/us-central1/subnetworks/train"
    assert plan.one("gcp:container/cluster:Cluster").inputs["subnetwork"] == subnet
    assert not [each for each in plan.resources if each.type.startswith("gcp:compute/")]


def test_all_that_is_wrong_comes_at_once_by_the_names_of_the_schema() -> None:
    place = {"project": "Example", "environment": "dev"}

    with pytest.raises(InputPropertiesError) as refused:
        read("Main", {"place": place, "spec": {"regions": ["us-central"], "nat_addresses": -1.0}}, NetworkSpec)

    said = {each["property_path"]: each["reason"] for each in refused.value.errors or ()}
    assert said.keys() == {"name", "place.project", "spec.regions[0]", "spec.natAddresses"}
    assert said["spec.regions[0]"].endswith("Nearest: us-central1")


def test_a_refused_component_is_said_without_a_traceback(provider: Provider) -> None:
    with pytest.raises(InputPropertiesError, match="not what the component takes"):
        construct(provider, "Network", spec={"regions": ["nowhere"]})


def test_a_half_number_is_refused(provider: Provider) -> None:
    with pytest.raises(InputPropertiesError):
        construct(provider, "Network", spec={"natAddresses": 1.5})


MODELS: tuple[type[BaseModel], ...] = (
    Place,
    NetworkSpec,
    ClusterSpec,
    NodePoolsSpec,
    FilestoreSpec,
    BucketSpec,
    PersistentResourceSpec,
    TensorboardSpec,
)


@pytest.mark.parametrize("model", MODELS)
def test_the_types_of_the_schema_are_those_of_the_models(model: type[BaseModel], provider: Provider) -> None:
    types = json.loads(provider.schema or "")["types"]
    written = types[f"training-platform:index:{model.__name__}"]
    fields = {key: field for key, field in model.model_fields.items() if key not in LEFT_OUT.get(model.__name__, ())}

    assert written["description"] == inspect.getdoc(model)
    assert list(written["properties"]) == [camel_case(key) for key in fields]
    assert set(written.get("required", ())) == {camel_case(key) for key, field in fields.items() if field.is_required()}
    for key, field in fields.items():
        assert written["properties"][camel_case(key)]["description"].startswith(field.description or "")


def test_fields_of_the_schema_have_the_types_of_their_models(provider: Provider) -> None:
    types = json.loads(provider.schema or "")["types"]

    def of(model: str, field: str) -> dict[str, Any]:
        said: dict[str, Any] = types[f"training-platform:index:{model}"]["properties"][field]
        return said

    pools = of("ClusterSpec", "nodePools")
    storage_class = of("BucketSpec", "storageClass")
    assert pools["additionalProperties"]["$ref"] == "#/types/training-platform:index:NodePoolSpec"
    assert pools["additionalProperties"]["description"] == pools["description"]
    assert of("ClusterSpec", "subnet")["$ref"] == "#/types/training-platform:index:SubnetSpec"
    assert of("BucketSpec", "deleteAfterDays")["type"] == "integer"
    assert of("BucketSpec", "versioning")["type"] == "boolean"
    assert of("NetworkSpec", "regions")["items"]["type"] == "string"
    assert storage_class["description"].endswith("One of STANDARD, NEARLINE, COLDLINE, ARCHIVE.")


def test_the_page_names_every_component_with_its_outputs(provider: Provider) -> None:
    page = (ROOT / "docs" / "components.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| (`.*`) \|$", page, re.MULTILINE)
    resources = json.loads(provider.schema or "")["resources"]

    outputs = {token.rpartition(":")[2]: set(each["properties"]) for token, each in resources.items()}
    assert {name: set(re.findall(r"`(\w+)`", said)) for name, said in rows} == outputs


@pytest.mark.parametrize("field", ["computeClasses", "existing", "notebooks", "software"])
def test_what_is_inside_a_cluster_is_no_input(field: str, provider: Provider) -> None:
    cluster = json.loads(provider.schema or "")["types"]["training-platform:index:ClusterSpec"]["properties"]

    assert "nodePools" in cluster
    assert field not in cluster


def test_the_programs_of_the_page_make_what_they_say() -> None:
    page = (ROOT / "docs" / "components.md").read_text(encoding="utf-8")
    cloud, inside = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)

    plan = record(lambda: exec(cloud, {}), project="other", stack_name="dev")  # noqa: S102, the page's own
    objects = record(
        lambda: exec(inside, {}),  # noqa: S102, the page's own
        project="other", stack_name="dev", config={"other:kubeconfig": "{}"},
    )  # fmt: skip

    assert plan.one("gcp:filestore/instance:Instance").inputs["name"] == "dev-homes"
    assert plan.outputs.keys() == {"address"}
    assert [each.inputs["name"] for each in objects.of("kubernetes:helm.sh/v3:Release")] == ["jobset", "kueue"]
    assert objects.one("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor").inputs["metadata"]["name"] == "h100"
    assert not [each for each in objects.resources if each.type.startswith("gcp:")]


def test_the_package_has_the_version_and_the_name_of_its_project_file() -> None:
    project = yaml.safe_load((ROOT / "components" / "PulumiPlugin.yaml").read_text("utf-8"))

    assert f'Provider("{project["version"]}")' in (ROOT / "components" / "__main__.py").read_text("utf-8")
    assert project["name"] == json.loads(Provider("0.1.0").schema or "")["name"]


def test_the_package_needs_no_provider_of_kubernetes() -> None:
    program = "import sys, components.provider; print([each for each in sys.modules if 'pulumi_kubernetes' in each])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)

    assert done.stdout == "[]\n"
    assert "pulumi-kubernetes\n" not in (ROOT / "components" / "requirements.txt").read_text("utf-8")


def test_no_module_of_components_postpones_annotations() -> None:
    """Pulumi's analyzer would see texts instead of types."""
    with_components = {each.__module__.replace(".", "/") + ".py" for each in COMPONENTS}

    assert [name for name in with_components if "from __future__" in Path(ROOT / name).read_text("utf-8")] == []
