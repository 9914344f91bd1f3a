"""Stacks on real controllers: what their components register of Kueue, and jobs in the queues of teams."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import httpx
import yaml

from tests.support.plans import composed
from tests.support.stack_files import workspace_of
from training_platform.config.lent_quota import lending
from training_platform.config.workspace import Workspace
from training_platform.resources.kueue import priorities
from training_platform.resources.network_devices import claim_templates
from training_platform.resources.plan import Component
from training_platform.resources.queues import flavor_resources, team_queues
from training_platform.resources.scope import TEAM_LABEL, environment_scope, team_scope
from training_platform.resources.serving import model_server

Json = dict[str, Any]
T = TypeVar("T")
SECONDS = 30.0
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
DEVICES = "/apis/resource.k8s.io/v1"
PATHS = {  # in the order in which the next needs them
    "Topology": f"{KUEUE}/topologies",
    "ResourceFlavor": f"{KUEUE}/resourceflavors",
    "WorkloadPriorityClass": f"{KUEUE}/workloadpriorityclasses",
    "ProvisioningRequestConfig": f"{KUEUE}/provisioningrequestconfigs",
    "AdmissionCheck": f"{KUEUE}/admissionchecks",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "Cohort": f"{KUEUE}/cohorts",
    "ClusterQueue": f"{KUEUE}/clusterqueues",
    "LocalQueue": f"{KUEUE}/namespaces/{{}}/localqueues",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Service": "/api/v1/namespaces/{}/services",
    "PodMonitoring": "/apis/monitoring.googleapis.com/v1/namespaces/{}/podmonitorings",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
}
REPLACED = ("Cohort", "ClusterQueue", "LocalQueue")  # between two tests
ENVIRONMENT = """
project: example-lab
production: false
clusters:
  main:
    location: us-central1-a
    subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.1.0.0/20}
    node_pools:
      reserved:
        machine_type: a3-highgpu-8g
        capacity: reservation
        reservation: h100
        min_nodes: 8
        max_nodes: 8
        topology_aware: false  # queues are tried without nodes
      spot: {machine_type: a3-highgpu-8g, capacity: spot, max_nodes: 8}
      placed:
        machine_type: a3-megagpu-8g
        capacity: reservation
        reservation: mega
        min_nodes: 4
        max_nodes: 4
        topology_aware: true
      slices: {machine_type: ct5lp-hightpu-4t, topology: 2x4, slices: 2, min_slices: 2, topology_aware: true}
      plain: {machine_type: ct5lp-hightpu-4t, topology: 4x4, slices: 2}
      queued: {machine_type: a3-highgpu-8g, capacity: queued-provisioning, max_nodes: 8, max_run_hours: 24}
"""


def stacks(environment: Json, teams: Mapping[str, Json]) -> Workspace:
    """Return the stack files of an environment ``lab`` and its teams; the test fails where they say something wrong."""
    whole = {**yaml.safe_load(ENVIRONMENT), **environment}
    whole["clusters"]["main"]["serving"] = any("serving" in fields for fields in teams.values())
    files = {"lab": {"environment": whole}}
    for name, fields in teams.items():
        section = {"environment": "lab", "name": name, "members": ["group:a@example.com"], **fields}
        files[f"lab-{name}"] = {"team": section}
    workspace = workspace_of(files)
    assert not [str(finding) for stack in workspace.stacks.values() for finding in stack.findings]
    return workspace


def planned(workspace: Workspace, environment: str = "lab", cluster: str = "main") -> list[Json]:
    """Return a cluster's objects of Kueue and of model servers, from stack files, with namespaces by name."""
    home = lending(workspace, environment)
    flavors = workspace.flavors(environment, cluster)
    scope = environment_scope(environment, home)

    def compose(into: Component) -> None:
        flavor_resources(into, cluster, flavors, priorities=priorities(home), cohorts=home.cohorts, scope=scope)
        for _, team, _ in workspace.teams():
            if team.environment != environment or cluster not in team.shares:
                continue
            scope_of_team = team_scope(team, home)
            queues = into.component("test:index:Queues", f"{team.name}-queues")
            team_queues(queues, team, cluster, flavors, scope=scope_of_team, namespace=team.name)
            shared = [flavors[name] for name in team.shares[cluster]]
            for template in claim_templates(queues.name, shared, scope_of_team, team.name):
                queues.add(template)
            for name, server in team.serving.get(cluster, {}).items():
                servers = into.component("test:index:Server", f"{team.name}-{name}")
                flavor = flavors[server.flavor]
                model_server(
                    servers,
                    scope_of_team,
                    name,
                    server,
                    team=team.name,
                    flavor=flavor,
                    namespace=team.name,
                    confined=team.confined,
                )

    plan = composed(compose, "main-flavors")
    return [dict(resource.inputs) for resource in plan.resources if resource.inputs.get("kind") in PATHS]


class Queues:
    """A cluster with Kueue; ``deploy`` applies what stack files ask for."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def deploy(self, teams: Mapping[str, Json], **environment: Any) -> None:
        """Apply the objects of an environment and its teams, and wait until all queues are active or held."""
        self.deploy_all(planned(stacks(environment, teams)))

    def deploy_all(self, bodies: Sequence[Json]) -> None:
        """Apply objects, with their namespaces, and wait until all queues among them are active or held."""
        teams = [body["metadata"]["name"] for body in bodies if body["kind"] == "ClusterQueue"]
        for team in teams:
            self._client.post("/api/v1/namespaces", json={"metadata": {"name": team, "labels": {TEAM_LABEL: team}}})
        for kind in PATHS:
            for body in bodies:
                if body["kind"] == kind:
                    self.apply(body)
        until(lambda: [self._ready(team) for team in teams], all)

    def apply(self, body: Json, paths: Mapping[str, str] = PATHS, **options: str) -> None:
        """Apply an object as Pulumi does, on the server's side."""
        about = body["metadata"]
        path = f"{paths[body['kind']].format(about.get('namespace', ''))}/{about['name']}"
        headers = {"Content-Type": "application/apply-patch+yaml"}
        query = {"fieldManager": "tests", "force": "true", "fieldValidation": "Strict", **options}
        answer = self._client.patch(path, content=json.dumps(body), headers=headers, params=query)
        assert answer.is_success, answer.text

    def _ready(self, team: str) -> bool:
        queue = self.get(f"{KUEUE}/clusterqueues/{team}")
        conditions = {condition["type"]: condition for condition in queue.get("status", {}).get("conditions", ())}
        active = conditions.get("Active", {})
        seen = active.get("observedGeneration") == queue["metadata"]["generation"]
        return bool(seen) and (active["status"] == "True" or active["reason"] == "Stopped")

    def submit(
        self, team: str, name: str, gpus: int, *, priority: str | None = None, flavor: str | None = None,
        pods: int = 1, annotations: Mapping[str, str] | None = None, resource: str = "nvidia.com/gpu",
    ) -> None:  # fmt: skip
        """Put a job into a team's queue: ``gpus`` in each of its pods, or as many of another resource."""
        labels = {"kueue.x-k8s.io/queue-name": team}
        labels |= {"kueue.x-k8s.io/priority-class": priority} if priority else {}
        limits = {"limits": {resource: str(gpus)}, "requests": {resource: str(gpus)}}
        container = {"name": "a", "image": "registry.example.com/a:1", "resources": limits}
        spec: Json = {"restartPolicy": "Never", "containers": [container]}
        spec |= {"nodeSelector": {"training-platform/flavor": flavor}} if flavor else {}
        template = {"metadata": {"annotations": dict(annotations or {})}, "spec": spec}
        counts = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "suspend": True}
        body = {"metadata": {"name": name, "labels": labels}, "spec": {**counts, "template": template}}
        answer = self._client.post(f"/apis/batch/v1/namespaces/{team}/jobs", json=body)
        assert answer.is_success, answer.text

    def workload(self, team: str, name: str) -> Json:
        """Return the Workload of a job, or an empty mapping before it exists."""
        every = self.get(f"{KUEUE}/namespaces/{team}/workloads")["items"]
        owned = (workload for workload in every if workload["metadata"]["ownerReferences"][0]["name"] == name)
        return next(owned, {})

    def conditions(self, team: str, name: str) -> dict[str, Json]:
        """Return the conditions of a job's Workload by type."""
        conditions = self.workload(team, name).get("status", {}).get("conditions", ())
        return {condition["type"]: condition for condition in conditions}

    def flavor(self, team: str, name: str) -> str | None:
        """Return the flavor that a job runs on, None while it waits."""
        status = self.workload(team, name).get("status", {})
        admitted = any(
            condition["type"] == "Admitted" and condition["status"] == "True"
            for condition in status.get("conditions", ())
        )
        if not admitted or "admission" not in status:
            return None
        pod_sets = status["admission"]["podSetAssignments"]  # some of which may ask for nothing that is counted
        (flavor,) = {flavor for pod_set in pod_sets for flavor in pod_set.get("flavors", {}).values()}
        return str(flavor)

    def nodes_of(self, team: str, name: str) -> set[str]:
        """Return the nodes that Kueue picked for a job's pods."""
        pods = self.get(f"/api/v1/namespaces/{team}/pods?labelSelector=job-name={name}")["items"]
        alive = (pod for pod in pods if not pod["metadata"].get("deletionTimestamp"))
        return {str(pod["spec"].get("nodeSelector", {}).get("kubernetes.io/hostname")) for pod in alive}

    def request(self, team: str, name: str) -> Json:
        """Wait for the ProvisioningRequest of a job, and return it."""
        path = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{team}/provisioningrequests"
        owner = until(lambda: self.workload(team, name), bool)["metadata"]["uid"]

        def own() -> list[Json]:
            return [
                request
                for request in self.get(path)["items"]
                if request["metadata"]["ownerReferences"][0]["uid"] == owner
            ]

        return until(own, bool)[-1]

    def says(self, request: Json, condition: str, **details: str) -> None:
        """Report of a ProvisioningRequest what GKE's autoscaler would."""
        about = request["metadata"]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        row = {"status": "True", "reason": condition, "message": condition, "lastTransitionTime": now}
        status = {"conditions": [{"type": condition, **row}], "provisioningClassDetails": details}
        path = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{about['namespace']}/provisioningrequests/{about['name']}"
        headers = {"Content-Type": "application/merge-patch+json"}
        answer = self._client.patch(f"{path}/status", content=json.dumps({"status": status}), headers=headers)
        assert answer.is_success, answer.text

    def create(self, path: str, body: Json) -> None:
        """Create an object; the API server refuses unknown fields."""
        answer = self._client.post(path, json=body, params={"fieldValidation": "Strict"})
        assert answer.is_success, answer.text

    def node(
        self, name: str, labels: Mapping[str, str], resource: str, count: int, taints: Sequence[Json] = ()
    ) -> None:
        """Add a node that is ready."""
        every = {**labels, "kubernetes.io/hostname": name}
        self._client.post("/api/v1/nodes", json={"metadata": {"name": name, "labels": every}}).raise_for_status()
        room = {resource: str(count), "cpu": "208", "memory": "1800Gi", "ephemeral-storage": "5Ti", "pods": "64"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        for path, body in (
            ("/status", {"status": {"capacity": room, "allocatable": room, "conditions": [ready]}}),
            ("", {"spec": {"taints": list(taints)}}),  # not ready, until a controller looks
        ):
            headers = {"Content-Type": "application/merge-patch+json"}
            answer = self._client.patch(f"/api/v1/nodes/{name}{path}", content=json.dumps(body), headers=headers)
            answer.raise_for_status()

    def device_class(self, name: str) -> None:
        """Add a class of devices, as GKE's driver does: those whose names begin like its own."""
        kind = name.partition(".")[0]
        selector = {
            "cel": {"expression": f"device.driver == 'dra.net' && device.attributes['dra.net'].kind == '{kind}'"}
        }
        self.create(f"{DEVICES}/deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": [selector]}})

    def devices(self, node: str, device_class: str, count: int) -> None:
        """Add the network devices of a node, as GKE's driver does."""
        attributes = {"kind": {"string": device_class.partition(".")[0]}}
        rows = [{"name": f"card-{number}", "attributes": attributes} for number in range(count)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "dra.net", "nodeName": node, "pool": pool, "devices": rows}
        self.create(f"{DEVICES}/resourceslices", {"metadata": {"name": node}, "spec": spec})

    def claim(self, team: str, name: str) -> None:
        """Add a claim that is bound to a volume, if it is not there; no controller binds them here."""
        room = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        share = {"nfs": {"server": "192.0.2.1", "path": "/share"}, "capacity": {"storage": "1Gi"}}
        claim = {"volumeName": f"{team}-{name}", "resources": {"requests": {"storage": "1Gi"}}}
        bound = {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        volume = {"metadata": {"name": f"{team}-{name}"}, "spec": room | share}
        self._client.post("/api/v1/persistentvolumes", json=volume)
        path = f"/api/v1/namespaces/{team}/persistentvolumeclaims"
        self._client.post(path, json={"metadata": bound, "spec": room | claim})

    def runs(self, team: str, name: str, flavor: str = "h100-reservation") -> None:
        """Wait until a job runs on a flavor."""
        until(lambda: self.flavor(team, name), lambda now: now == flavor)

    def waits(self, team: str, name: str) -> None:
        """Wait until a job has been looked at and waits."""
        until(
            lambda: self.conditions(team, name),
            lambda now: (
                now.get("QuotaReserved", {}).get("status") == "False"
                and now.get("Admitted", {}).get("status", "False") == "False"
            ),
        )

    def get(self, path: str) -> Json:
        """Return an object, or a list of them."""
        answer = self._client.get(path)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def change(self, path: str, body: Json) -> None:
        """Patch an object."""
        headers = {"Content-Type": "application/merge-patch+json"}
        self._client.patch(path, content=json.dumps(body), headers=headers).raise_for_status()

    def delete(self, path: str, **options: int) -> None:
        """Delete an object, or all of a list, with what they own."""
        self._client.request("DELETE", path, json={"propagationPolicy": "Background", **options})

    def reap(self, namespace: str) -> None:
        """Take away pods that are being deleted, as a kubelet does."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        for pod in self.get(path)["items"]:
            if pod["metadata"].get("deletionTimestamp"):
                self.delete(f"{path}/{pod['metadata']['name']}", gracePeriodSeconds=0)

    def gone_from(self, namespace: str, *paths: str) -> None:
        """Take away pods that are being deleted until nothing is left of these lists."""

        def left() -> list[Json]:
            self.reap(namespace)
            return [body for path in paths for body in self.get(path)["items"]]

        until(left, lambda items: not items)

    def clear(self) -> None:
        """Delete all jobs and queues, and wait until they are gone."""
        self.delete("/api/v1/nodes")
        self.delete(f"{DEVICES}/resourceslices")
        for namespace in (
            namespace_object["metadata"]["name"] for namespace_object in self.get("/api/v1/namespaces")["items"]
        ):
            self.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs")
        until(lambda: self.get(f"{KUEUE}/workloads")["items"], lambda items: not items)
        for kind in reversed(REPLACED):
            collection = PATHS[kind].replace("/namespaces/{}", "")
            for obj in self.get(collection)["items"]:
                path = PATHS[kind].format(obj["metadata"].get("namespace", ""))
                self.delete(f"{path}/{obj['metadata']['name']}")
            until(lambda path=collection: self.get(path)["items"], lambda items: not items)  # type: ignore[misc]


def until(read: Callable[[], T], right: Callable[[T], bool], seconds: float = SECONDS) -> T:
    """Return what ``read`` returns once that is right; the test fails where it never is."""
    deadline = time.monotonic() + seconds
    while not right(last := read()):
        assert time.monotonic() < deadline, f"this never came true: {last}"
        time.sleep(0.1)
    return last
