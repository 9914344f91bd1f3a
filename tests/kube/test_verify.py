"""Probes of clusters on a real API server with Kueue and JobSet: clean as deployed, and refuted by planted faults.

No container runs: a stand-in for kubelets ends a probe's pods with the message of ``MESSAGES`` and tells their lines,
and one for Cloud Logging has a job's events and lines. Pods of Helm releases are objects.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

from local_google_cloud.api import Record
from tests.kube.api_servers import free_port
from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.kube.jobs_on_nodes import node
from tests.kube.queues import KUEUE, PATHS, Json, Queues, until
from tests.kube.rendered_objects import ApiServer, rendered
from tests.kube.server import Server
from tests.parts.adopt.stacks import write_stacks
from tests.parts.verify.lab import HOME, TEAM, Lab, answers_of, lab_of, verdicts
from tests.support.plans import PlannedStack
from training_platform.config.model.node_pool import POOL_LABEL
from training_platform.config.workspace import read_workspace
from training_platform.parts.verify.probe_run import run_probes
from training_platform.parts.verify.probe_table import PROBES
from training_platform.parts.verify.probes import Platform
from training_platform.parts.verify.tenancy_probes import writes
from training_platform.resources import resource_types

pytestmark = [pytest.mark.kube, pytest.mark.timeout(600)]

OF_CLUSTERS = [name for name, probe in PROBES.items() if "kubeconfig" in probe.needs]
OPTIONS: Mapping[Any, str] = {"group": "vision@example.com"}
FURTHER = """\
    private_services_range: 10.200.0.0/20
    lustre:
      scratch: {location: us-central1-a, capacity_gib: 36000, mbps_per_tib: 500}
    clusters:"""
LARGE = HOME.replace("    clusters:", FURTHER)
NLP = TEAM.replace("vision", "nlp").partition("    buckets:")[0]
MESSAGES = {
    "egress": "dns=yes\ngoogle_apis=yes\ninternet=no\nmetadata_of_node=no\n",
    "disk": "write=240\nread=240\n",
    "files": "write=95\nread=100\n",
    "lustre": "write=410\nread=450\n",
    "bucket": "write=\nread=180\n",
    "image": "ImageStreaming",
    "job": "1",  # the first attempt that succeeds
    "lines": "attempt {attempt} of {run}\n",
    "record": "AllJobsCompleted",
}


class Site(NamedTuple):
    """A deployed cluster: its objects, its project, and the answers of the stand-ins, which a fault changes."""

    queues: Queues
    http: httpx.Client
    lab: Lab
    kubeconfig: str
    messages: dict[str, str]

    def platform(self, folder: Path, **fields: Any) -> Any:
        return self.lab.platform(folder, self.kubeconfig, options=OPTIONS, seconds=10.0, **fields)


Fault = AbstractContextManager[object]


@contextmanager
def changed(site: Site, path: str, **change: Any) -> Iterator[None]:
    """Patch an object or its status, and give the fields their values back."""
    before = site.queues.get(path)
    site.queues.change(path, change)
    try:
        yield
    finally:
        site.queues.change(path, _former(change, before))


def _former(change: Mapping[str, Any], before: Mapping[str, Any]) -> Json:
    """Return the patch that undoes another one."""
    return {
        key: _former(value, before[key]) if isinstance(value, dict) and before.get(key) else before.get(key)
        for key, value in change.items()
    }


@contextmanager
def added(site: Site, path: str, body: Json, felt: Callable[[], bool]) -> Iterator[None]:
    """Have an object there, once it is felt."""
    site.queues.create(path, body)
    try:
        until(felt, bool)
        yield
    finally:
        site.queues.delete(f"{path}/{body['metadata']['name']}")
        until(lambda: site.http.get(f"{path}/{body['metadata']['name']}").status_code, lambda code: code == 404)


@contextmanager
def gone(site: Site, path: str, felt: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Take an object away, once that is felt, and put it back."""
    before = site.queues.get(path)
    site.queues.delete(path)
    until(lambda: site.http.get(path).status_code, lambda code: code == 404)
    try:
        until(felt, bool)
        yield
    finally:
        _create_again(site, path, before)


@contextmanager
def replaced(site: Site, path: str, **fields: Any) -> Iterator[None]:
    """Have an object of the same name with other fields, which cannot be changed."""
    before = site.queues.get(path)
    site.queues.delete(path)
    _create_again(site, path, {**before, **fields})
    try:
        yield
    finally:
        site.queues.delete(path)
        _create_again(site, path, before)


def _create_again(site: Site, path: str, before: Json) -> None:
    about = {key: value for key, value in before["metadata"].items() if key in ("name", "namespace", "labels")}
    kept = {key: value for key, value in before.items() if key != "status"}
    until(lambda: site.http.get(path).status_code, lambda code: code == 404)
    site.queues.create(path.rpartition("/")[0], {**kept, "metadata": about})


@contextmanager
def told(site: Site, program: str, message: str) -> Iterator[None]:
    """Replace a message of a stand-in."""
    before = site.messages[program]
    site.messages[program] = message
    try:
        yield
    finally:
        site.messages[program] = before


@contextmanager
def silent(site: Site) -> Iterator[None]:
    """Point the cluster's context to an address without a server."""
    before = Path(site.kubeconfig).read_text(encoding="utf-8")
    config = json.loads(before)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    Path(site.kubeconfig).write_text(json.dumps(config), encoding="utf-8")
    try:
        yield
    finally:
        Path(site.kubeconfig).write_text(before, encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("verify")
    root = write_stacks(tmp_path_factory.mktemp("repository"), {"lab": LARGE, "lab-vision": TEAM, "lab-nlp": NLP})
    lab = lab_of(root, ["lab", "lab-nlp", "lab-vision"])
    _put_lustre(lab)
    releases = {
        resource.inputs["name"]: resource.inputs
        for resource in lab.resources
        if resource.type == resource_types.RELEASE
    }
    settings = yaml.safe_load(releases["kueue"]["values"]["managerConfig"]["controllerManagerConfigYaml"])
    with ExitStack() as stack:
        kueue = stack.enter_context(
            kueue_cluster(
                folder, settings, (*KINDS, "gmp", "TRAINING_PLATFORM_GKE_DEFINITIONS"), (*NEEDED, "jobset"), quotas=True
            )
        )
        queues = Queues(kueue.client)
        server = ApiServer(kueue.client)
        messages = dict(MESSAGES)
        port = stack.enter_context(told_lines(kueue.server.certificate, messages))
        node(queues, read_workspace(root).flavors("lab", "main")["a100-40"], 0, "a100")
        queues.node("system-0", {POOL_LABEL: "system"}, "example.com/none", 1)
        kubelet = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                   "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}  # fmt: skip
        for name in ("vm-0", "system-0"):
            queues.change(f"/api/v1/nodes/{name}/status", {"status": kubelet})
        lab.cloud.answers = {"POST .*entries:list": lambda body: (200, {"entries": logged(messages, body["filter"])})}
        for release in releases.values():
            _install(queues, server, release)
        _apply(queues, server, lab)
        config = folder / "kubeconfig.json"
        config.write_text(kueue.server.kubeconfig("lab-main"), encoding="utf-8")
        verified_site = Site(queues, kueue.client, lab, str(config), messages)
        ended = threading.Event()
        thread = threading.Thread(target=_play, args=(verified_site, ended), daemon=True)
        thread.start()
        yield verified_site
        ended.set()
        thread.join()


def _put_lustre(lab: Lab) -> None:
    """Put the instance of Managed Lustre into the cloud, without the network's peering that its creation asks for."""
    (planned,) = (resource for resource in lab.resources if resource.type == resource_types.LUSTRE)
    name = f"projects/example-lab/locations/us-central1-a/instances/{planned.inputs['instanceId']}"
    fields = {key: value for key, value in planned.inputs.items() if key in ("filesystem", "capacityGib", "labels")}
    body = {**fields, "name": name, "state": "ACTIVE", "mountPoint": "10.200.0.2@tcp:/lustre",
            "perUnitStorageThroughput": "500"}  # fmt: skip
    lab.cloud.store.put(Record(name=f"lustre/{name}", project="example-lab", body=body))


def _install(queues: Queues, server: ApiServer, release: Mapping[str, Any]) -> None:
    """Leave what Helm does: the namespace, and a pod that runs."""
    namespace = release["namespace"]
    name = release["name"]
    pod = {"metadata": {"name": f"{name}-0"}, "spec": {"containers": [{"name": "manager", "image": f"{name}:1"}]}}
    for kind in ("gmp-system", namespace):
        server.refusal({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kind}}, keep=True)
    queues.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    queues.change(f"/api/v1/namespaces/{namespace}/pods/{name}-0/status", {"status": {"phase": "Running"}})


def _apply(queues: Queues, server: ApiServer, lab: Lab) -> None:
    """Apply what a deployment makes of each stack, namespaces first and queues last."""
    accounts = {stack: f"{stack}-jobs@example-lab.iam.gserviceaccount.com" for stack in ("lab-vision", "lab-nlp")}
    bodies = []
    for stack in ("lab", *accounts):
        plan = PlannedStack(resources=[resource for resource in lab.resources if resource.stack == stack])
        for rendered_object in rendered("lab", stack, plan):
            text = json.dumps(rendered_object.body).replace('"unknown"', f'"{accounts.get(stack)}"')
            bodies.append(json.loads(text))
    for body in sorted(bodies, key=lambda body: body["kind"] != "Namespace"):
        if body["kind"] not in PATHS:
            assert server.refusal(body, keep=True) == "", body["metadata"]
    queues.deploy_all([body for body in bodies if body["kind"] in PATHS])


def _play(site: Site, ended: threading.Event) -> None:
    """End a probe's pods as kubelets would."""
    while not ended.wait(0.1):
        for pod in site.queues.get("/api/v1/pods")["items"]:
            _tried(_reap if "deletionTimestamp" in pod["metadata"] else _end, site, pod)


def _reap(site: Site, pod: Json) -> None:
    """Delete a pod that is being deleted; jobs whose pods are replaced only once they failed wait for that."""
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    if pod["status"].get("phase") not in ("Failed", "Succeeded"):
        site.queues.change(f"{path}/status", {"status": {"phase": "Failed"}})
    site.queues.delete(path, gracePeriodSeconds=0)


def _end(site: Site, pod: Json) -> None:
    """End a pod that has a node, or that waits for a claim, since nobody binds claims here.

    The first pull of an image fails, which a kubelet tries again.
    """
    about = pod["metadata"]
    has_place = pod["spec"].get("nodeName") or "volumes" in pod["spec"]
    if not about["name"].startswith("verify-") or not has_place or pod["status"].get("phase") != "Pending":
        return
    part = about["name"].split("-")[2]
    failed = part == "job" and int(about["labels"]["jobset.sigs.k8s.io/restart-attempt"]) < int(site.messages["job"])
    path = f"/api/v1/namespaces/{about['namespace']}"
    container = pod["spec"]["containers"][0]
    state = {"terminated": {"exitCode": int(failed), "message": site.messages[part]}}
    phase = "Failed" if failed else "Succeeded"
    if part == "image" and not pod["status"].get("containerStatuses"):
        state = {"waiting": {"reason": "ErrImagePull", "message": "the registry is busy"}}
        phase = "Pending"
    elif part == "image":
        event = {"metadata": {"name": f"{about['name']}-pull"}, "reason": site.messages["image"],
                 "message": f"Image {container['image']} is backed by image streaming. Successfully pulled",
                 "involvedObject": {"kind": "Node", "name": pod["spec"]["nodeName"]}}  # fmt: skip
        site.queues.create("/api/v1/namespaces/default/events", event)
    row = {"name": container["name"], "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    site.queues.change(f"{path}/pods/{about['name']}/status", {"status": {"phase": phase, "containerStatuses": [row]}})


@contextmanager
def told_lines(certificate: Path, messages: Mapping[str, str]) -> Iterator[int]:
    """Answer as a kubelet whom an API server asks for the lines of a container; yield its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # as the base class names it
            pod = self.path.split("/")[3]  # /containerLogs/NAMESPACE/POD/CONTAINER
            data = messages["lines"].format(attempt=1, run=pod.partition("-slice-")[0]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def logged(messages: Mapping[str, str], log_filter: str) -> list[Json]:
    """Return what Cloud Logging has of the job that a filter is about: events, or the lines of its first attempt."""
    run = re.findall(r"verify-[0-9a-f]{8}-job", log_filter)[0]
    if 'log_id("events")' in log_filter:
        reasons = [("RestartJobSetFailurePolicyAction", "05"), (messages["record"], "09")]
        return [
            {
                "timestamp": f"2026-11-23T12:00:{second}Z",
                "jsonPayload": {"reason": reason, "message": f"{run}: {reason}"},
            }
            for reason, second in reasons
        ]
    text = messages["lines"].format(attempt=0, run=run).strip()
    labels = {"pod_name": f"{run}-slice-0-0-abcde"}
    return [{"timestamp": "2026-11-23T12:00:04Z", "textPayload": text, "resource": {"labels": labels}}]


def _tried(call: Callable[..., object], *arguments: object) -> None:
    """Call, for an object that may be gone meanwhile."""
    try:
        call(*arguments)
    except (httpx.HTTPStatusError, AssertionError):
        return


def ran(platform: Platform, *names: str) -> dict[str, list[str]]:
    """Run probes as a run does, and return the answers by verdict, each with its probe."""
    done = run_probes([PROBES[name] for name in names], platform, platform.maker.object_record, lambda *_: None)
    lines: dict[str, list[str]] = {"proven": [], "refuted": [], "undecided": []}
    for name, probe_run in done.items():
        for answer in probe_run.answers:
            lines[answer.verdict].append(f"{name}: {answer.says} ({answer.evidence})")
    return lines


def test_a_deployed_cluster_refutes_nothing_and_keeps_nothing(site: Site, tmp_path: Path) -> None:
    before = {kind: _names(site, kind) for kind in ("namespaces", "persistentvolumes")}
    with site.platform(tmp_path) as platform:
        lines = ran(platform, *OF_CLUSTERS)
        last_object = platform.maker.object_record.last_number

    assert (lines["refuted"], lines["undecided"]) == ([], [])
    assert {line.partition(":")[0] for line in lines["proven"]} == set(OF_CLUSTERS)
    assert last_object > len(OF_CLUSTERS)
    assert {kind: _names(site, kind) for kind in before} == before


def _names(site: Site, plural: str) -> set[str]:
    return {body["metadata"]["name"] for body in site.queues.get(f"/api/v1/{plural}")["items"]}


MEMBER = {"Impersonate-User": "ada@example.com", "Impersonate-Group": "vision@example.com"}
QUEUES = f"{KUEUE}/clusterqueues"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
JOB_POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/training-platform-queued-jobs"


def without_gpu(site: Site) -> Fault:
    """Have a VM offer one GPU less than it has."""
    gpu = "nvidia.com/gpu"
    (node,) = (node for node in site.queues.get("/api/v1/nodes")["items"] if gpu in node["status"]["capacity"])
    path = f"/api/v1/nodes/{node['metadata']['name']}/status"
    return changed(site, path, status={"allocatable": {gpu: "7"}})


def broken_queue(site: Site) -> Fault:
    """Have a queue of a flavor that is not there."""
    flavor = {"name": "none", "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    spec = {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "broken"},
        "spec": spec,
    }

    def felt() -> bool:
        conditions = site.queues.get(f"{QUEUES}/broken").get("status", {}).get("conditions", ())
        return any(row["type"] == "Active" and row["status"] == "False" for row in conditions)

    return added(site, QUEUES, body, felt)


def let_in(site: Site) -> Fault:
    """Let the team's members view all namespaces."""
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "opened"}}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:aggregate-to-view"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": OPTIONS["group"]}
    body = {**about, "roleRef": ref, "subjects": [subject]}
    return added(site, BINDINGS, body, lambda: Server(site.http).may("list", "pods", "nlp", MEMBER))


def without_policy(site: Site) -> Fault:
    """Take the policy of jobs out of force."""
    rows = (write for write in writes("vision", "vision") if write.way == "claim that Kueue admitted it")
    body = next(rows).body
    return gone(site, JOB_POLICY, lambda: Server(site.http).ask("Job", body, MEMBER) == "")


FAULTS: Mapping[str, tuple[str, Callable[[Site], Fault], str]] = {
    "a control plane that is down": ("cluster-answers", silent, "lab-main does not answer"),
    "a lost GPU": (
        "pools-nodes",
        without_gpu,
        "offers 7 of 8 nvidia.com/gpu",
    ),
    "an open way out": (
        "network-egress",
        lambda site: told(site, "egress", MESSAGES["egress"].replace("internet=no", "internet=yes")),
        "internet is refused: internet is 'yes'",
    ),
    "a slow disk": ("storage-disk", lambda site: told(site, "disk", "write=12\nread=240\n"), "write is 12"),
    "a job that fails twice": ("queues-job", lambda site: told(site, "job", "2"), "fails once restarts, and ends"),
    "a queue that is not active": ("queues-active", broken_queue, "broken of lab-main is not active"),
    "a priority without a value": (
        "queues-admission",
        lambda site: replaced(site, f"{KUEUE}/workloadpriorityclasses/high", value=0),
        "a job of priority high is admitted before others",
    ),
    "a role beyond the team": ("tenancy-rights", let_in, "a member may list pods in nlp"),
    "a policy out of force": ("tenancy-writes", without_policy, "a member may claim that Kueue admitted it"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refuted_by_its_probe(site: Site, tmp_path: Path, fault: str) -> None:
    name, spoil, says = FAULTS[fault]
    with spoil(site), site.platform(tmp_path) as platform:
        try:
            lines = verdicts(answers_of(name, platform))
        finally:
            platform.maker.remove()

    assert any(says in line for line in lines["refuted"]), lines
