"""The agent of W&B Launch, from its Helm chart.

The agent has its own namespace, in which members have no permissions. Its chart would allow it to create pods in the
team's namespace, and Kueue would not count these pods. The chart is therefore given no other namespace, and the agent's
permissions in the team's namespace are those below. W&B's queues can set any namespace, which this project does not
control. In the agent's own namespace no policy makes jobs wait in queues, so a quota there leaves room only for the
agent.

Sources: wandb/helm-charts 82d5626, charts/launch-agent, read 2026-11-22, not run. Agents 0.17.3 and 0.31.0 created a
JobSet for a queued run on an API server with these permissions, 2026-11-29.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from training_platform.catalog import CHARTS, IMAGES
from training_platform.config.model.environment import ChartOverride
from training_platform.config.model.workloads import AGENT_BEGINNING, LaunchSpec
from training_platform.resources.kubernetes_objects import (
    RESOURCE_QUOTA,
    ROLE,
    ROLE_BINDING,
    account_subject,
    binding,
    kubernetes_object,
    release,
    rules_of_role,
)
from training_platform.resources.plan import Component
from training_platform.resources.pod_admission import ACCELERATORS
from training_platform.resources.resource_types import NAMESPACE
from training_platform.resources.scope import Scope
from training_platform.resources.tenancy import POD_SECURITY

CHART: Final = "wandb-launch"
AGENT_LABELS: Final = {f"{POD_SECURITY}{mode}": "restricted" for mode in ("enforce", "warn")}
AGENT_QUOTA: Final = {
    "pods": "2",  # itself, and the one before it that is ending
    "count/jobs.batch": "0",
    **{f"requests.{resource}": "0" for resource in ACCELERATORS},
}


def agent_namespace(team: str) -> str:
    """Return the namespace of a team's agent. No team can have this name."""
    return f"{AGENT_BEGINNING}{team}"


def agent_account(team: str) -> str:
    """Return the service account of a team's agent. The chart names it after the release, which has the team's name."""
    return f"wandb-launch-serviceaccount-{team}"


def key_secret(team: str) -> str:
    """Return the name of the Secret that contains the agent's API key as ``password``.

    The chart reads it, and the agent copies it.
    """
    return f"wandb-api-key-{team}"


def chart_values(team: str, spec: LaunchSpec) -> dict[str, Any]:
    """Return the values of the chart. They do not contain the key, so no state contains it."""
    config = {
        "entity": spec.entity,
        "queues": list(spec.queues),
        "max_jobs": spec.max_jobs,
        "builder": {"type": "noop"},  # jobs name an image; the platform builds them from commits
    }
    return {
        "agent": {"useExternalWandbSecret": True, "image": spec.image or IMAGES["wandb-launch-agent"]},
        "namespace": agent_namespace(team),
        "additionalTargetNamespaces": [],
        "baseUrl": spec.base_url,
        "launchConfig": yaml.safe_dump(config, sort_keys=False),
        "volcano": False,  # a scheduler for the whole cluster, which older charts bring
    }


def agent_rules(team: str) -> list[dict[str, list[str]]]:
    """Return the rules of the agent's Role in the team's namespace: create jobs, read their output, copy the key."""
    see = ["get", "list", "watch"]
    return [
        _rule("batch", ["jobs"], [*see, "create", "delete"]),
        _rule("batch", ["jobs/status"], see),
        _rule("jobset.x-k8s.io", ["jobsets"], [*see, "create", "delete"]),
        _rule("jobset.x-k8s.io", ["jobsets/status"], see),
        _rule("", ["pods", "pods/log"], see),
        # To create cannot be held to a name; to read can.
        _rule("", ["secrets"], ["create"]),
        {**_rule("", ["secrets"], ["get"]), "resourceNames": [key_secret(team)]},
    ]


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


_ROLE_NAME = "wandb-launch-agent"


def launch_agent(
    into: Component, scope: Scope, team: str, spec: LaunchSpec, *, namespace: Any, chart: ChartOverride | None
) -> None:
    """Add the agent in its own namespace, and its permissions in the team's. Its pod waits for the Secret with its key.

    ``namespace`` is the name of the team's namespace, known once it exists. ``chart`` is the environment's override of
    the chart.
    """
    name = into.name
    created = into.add(
        kubernetes_object(NAMESPACE, f"{name}-namespace", scope, agent_namespace(team), {}, labels=AGENT_LABELS)
    )
    own_namespace = created.output("metadata", "name")
    fields = {"spec": {"hard": AGENT_QUOTA}}
    quota = into.add(
        kubernetes_object(RESOURCE_QUOTA, f"{name}-quota", scope, "agent", fields, namespace=own_namespace)
    )
    rules = rules_of_role(*agent_rules(team))
    role = into.add(kubernetes_object(ROLE, f"{name}-role", scope, _ROLE_NAME, rules, namespace=namespace))
    bound = binding("Role", _ROLE_NAME, [account_subject(agent_account(team), agent_namespace(team))])
    into.add(
        kubernetes_object(ROLE_BINDING, f"{name}-role-binding", scope, _ROLE_NAME, bound, namespace=namespace), [role]
    )
    # People add the key, and cannot before the namespace exists, so nothing waits for the release's pods.
    release(
        into,
        CHARTS[CHART],
        chart,
        chart_values(team, spec),
        after=[created, quota],
        called=team,
        prepared=agent_namespace(team),
    )
