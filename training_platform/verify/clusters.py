"""Probes of clusters by their API servers: objects as planned, controllers, nodes with their devices, pods that try.

A pod of a probe runs in a namespace of the run's own and tells its result by its termination message, so that no right
to read logs or to open a shell is needed. ``pods.yaml`` has the programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from training_platform.adopt.matches import object_differences
from training_platform.adopt.sections.values import key_of
from training_platform.catalog import IMAGES, MACHINE_TYPES
from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import EVENTS, NODES, PODS, ApiKind, ClusterError
from training_platform.config.pools import ExpandedPool, pools
from training_platform.resources import register
from training_platform.resources.node_pools import node_pool_name
from training_platform.resources.planned import UNKNOWN
from training_platform.resources.register import KUBERNETES, RELEASE
from training_platform.verify.ledger import wait_for
from training_platform.verify.probes import Answer, Platform, probe, proven, refuted, undecided

NAMESPACES: Final = ApiKind("api/v1", "namespaces")
POLICIES: Final = ApiKind("apis/networking.k8s.io/v1", "networkpolicies")
VIEWER: Final = ("roles/container.viewer", "roles/container.clusterViewer")
MAKER: Final = ("roles/container.admin",)
_QUEUES: Final = "kubernetes:kueue.x-k8s.io/"
POOL_LABEL: Final = "cloud.google.com/gke-nodepool"
_STOCKOUT: Final = ("GCE_STOCKOUT", "FailedScaleUp", "ZONE_RESOURCE_POOL_EXHAUSTED")


@probe("cluster-answers", stage="cluster", proves="The control plane of each cluster answers to us.",
       roles=("roles/container.clusterViewer",), needs=("kubeconfig",), after=("cluster-as-planned",))  # fmt: skip
def cluster_answers(platform: Platform) -> Iterator[Answer]:
    """Answer for each planned cluster: whether it can be asked."""
    for path in (match.path for match in platform.found(register.CLUSTER)):
        if path not in platform.clusters:
            yield undecided(f"{_short(path)} was not asked", "the kubeconfig has no context for it")
            continue
        try:
            kinds = platform.clusters[path].kinds("v1")
        except ClusterError as error:
            if error.status in (401, 403):
                raise
            yield refuted(f"{_short(path)} does not answer", str(error))
        else:
            yield proven(f"{_short(path)} answers", f"{len(kinds)} kinds of its core API")


@probe("cluster-objects", stage="cluster", proves="Namespaces, roles, policies, quotas and releases are as planned.",
       roles=("roles/container.viewer",), needs=("kubeconfig",), after=("cluster-answers",))  # fmt: skip
def cluster_objects(platform: Platform) -> Iterator[Answer]:
    """Answer for each planned object but Kueue's, and for the version and values of each Helm release."""
    yield from objects_as_planned(platform, queues=False)


def objects_as_planned(platform: Platform, *, queues: bool) -> Iterator[Answer]:
    """Answer for the planned objects that are Kueue's, or for all others."""
    good: Counter[str] = Counter()
    for planned in platform.resources:
        if not planned.custom or not planned.type.startswith(KUBERNETES) or planned.type.startswith(_QUEUES) != queues:
            continue
        if platform.cluster_of(planned) not in platform.clusters:
            continue  # cluster-answers has said so
        kind = "Helm release" if planned.type == RELEASE else planned.type.rpartition(":")[2]
        match = platform.in_clusters.get((planned.stack, *planned.key))
        if match is None:
            unread = next((why for at, why in platform.contents.unread.items() if at.endswith(f" {kind}")), "")
            if unread:
                yield undecided(f"{kind} {planned.name} could not be looked for", unread)
            elif (planned.inputs.get("metadata") or {}).get("name") is UNKNOWN:
                yield undecided(f"{kind} {planned.name} could not be looked for", "only a deployment tells its name")
            else:
                yield refuted(f"{kind} {planned.name} is not in its cluster", str(planned.options.get("provider")))
            continue
        wrong = [one for one in object_differences(match.planned, match.body or {}) if one.planned is not None]
        for difference in wrong:
            secret = kind == "Secret"
            says = f"{kind} {match.id} is not as planned: "
            yield refuted(says + (f"{difference.path} differs" if secret else str(difference)), match.path)
        if not wrong:
            good[kind] += 1
    for kind, count in sorted(good.items()):
        yield proven(f"{count}: {kind} is there as planned")


@probe("cluster-controllers", stage="cluster", proves="Pods of installed controllers run; their images were pulled.",
       roles=("roles/container.viewer",), needs=("kubeconfig",), after=("cluster-answers",))  # fmt: skip
def cluster_controllers(platform: Platform) -> Iterator[Answer]:
    """Answer for the pods in each namespace of a planned release."""
    for match in platform.objects(RELEASE.removeprefix(KUBERNETES)):
        namespace, cluster = str(match.planned.inputs["namespace"]), match.path.partition("/Release/")[0]
        pods = list(platform.clusters[cluster].objects(PODS, namespace))
        if not pods:
            yield undecided(f"{namespace} in {_short(cluster)} has no pod", "the release may run none, or is starting")
        for pod in pods:
            name, waiting = f"{namespace}/{pod['metadata']['name']}", _waiting(pod)
            phase = (pod.get("status") or {}).get("phase")
            if waiting:
                yield refuted(f"{name} does not run: {waiting[0]}", waiting[1])
            elif phase in ("Running", "Succeeded"):
                yield proven(f"{name} runs", ", ".join(_images(pod)))
            else:
                yield undecided(f"{name} is {phase}", "it waits for a node, or starts")


def _images(pod: Json) -> list[str]:
    return [one["image"] for one in pod["spec"]["containers"]]


def _waiting(pod: Json) -> tuple[str, str] | None:
    """Return reason and message of a container that cannot start."""
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            return str(waiting["reason"]), str(waiting.get("message", ""))
    return None


@probe("pools-nodes", stage="pools", proves="Nodes are ready, private, and offer all chips of their machine.",
       roles=("roles/container.viewer",), needs=("kubeconfig",), after=("cluster-answers",))  # fmt: skip
def pools_nodes(platform: Platform) -> Iterator[Answer]:
    """Answer for the nodes that are there: devices, drivers by the label of GKE, addresses; no node is started."""
    for path, api in platform.clusters.items():
        of_cluster = (pool for pool in pools(platform.environment) if cluster_of(platform, pool) == path)
        by_name = {node_pool_name(pool, gke): pool for pool in of_cluster for gke in pool.gke_pools}
        good: Counter[str] = Counter()
        for node in api.objects(NODES, ""):
            labels = node["metadata"].get("labels") or {}
            pool = by_name.get(labels.get(POOL_LABEL, ""))
            wrong = list(_node_faults(node, pool))
            yield from (refuted(f"node {node['metadata']['name']} {fault}", _short(path)) for fault in wrong)
            if not wrong:
                good[labels.get(POOL_LABEL, "no pool")] += 1
        for name, count in sorted(good.items()):
            yield proven(f"{count} nodes of {name} are ready, private and whole", _short(path))
        if not good:
            yield undecided(f"{_short(path)} has no node to look at")


def cluster_of(platform: Platform, pool: ExpandedPool) -> str:
    """Return the path of a pool's cluster, empty where it cannot be asked."""
    names = ((path, path.rpartition("/")[2]) for path in platform.clusters)
    return next((path for path, name in names if key_of(platform.name, name) == pool.cluster), "")


def _node_faults(node: Json, pool: ExpandedPool | None) -> Iterator[str]:
    status, labels = node["status"], node["metadata"].get("labels") or {}
    ready: Json = next((row for row in status.get("conditions") or () if row["type"] == "Ready"), {})
    if ready.get("status") != "True":
        yield f"is not ready: {ready.get('reason', 'no condition')}"
    for address in status.get("addresses") or ():
        if address["type"] == "ExternalIP":
            yield f"has an external address, {address['address']}"
    machine = MACHINE_TYPES.get(labels.get("node.kubernetes.io/instance-type", ""))
    if pool is None or machine is None:
        return
    if machine.name != pool.machine.name:
        yield f"is a {machine.name}, and its pool is planned with {pool.machine.name}"
    if machine.accelerator is not None:
        offered = int((status.get("allocatable") or {}).get(machine.accelerator.resource, 0))
        expected = machine.chips * pool.places_per_gpu
        if offered != expected:
            yield f"offers {offered} of {expected} {machine.accelerator.resource}: a faulty device, or no driver"


class PodProgram(NamedTuple):
    """A program of ``pods.yaml``: what it shows, the image's name in the catalogue or itself, and its shell lines.

    ``expects`` are lines that the message has, with the promise; ``least`` are numbers that it names, with a bound.
    """

    shows: str
    image: str
    script: str
    expects: Mapping[str, str] = {}
    least: Mapping[str, float] = {}
    seconds: float = 600.0


def programs() -> dict[str, PodProgram]:
    """Return the programs of pods, by name."""
    return {name: PodProgram(**row) for name, row in table(__file__, "pods.yaml").items()}


def namespace_of_run(platform: Platform, cluster: str, labels: Mapping[str, str] | None = None, part: str = "") -> str:
    """Return the run's own namespace in a cluster, created where it is not there yet."""
    name = platform.maker.name(part)
    there = (made.cluster == cluster and made.name == name for made in platform.maker.ledger.open.values())
    if not any(there):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}
        platform.maker.make(cluster, NAMESPACES, body)
    return name


def run_pod(
    platform: Platform,
    cluster: str,
    name: str,
    program: PodProgram,
    *,
    env: Mapping[str, str] | None = None,
    **spec: Any,
) -> Iterator[Answer]:
    """Run a program in a pod and answer for what its message says; a pod that no node takes is undecided.

    ``spec`` are fields of the pod's spec; ``resources`` and ``mounts`` are of its container.
    """
    namespace = namespace_of_run(platform, cluster)
    container = {
        "name": "probe",
        "image": IMAGES.get(program.image, program.image),
        "command": ["/bin/sh", "-c", program.script],
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "resources": spec.pop("resources", {"requests": {"cpu": "100m", "memory": "128Mi"}}),
        "volumeMounts": spec.pop("mounts", []),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    about = {"name": platform.maker.name(name), "namespace": namespace}
    body: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {"restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [container], **spec},
    }
    platform.maker.make(cluster, PODS, body)
    api = platform.clusters[cluster]

    def look() -> Json | None:
        pod = api.get(PODS, namespace, about["name"]) or {}
        ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        return pod if ended or (pod and _waiting(pod)) else None

    pod = wait_for(look, min(program.seconds, platform.seconds)) or api.get(PODS, namespace, about["name"]) or {}
    if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
        yield _not_ended(pod, list(api.objects(EVENTS, namespace)))
    else:
        yield from _told(pod, program)


def _not_ended(pod: Json, events: list[Json]) -> Answer:
    """Return why a pod has no result: a stock-out and a node that does not come are undecided."""
    if waiting := _waiting(pod) if pod else None:
        return refuted(f"the pod does not start: {waiting[0]}", waiting[1])
    told = [f"{row.get('reason')}: {row.get('message', '')}" for row in events]
    stockout = next((line for line in told if any(word in line for word in _STOCKOUT)), "")
    if stockout:
        return undecided("no machine was to be had now", stockout)
    return undecided("the pod did not end in time", told[-1] if told else "no node took it")


def _told(pod: Json, program: PodProgram) -> Iterator[Answer]:
    """Yield what a pod's message says against what the program promises."""
    states = [row["state"].get("terminated") or {} for row in pod["status"].get("containerStatuses") or ()]
    message = "\n".join(str(state.get("message", "")) for state in states)
    values = dict(line.partition("=")[::2] for line in message.splitlines() if "=" in line)
    code = next((state.get("exitCode") for state in states), None)
    if code != 0 and not values:
        yield undecided(f"{program.shows}: the program ended with {code}", message[-400:])
        return
    for key, promise in program.expects.items():
        wanted, _, says = promise.partition(": ")
        if key not in values:
            yield undecided(f"{says}: the program did not say", message[-400:])
        elif values[key] == wanted:
            yield proven(says, f"{key}={wanted}")
        else:
            yield refuted(f"{says}: {key} is {values[key]!r}, not {wanted!r}", message[-400:])
    for key, least in program.least.items():
        try:
            value = float(values[key])
        except (KeyError, ValueError):
            yield undecided(f"{program.shows}: {key} was not measured", message[-400:])
            continue
        says = f"{program.shows}: {key} is {value:,g}, of at least {least:,g}"
        yield (proven if value >= least else refuted)(says, f"{key}={values[key]}")


@probe("network-egress", stage="network", proves="Pods of a team resolve names, reach Google's APIs, and nothing else.",
       roles=MAKER, needs=("kubeconfig",), after=("cluster-answers",), minutes=4,
       makes="a namespace with a team's network policies, and a pod")  # fmt: skip
def network_egress(platform: Platform) -> Iterator[Answer]:
    """Answer for connections of a pod under the policies of the first team that has a share in the cluster."""
    for cluster in platform.clusters:
        policies = platform.objects("networking.k8s.io/v1:NetworkPolicy")
        planned = [match.planned for match in policies if match.path.startswith(f"{cluster}/")]
        names = sorted({str(one.inputs["metadata"]["namespace"]) for one in planned})
        if not names:
            yield undecided(f"{_short(cluster)} has no team's network policies")
            continue
        namespace = namespace_of_run(platform, cluster)
        for one in planned:
            if one.inputs["metadata"]["namespace"] == names[0]:
                about = {"name": one.inputs["metadata"]["name"], "namespace": namespace}
                platform.maker.make(cluster, POLICIES, {**one.inputs, "metadata": about})
        yield from run_pod(platform, cluster, "egress", programs()["egress"])


@probe("storage-disk", stage="storage", proves="A disk of the cluster's default class mounts, and gives 100 MB/s.",
       roles=MAKER, needs=("kubeconfig",), after=("cluster-answers",), minutes=5, usd=0.05,
       makes="a claim of 20 GiB and a pod")  # fmt: skip
def storage_disk(platform: Platform) -> Iterator[Answer]:
    """Answer for a small disk: 1 GiB is written past the cache and read."""
    for cluster in platform.clusters:
        namespace = namespace_of_run(platform, cluster)
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
        yield from _mounted(platform, cluster, namespace, "disk", spec)


@probe("storage-files", stage="storage", proves="Each Filestore instance mounts, and gives one pod 40 MB/s.",
       roles=MAKER, needs=("kubeconfig",), after=("cluster-answers", "storage-as-planned"), minutes=5,
       makes="a volume on the instance, a claim and a pod, whose file has no name")  # fmt: skip
def storage_files(platform: Platform) -> Iterator[Answer]:
    """Answer for each instance; the file of the measurement is deleted before it is written, so that none stays."""
    for number, match in enumerate(platform.found(register.FILESTORE)):
        body = match.body or {}
        if not (body.get("networks") or [{}])[0].get("ipAddresses"):
            yield undecided(f"{_short(match.path)} has no address yet", match.path)
            continue
        address, share = body["networks"][0]["ipAddresses"][0], body["fileShares"][0]["name"]
        for cluster in platform.clusters:
            namespace = namespace_of_run(platform, cluster)
            name = platform.maker.name(f"files-{number}")
            source = {"nfs": {"server": address, "path": f"/{share}"}, "mountOptions": ["nconnect=4"]}
            claim = {"namespace": namespace, "name": name}
            volume = {
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "",
                         "persistentVolumeReclaimPolicy": "Retain", "claimRef": claim, **source},
            }  # fmt: skip
            platform.maker.make(cluster, ApiKind("api/v1", "persistentvolumes"), volume)
            spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": "", "volumeName": name}  # fmt: skip
            yield from _mounted(platform, cluster, namespace, f"files-{number}", spec)


def _mounted(platform: Platform, cluster: str, namespace: str, name: str, claim: Json) -> Iterator[Answer]:
    """Claim a volume and measure it in a pod."""
    about = {"name": platform.maker.name(name), "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": claim}
    platform.maker.make(cluster, ApiKind("api/v1", "persistentvolumeclaims"), body)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": about["name"]}}
    mounts = [{"name": "data", "mountPath": "/data"}]
    program = programs()[name.partition("-")[0]]
    yield from run_pod(platform, cluster, name, program, mounts=mounts, volumes=[volume])


@probe("pools-node", stage="pools", proves="The pool brings a node up, whose driver and devices answer in a pod.",
       roles=MAKER, needs=("kubeconfig", "pool"), after=("pools-as-planned", "cluster-answers"), by_name=True,
       minutes=25, usd=50.0, makes="a pod that asks for all chips of a VM")  # fmt: skip
def pools_node(platform: Platform) -> Iterator[Answer]:
    """Answer for the pool of --pool, CLUSTER.POOL or POOL: all chips of one VM by nvidia-smi or JAX."""
    wanted = platform.options["pool"]
    found = [pool for pool in pools(platform.environment) if wanted in (pool.name, f"{pool.cluster}.{pool.name}")]
    if not found:
        known = ", ".join(f"{pool.cluster}.{pool.name}" for pool in pools(platform.environment))
        yield undecided(f"{platform.name} has no pool {wanted}", f"its pools: {known}")
        return
    pool = found[0]
    cluster = cluster_of(platform, pool)
    accelerator = pool.machine.accelerator
    if not cluster or accelerator is None:
        yield undecided(f"{wanted} cannot be tried", "its cluster cannot be asked, or its machine has no accelerator")
        return
    program = programs()["tpu" if accelerator.kind == "tpu" else "gpu"]
    yield from run_pod(
        platform, cluster, "node", program, env={"CHIPS": str(pool.machine.chips)},
        nodeSelector={POOL_LABEL: node_pool_name(pool, pool.gke_pools[0])} if pool.gke_pools else {},
        tolerations=[{"operator": "Exists"}],
        resources={"limits": {accelerator.resource: str(pool.machine.chips)}},
    )  # fmt: skip


def _short(path: str) -> str:
    return path.rpartition("/")[2]
