"""Probes that run a pod: connections, volumes, images.

A pod runs in a namespace that the run creates. It writes its result into its termination message, so the probe needs no
permission to read logs or to open a shell. ``pods.yaml`` contains the programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from training_platform.catalog import IMAGES
from training_platform.catalog.locations import MULTI_REGIONS, region_of, serves
from training_platform.catalog.reading import table
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import EVENTS, PODS, ApiKind, ClusterApi
from training_platform.parts.verify.cluster_probes import short_name, start_failure
from training_platform.parts.verify.object_record import wait_for
from training_platform.parts.verify.probes import Answer, Platform, is_stockout, proven, refuted, undecided
from training_platform.resources import resource_types
from training_platform.resources.data_sets import FUSE, LUSTRE
from training_platform.resources.notebooks import FUSE_ANNOTATION
from training_platform.resources.pod_admission import CONFINED

NAMESPACES: Final = ApiKind("api/v1", "namespaces")
CLAIMS: Final = ApiKind("api/v1", "persistentvolumeclaims")
VOLUMES: Final = ApiKind("api/v1", "persistentvolumes")
POLICIES: Final = ApiKind("apis/networking.k8s.io/v1", "networkpolicies")
_SMALL_POD: Final[Json] = {"requests": {"cpu": "100m", "memory": "128Mi"}}
_EVIDENCE_CHARACTERS: Final = 400
_BUCKET: Final = "gcp-public-data-landsat"  # public, of Google's; that its index is some 700 MB is unverified
# GKE's event of an image that starts before it is pulled belongs to the node, so it is in the namespace of nodes'
# events; Kubernetes' own belongs to the pod. Sources: events of GKE clusters as three users published them, read
# 2026-11-23 (unverified: no page of GKE's that shows it was read); Kubernetes, pkg/kubelet/images/image_manager.go.
_STREAMED: Final = "ImageStreaming"
_PULLED: Final = "Pulled"
_NAMESPACE_OF_NODES: Final = "default"


class PodProgram(NamedTuple):
    """A program in ``pods.yaml``: what it proves, its shell script, and its image or the image's catalogue name.

    ``expects`` maps each line of the message to its expected value, ``minimums`` to the lower bound of its number.
    """

    shows: str
    image: str
    script: str
    expects: Mapping[str, str] = {}
    minimums: Mapping[str, float] = {}
    seconds: float = 600.0


class ProgramResult(NamedTuple):
    """The values that a program wrote into its message, or a verdict with the reason why there are none."""

    values: Mapping[str, str] = {}
    message: str = ""
    failed: Answer | None = None


def programs() -> dict[str, PodProgram]:
    """Return the programs in ``pods.yaml``, keyed by name."""
    return {name: PodProgram(**row) for name, row in table(__file__, "pods.yaml").items()}


def namespace_of_run(platform: Platform, cluster: str, labels: Mapping[str, str] | None = None) -> str:
    """Return the run's namespace in a cluster. Create it if it does not exist."""
    name = platform.maker.name()
    creations = platform.maker.object_record.open.values()
    if not any(creation.cluster == cluster and creation.name == name for creation in creations):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}
        platform.maker.make(cluster, NAMESPACES, body)
    return name


def pod_spec(
    platform: Platform,
    program: PodProgram,
    *,
    env: Mapping[str, str] | None = None,
    container: str = "probe",
    resources: Mapping[str, Any] = _SMALL_POD,
    mounts: Sequence[Json] = (),
    volumes: Sequence[Json] = (),
) -> Json:
    """Return the spec of a pod that runs a program."""
    images = {**IMAGES, **platform.environment.node_images}
    only_container: Json = {
        "name": container,
        "image": images.get(program.image, program.image),
        "command": ["/bin/sh", "-c", program.script],
        "env": [{"name": key, "value": value} for key, value in (env or {}).items()],
        "resources": dict(resources),
        "volumeMounts": list(mounts),
        "securityContext": dict(CONFINED),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [only_container],
        "volumes": list(volumes),
    }


def run_and_judge(
    platform: Platform, cluster: str, name: str, program: PodProgram, **pod_options: Any
) -> Iterator[Answer]:
    """Run a program in a pod and yield verdicts on its values. If no node accepts the pod, they are undecided."""
    yield from _judged(_run(platform, cluster, name, program, **pod_options), program)


def _run(
    platform: Platform,
    cluster: str,
    name: str,
    program: PodProgram,
    *,
    annotations: Mapping[str, str] | None = None,
    **pod_options: Any,
) -> ProgramResult:
    """Run a program in a pod and return its result. A stock-out or a missing node makes it undecided.

    Since a kubelet repeats a failed pull, a container is refuted only if it cannot start at the end of the wait.
    """
    namespace = namespace_of_run(platform, cluster)
    pod_name = platform.maker.name(name)
    metadata = {"name": pod_name, "namespace": namespace, "annotations": dict(annotations or {})}
    spec = pod_spec(platform, program, **pod_options)
    platform.maker.make(cluster, PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    api = platform.clusters[cluster]
    pod = _ended_pod(api, namespace, pod_name, min(program.seconds, platform.seconds))
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return _ended_result(pod, program)
    failure = start_failure(pod)
    if failure:
        reason, message = failure
        return ProgramResult(failed=refuted(f"the pod does not start: {reason}", message))
    events = [f"{event.get('reason')}: {event.get('message', '')}" for event in api.objects(EVENTS, namespace)]
    for event in events:
        if is_stockout(event):
            return ProgramResult(failed=undecided("no machine was available now", event))
    last_event = events[-1] if events else "it was not scheduled"
    return ProgramResult(failed=undecided("the pod did not end in time", last_event))


_ENDED: Final = ("Succeeded", "Failed")


def _ended_pod(api: ClusterApi, namespace: str, name: str, seconds: float) -> Json:
    """Wait until a pod ends or the maximum wait is over, and return it."""
    pod: Json = {}

    def has_ended() -> bool:
        nonlocal pod
        pod = api.get(PODS, namespace, name) or {}
        return (pod.get("status") or {}).get("phase") in _ENDED

    wait_for(has_ended, seconds)
    return pod


def _ended_result(pod: Json, program: PodProgram) -> ProgramResult:
    """Return the values in the termination message. If the program failed and wrote none, the result is undecided."""
    statuses = pod["status"].get("containerStatuses") or ()
    ends = [status["state"]["terminated"] for status in statuses if "terminated" in status["state"]]
    message = "\n".join(str(end.get("message", "")) for end in ends)
    evidence = message[-_EVIDENCE_CHARACTERS:]
    values: dict[str, str] = {}
    for line in message.splitlines():
        key, is_value, value = line.partition("=")
        if is_value:
            values[key] = value
    exit_code = ends[0].get("exitCode") if ends else None
    if exit_code == 0 or values:
        return ProgramResult(values, evidence)
    return ProgramResult(failed=undecided(f"{program.shows}: the program ended with {exit_code}", evidence))


def _judged(result: ProgramResult, program: PodProgram) -> Iterator[Answer]:
    """Compare a program's values with the expected ones, and yield a verdict on each."""
    if result.failed is not None:
        yield result.failed
        return
    for key, promise in program.expects.items():
        expected, _, says = promise.partition(": ")
        if key not in result.values:
            yield undecided(f"{says}: the message does not contain {key}", result.message)
        elif result.values[key] == expected:
            yield proven(says, f"{key}={expected}")
        else:
            yield refuted(f"{says}: {key} is {result.values[key]!r}, not {expected!r}", result.message)
    for key, minimum in program.minimums.items():
        value = _number(result, key)
        if value is None:
            yield undecided(f"{program.shows}: {key} was not measured", result.message)
            continue
        answer = proven if value >= minimum else refuted
        yield answer(f"{program.shows}: {key} is {value:,g}, minimum {minimum:,g}", f"{key}={result.values[key]}")


def _number(result: ProgramResult, key: str) -> float | None:
    try:
        return float(result.values[key])
    except (KeyError, ValueError):
        return None


def network_egress(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on the connections of a pod under the policies of the first team with a share in the cluster."""
    matches = platform.existing_objects("networking.k8s.io/v1:NetworkPolicy")
    for cluster in platform.clusters:
        policies = [match.planned.inputs for match in matches if match.path.startswith(f"{cluster}/")]
        if not policies:
            yield undecided(f"{short_name(cluster)} has no team with network policies")
            continue
        first_team = min(str(policy["metadata"]["namespace"]) for policy in policies)
        namespace = namespace_of_run(platform, cluster)
        for policy in policies:
            if policy["metadata"]["namespace"] == first_team:
                metadata = {"name": policy["metadata"]["name"], "namespace": namespace}
                platform.maker.make(cluster, POLICIES, {**policy, "metadata": metadata})
        yield from run_and_judge(platform, cluster, "egress", programs()["egress"])


def cluster_images(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on pulling a Vertex AI image from the nearest multi-region in each cluster, from pod events."""
    for cluster, api in platform.clusters.items():
        cluster_name = short_name(cluster)
        region = region_of(cluster.split("/")[3])
        multi_region = next((name for name in MULTI_REGIONS if serves(name, region)), "us")
        image = IMAGES["vertex-training-cpu"].replace("us-docker.", f"{multi_region}-docker.", 1)
        result = _run(platform, cluster, "image", programs()["image"]._replace(image=image))
        if result.failed is not None:
            yield result.failed
            continue
        yield proven(f"nodes of {cluster_name} pull images from {image.partition('/')[0]}", image)
        pod = api.get(PODS, platform.maker.name(), platform.maker.name("image"))
        messages = dict(_events(api, pod, image)) if pod else {}
        says = f"nodes of {cluster_name} stream images"
        if _STREAMED in messages:
            yield proven(says, messages[_STREAMED])
        elif "Successfully pulled" in messages.get(_PULLED, ""):
            yield refuted(f"{says}: the whole image was pulled", messages[_PULLED])
        else:
            evidence = messages.get(_PULLED, "the node may have had the image already")
            yield undecided(f"{says}: no event about the pull", evidence)


def _events(api: ClusterApi, pod: Json, word: str) -> Iterator[tuple[str, str]]:
    """Yield reason and message of events that contain a word, about a pod, or about its node since it was created."""
    metadata = pod["metadata"]
    created = metadata["creationTimestamp"][:19]  # to a second
    sources = ((metadata["namespace"], metadata["name"]), (_NAMESPACE_OF_NODES, pod["spec"].get("nodeName", "")))
    for namespace, name in sources:
        for event in api.objects(EVENTS, namespace, fields=f"involvedObject.name={name}"):
            time = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
            if word in str(event.get("message")) and time[:19] >= created:
                yield str(event.get("reason")), str(event["message"])


def storage_disk(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on a small disk: the probe writes 1 GiB, and reads it without the cache."""
    for cluster in platform.clusters:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
        yield from _mounted(platform, cluster, "disk", spec)


def storage_files(platform: Platform) -> Iterator[Answer]:
    """Yield answers for each instance. The test file is unlinked before it is written, so that it never remains."""
    for number, match in enumerate(platform.existing(resource_types.FILESTORE)):
        body = match.body or {}
        networks = body.get("networks") or [{}]
        addresses = networks[0].get("ipAddresses")
        if addresses:
            nfs = {"server": addresses[0], "path": f"/{body['fileShares'][0]['name']}"}
            yield from _instance_answers(platform, f"files-{number}", {"nfs": nfs, "mountOptions": ["nconnect=4"]})
        else:
            yield undecided(f"{short_name(match.path)} has no address yet", match.path)


def storage_lustre(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on each Managed Lustre instance. Its mount point is ``ADDRESS@tcp:/FILESYSTEM``.

    Source for the mount point and the volume handle: GoogleCloudPlatform/lustre-csi-driver 012c2dc, examples/pre-prov,
    read 2026-11-23.
    """
    for number, match in enumerate(platform.existing(resource_types.LUSTRE)):
        ip, _, filesystem = str((match.body or {}).get("mountPoint", "")).partition("@tcp:/")
        if filesystem:
            _, project, _, zone, _, instance = match.path.split("/")
            attributes = {"ip": ip, "filesystem": filesystem}
            csi = {"driver": LUSTRE, "volumeHandle": f"{project}/{zone}/{instance}", "volumeAttributes": attributes}
            yield from _instance_answers(platform, f"lustre-{number}", {"csi": csi})
        else:
            yield undecided(f"{short_name(match.path)} has no mount point yet", match.path)


def storage_bucket(platform: Platform) -> Iterator[Answer]:
    """Yield verdicts on mounting a public bucket, which needs no role. tenancy-accounts tests a team's roles.

    Without the options below, the driver requests a token of the pod's account before it mounts. Sources:
    gcs-fuse-csi-driver v1.5.0 (pull request 268), gcsfuse 0095346, cfg/params.yaml, read 2026-11-23. It is unverified
    that both options together mount without any role.
    """
    attributes = {
        "bucketName": _BUCKET,
        "mountOptions": "anonymous-access",
        "skipCSIBucketAccessCheck": "true",
    }
    csi = {"driver": FUSE, "readOnly": True, "volumeAttributes": attributes}
    for cluster in platform.clusters:
        env = {"FILE": "index.csv.gz"}
        yield from _measured(platform, cluster, "bucket", {"csi": csi}, annotations=FUSE_ANNOTATION, env=env)


def _instance_answers(platform: Platform, name: str, source: Json) -> Iterator[Answer]:
    """Mount an instance in each cluster with a volume of the run. The instance itself is not changed."""
    for cluster in platform.clusters:
        volume_name = platform.maker.name(name)
        volume_spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace_of_run(platform, cluster), "name": volume_name},
            **source,
        }
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume_name},
            "spec": volume_spec,
        }
        platform.maker.make(cluster, VOLUMES, volume)
        claim_spec = {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
            "volumeName": volume_name,
        }
        yield from _mounted(platform, cluster, name, claim_spec)


def _mounted(platform: Platform, cluster: str, name: str, claim_spec: Json) -> Iterator[Answer]:
    metadata = {"name": platform.maker.name(name), "namespace": namespace_of_run(platform, cluster)}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim_spec}
    platform.maker.make(cluster, CLAIMS, claim)
    yield from _measured(platform, cluster, name, {"persistentVolumeClaim": {"claimName": metadata["name"]}})


def _measured(platform: Platform, cluster: str, name: str, source: Json, **pod_options: Any) -> Iterator[Answer]:
    """Measure a volume in a pod. The part of ``name`` before the first dash selects the program."""
    program = programs()[name.partition("-")[0]]
    mounts = [{"name": "data", "mountPath": "/data"}]
    volumes = [{"name": "data", **source}]
    yield from run_and_judge(platform, cluster, name, program, mounts=mounts, volumes=volumes, **pod_options)
