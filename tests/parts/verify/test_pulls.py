"""Image pulls that a stand-in for a kubelet fails and retries, as seen by probes of pods and controllers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.parts.verify.lab import Lab, answers_of, verdicts
from training_platform.catalog import IMAGES
from training_platform.catalog.types import Json
from training_platform.clients.kubernetes_api import ApiKind, ClusterError
from training_platform.parts.verify.pod_probes import programs, run_and_judge
from training_platform.parts.verify.probe_table import PROBES
from training_platform.parts.verify.probes import Answer, Platform

CLUSTER = "projects/example-lab/locations/us-central1-a/clusters/lab-main"
STARTS = "ContainerCreating"
FAILS = "ErrImagePull"
BACKS_OFF = "ImagePullBackOff"
ENDED = "Completed"
NODE = "gke-lab-main-a100-0"
EARLIER = "2026-11-23T11:59:59Z"
NOW = "2026-11-23T12:00:00Z"
LATER = "2026-11-23T12:00:00.250000Z"
CONTAINERS = ["containerStatuses", "initContainerStatuses"]


class Kubelet:
    """A cluster with one pod in each namespace; each read gives its container's next state, and the last one stays."""

    def __init__(self, *states: str, rows: str = CONTAINERS[0]) -> None:
        self._states = list(states)
        self._rows = rows
        self.events: list[Json] = []

    def create(self, _: ApiKind, __: str, obj: Json, *, dry_run: bool) -> Json:
        assert not dry_run
        return {**obj, "metadata": {**obj["metadata"], "uid": "1"}}

    def get(self, kind: ApiKind, namespace: str, name: str) -> Json:
        assert kind.plural == "pods"
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        row: Json = {"state": {"waiting": {"reason": state, "message": f"{state}: it is not there"}}}
        if state == ENDED:
            row = {"state": {"terminated": {"exitCode": 0, "message": "write=500\nread=500\n"}}}
        status = {"phase": "Succeeded" if state == ENDED else "Pending", self._rows: [row]}
        spec = {"nodeName": NODE, "containers": [{"image": "example.com/a:1"}]}
        about = {"name": name, "namespace": namespace, "creationTimestamp": NOW}
        return {"metadata": about, "spec": spec, "status": status}

    def objects(self, kind: ApiKind, namespace: str, _: str = "", *, fields: str = "") -> Iterator[Json]:
        if kind.plural == "pods":
            yield self.get(kind, namespace, "controller-0")
            return
        for event in self.events:
            about = f"involvedObject.name={event['involvedObject']['name']}"
            if namespace in ("", event["metadata"]["namespace"]) and fields in ("", about):
                yield event


@contextmanager
def platform_of(lab: Lab, folder: Path, kubelet: Kubelet, seconds: float = 1.0) -> Iterator[Platform]:
    """Yield the environment with a stand-in as its only cluster."""
    with lab.platform(folder, seconds=seconds) as platform:
        clusters: Any = platform.contents.clusters
        clusters[CLUSTER] = kubelet
        yield platform


def ask(lab: Lab, folder: Path, kubelet: Kubelet, seconds: float = 1.0) -> list[Answer]:
    """Return the answers of a probe whose pod runs on a kubelet."""
    with platform_of(lab, folder, kubelet, seconds) as platform:
        return list(run_and_judge(platform, CLUSTER, "disk", programs()["disk"]))


@pytest.mark.parametrize("rows", CONTAINERS)
def test_a_pull_that_fails_once_and_then_succeeds_refutes_nothing(lab: Lab, tmp_path: Path, rows: str) -> None:
    kubelet = Kubelet(STARTS, FAILS, BACKS_OFF, STARTS, rows=rows)
    with platform_of(lab, tmp_path, kubelet) as platform:
        answers = verdicts(answers_of("cluster-controllers", platform))
    once = verdicts(ask(lab, tmp_path, Kubelet(STARTS, FAILS, BACKS_OFF, STARTS, ENDED), 60.0))

    assert answers["refuted"] == []
    assert (once["refuted"], once["undecided"], len(once["proven"])) == ([], [], 2)


@pytest.mark.parametrize(("rows", "last"), [(CONTAINERS[0], FAILS), (CONTAINERS[1], BACKS_OFF)])
def test_an_image_that_is_not_pulled_at_the_end_of_the_wait_refutes(
    lab: Lab, tmp_path: Path, rows: str, last: str
) -> None:
    (answer,) = ask(lab, tmp_path, Kubelet(STARTS, FAILS, last, rows=rows))
    with platform_of(lab, tmp_path, Kubelet(last, rows=rows)) as platform:
        answers = verdicts(answers_of("cluster-controllers", platform))

    assert answer == Answer("refuted", f"the pod does not start: {last}", f"{last}: it is not there")
    assert answers["refuted"]
    assert all(f"does not run: {last}" in line for line in answers["refuted"])


def test_a_namespace_that_cannot_be_read_hides_no_other(lab: Lab, tmp_path: Path) -> None:
    class Refusing(Kubelet):
        def objects(self, kind: ApiKind, namespace: str, _: str = "", *, fields: str = "") -> Iterator[Json]:
            if namespace == "kueue-system":
                raise ClusterError("refused")
            return super().objects(kind, namespace, fields=fields)

    answers: list[Answer] = []
    with platform_of(lab, tmp_path, Refusing(STARTS)) as platform, pytest.raises(ClusterError):
        answers.extend(PROBES["cluster-controllers"].answers(platform))

    assert answers


def test_a_pull_that_is_still_under_way_decides_nothing(lab: Lab, tmp_path: Path) -> None:
    (answer,) = ask(lab, tmp_path, Kubelet(FAILS, STARTS))

    assert answer.verdict == "undecided"


STREAMED = "Image {} is backed by image streaming."
PULLED = "Successfully pulled image {} in 9s"
OWN = "the pod of the probe"


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        ([(OWN, PULLED), (NODE, STREAMED)], "proven"),
        ([(OWN, PULLED), (f"{NODE} before", STREAMED)], "refuted"),
        ([(OWN, PULLED)], "refuted"),
        ([(OWN, PULLED), ("another-node", STREAMED)], "refuted"),
        ([(OWN, PULLED), ("another-pod", STREAMED)], "refuted"),
        ([("another-pod", PULLED)], "undecided"),
    ],
)
def test_image_streaming_is_decided_by_events_of_the_probes_pod_and_its_node(
    lab: Lab, tmp_path: Path, events: list[tuple[str, str]], verdict: str
) -> None:
    kubelet = Kubelet(ENDED)
    with platform_of(lab, tmp_path, kubelet) as platform:
        probe_name = platform.maker.name()
        places = {OWN: (probe_name, f"{probe_name}-image"), "another-pod": ("vision", "finetune"),
                  f"{NODE} before": ("default", NODE)}  # fmt: skip
        for about, text in events:
            namespace, name = places.get(about, ("default", about))
            reason = "ImageStreaming" if text == STREAMED else "Pulled"
            body = {"metadata": {"namespace": namespace}, "involvedObject": {"name": name}, "reason": reason}
            time = {"lastTimestamp": EARLIER} if about.endswith("before") else {"eventTime": LATER}
            kubelet.events.append({**body, **time, "message": text.format(IMAGES["vertex-training-cpu"])})
        answers = answers_of("cluster-images", platform)

    assert [answer.verdict for answer in answers] == ["proven", verdict]
    assert "stream images" in answers[1].says
