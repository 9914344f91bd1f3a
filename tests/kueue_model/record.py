"""Plays scenarios through real Kueue and keeps its answers: ``python -m tests.kueue_model.record``.

Needs the variables that tests marked ``kube`` need. Each scenario has queues of its own below a root cohort of its own,
so that several run side by side under one API server. Scenarios that are recorded already are left out, so that a
record can be stopped and gone on with. Only Kueue runs: no controller creates pods, and a job ends by the condition
``Finished`` of its Workload.

A step has settled when every job has a Workload, Kueue's metrics count as many workloads that wait and that hold quota
as the API server has, none of them is still to be tried, nothing evicted still holds quota, and all of this was so for
``SAME_SECONDS``, since Kueue requeues in batches of one second, and for as long again as Kueue took to count what the
step changed: a busy machine delays both. A job of several kinds of pods can be tried again and again
without end (its flavors change turns); a step has settled as well if nothing else changed for ``BUSY_SECONDS``. A step
that is not settled after ``LOOP_SECONDS``, with an eviction in the last ``BUSY_SECONDS`` and a job that was evicted
``LOOP_EVICTIONS`` times, is one in which jobs evict each other without end, and the last of its scenario.

A scenario that the model plays otherwise is played again, ``AGAIN`` times at most, until both agree: a step can still
be taken too early. What Kueue does each time is a difference.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from kueue_model.quotas import units
from tests.kube.api_servers import ApiServer, ControlPlanes
from tests.kube.controller_programs import find_binaries, run_controllers
from tests.kueue_model.directed import DIRECTED
from tests.kueue_model.recorded_plays import RECORDED, compact, is_played, is_tied, read_record
from tests.kueue_model.scenarios import FLAVORS, MODES, Json, Step, flavor_labels, model, random_scenario, specs
from training_platform.catalog import CHARTS
from training_platform.resources.kueue import configuration
from training_platform.resources.scope import TEAM_LABEL
from training_platform.rules.documents.definitions import read_definitions

SCHEMAS = Path(__file__).parents[3] / "shared" / "schemas"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2"
SAME_SECONDS = 2.5
BUSY_SECONDS = 10.0
LOOP_SECONDS = 40.0
STEP_SECONDS = 1.1
LOOP_EVICTIONS = 4
LOOK_SECONDS = 0.45  # between two looks at a scenario, and at the metrics of all
PLAYS = 3  # of a scenario that a tie decides
AGAIN = 2
_COUNTS = re.compile(r"^kueue_(?:pending|reserving_active)_workloads\{(.*)\} (\S+)$", re.MULTILINE)
_COHORTS = re.compile(r"^kueue_cohort_subtree_quota\{(.*)\} (\S+)$", re.MULTILINE)
_LABELS = re.compile(r'(\w+)="([^"]*)"')


class Cluster:
    """An API server with Kueue, shared by all scenarios that run side by side."""

    def __init__(self, server: ApiServer, client: httpx.Client, metrics_url: str) -> None:
        self.server = server
        self.client = client
        self._metrics_url = metrics_url
        self._lock = threading.Lock()
        self._read = (0.0, dict[tuple[str, str], float]())

    def counts(self) -> Mapping[tuple[str, str], float]:
        """Return how many workloads of each queue are ``active``, ``inadmissible`` or hold quota, then ""."""
        with self._lock:
            if time.monotonic() - self._read[0] > LOOK_SECONDS:
                text = self.client.get(self._metrics_url).raise_for_status().text
                rows = [(dict(_LABELS.findall(labels)), float(value)) for labels, value in _COUNTS.findall(text)]
                workload_counts = {(row["cluster_queue"], row.get("status", "")): value for row, value in rows}
                self._read = (time.monotonic(), workload_counts)
            return self._read[1]

    def cohort_quotas(self) -> Mapping[tuple[str, str, str], float]:
        """Return the quota that Kueue counts below each cohort, by cohort, flavor and resource."""
        text = self.client.get(self._metrics_url).raise_for_status().text
        rows = [(dict(_LABELS.findall(labels)), float(value)) for labels, value in _COHORTS.findall(text)]
        return {(row["cohort"], row["flavor"], row["resource"]): value for row, value in rows}

    def apply(self, path: str, kind: str, name: str, **body: object) -> None:
        """Create an object with the label of a team's namespace, or leave it as it is."""
        group = "kueue.x-k8s.io/v1beta2" if path.startswith(KUEUE) else "v1"
        metadata = {"name": name, "labels": {TEAM_LABEL: name}}  # Kueue looks at namespaces with this label alone
        answer = self.client.post(path, json={"apiVersion": group, "kind": kind, "metadata": metadata, **body})
        assert answer.is_success or answer.status_code == 409, answer.text

    def get(self, path: str) -> Json:
        """Return an object or a list."""
        return dict(self.client.get(path).raise_for_status().json())


@contextmanager
def running_cluster(mode: str) -> Iterator[Cluster]:
    """Run an API server and Kueue with the configuration of a mode."""
    settings = configuration(["reservation"], fair_sharing=MODES[mode] is not None)
    del settings["resources"]  # scenarios of manifests count CPUs and memory, and no others ask for them
    if strategies := MODES[mode]:
        settings["fairSharing"] = {"preemptionStrategies": list(strategies)}
    programs = Path(os.environ["KUBEBUILDER_ASSETS"])
    binaries = {name: path for name, path in find_binaries(programs).items() if name == "kueue"}
    definitions = [row for name in ("jobset", "kueue", "autoscaler") for row in read_definitions(SCHEMAS / name)]
    with tempfile.TemporaryDirectory() as folder, ControlPlanes(programs, Path(folder)) as planes:
        server = planes.server("main")
        controllers = run_controllers(server, binaries, Path(folder) / "controllers", definitions, settings)
        with controllers as metrics_url, server.client() as client:
            cluster = Cluster(server, client, metrics_url)
            for flavor in FLAVORS:
                spec = {"nodeLabels": flavor_labels(flavor)}
                cluster.apply(f"{KUEUE}/resourceflavors", "ResourceFlavor", flavor, spec=spec)
            yield cluster


class Played:
    """A scenario in a cluster, with its own prefix for the names of its objects."""

    def __init__(self, cluster: Cluster, scenario: Json, prefix: str) -> None:
        self.cluster = cluster
        self.scenario = scenario
        self.prefix = prefix
        self.namespace = prefix
        self.specs, self.cohorts = specs(scenario)
        self.alive: dict[str, str] = {}  # jobs, and whether each is there
        self.evictions: dict[str, int] = {}
        self.queues: list[str] = []

    def deploy(self) -> None:
        """Create the queues, and wait until they are active or held, and Kueue counts the quota of cohorts.

        A queue is active before Kueue has seen the object of its cohort; a job then gets a flavor without its quota.
        """
        client = self.cluster
        prefix = self.prefix
        client.apply("/api/v1/namespaces", "Namespace", self.namespace)
        priorities = {row.get("priority", 0) for row in self.scenario["jobs"].values()}
        for value in priorities:
            client.apply(f"{KUEUE}/workloadpriorityclasses", "WorkloadPriorityClass", f"p{value}", value=value)
        for body in self.scenario.get("manifests", ()):
            if body["kind"] == "ResourceFlavor":
                client.apply(f"{KUEUE}/resourceflavors", "ResourceFlavor", body["metadata"]["name"], spec=body["spec"])
        for name, spec in self.cohorts.items():
            named = {"parentName": f"{prefix}-{spec['parentName']}"} if "parentName" in spec else {}
            client.apply(f"{KUEUE}/cohorts", "Cohort", f"{prefix}-{name}", spec={**spec, **named})
        for name, spec in self.specs.items():
            overrides: Json = {"namespaceSelector": {}}
            if "cohortName" in spec:
                overrides["cohortName"] = f"{prefix}-{spec['cohortName']}"
            client.apply(f"{KUEUE}/clusterqueues", "ClusterQueue", f"{prefix}-{name}", spec={**spec, **overrides})
            self.queues.append(f"{prefix}-{name}")
            local = f"{KUEUE}/namespaces/{self.namespace}/localqueues"
            client.apply(local, "LocalQueue", name, spec={"clusterQueue": f"{prefix}-{name}"})
        deadline = time.monotonic() + 60
        while not (all(self._is_ready(name) for name in self.queues) and self._are_cohorts_counted()):
            assert time.monotonic() < deadline, f"the queues of {self.scenario['name']} are not ready"
            time.sleep(0.2)

    def _is_ready(self, queue: str) -> bool:
        cluster_queue = self.cluster.get(f"{KUEUE}/clusterqueues/{queue}")
        rows = [row for row in cluster_queue.get("status", {}).get("conditions", ()) if row["type"] == "Active"]
        return bool(rows) and (rows[0]["status"] == "True" or rows[0]["reason"] == "Stopped")

    def _are_cohorts_counted(self) -> bool:
        quotas = model(self.scenario)[0].quotas
        counted = self.cluster.cohort_quotas()
        return all(
            counted.get((f"{self.prefix}-{name}", flavor, resource), 0) == member.subtree[cell] / units(resource)
            for name, member in quotas.cohorts.items()
            for (flavor, resource), cell in quotas.cells.items()
        )

    def play(self) -> Iterator[Step]:
        """Yield real Kueue's result of each step."""
        for step in self.scenario["steps"]:
            started = time.monotonic()
            if step[0] == "+":
                self._submit(step[1:])
            else:
                self._end(step[1:])
            settled_step = self._settled()
            yield settled_step
            if settled_step.loops:
                return
            time.sleep(max(0.0, STEP_SECONDS - (time.monotonic() - started)))

    def _submit(self, name: str) -> None:
        row = self.scenario["jobs"][name]
        replicated = []
        for number, kind in enumerate(row["pods"]):
            spec = {"parallelism": 1, "completions": 1, "template": {"spec": _pod(kind)}}
            replicated.append({"name": f"r{number}", "replicas": 1, "template": {"spec": spec}})
        labels = {
            "kueue.x-k8s.io/queue-name": row["team"], "kueue.x-k8s.io/priority-class": f"p{row.get('priority', 0)}",
        }  # fmt: skip
        body = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name, "labels": labels},
            "spec": {"suspend": True, "replicatedJobs": replicated},
        }  # fmt: skip
        answer = self.cluster.client.post(f"{JOBSETS}/namespaces/{self.namespace}/jobsets", json=body)
        assert answer.is_success, answer.text
        self.alive[name] = ""

    def _end(self, name: str) -> None:
        workload = self._workloads()[name]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        done = {
            "type": "Finished", "status": "True", "reason": "Succeeded", "message": "ended",
            "lastTransitionTime": now,
        }  # fmt: skip
        path = f"{KUEUE}/namespaces/{self.namespace}/workloads/{workload['metadata']['name']}/status"
        for _ in range(20):
            workload = self._workloads()[name]
            status = workload.get("status", {})
            status["conditions"] = [*status.get("conditions", ()), done]
            answer = self.cluster.client.put(path, json={**workload, "status": status})
            if answer.is_success:
                break
            assert answer.status_code == 409, answer.text
        else:
            raise AssertionError(answer.text)
        del self.alive[name]

    def _workloads(self) -> dict[str, Json]:
        items = self.cluster.get(f"{KUEUE}/namespaces/{self.namespace}/workloads")["items"]
        return {row["metadata"]["ownerReferences"][0]["name"]: row for row in items}

    def _settled(self) -> Step:
        before = dict(self.evictions)
        started = since = changed = time.monotonic()
        delay: float | None = None  # until Kueue first counted as the API server did
        last: object = None
        evictions = sum(before.values())
        evicted_at = -BUSY_SECONDS
        while True:
            counts = self.cluster.counts()
            workloads = {name: row for name, row in self._workloads().items() if name in self.alive}
            state = {name: _state(row) for name, row in workloads.items()}
            same = workloads.keys() == self.alive.keys() and not any(row.evicting for row in state.values())
            if not same or state != last:
                last = state
                since = time.monotonic()
                changed = time.monotonic()
            if not self._agrees(counts, state):
                since = time.monotonic()
            elif delay is None:
                delay = time.monotonic() - started
            if (counted := sum(row.evictions for row in state.values())) != evictions:
                evictions = counted
                evicted_at = time.monotonic()
            now = time.monotonic()
            max_evictions = max((row.evictions - before.get(name, 0) for name, row in state.items()), default=0)
            looping = (
                now - started > LOOP_SECONDS and now - evicted_at < BUSY_SECONDS and max_evictions >= LOOP_EVICTIONS
            )
            assert looping or now - started < 3 * LOOP_SECONDS, f"{self.scenario['name']} does not settle"
            if now - since >= SAME_SECONDS + (delay or 0) or now - changed >= BUSY_SECONDS + (delay or 0) or looping:
                break
            time.sleep(LOOK_SECONDS)
        self.evictions.update({name: row.evictions for name, row in state.items()})
        evicted = sorted(name for name, row in state.items() if row.evictions > before.get(name, 0))
        return Step({name: row.flavors for name, row in sorted(state.items()) if row.flavors}, evicted, looping)

    def _agrees(self, counts: Mapping[tuple[str, str], float], state: Mapping[str, State]) -> bool:
        """Whether Kueue's counts match the workloads in the API server, with none left to try."""
        for team, spec in self.specs.items():
            queue = f"{self.prefix}-{team}"
            team_states = [row for name, row in state.items() if self.scenario["jobs"][name]["team"] == team]
            if counts.get((queue, ""), 0) != sum(row.holds for row in team_states):
                return False
            active, inadmissible = (counts.get((queue, status), 0) for status in ("active", "inadmissible"))
            stays = spec.get("stopPolicy", "None") != "None" or spec.get("queueingStrategy") == "StrictFIFO"
            if (active and not stays) or active + inadmissible != sum(not row.holds for row in team_states):
                return False
        return True

    def remove(self) -> None:
        """Delete everything of the scenario."""
        client = self.cluster.client
        client.delete(f"{JOBSETS}/namespaces/{self.namespace}/jobsets")
        client.delete(f"{KUEUE}/namespaces/{self.namespace}/workloads")
        for row in self._workloads().values():
            if row["metadata"].get("finalizers"):
                path = f"{KUEUE}/namespaces/{self.namespace}/workloads/{row['metadata']['name']}"
                headers = {"Content-Type": "application/merge-patch+json"}
                client.patch(path, content=json.dumps({"metadata": {"finalizers": None}}), headers=headers)
        for name in self.queues:
            client.delete(f"{KUEUE}/clusterqueues/{name}")
        for name in self.cohorts:
            client.delete(f"{KUEUE}/cohorts/{self.prefix}-{name}")


def _pod(kind: Sequence[Any]) -> Json:
    """Return a pod of a kind: of one resource, an amount and perhaps a flavor, or of requests and any flavors."""
    if isinstance(kind[0], str):
        resource, amount, *names = kind
        requests = {resource: str(amount)}
        labels = [flavor_labels(name) for name in names]
    else:
        requests, *names = kind
        labels = [flavor_labels(name) for name in names]
    container = {"name": "a", "image": "a", "resources": {"limits": requests, "requests": requests}}
    pod: Json = {"restartPolicy": "Never", "containers": [container]}
    if len(labels) == 1:
        pod["nodeSelector"] = labels[0]
    elif labels:
        (key,) = labels[0]
        values = [of_flavor[key] for of_flavor in labels]
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": values}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod["affinity"] = {"nodeAffinity": required}
    return pod


class State(NamedTuple):
    """A workload: its flavors if admitted, its evictions, whether it holds quota, and whether it is being evicted."""

    flavors: str
    evictions: int
    holds: bool
    evicting: bool


def _state(workload: Json) -> State:
    status = workload.get("status", {})
    conditions = {row["type"]: row["status"] == "True" for row in status.get("conditions", ())}
    rows = status.get("admission", {}).get("podSetAssignments", ()) if conditions.get("Admitted") else ()
    flavors = ",".join(flavor for row in rows for flavor in dict.fromkeys(row.get("flavors", {}).values()))
    evictions = sum(row["count"] for row in status.get("schedulingStats", {}).get("evictions", ()))
    holds = bool(conditions.get("QuotaReserved"))
    return State(flavors, evictions, holds, holds and bool(conditions.get("Evicted")))


def play_for_real(cluster: Cluster, scenario: Json, prefix: str) -> list[Step]:
    """Return real Kueue's result of each step of a scenario."""
    played = Played(cluster, scenario, prefix)
    played.deploy()
    try:
        return list(played.play())
    finally:
        played.remove()


def record(scenarios: Sequence[Json], path: Path, side_by_side: int) -> None:
    """Play new scenarios of one mode, and append each to the record once it is done."""
    lock = threading.Lock()

    def play_and_keep(cluster: Cluster, number: int, scenario: Json) -> str:
        plays = []
        for attempt in range(PLAYS if is_tied(scenario) else 1):
            for again in range(AGAIN + 1):
                steps = play_for_real(cluster, scenario, f"s{number}x{attempt}x{again}")
                if is_played(scenario, steps):
                    break
            plays.append(compact(steps))
        row = {**scenario, "plays": [rows for index, rows in enumerate(plays) if rows not in plays[:index]]}
        with lock, path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
        return str(scenario["name"])

    with running_cluster(scenarios[0]["mode"]) as cluster, ThreadPoolExecutor(side_by_side) as pool:
        started = time.monotonic()
        waiting = [pool.submit(partial(play_and_keep, cluster, number, row)) for number, row in enumerate(scenarios)]
        for count, finished in enumerate(as_completed(waiting), 1):
            try:
                name = finished.result()
            except Exception as error:  # noqa: BLE001 # the others go on, and this one is recorded in the next run
                name = f"failed: {error!r}"[:300]
            print(f"{count} of {len(waiting)}, {time.monotonic() - started:.0f} s: {name}", flush=True)


def main() -> None:
    """Record the missing scenarios, one mode after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side-by-side", type=int, default=8)
    parser.add_argument("--of-mode", type=int, nargs=4, default=[180, 30, 30, 60], metavar="N", help=str(tuple(MODES)))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    options = parser.parse_args()
    path = RECORDED / f"kueue-{CHARTS['kueue'].version}.jsonl"
    recorded = {row["name"] for row in read_record(path)}
    for mode, count in zip(MODES, options.of_mode, strict=True):
        if mode not in options.modes:
            continue
        scenarios = [row for row in DIRECTED if row["mode"] == mode]
        scenarios += [random_scenario(seed, mode) for seed in range(count)]
        if missing := [row for row in scenarios if row["name"] not in recorded]:
            record(missing, path, options.side_by_side)


if __name__ == "__main__":
    main()
