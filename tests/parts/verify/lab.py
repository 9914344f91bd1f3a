"""An environment with a team in a local cloud that also answers PromQL, and the platform that probes use."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from local_google_cloud.api import CloudSettings, LocalCloud, Record
from tests.local_google_cloud.policies import planned_grants
from tests.parts.adopt.seeding import Seeded, served
from tests.support.plans import planned_stacks
from training_platform.catalog.locations import is_zone
from training_platform.clients.project_contents import read_contents
from training_platform.config.workspace import read_workspace
from training_platform.parts.sandbox.google_rules import PlatformJudge
from training_platform.parts.verify.object_record import ObjectRecord
from training_platform.parts.verify.probe_run import maker_of, with_clusters, with_lustre
from training_platform.parts.verify.probe_table import PROBES
from training_platform.parts.verify.probes import Answer, Platform
from training_platform.quota.demand import workspace_demand
from training_platform.quota.ledger import project_ledgers
from training_platform.quota.snapshot import Snapshots, read_snapshots
from training_platform.resources.rights import PolicyGrant
from training_platform.resources.stack_plan import plannable
from training_platform.resources.stack_resource import StackResource
from training_platform.rules.rights import NeededRight, needed_rights

PROJECT = "example-lab"
HOME = """\
config:
  training-platform:environment:
    project: example-lab
    production: false
    labels: {cost-center: lab}
    admins: [group:ml-platform@example.com]
    priorities: {low: 10, high: 20}
    nat_addresses: 1
    alerts: {emails: [oncall@example.com]}
    images: {location: us-central1}
    filestore:
      homes: {location: us-central1-a, capacity_gib: 1024, reserved_range: 10.12.32.0/26}
    clusters:
      main:
        location: us-central1-a
        subnet: {nodes: 10.12.0.0/20, pods: 10.66.0.0/16, services: 10.12.16.0/20}
        node_pools:
          a100: {machine_type: a2-highgpu-8g, max_nodes: 4}
"""
TEAM = """\
config:
  training-platform:team:
    environment: lab
    name: vision
    labels: {cost-center: vision}
    members: [group:vision@example.com]
    shares: {main: {a100-40: {nominal_quota: 16}}}
    buckets: {checkpoints: {location: us-central1}}
    vertex:
      tensorboards: [us-central1]
      persistent_resources:
        tuning: {region: us-central1, machine_type: a2-highgpu-1g, replicas: 1}
"""


_SERVICES = {"repositories": "artifactregistry", "secrets": "secretmanager", "views": "logging"}


class MonitoredCloud(LocalCloud):
    """A local cloud whose Cloud Monitoring has series of every metric except those starting with ``silent``.

    A policy that always fires has an alert, unless ``silent`` is ``alerts``.
    """

    silent: str = "none"
    answers: Mapping[str, Callable[[Any], tuple[int, dict[str, Any]]]] = {}  # by a pattern of verb and path

    def handle(
        self, service: str, verb: str, path: str, query: Sequence[tuple[str, str]], body: Any, **options: Any
    ) -> tuple[int, dict[str, Any]]:
        """Answer a query of PromQL; everything else as the local cloud does."""
        for pattern, answer in self.answers.items():
            if re.search(pattern, f"{verb} {path}"):
                return answer(body)
        if service == "monitoring" and path.endswith("prometheus/api/v1/query"):
            metric = re.findall(r"last_over_time\(([\w:]+)", body["query"])[0]
            return 200, {
                "status": "success",
                "data": {"result": [] if metric.startswith(self.silent) else [{"value": [0, "1"]}]},
            }
        if service == "monitoring" and path.endswith("/alerts") and verb == "GET":
            return 200, {"alerts": [] if self.silent == "alerts" else [*self._alerts()]}
        return super().handle(service, verb, path, query, body, **options)

    def _alerts(self) -> Iterator[dict[str, Any]]:
        """Yield an alert of each policy whose condition always holds."""
        for record in self.store.all():
            body = record.body
            if "alertPolicies/" in record.name and "vector(1)" in str(body.get("conditions")):
                yield {"state": "OPEN", "openTime": "2026-11-23T12:00:00Z", "policy": {"name": body["name"]}}


class Lab:
    """The environment in its cloud; ``spoiled`` changes something while a block runs."""

    def __init__(self, root: Path, resources: Sequence[StackResource]) -> None:
        self.root = root
        self.resources = resources
        workspace = read_workspace(root)
        spec = workspace.stacks["lab"].environment
        assert spec is not None
        self.environment = spec
        self.promises = [promise for stack in workspace.stacks.values() for promise in needed_rights(stack, workspace)]
        self.demand = {
            line.key: line.used for line in project_ledgers(workspace_demand(workspace), Snapshots())[PROJECT].lines
        }
        self.limits: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for key, used in self.demand.items():
            place = {"zone" if is_zone(key.location) else "region": key.location} if key.location else {}
            row = {"limit": int(used), **place, **dict(key.dimensions)}
            self.limits.setdefault(key.service, {}).setdefault(key.quota_id, []).append(row)
        groups = {"vision@example.com": ["serviceAccount:tester@example-admin.iam.gserviceaccount.com"]}
        self.cloud = MonitoredCloud([PROJECT], settings=CloudSettings(groups=groups), judge=self.judge())
        self.seeded = Seeded(PROJECT)
        self.seeded.cloud = self.cloud
        self.seeded.put(resources)
        self._grant_agents()
        for grant in planned_grants(workspace, [PROJECT]):
            self._grant(grant)

    def judge(self) -> PlatformJudge:
        """Return the platform's judge, with the project's limits."""
        text = yaml.safe_dump({"project": PROJECT, "taken": "2026-11-20", "limits": self.limits})
        (self.root / "stacks" / "quotas").mkdir(exist_ok=True)
        (self.root / "stacks" / "quotas" / f"{PROJECT}.yaml").write_text(text, encoding="utf-8")
        snapshots = read_snapshots(self.root, date(2026, 11, 21))
        assert not snapshots.findings
        return PlatformJudge(snapshots.by_project)

    def promises_to(self, principal: str) -> list[NeededRight]:
        """Return the promises of the stack files to somebody."""
        return [promise for promise in self.promises if promise.principal == principal]

    def set_limits(self) -> None:
        """Make the cloud answer with the current limits."""
        self.cloud.judge = self.judge()

    def _grant_agents(self) -> None:
        """Give Google's own accounts their roles, as Google Cloud does when an API is enabled."""
        policy = self.seeded.ask("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:getIamPolicy", {})
        agents = [
            resource
            for resource in self.resources
            if resource.type.endswith(":IAMMember") and "serviceAgent" in resource.name
        ]
        for resource in agents:
            member = f"serviceAccount:service-1@{resource.name.rpartition('-')[2]}.iam.gserviceaccount.com"
            policy["bindings"].append({"role": resource.inputs["role"], "members": [member]})
        self.seeded.ask("POST", f"cloudresourcemanager/v1/projects/{PROJECT}:setIamPolicy", {"policy": policy})

    def _grant(self, grant: PolicyGrant) -> None:
        """Put a grant into the policy of its resource, if seeding has no request for it; and its custom role."""
        if grant.permissions is not None:
            body: dict[str, Any] = {"name": grant.role, "includedPermissions": sorted(grant.permissions)}
            self.cloud.store.put(Record(name=f"iam/{grant.role}", project=PROJECT, body=body))
        kind, _, resource_name = grant.resource.partition("/")
        collection = grant.resource.split("/")[-2]
        if kind != "buckets" and collection not in _SERVICES:
            return
        name = f"storage/b/{resource_name}" if kind == "buckets" else f"{_SERVICES[collection]}/{grant.resource}"
        record = self.cloud.store.get(name) or Record(name=name, project=PROJECT, body={})
        policy = record.meta.setdefault("policy", {"bindings": []})
        policy["bindings"].append({"role": grant.role, "members": [grant.principal]})
        self.cloud.store.put(record)

    @contextmanager
    def spoiled(self, change: Callable[[Lab], object]) -> Iterator[None]:
        before = [copy.deepcopy(record) for record in self.cloud.store.all()]
        limits = copy.deepcopy(self.limits)
        try:
            change(self)
            yield
        finally:
            self.cloud.silent = "none"
            self.cloud.answers = {}
            self.limits = limits
            self.set_limits()
            for record in self.cloud.store.all():
                self.cloud.store.delete(record.name)
            for record in before:
                self.cloud.store.put(record)

    def record(self, end: str) -> Record:
        """Return the first record whose name ends so, to be changed in place."""
        return next(record for record in self.cloud.store.all() if re.search(f"{end}$", record.name))

    def body(self, end: str) -> dict[str, Any]:
        """Return the body of the first record whose name ends so, to be changed in place."""
        return self.record(end).body

    @contextmanager
    def platform(self, folder: Path, kubeconfig: str | None = None, **fields: Any) -> Iterator[Platform]:
        with served(self.seeded) as address:
            listed = read_contents(PROJECT, {"us-central1"}, address)
            contents = with_clusters(self.resources, with_lustre(self.resources, listed, address), kubeconfig)
            yield Platform(
                name="lab", environment=self.environment, resources=self.resources, contents=contents,
                maker=maker_of(ObjectRecord.begin(folder, {}), contents, 120.0, address), demand=self.demand,
                promises=self.promises,
                local_cloud=address, **{"seconds": 3.0, **fields},
            )  # fmt: skip


def lab_of(root: Path, names: Sequence[str]) -> Lab:
    """Return the environment of a repository's stacks, planned and seeded."""
    workspace = read_workspace(root)
    plans = planned_stacks(workspace, plannable(workspace, names))
    return Lab(root, [resource for _, plan in plans for resource in plan.resources])


def answers_of(name: str, platform: Platform) -> list[Answer]:
    """Return the answers of one probe, without the probes that it depends on."""
    return list(PROBES[name].answers(platform))


def verdicts(answers: Sequence[Answer]) -> Mapping[str, list[str]]:
    """Return the sentences of answers, by verdict."""
    return {
        verdict: [answer.says for answer in answers if answer.verdict == verdict]
        for verdict in ("proven", "refuted", "undecided")
    }


def change(end: str, **fields: Any) -> Callable[[Lab], None]:
    """Change fields of the resource whose name ends with ``end``; dots lead into blocks."""

    def spoil(lab: Lab) -> None:
        body = lab.body(end)
        for path, value in fields.items():
            *blocks, last = path.split("__")
            place: Any = body
            for block in blocks:
                place = place[int(block)] if isinstance(place, list) else place[block]
            place[last] = value

    return spoil


def let_in(member: str) -> Callable[[Lab], None]:
    """Allow somebody to act as the account of the team's jobs."""

    def spoil(lab: Lab) -> None:
        policy = lab.record("serviceAccounts/lab-vision-jobs@.*").meta["policy"]
        policy["bindings"].append({"role": "roles/iam.serviceAccountTokenCreator", "members": [member]})

    return spoil
