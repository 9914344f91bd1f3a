from __future__ import annotations

from typing import Any

import pytest

from tests.support.plans import PlannedStack, composed
from training_platform.config.model.environment import QuotaRequest
from training_platform.config.model.stack import Stack, parse_stack
from training_platform.config.names import Locator
from training_platform.config.reading.source import parse_source
from training_platform.resources.project import quota_requests
from training_platform.resources.scope import Scope

PREFERENCE = "gcp:cloudquota/sQuotaPreference:SQuotaPreference"
TEXT = """\
config:
  training-platform:environment:
    project: example-train
    quota_requests:
      h100:
        service: compute.googleapis.com
        quota_id: GPUS-PER-GPU-FAMILY-per-project-region
        dimensions: {region: us-central1, gpu_family: NVIDIA_H100}
        value: 96
        justification: Two teams train at once.
        contact: ml-platform@example.com
    clusters:
      main: {location: us-central1, subnet: {nodes: 10.0.0.0/20, pods: 10.64.0.0/16, services: 10.0.16.0/20}}
"""


def deploy(scope: Scope, **changes: Any) -> PlannedStack:
    fields = {"service": "compute.googleapis.com", "quota_id": "CPUS-ALL-REGIONS-per-project", "value": 96}
    request = QuotaRequest(**{**fields, "justification": "More.", "contact": "a@example.com", **changes})
    return composed(lambda into: quota_requests(into, scope, {"cpus": request}))


def stack(text: str) -> Stack:
    return parse_stack("dev", parse_source(text, "stacks/Pulumi.dev.yaml"))


def test_a_request_is_a_preference_of_the_environments_project(scope: Scope) -> None:
    preference = deploy(scope, dimensions={"region": "us-central1"}).one(PREFERENCE, "quota-cpus")

    assert preference.inputs == {
        "parent": "projects/example-train-prod",
        "name": "prod-cpus",
        "service": "compute.googleapis.com",
        "quotaId": "CPUS-ALL-REGIONS-per-project",
        "dimensions": {"region": "us-central1"},
        "quotaConfig": {"preferredValue": "96"},
        "justification": "More.",
        "contactEmail": "a@example.com",
    }


def test_a_request_for_the_whole_project_names_no_dimension_and_no_check(scope: Scope) -> None:
    inputs = deploy(scope).one(PREFERENCE, "quota-cpus").inputs

    assert not {"dimensions", "ignoreSafetyChecks"} & set(inputs)


def test_a_decrease_can_ignore_one_safety_check(scope: Scope) -> None:
    inputs = deploy(scope, ignore_safety_check="QUOTA_DECREASE_BELOW_USAGE").one(PREFERENCE, "quota-cpus").inputs

    assert inputs["ignoreSafetyChecks"] == "QUOTA_DECREASE_BELOW_USAGE"


def test_a_preference_is_kept_on_destroy_as_google_would_keep_it(scope: Scope) -> None:
    assert deploy(scope).one(PREFERENCE, "quota-cpus").options["retainOnDelete"] is True


def test_a_preference_leads_back_to_its_request_in_the_stack_file() -> None:
    environment = stack(TEXT).environment
    assert environment is not None

    assert Locator(environment).path("quota-h100") == ("quota_requests", "h100")


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("value: 96", "value: -2", "value", "at least -1"),
        ("value: 96", "value: 96.5", "value", "an integer"),
        ("region: us-central1,", "user: somebody,", "dimensions", "dimensions of the quota, such as gpu_family"),
        ("compute.googleapis.com", "compute", "service", "a service such as compute.googleapis.com"),
        ("GPUS-PER-GPU-FAMILY-per", "GPUS PER", "quota_id", "a quota id such as CPUS-per-project-region"),
        ("ml-platform@example.com", "ml-platform", "contact", "an address"),
        ("justification:", "reason:", "justification", "is missing"),
        ("value: 96", "value: 96\n        ignore_safety_check: ALL", "ignore_safety_check", "BELOW_USAGE"),
    ],
)
def test_a_spoilt_request_is_a_finding_at_its_field(old: str, new: str, path: str, message: str) -> None:
    assert old in TEXT
    findings = [
        finding
        for finding in stack(TEXT.replace(old, new, 1)).findings
        if finding.path == f"quota_requests.h100.{path}"
    ]

    assert len(findings) == 1, stack(TEXT.replace(old, new, 1)).findings
    assert message in str(findings[0])
    assert findings[0].position is not None
    assert findings[0].position.line > 4


def test_another_name_of_the_environment_asks_for_no_second_preference(scope: Scope) -> None:
    assert deploy(scope).one(PREFERENCE, "quota-cpus").options["ignoreChanges"] == ["name"]
