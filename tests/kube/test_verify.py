"""Probes of clusters on a real API server with Kueue and JobSet: clean as deployed, each refuted by its planted fault.

No container runs: a stand-in for kubelets ends a probe's pods with the message of ``MESSAGES``, and one for GKE's
autoscaler accepts requests. Releases of Helm are Secrets as Helm writes them, and their pods are objects.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml

from tests.kube.clusters import KINDS, NEEDED, kueue_cluster
from tests.kube.queues import KUEUE, PATHS, Json, Queues, until
from tests.kube.server import Server
from tests.kube.test_every_object import ApiServer, rendered
from tests.training_platform.adopt.conftest import Repository
from tests.training_platform.adopt.conftest import _repository as repository  # noqa: F401 # a fixture
from tests.training_platform.verify.conftest import HOME, TEAM, Lab, answers_of, lab_of, verdicts
from training_platform.checks.planning.recorder import Plan
from training_platform.resources import register
from training_platform.sandbox.kubernetes.api_servers import free_port
from training_platform.sandbox.kubernetes.nodes import SimulatedPool, kubelets, node_objects
from training_platform.verify.probes import Platform, probes
from training_platform.verify.run import go_on
from training_platform.verify.tenancy import writes

pytestmark = [pytest.mark.kube, pytest.mark.timeout(600)]

CLUSTER = "projects/example-lab/locations/us-central1-a/clusters/lab-main"
OF_CLUSTERS = [name for name, one in probes().items() if "kubeconfig" in one.needs]
OPTIONS: Mapping[Any, str] = {"group": "vision@example.com", "pool": "main.a100"}
NLP = TEAM.replace("vision", "nlp").partition("    buckets:")[0]
MESSAGES = {
    "egress": "dns=yes\ngoogle_apis=yes\ninternet=no\nmetadata_of_node=no\n",
    "disk": "write=240\nread=240\n",
    "files": "write=95\nread=100\n",
    "node": "all=yes\ngpus=8\ndriver=580.65.06\n",
    "request": "Accepted",
}
NODE = "/api/v1/nodes/gke-lab-main-a100-0"


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
    """Have a stand-in say something else."""
    before = site.messages[program]
    site.messages[program] = message
    try:
        yield
    finally:
        site.messages[program] = before


@contextmanager
def silent(site: Site) -> Iterator[None]:
    """Have the cluster's context name an address at which nobody answers."""
    before = Path(site.kubeconfig).read_text(encoding="utf-8")
    config = json.loads(before)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    Path(site.kubeconfig).write_text(json.dumps(config), encoding="utf-8")
    try:
        yield
    finally:
        Path(site.kubeconfig).write_text(before, encoding="utf-8")


@pytest.fixture(scope="module")
def site(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:  # noqa: F811
    folder = tmp_path_factory.mktemp("verify")
    lab = lab_of(repository({"lab": HOME, "lab-vision": TEAM, "lab-nlp": NLP}), ["lab", "lab-nlp", "lab-vision"])
    releases = {one.inputs["name"]: one.inputs for one in lab.resources if one.type == register.RELEASE}
    settings = yaml.safe_load(releases["kueue"]["values"]["managerConfig"]["controllerManagerConfigYaml"])
    with ExitStack() as stack:
        kueue = stack.enter_context(kueue_cluster(folder, settings, (*KINDS, "gmp"), (*NEEDED, "jobset"), quotas=True))
        queues, server = Queues(kueue.client), ApiServer(kueue.client)
        bodies = {name: lab.body(f"{CLUSTER}/nodePools/{name}") for name in ("a100", "system")}
        nodes = node_objects(SimulatedPool("lab-main", name, body, 1) for name, body in bodies.items())
        stack.enter_context(kubelets(kueue.server, lambda: nodes))
        for release in releases.values():
            _install(queues, server, release)
        _apply(queues, server, lab)
        config = folder / "kubeconfig.json"
        config.write_text(kueue.server.kubeconfig("lab-main"), encoding="utf-8")
        made = Site(queues, kueue.client, lab, str(config), dict(MESSAGES))
        ended = threading.Event()
        thread = threading.Thread(target=_play, args=(made, list(nodes.values()), ended), daemon=True)
        thread.start()
        yield made
        ended.set()
        thread.join()


def _install(queues: Queues, server: ApiServer, release: Mapping[str, Any]) -> None:
    """Leave what Helm does: the namespace, a Secret with the release, and a pod that runs."""
    namespace, name = release["namespace"], release["name"]
    labels = {"owner": "helm", "name": name, "status": "deployed"}
    data = {"release": packed(release["version"], release.get("values") or {})}
    secret = {"metadata": {"name": f"sh.helm.release.v1.{name}.v1", "labels": labels}, "data": data}
    pod = {"metadata": {"name": f"{name}-0"}, "spec": {"containers": [{"name": "manager", "image": f"{name}:1"}]}}
    for kind in ("gmp-system", namespace):
        server.refusal({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kind}}, keep=True)
    queues.create(f"/api/v1/namespaces/{namespace}/secrets", secret)
    queues.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    queues.change(f"/api/v1/namespaces/{namespace}/pods/{name}-0/status", {"status": {"phase": "Running"}})


def packed(version: str, values: Mapping[str, Any]) -> str:
    """Return a release as a Secret has it."""
    release = {"chart": {"metadata": {"version": version}}, "config": dict(values)}
    return base64.b64encode(base64.b64encode(gzip.compress(json.dumps(release).encode()))).decode()


def _apply(queues: Queues, server: ApiServer, lab: Lab) -> None:
    """Apply what a deployment makes of each stack, namespaces first and queues last."""
    accounts = {stack: f"{stack}-jobs@example-lab.iam.gserviceaccount.com" for stack in ("lab-vision", "lab-nlp")}
    bodies = []
    for stack in ("lab", *accounts):
        plan = Plan(resources=[one for one in lab.resources if one.stack == stack])
        for one in rendered("lab", stack, plan):
            text = json.dumps(one.body).replace('"unknown"', f'"{accounts.get(stack)}"')
            bodies.append(json.loads(text))
    for body in sorted(bodies, key=lambda body: body["kind"] != "Namespace"):
        if body["kind"] not in PATHS:
            assert server.refusal(body, keep=True) == "", body["metadata"]
    queues.deploy_all([body for body in bodies if body["kind"] in PATHS])


def _play(site: Site, nodes: Sequence[Json], ended: threading.Event) -> None:
    """End a probe's pods as kubelets would, and answer requests for VMs as GKE's autoscaler would."""
    while not ended.wait(0.1):
        for pod in site.queues.get("/api/v1/pods")["items"]:
            _tried(_end, site, pod)
        for request in site.queues.get("/apis/autoscaling.x-k8s.io/v1/provisioningrequests")["items"]:
            _tried(_accept, site, nodes, request)


def _end(site: Site, pod: Json) -> None:
    """End a pod that has a node, or that waits for a claim, since nobody binds claims here."""
    about, has_place = pod["metadata"], pod["spec"].get("nodeName") or "volumes" in pod["spec"]
    if about["name"].startswith("verify-") and has_place and pod["status"].get("phase") == "Pending":
        state = {"terminated": {"exitCode": 0, "message": site.messages[about["name"].split("-")[2]]}}
        row = {"name": "probe", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}/status"
        site.queues.change(path, {"status": {"phase": "Succeeded", "containerStatuses": [row]}})


def _accept(site: Site, nodes: Sequence[Json], request: Json) -> None:
    """Answer a request for VMs of a pool that is there."""
    template = site.queues.get(f"/api/v1/namespaces/{request['metadata']['namespace']}/podtemplates/request")
    selector = template["template"]["spec"]["nodeSelector"]
    fits = any(selector.items() <= node["metadata"]["labels"].items() for node in nodes)
    if fits and not (request.get("status") or {}).get("conditions"):
        site.queues.says(request, site.messages["request"])


def _tried(call: Callable[..., object], *arguments: object) -> None:
    """Call, for an object that may be gone meanwhile."""
    try:
        call(*arguments)
    except (httpx.HTTPStatusError, AssertionError):
        return


def ran(platform: Platform, *names: str) -> dict[str, list[str]]:
    """Run probes as a run does, and return the answers by verdict, each with its probe."""
    done = go_on([probes()[name] for name in names], platform, platform.maker.ledger, lambda *_: None)
    said: dict[str, list[str]] = {"proven": [], "refuted": [], "undecided": []}
    for name, asked in done.items():
        for answer in asked.answers:
            said[answer.verdict].append(f"{name}: {answer.says} ({answer.evidence})")
    return said


def test_a_deployed_cluster_refutes_nothing_and_keeps_nothing(site: Site, tmp_path: Path) -> None:
    before = {kind: _names(site, kind) for kind in ("namespaces", "persistentvolumes")}
    with site.platform(tmp_path) as platform:
        said = ran(platform, *OF_CLUSTERS)
        made = platform.maker.ledger.made

    assert (said["refuted"], said["undecided"]) == ([], [])
    assert {line.partition(":")[0] for line in said["proven"]} == set(OF_CLUSTERS)
    assert made > len(OF_CLUSTERS)
    assert {kind: _names(site, kind) for kind in before} == before


def _names(site: Site, plural: str) -> set[str]:
    return {body["metadata"]["name"] for body in site.queues.get(f"/api/v1/{plural}")["items"]}


MEMBER = {"Impersonate-User": "ada@example.com", "Impersonate-Group": "vision@example.com"}
RELEASE = "/api/v1/namespaces/kueue-system/secrets/sh.helm.release.v1.kueue.v1"
QUEUES = f"{KUEUE}/clusterqueues"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
JOB_POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/training-platform-queued-jobs"
NO_IMAGE: Json = {"name": "manager", "image": "", "imageID": "", "ready": False, "restartCount": 0,
                  "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}  # fmt: skip


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
    rows = (one for one in writes("vision", "vision") if one.way == "say that Kueue admitted it")
    body = next(rows).body
    return gone(site, JOB_POLICY, lambda: Server(site.http).ask("Job", body, MEMBER) == "")


FAULTS: Mapping[str, tuple[str, Callable[[Site], Fault], str]] = {
    "a control plane that is down": ("cluster-answers", silent, "lab-main does not answer"),
    "a network policy is gone": (
        "cluster-objects",
        lambda site: gone(site, "/apis/networking.k8s.io/v1/namespaces/vision/networkpolicies/egress"),
        "NetworkPolicy share-main-tenancy-egress-policy is not in its cluster",
    ),
    "a larger quota of pods": (
        "cluster-objects",
        lambda site: changed(site, "/api/v1/namespaces/vision/resourcequotas/team", spec={"hard": {"pods": "100000"}}),
        "spec.hard.pods",
    ),
    "an older release": (
        "cluster-objects",
        lambda site: changed(site, RELEASE, data={"release": packed("0.18.6", {})}),
        "Helm release kueue-system/kueue is not as planned: version",
    ),
    "an image that is not there": (
        "cluster-controllers",
        lambda site: changed(
            site, "/api/v1/namespaces/kueue-system/pods/kueue-0/status", status={"containerStatuses": [NO_IMAGE]}
        ),
        "ImagePullBackOff",
    ),
    "a lost GPU": (
        "pools-nodes",
        lambda site: changed(site, f"{NODE}/status", status={"allocatable": {"nvidia.com/gpu": "7"}}),
        "offers 7 of 8 nvidia.com/gpu",
    ),
    "a node with an external address": (
        "pools-nodes",
        lambda site: changed(
            site, f"{NODE}/status", status={"addresses": [{"type": "ExternalIP", "address": "203.0.113.9"}]}
        ),
        "external address",
    ),
    "a node of another machine": (
        "pools-nodes",
        lambda site: changed(site, NODE, metadata={"labels": {"node.kubernetes.io/instance-type": "a2-highgpu-4g"}}),
        "is a a2-highgpu-4g",
    ),
    "a driver that sees 7 of 8 GPUs": ("pools-node", lambda site: told(site, "node", "all=7 of 8\n"), "7 of 8"),
    "an open way out": (
        "network-egress",
        lambda site: told(site, "egress", MESSAGES["egress"].replace("internet=no", "internet=yes")),
        "internet is refused: internet is 'yes'",
    ),
    "a name that is not resolved": (
        "network-egress",
        lambda site: told(site, "egress", MESSAGES["egress"].replace("dns=yes", "dns=no")),
        "a name is resolved: dns is 'no'",
    ),
    "a slow disk": ("storage-disk", lambda site: told(site, "disk", "write=12\nread=240\n"), "write is 12"),
    "slow files": ("storage-files", lambda site: told(site, "files", "write=95\nread=3.5\n"), "read is 3.5"),
    "a queue with another cohort": (
        "queues-as-planned",
        lambda site: changed(site, f"{QUEUES}/vision", spec={"preemption": {"withinClusterQueue": "Never"}}),
        "ClusterQueue vision is not as planned: spec.preemption.withinClusterQueue",
    ),
    "a queue that is not active": ("queues-as-planned", broken_queue, "broken of lab-main is not active"),
    "a priority without a value": (
        "queues-admission",
        lambda site: replaced(site, f"{KUEUE}/workloadpriorityclasses/high", value=0),
        "a job of priority high is admitted before others",
    ),
    "a request that fails": ("queues-request", lambda site: told(site, "request", "Failed"), "GKE accepts a request"),
    "a role beyond the team": ("tenancy-rights", let_in, "a member may list pods in nlp"),
    "a policy out of force": ("tenancy-writes", without_policy, "a member may say that Kueue admitted it"),
}


def test_each_probe_of_clusters_has_a_fault() -> None:
    assert {name for name, _, _ in FAULTS.values()} == set(OF_CLUSTERS)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refuted_by_its_probe(site: Site, tmp_path: Path, fault: str) -> None:
    name, spoil, says = FAULTS[fault]
    with spoil(site), site.platform(tmp_path) as platform:
        try:
            said = verdicts(answers_of(name, platform))
        finally:
            platform.maker.remove()

    assert any(says in line for line in said["refuted"]), said


def test_probes_after_a_refuted_one_are_not_decided(site: Site, tmp_path: Path) -> None:
    with silent(site), site.platform(tmp_path) as platform:
        said = ran(platform, *OF_CLUSTERS)

    assert [line.partition(":")[0] for line in said["refuted"]] == ["cluster-answers"]
    assert said["proven"] == []
    because = {line.partition(":")[0]: line for line in said["undecided"]}
    assert because.keys() == set(OF_CLUSTERS) - {"cluster-answers"}
    assert all("not decided, because of " in line for line in because.values())
    assert "because of queues-as-planned" in because["queues-admission"]
