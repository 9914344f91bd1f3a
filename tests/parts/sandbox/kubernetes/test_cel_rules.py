"""CEL rules of CRDs, where a CEL library is installed."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.runtime.rpc import UNKNOWN as UNKNOWN_ON_WIRE

from training_platform.catalog.types import Json
from training_platform.parts.sandbox.kubernetes.definitions import CrdSchema, broken_rules, compiled_rule
from training_platform.resources.planned import UNKNOWN

pytest.importorskip("cel", reason="no CEL library: the package common-expression-language is not installed")

KUEUE = "kueue.x-k8s.io"
Schemas = dict[tuple[str, str, str], CrdSchema]


def ruled(rule: str, properties: Json | None = None, **more: Any) -> Json:
    return {"properties": properties or {}, "x-kubernetes-validations": [{"rule": rule, "message": "broken", **more}]}


def breaks(spec: Json, value: Any, old: Any = None) -> list[str]:
    return [message for _, message in broken_rules(spec, value, old)]


def test_a_rule_is_broken_or_not() -> None:
    spec = ruled("self.min <= self.max")

    assert breaks(spec, {"min": 1, "max": 1}) == []
    assert breaks(spec, {"min": 2, "max": 1}) == ["broken"]


def test_a_rule_sees_defaults() -> None:
    spec = ruled("self.policy == 'Never'", {"policy": {"default": "Never"}})

    assert breaks(spec, {}) == []
    assert breaks(spec, {"policy": None}) == []
    assert breaks(spec, {"policy": "Any"}) == ["broken"]


def test_a_rule_that_reads_a_missing_field_refuses() -> None:
    assert breaks(ruled("self.policy == 'Never'"), {}) == ["broken"]


def test_a_rule_without_message_speaks_for_itself() -> None:
    spec: Json = {"x-kubernetes-validations": [{"rule": "self ==\n  'a'"}]}

    assert breaks(spec, "b") == ["failed rule: self == 'a'"]


def test_a_rule_over_an_unknown_is_passed_over_and_one_beside_it_is_not() -> None:
    spec = {"properties": {"a": ruled("self.x == 1"), "b": ruled("self.x == 1")}}

    found = list(broken_rules(spec, {"a": {"x": UNKNOWN}, "b": {"x": 2}}))

    assert found == [(("b",), "broken")]


def test_a_rule_with_an_unheard_of_function_is_passed_over() -> None:
    assert breaks(ruled("unheard(self.x)"), {"x": 1}) == []


def test_rules_are_found_in_lists_and_maps() -> None:
    spec = {"items": {"additionalProperties": ruled("self != 'bad'")}}

    assert list(broken_rules(spec, [{"k": "good"}, {"k": "bad"}])) == [((1, "k"), "broken")]


def test_a_transition_rule_holds_only_against_an_old_value() -> None:
    spec = {"properties": {"queue": ruled("self == oldSelf")}}

    assert breaks(spec, {"queue": "b"}) == []
    assert breaks(spec, {"queue": "b"}, {}) == []
    assert breaks(spec, {"queue": "b"}, {"queue": "b"}) == []
    assert breaks(spec, {"queue": "b"}, {"queue": "a"}) == ["broken"]


def test_an_old_item_is_found_by_its_keys_and_never_by_position() -> None:
    item = {"properties": {"v": ruled("self == oldSelf")}}
    keyed = {"items": item, "x-kubernetes-list-map-keys": ["name"]}
    old, new = [{"name": "a", "v": 1}, {"name": "b", "v": 2}], [{"name": "b", "v": 3}]

    assert list(broken_rules(keyed, new, old)) == [((0, "v"), "broken")]
    assert list(broken_rules({"items": item}, new, old)) == []


@pytest.mark.parametrize(
    ("timeout", "interval", "found"), [("9s", "10s", []), ("10s", "1m", []), ("2m", "1m30s", ["broken"])]
)
def test_durations_compare_as_such(timeout: str, interval: str, found: list[str]) -> None:
    duration = {"type": "string", "format": "duration"}
    spec = ruled("self.timeout <= self.interval", {"timeout": duration, "interval": duration})

    assert breaks(spec, {"timeout": timeout, "interval": interval}) == found


def test_a_field_named_like_a_keyword_is_reached() -> None:
    spec = ruled("!has(self.__namespace__)", {"namespace": {"type": "string"}})

    assert breaks(spec, {}) == []
    assert breaks(spec, {"namespace": "x"}) == ["broken"]


@pytest.mark.parametrize(("url", "found"), [("https://example.com", []), ("example", ["broken"])])
def test_addresses_are_told(url: str, found: list[str]) -> None:
    assert breaks(ruled("isURL(self)"), url) == found


def test_a_borrowing_limit_needs_a_cohort(crds: Schemas) -> None:
    def errors(**spec: Any) -> list[str]:
        resources = [{"name": "cpu", "nominalQuota": 1, "borrowingLimit": 2}]
        group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}
        queue = {"metadata": {"name": "q"}, "spec": {"resourceGroups": [group], **spec}}
        return crds[KUEUE, "v1beta2", "ClusterQueue"].errors(queue)

    assert errors(cohortName="research") == []
    assert errors(cohortName=UNKNOWN_ON_WIRE) == []
    assert errors() == ["spec: borrowingLimit must be nil when cohort is empty"]


def test_borrowing_within_a_cohort_needs_reclaiming_whose_default_is_never(crds: Schemas) -> None:
    def errors(**preemption: Any) -> list[str]:
        spec = {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}, **preemption}}
        return crds[KUEUE, "v1beta2", "ClusterQueue"].errors({"metadata": {"name": "q"}, "spec": spec})

    assert errors(reclaimWithinCohort="Any") == []
    assert len(errors()) == 1


def test_the_cluster_queue_of_a_local_queue_cannot_change(crds: Schemas) -> None:
    schema = crds[KUEUE, "v1beta2", "LocalQueue"]
    old, new = ({"metadata": {"name": "l"}, "spec": {"clusterQueue": name}} for name in ("a", "b"))

    assert schema.errors(new) == []
    assert schema.errors(new, new) == []
    assert schema.errors(new, old) == ["spec.clusterQueue: field is immutable"]


def test_every_upstream_rule_compiles(crds: Schemas) -> None:
    rules = {rule for crd in crds.values() for rule in _rules(crd.spec)}

    assert len(rules) > 50
    for rule in rules:
        compiled_rule(rule)


def _rules(spec: Any) -> list[str]:
    if isinstance(spec, list):
        return [rule for item in spec for rule in _rules(item)]
    if not isinstance(spec, dict):
        return []
    own = [one["rule"] for one in spec.get("x-kubernetes-validations", []) if isinstance(one, dict)]
    return own + [rule for part in spec.values() for rule in _rules(part)]
