from training_platform.config.model.environment import Environment
from training_platform.config.model.team import Team
from training_platform.config.names import Locator, clashes, declared_name

SUBNET = {"nodes": "10.0.0.0/20", "pods": "10.64.0.0/16", "services": "10.1.0.0/20"}
GPU = {"machine_type": "a3-highgpu-8g"}
TEAM = Team.model_validate({"environment": "dev", "name": "a", "members": ("user:a@example.com",)})


def environment(**clusters: object) -> Environment:
    specs = {
        name: {"location": "us-central1-a", "subnet": SUBNET, "node_pools": pools} for name, pools in clusters.items()
    }
    return Environment.model_validate({"project": "example-train", "clusters": specs})


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
