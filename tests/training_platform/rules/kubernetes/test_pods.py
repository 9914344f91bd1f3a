"""Rules of pods, their ports, and amounts in single objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training_platform.rules.objects import JOB, JOB_SET, LWS, job, wrong
from training_platform.resources.stack_resource import UNKNOWN
from training_platform.rules.kubernetes.pods import quantity

POD = "spec.template.spec"
FIRST = "spec.template.spec.containers[0]"


def container(**values: Any) -> dict[str, Any]:
    return {"name": "train", "image": "registry.example.com/train", **values}


@pytest.mark.parametrize(
    ("requests", "limits", "paths"),
    [
        ({"memory": "8Gi"}, {"memory": "8192Mi"}, []),
        ({"memory": "8Gi"}, {"memory": "8191Mi"}, ["requests"]),
        ({"cpu": "1"}, {"cpu": "999m"}, ["requests"]),
        ({"cpu": "1"}, {}, []),
        ({"cpu": "-1"}, {}, ["requests"]),
        ({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": 8.0}, []),
        ({"nvidia.com/gpu": "8"}, {}, ["limits"]),
        ({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "8"}, [""]),
        ({}, {"nvidia.com/gpu": "500m"}, ["limits"]),
        (UNKNOWN, {"nvidia.com/gpu": "8"}, []),
        ({"cpu": "1", "hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"}, []),
        ({"cpu": "1"}, {"hugepages-2Mi": "3Mi"}, ["limits"]),
        ({"cpu": "1"}, {"hugepages-2Mi": "-2Mi"}, ["limits"]),
        ({"cpu": "1", "hugepages-2Mi": "2Mi"}, {}, ["limits"]),
        ({"cpu": "1", "hugepages-1Gi": "1Gi"}, {"hugepages-1Gi": "2Gi"}, [""]),
        ({}, {"hugepages-2Mi": "4Mi"}, ["requests"]),
    ],
)
def test_requests_stay_within_limits_and_devices_are_whole(requests: Any, limits: Any, paths: list[str]) -> None:
    spec = job([container(resources={"requests": requests, "limits": limits})])

    assert wrong("pod-resources", JOB, spec=spec) == [f"{FIRST}.resources.{path}".rstrip(".") for path in paths]


@pytest.mark.parametrize(
    ("claims", "is_missing"),
    [
        ([{"templates": [{"metadata": {"name": "data"}}]}], False),
        ([{"templates": [{"metadata": {"name": "more"}}]}], True),
        ([{"templates": [{}]}], True),
        (UNKNOWN, False),
        ([], True),
    ],
)
def test_claims_of_a_job_set_are_volumes_of_its_pods(claims: Any, is_missing: bool) -> None:
    template = {"spec": job([container(volumeMounts=[{"name": "data", "mountPath": "/data"}])])}
    replicated = [{"name": "node", "template": template}]

    name_path = f"spec.replicatedJobs[0].template.{FIRST}.volumeMounts[0].name"
    assert (
        wrong("pod-parts", JOB_SET, spec={"replicatedJobs": replicated, "volumeClaimPolicies": claims})
        == [name_path] * is_missing
    )


def test_parts_of_a_pod_are_told_apart() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}] * 2
    both = [{"name": "ROLE", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]

    assert wrong("pod-parts", JOB, spec=job([container(), container()])) == [f"{POD}.containers[1].name"]
    assert wrong("pod-parts", JOB, spec=job([container(env=both)])) == [f"{FIRST}.env[0].valueFrom"]
    assert wrong("pod-parts", JOB, spec=job([container(volumeMounts=mounts)], volumes=[{"name": "data"}])) == [
        f"{FIRST}.volumeMounts[1].mountPath"
    ]


@pytest.mark.parametrize(
    ("toleration", "field"),
    [
        ({"key": "a", "operator": "Exists"}, None),
        ({"operator": "Exists"}, None),
        ({"key": "a", "operator": "Exists", "value": "b"}, "value"),
        ({"operator": "Equal"}, "operator"),
        ({"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 60.0}, None),
        ({"key": "a", "value": "b", "effect": "NoSchedule", "tolerationSeconds": 60.0}, "effect"),
    ],
)
def test_a_toleration_goes_with_its_operator(toleration: dict[str, Any], field: str | None) -> None:
    spec = job([container()], tolerations=[toleration])
    flavor = {"nodeLabels": {"a": "b"}, "tolerations": [toleration]}

    assert wrong("toleration-form", JOB, spec=spec) == [f"{POD}.tolerations[0].{field}"] * bool(field)
    assert wrong("toleration-form", "kueue.x-k8s.io/v1beta1:ResourceFlavor", spec=flavor) == [
        f"spec.tolerations[0].{field}"
    ] * bool(field)


def test_a_selector_matches_its_own_pods() -> None:
    def found(label: Any) -> list[str]:
        template = {"metadata": {"labels": {"app": label}}}
        return wrong("pod-selector", "apps/v1:DaemonSet", spec={
            "selector": {"matchLabels": {"app": "install"}}, "template": template,
        })  # fmt: skip

    assert found("install") == []
    assert found(UNKNOWN) == []
    assert found("other") == ["spec.selector.matchLabels"]


@pytest.mark.parametrize(
    ("expression", "is_wrong"),
    [
        ({"key": "app", "operator": "In", "values": ["install", "other"]}, False),
        ({"key": "app", "operator": "In", "values": ["other"]}, True),
        ({"key": "app", "operator": "NotIn", "values": ["other"]}, False),
        ({"key": "app", "operator": "NotIn", "values": ["install"]}, True),
        ({"key": "app", "operator": "NotIn", "values": [UNKNOWN]}, False),
        ({"key": "app", "operator": "Exists"}, False),
        ({"key": "tier", "operator": "Exists"}, True),
        ({"key": "tier", "operator": "DoesNotExist"}, False),
        ({"key": "app", "operator": "DoesNotExist"}, True),
        ({"key": "rank", "operator": "In", "values": ["0"]}, False),
    ],
)
def test_an_expression_of_a_selector_matches_its_own_pods(expression: dict[str, Any], is_wrong: bool) -> None:
    template = {"metadata": {"labels": {"app": "install", "rank": UNKNOWN}}}
    spec = {"selector": {"matchExpressions": [expression]}, "template": template}

    assert wrong("pod-selector", "apps/v1:Deployment", spec=spec) == ["spec.selector.matchExpressions[0]"] * is_wrong


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"resources": {"claims": [{"name": "gpu"}]}}, None),
        ({"resources": {"claims": [{"name": "tpu"}]}}, "resources.claims[0].name"),
        ({"volumeMounts": [{"name": "data", "mountPath": "/d", "mountPropagation": "HostToContainer"}]}, None),
        ({"volumeMounts": [{"name": "data", "mountPath": "/d", "mountPropagation": "Bidirectional"}]},
         "volumeMounts[0].mountPropagation"),
        ({"volumeMounts": [{"name": "data", "mountPath": "/d", "mountPropagation": "Bidirectional"}],
          "securityContext": {"privileged": True}}, None),
    ],
)  # fmt: skip
def test_a_container_has_only_claims_of_its_pod_and_passes_mounts_on_as_root_alone(
    values: dict[str, Any], field: str | None
) -> None:
    spec = job([container(**values)], volumes=[{"name": "data"}], resourceClaims=[{"name": "gpu"}])

    assert wrong("pod-parts", JOB, spec=spec) == [f"{FIRST}.{field}"] * bool(field)


def test_a_device_is_a_volume_of_its_pod() -> None:
    spec = job([container(volumeDevices=[{"name": "disk", "devicePath": "/dev/x"}])], volumes=[{"name": "other"}])

    assert wrong("pod-parts", JOB, spec=spec) == [f"{FIRST}.volumeDevices[0].name"]


@pytest.mark.parametrize("kind", ["apps/v1:Deployment", "apps/v1:DaemonSet", "batch/v1:Job", "core/v1:Pod"])
def test_the_pods_of_every_workload_are_judged(kind: str) -> None:
    pod = {"containers": [container(volumeMounts=[{"name": "data", "mountPath": "/data"}])]}
    spec = pod if kind == "core/v1:Pod" else {"template": {"spec": pod}}
    pod_path = "spec" if kind == "core/v1:Pod" else POD

    assert wrong("pod-parts", kind, spec=spec) == [f"{pod_path}.containers[0].volumeMounts[0].name"]


def test_a_group_mounts_its_own_claims() -> None:
    mounted = container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    group = {"workerTemplate": {"spec": {"containers": [mounted]}}}
    claims = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}

    assert wrong("pod-parts", LWS, spec={"leaderWorkerTemplate": {**group, **claims}}) == []
    assert wrong("pod-parts", LWS, spec={"leaderWorkerTemplate": group}) == [
        "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].volumeMounts[0].name"
    ]


def test_containers_that_run_first_have_other_names() -> None:
    assert wrong("pod-parts", JOB, spec=job([container()], initContainers=[container()])) == [
        f"{POD}.initContainers[0].name"
    ]


def test_quantities_are_read_with_their_units() -> None:
    assert quantity("1Ki") == 1024
    assert quantity("1k") == 1000
    assert quantity("500m") * 2 == quantity(1)  # type: ignore[operator] # it is a number
    assert quantity("1.") == 1
    assert quantity(".5") * 2 == 1  # type: ignore[operator] # it is a number
    assert [quantity(text) for text in ("a lot", "1.2.3", ".", "..5Gi")] == [None] * 4
    assert quantity(UNKNOWN) is None


@pytest.mark.parametrize(("size", "right"), [("1Gi", True), ("0", False), ("-1Gi", False)])
def test_a_volume_has_a_size(size: str, right: bool) -> None:
    claim = wrong("volume-amount", "core/v1:PersistentVolumeClaim", spec={"resources": {"requests": {"storage": size}}})
    volume = wrong("volume-amount", "core/v1:PersistentVolume", spec={"capacity": {"storage": size}})

    assert claim == ([] if right else ["spec.resources.requests.storage"])
    assert volume == ([] if right else ["spec.capacity.storage"])


def test_a_quota_is_not_below_0() -> None:
    assert wrong("quota-amount", "core/v1:ResourceQuota", spec={"hard": {"pods": "0"}}) == []
    assert wrong("quota-amount", "core/v1:ResourceQuota", spec={"hard": {"pods": "-1"}}) == ["spec.hard"]


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"scopes": ["BestEffort"], "hard": {"pods": "4"}}, []),
        ({"scopes": ["BestEffort"], "hard": {"requests.cpu": "4"}}, ["spec.scopes"]),
        ({"scopes": ["NotBestEffort"], "hard": {"requests.cpu": "4", "requests.nvidia.com/gpu": "8"}}, []),
        ({"scopes": ["Terminating"], "hard": {"services": "4"}}, ["spec.scopes"]),
        ({"scopes": ["Terminating", "NotTerminating"], "hard": {"pods": "4"}}, ["spec.scopes"]),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "BestEffort"}]}, "hard": {"cpu": "1"}},
            ["spec.scopeSelector.matchExpressions[0].scopeName"],
        ),
        ({"hard": {"services": "4"}}, []),
    ],
)
def test_a_scope_counts_what_its_quota_limits(spec: dict[str, Any], paths: list[str]) -> None:
    assert wrong("quota-scope", "core/v1:ResourceQuota", spec=spec) == paths


@pytest.mark.parametrize(
    ("limit", "path"),
    [
        ({"defaultRequest": {"cpu": "2"}, "default": {"cpu": "2"}, "max": {"cpu": "2"}}, None),
        ({"defaultRequest": {"cpu": "3"}, "default": {"cpu": "2"}}, "spec.limits[0].defaultRequest"),
        ({"default": {"cpu": "3"}, "max": {"cpu": "2"}}, "spec.limits[0].default"),
    ],
)
def test_limits_stand_in_order(limit: dict[str, Any], path: str | None) -> None:
    spec = {"limits": [{"type": "Container", **limit}]}

    assert wrong("limit-range", "core/v1:LimitRange", spec=spec) == [path] * bool(path)


def test_a_type_has_one_limit() -> None:
    spec = {"limits": [{"type": "Container"}, {"type": "Container"}]}

    assert wrong("limit-range", "core/v1:LimitRange", spec=spec) == ["spec.limits[1].type"]


FIRST_PORT = "spec.template.spec.containers[0].ports"
SERVICE = "core/v1:Service"


def found(*ports: dict[str, Any], other: list[dict[str, Any]] | None = None, **pod: Any) -> list[str]:
    containers = [{"name": "a", "ports": list(ports)}, {"name": "b", "ports": other or []}]
    return wrong("container-ports", JOB, spec=job(containers, **pod))


def test_ports_of_one_container_have_a_name_each() -> None:
    assert found({"name": "a", "containerPort": 80.0}, {"name": "b", "containerPort": 81.0}) == []
    assert found({"name": "a", "containerPort": 80.0}, other=[{"name": "a", "containerPort": 81.0}]) == []
    assert found({"name": "a", "containerPort": 80.0}, {"name": "a", "containerPort": 81.0}) == [
        f"{FIRST_PORT}[1].name"
    ]


@pytest.mark.parametrize(
    ("other", "path"),
    [
        ({"hostPort": 80.0}, "spec.template.spec.containers[1].ports[0].hostPort"),
        ({"hostPort": 81.0}, None),
        ({"hostPort": 80.0, "protocol": "UDP"}, None),
        ({"hostPort": 80.0, "hostIP": "10.0.0.1"}, None),
        ({}, None),
    ],
)
def test_a_port_of_the_node_is_taken_once(other: dict[str, Any], path: str | None) -> None:
    ports = found({"containerPort": 80.0, "hostPort": 80.0}, other=[{"containerPort": 8080.0, **other}])

    assert ports == [path] * bool(path)


def test_in_the_network_of_the_node_a_port_is_the_nodes() -> None:
    assert found({"containerPort": 80.0, "hostPort": 80.0}, hostNetwork=True) == []
    assert found({"containerPort": 80.0}, hostNetwork=True) == []
    assert found({"containerPort": 80.0, "hostPort": 81.0}) == []
    assert found({"containerPort": 80.0, "hostPort": 81.0}, hostNetwork=True) == [f"{FIRST_PORT}[0].hostPort"]


def test_several_ports_of_a_service_have_a_name_each() -> None:
    def named(*names: str | None) -> list[str]:
        ports = [{"port": 80.0 + index, "name": name} for index, name in enumerate(names)]
        return wrong("service-ports", SERVICE, spec={"ports": ports})

    assert named(None) == []
    assert named("a", "b") == []
    assert named("a", None) == ["spec.ports[1].name"]
    assert named("a", "a") == ["spec.ports[1].name"]


def test_a_port_of_a_service_is_there_once() -> None:
    def ports(*more: dict[str, Any]) -> list[str]:
        rows = [{"port": 80.0, "name": str(index), **port} for index, port in enumerate(({}, *more))]
        return wrong("service-ports", SERVICE, spec={"ports": rows})

    assert ports({"protocol": "UDP"}) == []
    assert ports({"port": 81.0}) == []
    assert ports({"protocol": "TCP"}) == ["spec.ports[1].port"]


@pytest.mark.parametrize(("kind", "count"), [(None, 1), ("ClusterIP", 1), ("NodePort", 0), ("LoadBalancer", 0)])
def test_a_service_inside_the_cluster_has_no_port_of_nodes(kind: str | None, count: int) -> None:
    spec = {"type": kind, "ports": [{"port": 80.0, "nodePort": 30080.0}]}

    assert wrong("service-ports", SERVICE, spec=spec) == ["spec.ports[0].nodePort"] * count
