"""The loop in which programs are planned: calls are answered where they are made, and nothing outlives a plan."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import traceback
from contextlib import suppress

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes
import pytest

from training_platform.checks.planning.recorder import Plan, ProgramError, record, run_in_loop
from training_platform.resources.planned import UNKNOWN

NETWORK = "gcp:compute/network:Network"
BUCKET = "gcp:storage/bucket:Bucket"


def plan(program: object, **more: object) -> Plan:
    return record(program, project="training-platform", stack_name="dev", **more)  # type: ignore[arg-type]


def test_inputs_are_recorded_as_the_provider_names_them() -> None:
    def program() -> None:
        gcp.compute.Network("net", auto_create_subnetworks=False, mtu=8896)

    assert plan(program).one(NETWORK).inputs == {"autoCreateSubnetworks": False, "mtu": 8896}


def test_what_only_a_deployment_tells_is_unknown() -> None:
    def program() -> None:
        net = gcp.compute.Network("net")
        gcp.compute.Subnetwork("sub", network=net.id, ip_cidr_range="10.0.0.0/20", description=net.self_link)

    inputs = plan(program).one("gcp:compute/subnetwork:Subnetwork").inputs
    assert inputs["network"] is UNKNOWN
    assert inputs["description"] is UNKNOWN
    assert inputs["ipCidrRange"] == "10.0.0.0/20"


def test_an_input_comes_back_as_an_output_of_the_same_name() -> None:
    def program() -> None:
        net = gcp.compute.Network("net", name="given")
        gcp.storage.Bucket("b", location="EU", name=net.name.apply(lambda name: f"{name}-b"))

    assert plan(program).one(BUCKET).inputs["name"] == "given-b"


def test_nothing_comes_back_of_a_resource_whose_provider_is_not_known_yet() -> None:
    def program() -> None:
        known = kubernetes.Provider("known", kubeconfig="{}")
        later = kubernetes.Provider("later", kubeconfig=gcp.compute.Network("net").id)
        for provider, name in ((known, "near"), (later, "far")):
            opts = pulumi.ResourceOptions(provider=provider)
            made = kubernetes.core.v1.Namespace(name, metadata={"name": name}, opts=opts)
            gcp.storage.Bucket(f"{name}-bucket", location=made.metadata["name"])

    found = plan(program)
    assert found.one(BUCKET, "near-bucket").inputs["location"] == "near"
    assert found.one(BUCKET, "far-bucket").inputs["location"] is UNKNOWN
    assert found.one("kubernetes:core/v1:Namespace", "far").inputs["metadata"] == {"name": "far"}


def test_a_secret_is_recorded_as_what_it_holds() -> None:
    def program() -> None:
        gcp.storage.Bucket("b", location=pulumi.Output.secret("EU"))

    assert plan(program).one(BUCKET).inputs["location"] == "EU"


def test_what_is_registered_beside_the_inputs_is_kept() -> None:
    def program() -> None:
        first = gcp.compute.Network("first")
        options = pulumi.ResourceOptions(
            protect=True,
            ignore_changes=["mtu"],
            delete_before_replace=True,
            retain_on_delete=True,
            depends_on=[first],
            custom_timeouts=pulumi.CustomTimeouts(create="30m"),
        )
        gcp.compute.Network("second", opts=options)

    assert plan(program).one(NETWORK, "second").options == {
        "protect": True,
        "retainOnDelete": True,
        "deleteBeforeReplace": True,
        "ignoreChanges": ["mtu"],
        "dependsOn": [(NETWORK, "first")],
        "customTimeouts": {"create": "30m"},
    }


def test_a_resource_knows_its_parent_and_its_provider() -> None:
    class Part(pulumi.ComponentResource):
        def __init__(self) -> None:
            super().__init__("x:y:Part", "part")
            cluster = kubernetes.Provider("kube", kubeconfig="{}", opts=pulumi.ResourceOptions(parent=self))
            kubernetes.core.v1.Namespace("ns", opts=pulumi.ResourceOptions(parent=self, provider=cluster))

    namespace = plan(Part).one("kubernetes:core/v1:Namespace")
    assert namespace.parent == ("x:y:Part", "part")
    assert namespace.options["provider"] == "kube"


def test_a_second_resource_of_the_same_type_and_name_is_refused() -> None:
    def program() -> None:
        gcp.compute.Network("net")
        gcp.compute.Network("net")

    with pytest.raises(Exception, match="two resources are gcp:compute/network:Network net"):
        plan(program)


def test_a_call_to_the_cloud_is_refused() -> None:
    def program() -> None:
        gcp.organizations.get_project(project_id="example")

    with pytest.raises(Exception, match="which only a cloud can answer"):
        plan(program)


@pytest.mark.parametrize(("later", "place"), [("x", "EU"), (UNKNOWN, UNKNOWN)])
def test_outputs_of_another_stack_are_known_where_all_of_them_are(later: object, place: object) -> None:
    def program() -> None:
        other = pulumi.StackReference("organization/training-platform/dev")
        gcp.storage.Bucket("b", location=other.get_output("place"))

    references = {"organization/training-platform/dev": {"place": "EU", "later": later}}
    assert plan(program, references=references).one(BUCKET).inputs == {"location": place}


def test_what_takes_a_value_from_another_stack_depends_on_the_reference() -> None:
    def program() -> None:
        other = pulumi.StackReference("organization/training-platform/dev")
        gcp.storage.Bucket("b", location=other.get_output("place"))

    name = "organization/training-platform/dev"
    bucket = plan(program, references={name: {"place": "EU"}}).one(BUCKET)
    assert bucket.options["dependsOn"] == [("pulumi:pulumi:StackReference", name)]


def test_a_stack_that_was_not_planned_cannot_be_referred_to() -> None:
    def program() -> None:
        pulumi.StackReference("organization/training-platform/dev")

    with pytest.raises(Exception, match="has no outputs to read"):
        plan(program)


def test_exports_are_recorded() -> None:
    def program() -> None:
        pulumi.export("name", "x")
        pulumi.export("id", gcp.compute.Network("net").id)

    assert plan(program).outputs == {"name": "x", "id": UNKNOWN}


def test_configuration_reaches_the_program_as_the_engine_hands_it_over() -> None:
    def program() -> None:
        config = pulumi.Config("training-platform")
        pulumi.export("whole", config.require_object("environment"))
        pulumi.export("region", pulumi.Config("gcp").require("region"))

    config = {"training-platform:environment": {"a": [1, True]}, "gcp:region": "us-west4"}
    assert plan(program, config=config).outputs == {"whole": {"a": [1, True]}, "region": "us-west4"}


def test_configuration_loses_its_order_and_its_nulls_as_the_engine_takes_them() -> None:
    def program() -> None:
        pulumi.export("keys", list(pulumi.Config("training-platform").require_object("environment")))
        pulumi.export("text", pulumi.Config("gcp").get("list"))
        pulumi.export("nothing", pulumi.Config("gcp").get("nothing"))

    config = {"training-platform:environment": {"b": 1, "a": 2}, "gcp:list": [1, "é"], "gcp:nothing": None}
    assert plan(program, config=config).outputs == {"keys": ["a", "b"], "text": '[1,"é"]', "nothing": ""}


def test_one_plan_leaves_nothing_for_the_next() -> None:
    def first() -> None:
        gcp.compute.Network("net")
        pulumi.export("a", 1)

    def second() -> None:
        gcp.compute.Network("net", mtu=1500)

    plan(first, config={"training-platform:environment": {}})
    again = plan(second)

    assert [resource.inputs for resource in again.resources] == [{"mtu": 1500}]
    assert again.outputs == {}


def test_an_error_of_the_program_passes_through() -> None:
    def program() -> None:
        gcp.compute.Network("net")
        raise KeyError("boom")

    with pytest.raises(KeyError, match="boom"):
        plan(program)
    assert plan(lambda: None).resources == []


def test_what_the_engine_would_refuse_is_said_as_such() -> None:
    assert issubclass(ProgramError, Exception)
    with pytest.raises(LookupError, match="0 resources are"):
        Plan().one(NETWORK)


def plan_of_loop(program: object) -> None:
    record(program, project="training-platform", stack_name="dev")  # type: ignore[arg-type]


def test_a_call_is_answered_in_the_thread_that_makes_it() -> None:
    async def main() -> int:
        return await asyncio.get_running_loop().run_in_executor(None, threading.get_ident)

    assert run_in_loop(main()) == threading.get_ident()


def test_an_error_of_a_call_reaches_who_awaits_it() -> None:
    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await asyncio.get_running_loop().run_in_executor(None, lambda: 1 // 0)

    run_in_loop(main())


def test_what_a_failed_program_left_waiting_ends_with_it() -> None:
    left: list[asyncio.Task[None]] = []

    async def main() -> None:
        left.append(asyncio.create_task(asyncio.Event().wait()))  # type: ignore[arg-type] # what it returns is dropped
        raise LookupError

    with pytest.raises(LookupError):
        run_in_loop(main())
    assert left[0].cancelled()


def interrupt(_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def never(_: object) -> None:
    pytest.fail("the plan went on")


def test_an_interrupt_of_a_program_ends_its_plan() -> None:
    def program() -> None:
        network = gcp.compute.Network("net", name="given")
        interrupt(network)
        pulumi.export("name", network.name.apply(never))

    with pytest.raises(KeyboardInterrupt):
        plan_of_loop(program)


def test_an_interrupt_while_outputs_are_waited_for_ends_the_plan() -> None:
    def program() -> None:
        interrupted = gcp.compute.Network("net", name="given").name.apply(interrupt)
        pulumi.export("name", interrupted.apply(never))

    with pytest.raises(KeyboardInterrupt):
        plan_of_loop(program)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_keeps_its_traceback() -> None:
    def broken() -> None:
        gcp.compute.Network("net")
        raise LookupError("here")

    with pytest.raises(LookupError) as caught:
        plan_of_loop(broken)

    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"


@pytest.mark.parametrize("before", [None, 7])
@pytest.mark.parametrize("error", [None, pulumi.RunError("planned")])
def test_how_python_prints_tracebacks_and_collects_is_as_before(
    monkeypatch: pytest.MonkeyPatch, before: int | None, error: Exception | None
) -> None:
    monkeypatch.delattr(sys, "tracebacklimit", raising=False)
    if before:
        monkeypatch.setattr(sys, "tracebacklimit", before, raising=False)

    def program() -> None:
        assert (gc.isenabled(), sys.tracebacklimit) == (False, 1)
        if error:
            raise error

    with suppress(pulumi.RunError):
        plan_of_loop(program)

    assert (gc.isenabled(), getattr(sys, "tracebacklimit", None)) == (True, before)
