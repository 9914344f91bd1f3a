"""Probes by pods that try: connections, volumes, images.

A pod runs in a namespace of the run's own and tells its result by its termination message, so that no right to read
logs or to open a shell is needed. ``pods.yaml`` has the programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from training_platform.catalog import IMAGES
from training_platform.catalog.locations import MULTI_REGIONS, region_of, serves
from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import EVENTS, PODS, ApiKind, ClusterApi
from training_platform.parts.verify.cluster_probes import short, waiting
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.probes import Answer, Platform, is_stockout, proven, refuted, undecided
from training_platform.resources import resource_types
from training_platform.resources.data_sets import FUSE, LUSTRE
from training_platform.resources.notebooks import FUSE_ANNOTATION

NAMESPACES: Final = ApiKind("api/v1", "namespaces")
CLAIMS: Final = ApiKind("api/v1", "persistentvolumeclaims")
VOLUMES: Final = ApiKind("api/v1", "persistentvolumes")
POLICIES: Final = ApiKind("apis/networking.k8s.io/v1", "networkpolicies")
_SMALL: Final[Json] = {"requests": {"cpu": "100m", "memory": "128Mi"}}
_LINES: Final = 400  # characters of a message in an answer
_BUCKET: Final = "gcp-public-data-landsat"  # public, of Google's; that its index is some 700 MB is unverified
# GKE's event for an image that starts before it is pulled is about the node, so it is where events of nodes are;
# Kubernetes' own is about the pod. Sources: events of GKE clusters as three users published them, read 2026-11-23
# (unverified: no page of GKE's that shows it was read); Kubernetes, pkg/kubelet/images/image_manager.go.
_STREAMED, _PULLED, _OF_NODES = "ImageStreaming", "Pulled", "default"


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


class Ran(NamedTuple):
    """The end of a program: the values of its message, or the answer why it has none."""

    values: Mapping[str, str] = {}
    message: str = ""
    failed: Answer | None = None


def programs() -> dict[str, PodProgram]:
    """Return the programs of pods, by name."""
    return {name: PodProgram(**row) for name, row in table(__file__, "pods.yaml").items()}


def namespace_of_run(platform: Platform, cluster: str, labels: Mapping[str, str] | None = None) -> str:
    """Return the run's own namespace in a cluster, created where it is not there yet."""
    name = platform.maker.name()
    there = (made.cluster == cluster and made.name == name for made in platform.maker.ledger.open.values())
    if not any(there):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}
        platform.maker.make(cluster, NAMESPACES, body)
    return name


def pod_of(
    platform: Platform,
    program: PodProgram,
    *,
    env: Mapping[str, str] | None = None,
    container: str = "probe",
    resources: Mapping[str, Any] = _SMALL,
    mounts: Sequence[Json] = (),
    volumes: Sequence[Json] = (),
    **spec: Any,
) -> Json:
    """Return the spec of a pod that runs a program; ``spec`` are its further fields."""
    only: Json = {
        "name": container,
        "image": {**IMAGES, **platform.environment.node_images}.get(program.image, program.image),
        "command": ["/bin/sh", "-c", program.script],
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "resources": dict(resources),
        "volumeMounts": list(mounts),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return {
        "restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [only],
        "volumes": list(volumes), **spec,
    }  # fmt: skip


def tried(platform: Platform, cluster: str, name: str, program: PodProgram, **pod: Any) -> Iterator[Answer]:
    """Run a program and answer for what its message says; a pod that no node takes is undecided."""
    yield from judged(run(platform, cluster, name, program, **pod), program)


def run(
    platform: Platform,
    cluster: str,
    name: str,
    program: PodProgram,
    *,
    annotations: Mapping[str, str] | None = None,
    **pod: Any,
) -> Ran:
    """Run a program in a pod, and return its end."""
    namespace, own, api = namespace_of_run(platform, cluster), platform.maker.name(name), platform.clusters[cluster]
    about, spec = {"name": own, "namespace": namespace}, pod_of(platform, program, **pod)
    marked = {**about, "annotations": dict(annotations or {})}
    platform.maker.make(cluster, PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": marked, "spec": spec})
    return _ran(platform, api, program, lambda: api.get(PODS, namespace, own))


def _ran(platform: Platform, api: ClusterApi, program: PodProgram, find: Any) -> Ran:
    """Wait for the end of a pod, and return its message; a stock-out and a node that does not come are undecided.

    A kubelet tries a pull that failed again, so only a container that cannot start at the end of the wait is refuted.
    """

    def look() -> Json | None:
        pod: Json = find() or {}
        return pod if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed") else None

    pod: Json = wait_for(look, min(program.seconds, platform.seconds)) or find() or {}
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        rows = [row for row in status.get("containerStatuses") or () if "terminated" in row["state"]]
        ends = [row["state"]["terminated"] for row in rows]
        message = "\n".join(str(end.get("message", "")) for end in ends)
        values = dict(line.partition("=")[::2] for line in message.splitlines() if "=" in line)
        code = next((end.get("exitCode") for end in ends), None)
        if code == 0 or values:
            return Ran(values, message[-_LINES:])
        return Ran(failed=undecided(f"{program.shows}: the program ended with {code}", message[-_LINES:]))
    if pod and (stuck := waiting(pod)):
        return Ran(failed=refuted(f"the pod does not start: {stuck[0]}", stuck[1]))
    told = [f"{row.get('reason')}: {row.get('message', '')}" for row in api.objects(EVENTS, platform.maker.name())]
    stockout = next(filter(is_stockout, told), "")
    if stockout:
        return Ran(failed=undecided("no machine was to be had now", stockout))
    return Ran(failed=undecided("the pod did not end in time", told[-1] if told else "no node took it"))


def judged(ran: Ran, program: PodProgram) -> Iterator[Answer]:
    """Yield what a pod's message says against what the program promises."""
    if ran.failed is not None:
        yield ran.failed
        return
    for key, promise in program.expects.items():
        wanted, _, says = promise.partition(": ")
        if key not in ran.values:
            yield undecided(f"{says}: the program did not say", ran.message)
        elif ran.values[key] == wanted:
            yield proven(says, f"{key}={wanted}")
        else:
            yield refuted(f"{says}: {key} is {ran.values[key]!r}, not {wanted!r}", ran.message)
    for key, least in program.least.items():
        if (value := _number(ran, key)) is None:
            yield undecided(f"{program.shows}: {key} was not measured", ran.message)
        else:
            says = f"{program.shows}: {key} is {value:,g}, of at least {least:,g}"
            yield (proven if value >= least else refuted)(says, f"{key}={ran.values[key]}")


def _number(ran: Ran, key: str) -> float | None:
    try:
        return float(ran.values[key])
    except (KeyError, ValueError):
        return None


def network_egress(platform: Platform) -> Iterator[Answer]:
    """Answer for connections of a pod under the policies of the first team that has a share in the cluster."""
    for cluster in platform.clusters:
        policies = platform.objects("networking.k8s.io/v1:NetworkPolicy")
        planned = [match.planned for match in policies if match.path.startswith(f"{cluster}/")]
        names = sorted({str(one.inputs["metadata"]["namespace"]) for one in planned})
        if not names:
            yield undecided(f"{short(cluster)} has no team's network policies")
            continue
        namespace = namespace_of_run(platform, cluster)
        for one in planned:
            if one.inputs["metadata"]["namespace"] == names[0]:
                about = {"name": one.inputs["metadata"]["name"], "namespace": namespace}
                platform.maker.make(cluster, POLICIES, {**one.inputs, "metadata": about})
        yield from tried(platform, cluster, "egress", programs()["egress"])


def cluster_images(platform: Platform) -> Iterator[Answer]:
    """Answer for one of Vertex AI's images, from the multi-region around each cluster, by the events of its pull."""
    for cluster, api in platform.clusters.items():
        region = region_of(cluster.split("/")[3])
        place = next((one for one in MULTI_REGIONS if serves(one, region)), "us")
        image = IMAGES["vertex-training-cpu"].replace("us-docker.", f"{place}-docker.", 1)
        failed = [
            one for one in tried(platform, cluster, "image", programs()["image"]._replace(image=image))
            if one.verdict != "proven"
        ]  # fmt: skip
        if failed:
            yield from failed
            continue
        yield proven(f"nodes of {short(cluster)} pull {image.partition('/')[0]}", image)
        pod = api.get(PODS, platform.maker.name(), platform.maker.name("image"))
        told = dict(_events(api, pod, image)) if pod else {}
        says = f"nodes of {short(cluster)} stream images"
        if _STREAMED in told:
            yield proven(says, told[_STREAMED])
        elif "Successfully pulled" in told.get(_PULLED, ""):
            yield refuted(f"{says}: the whole image was pulled", told[_PULLED])
        else:
            yield undecided(f"{says}: no event of the pull", told.get(_PULLED, "the image may have been there"))


def _events(api: ClusterApi, pod: Json, word: str) -> Iterator[tuple[str, str]]:
    """Yield reason and message of the events with a word about a pod, and about its node since the pod was created."""
    about, node = pod["metadata"], pod["spec"].get("nodeName", "")
    for namespace, name in ((about["namespace"], about["name"]), (_OF_NODES, node)):
        for row in api.objects(EVENTS, namespace, fields=f"involvedObject.name={name}"):
            time = row.get("lastTimestamp") or row.get("eventTime") or row["metadata"]["creationTimestamp"]
            if word in str(row.get("message")) and time[:19] >= about["creationTimestamp"][:19]:  # to a second
                yield str(row.get("reason")), str(row["message"])


def storage_disk(platform: Platform) -> Iterator[Answer]:
    """Answer for a small disk: 1 GiB is written past the cache and read."""
    for cluster in platform.clusters:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
        yield from _mounted(platform, cluster, "disk", spec)


def storage_files(platform: Platform) -> Iterator[Answer]:
    """Answer for each instance; the file of the measurement is deleted before it is written, so that none stays."""
    for number, match in enumerate(platform.found(resource_types.FILESTORE)):
        body = match.body or {}
        if addresses := (body.get("networks") or [{}])[0].get("ipAddresses"):
            nfs = {"server": addresses[0], "path": f"/{body['fileShares'][0]['name']}"}
            yield from _of_instance(platform, f"files-{number}", {"nfs": nfs, "mountOptions": ["nconnect=4"]})
        else:
            yield undecided(f"{short(match.path)} has no address yet", match.path)


def storage_lustre(platform: Platform) -> Iterator[Answer]:
    """Answer for each instance, as for Filestore. Its mount point is ``ADDRESS@tcp:/FILESYSTEM``.

    Source of both forms: GoogleCloudPlatform/lustre-csi-driver 012c2dc, examples/pre-prov, read 2026-11-23.
    """
    for number, match in enumerate(platform.found(resource_types.LUSTRE)):
        ip, _, filesystem = str((match.body or {}).get("mountPoint", "")).partition("@tcp:/")
        if filesystem:
            _, project, _, zone, _, instance = match.path.split("/")
            attributes = {"ip": ip, "filesystem": filesystem}
            csi = {"driver": LUSTRE, "volumeHandle": f"{project}/{zone}/{instance}", "volumeAttributes": attributes}
            yield from _of_instance(platform, f"lustre-{number}", {"csi": csi})
        else:
            yield undecided(f"{short(match.path)} has no mount point yet", match.path)


def storage_bucket(platform: Platform) -> Iterator[Answer]:
    """Answer for a public bucket, which needs no role: that a team's account has its roles is project-accounts'.

    The driver would ask for a token of the pod's account before it mounts. Sources: gcs-fuse-csi-driver v1.5.0 (pull
    request 268), gcsfuse 0095346, cfg/params.yaml, read 2026-11-23; that both together mount without any role is
    (unverified).
    """
    attributes = {
        "bucketName": _BUCKET, "mountOptions": "anonymous-access", "skipCSIBucketAccessCheck": "true",
    }  # fmt: skip
    csi = {"driver": FUSE, "readOnly": True, "volumeAttributes": attributes}
    for cluster in platform.clusters:
        file = {"FILE": "index.csv.gz"}
        yield from _measured(platform, cluster, "bucket", {"csi": csi}, annotations=FUSE_ANNOTATION, env=file)


def _of_instance(platform: Platform, name: str, source: Json) -> Iterator[Answer]:
    """Mount an instance in each cluster by a volume of the run's own, which leaves the instance as it is."""
    for cluster in platform.clusters:
        own = platform.maker.name(name)
        claim = {"namespace": namespace_of_run(platform, cluster), "name": own}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "",
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": claim, **source}  # fmt: skip
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": own}, "spec": spec}
        platform.maker.make(cluster, VOLUMES, body)
        wanted = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}},
                  "storageClassName": "", "volumeName": own}  # fmt: skip
        yield from _mounted(platform, cluster, name, wanted)


def _mounted(platform: Platform, cluster: str, name: str, claim: Json) -> Iterator[Answer]:
    about = {"name": platform.maker.name(name), "namespace": namespace_of_run(platform, cluster)}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": claim}
    platform.maker.make(cluster, CLAIMS, body)
    yield from _measured(platform, cluster, name, {"persistentVolumeClaim": {"claimName": about["name"]}})


def _measured(platform: Platform, cluster: str, name: str, volume: Json, **pod: Any) -> Iterator[Answer]:
    """Measure a volume in a pod, by the program that the part of the name before a dash names."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    program = programs()[name.partition("-")[0]]
    yield from tried(platform, cluster, name, program, mounts=mounts, volumes=[{"name": "data", **volume}], **pod)
