"""Objects that members of a team and controllers send to an API server, as they are in most tests."""

from __future__ import annotations

import copy
from typing import Any

from tests.kube.server import Json
from training_platform.catalog import IMAGES
from training_platform.resources.gpu_direct import NodeAccess, access

GPU_JOB = "jobs/vision/finetune.yaml"
PODSET = {"kueue.x-k8s.io/podset": "slice"}
QUEUED = {"kueue.x-k8s.io/queue-name": "vision"}
CONTROLLER = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "name": "finetune",
    "uid": "1",
    "controller": True,
}
GPU = {"limits": {"nvidia.com/gpu": "1"}}
TPU = {"limits": {"google.com/tpu": "4"}}
TCPX, TCPXO = (access(kind, IMAGES) for kind in ("TCPX", "TCPXO"))


def pod_of(manifest: Json, **labels: str) -> Json:
    """Return the first pod of a JobSet as the Job controller makes it, of a job that Kueue has admitted."""
    (replicated,) = manifest["spec"]["replicatedJobs"]
    template = copy.deepcopy(replicated["template"]["spec"]["template"])
    about = {"name": "p", "namespace": manifest["metadata"]["namespace"], "labels": {**PODSET, **labels}}
    about["annotations"] = template.get("metadata", {}).get("annotations", {})
    spec = template["spec"]
    index = {"name": "JOB_COMPLETION_INDEX", "value": "0"}
    for container in (*spec["containers"], *spec.get("initContainers", [])):
        container.setdefault("env", []).append(index)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


DAEMON_FIELDS = (
    "name", "image", "command", "args", "env", "envFrom", "startupProbe", "livenessProbe", "readinessProbe",
    "lifecycle", "volumeMounts", "restartPolicy", "securityContext", "stdin", "workingDir",
)  # fmt: skip


def plain(namespace: str = "nlp", **spec: Any) -> Json:
    container = {"name": "a", "image": "example.com/a:1", **spec.pop("container", {})}
    about = {"name": "p", "namespace": namespace, "labels": spec.pop("labels", {})}
    about["annotations"] = spec.pop("annotations", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"containers": [container], **spec}}


def job(labels: Json | None = None, *, suspend: bool = True, **metadata: Any) -> Json:
    """Return a Job as Kueue's webhook leaves it, unless arguments change that."""
    about = {"name": "j", "namespace": "vision", "labels": QUEUED if labels is None else labels, **metadata}
    template = {"spec": {"containers": [{"name": "a", "image": "example.com/a:1"}], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": {"suspend": suspend, "template": template},
    }  # fmt: skip


def mega(**spoiled: Any) -> Json:
    """Return a pod on A3 Mega; fields of its daemon by name, others of the pod's spec."""
    return with_daemon(TCPXO, "nvidia-h100-mega-80gb", **spoiled)


def with_daemon(node: NodeAccess, gpu: str, **spoiled: Any) -> Json:
    daemon = {**node.daemons[0], **{field: spoiled.pop(field) for field in DAEMON_FIELDS if field in spoiled}}
    training = {"volumeMounts": [*node.mounts, *spoiled.pop("mounts", [])], "resources": GPU}
    spoiled.setdefault("nodeSelector", {"cloud.google.com/gke-accelerator": gpu})
    spoiled.setdefault("volumes", list(node.volumes))
    return plain(
        "vision", container=training, initContainers=[daemon], labels=PODSET,
        annotations={**node.annotations, **spoiled.pop("devices", {})}, **spoiled,
    )  # fmt: skip


def templated(**fields: Json) -> Json:
    """Return a Job with fields of its pods' template: ``metadata``, ``spec``."""
    templated_job = job()
    for field, value in fields.items():
        templated_job["spec"]["template"].setdefault(field, {}).update(value)
    return templated_job


def secret(**fields: Any) -> Json:
    about = {"name": "s", "namespace": "vision", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, **fields}


TOKEN = secret(
    type="kubernetes.io/service-account-token",
    metadata={"annotations": {"kubernetes.io/service-account.name": "training"}},
)


def sized(name: str, *, suspend: bool = False, **metadata: Any) -> Json:
    """Return a Job without pods."""
    sized_job = job(name=name, suspend=suspend, **metadata)
    sized_job["spec"]["parallelism"] = 0
    return sized_job


def jobset(name: str, **spec: Any) -> Json:
    template = templated(spec=spec)["spec"]["template"]
    jobs = [{"name": "a", "replicas": 1, "template": {"spec": {"template": template}}}]
    about = {"name": name, "namespace": "vision", "labels": QUEUED}
    body = {"suspend": True, "replicatedJobs": jobs}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": about, "spec": body}


def named(body: Json, name: str) -> Json:
    return {**body, "metadata": {**body["metadata"], "name": name}}


def claim(**metadata: Any) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    about = {"name": "c", "namespace": "vision", **metadata}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def mounted(**mount: str) -> Json:
    return {"volumeMounts": [{"name": "v", "mountPath": "/data", **mount}]}
