"""Forms of strings, each at its boundary, and inputs whose form follows from their name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.training_platform.rules.documents.whole_objects import found, of
from tools.documents import __main__
from training_platform.rules import documents
from training_platform.rules.documents.additions import Additions
from training_platform.rules.documents.constraints import Constraint, Shape, ShapeRows
from training_platform.rules.documents.problems import BrokenConstraint
from training_platform.rules.documents.scalars import FORMS, scalar

FOLDER = Path(documents.__file__).parent
GOOGLE = json.loads((FOLDER / "google.json").read_text(encoding="utf-8"))
JOB = "kubernetes:batch/v1:Job"
POD = "spec.template.spec"


@pytest.mark.parametrize(
    ("form", "right", "wrong"),
    [
        ("time-zone", ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia"], ["Local", "US/Pacifik", "CEST", "../etc"]),
        ("network", ["10.0.0.0/24", "10.0.0.5/32", "fd20::/20"], ["10.0.0.5/24", "10.0.0.0", "010.0.0.0/8", "/24"]),
        ("cidr", ["10.0.0.5/24"], ["10.0.0.0", "10.0.0.0/33", "/24"]),
        ("block", ["/24", "10.0.0.0/24"], ["/7", "24", "10.0.0.0"]),
        ("range", ["10.0.0.5", "10.0.0.0/24"], ["10.0.0.5/24", "here"]),
        ("address", ["10.0.0.5", "fd20::1"], ["10.0.0.300", "a.example.com"]),
        ("ports", ["80", "0-65535", "80-80"], ["65536", "100-50", "80-", "80,81", "ssh", "-1"]),
        ("re2", ["a(b|c)*", r"\(", r"(?i)a\pN", "(?P<a>b)"], ["a(b", "[a", "*a", "(?=a)", "(?<!a)b", r"(a)\1", "a)"]),
        ("json", ["{}", "[1]"], ["", "{a: 1}"]),
        ("cluster-ip", ["None", "10.0.0.5"], ["none", "10.0.0.300"]),
    ],
)
def test_a_form_is_told_at_its_boundary(form: str, right: list[str], wrong: list[str]) -> None:
    is_right, example = FORMS[form]

    assert [text for text in right if not is_right(text)] == []
    assert [text for text in wrong if is_right(text)] == []
    assert example


@pytest.mark.parametrize(
    ("kind", "path", "rule", "right", "wrong"),
    [
        ("gcp:compute/firewall:Firewall", "sourceRanges", "format", [["10.0.0.0/8"], ["10.0.0.5"]], [["10.0.0.5/24"]]),
        ("gcp:compute/firewall:Firewall", "allows", "format", [[{"protocol": "tcp", "ports": ["80-90"]}]],
         [[{"protocol": "tcp", "ports": ["90-80"]}], [{"protocol": "tcp", "ports": ["65536"]}]]),
        ("gcp:compute/routerNat:RouterNat", "natIps", "required", [["a"]], []),
        ("gcp:monitoring/alertPolicy:AlertPolicy", "alertStrategy", "range",
         [{"notificationChannelStrategies": [{"renotifyInterval": "1800s"}]}],
         [{"notificationChannelStrategies": [{"renotifyInterval": "1799s"}]}]),
        ("gcp:pubsub/topic:Topic", "name", "format", ["runs.v1~a+b%", "Abc"], ["googles", "1run", "a b"]),
        ("gcp:pubsub/topic:Topic", "name", "range", ["abc"], ["ab"]),
        ("gcp:pubsub/topic:Topic", "kmsKeyName", "format",
         ["projects/a/locations/b/keyRings/c/cryptoKeys/d", ""], ["own", "projects/a/locations/b/keyRings/c"]),
        ("gcp:storage/bucketIAMMember:BucketIAMMember", "member", "format",
         ["serviceAccount:a@b.iam.gserviceaccount.com", "allUsers", "principal://iam.googleapis.com/a"],
         ["a@b.iam.gserviceaccount.com", "everybody"]),
        ("gcp:compute/disk:Disk", "zone", "format", ["us-central1-a", "us-south1-ai1b", "zones/us-central1-a"],
         ["us-central1", "here"]),
        ("gcp:compute/subnetwork:Subnetwork", "region", "format", ["us-central1", "northamerica-northeast1"],
         ["us-central1-a"]),
        ("kubernetes:batch/v1:CronJob", "spec.timeZone", "format", ["Europe/Berlin"], ["Local"]),
        (JOB, f"{POD}.volumes", "range", [[{"name": "a", "emptyDir": {"sizeLimit": "0"}}]],
         [[{"name": "a", "emptyDir": {"sizeLimit": "-1Gi"}}]]),
        (JOB, "metadata.annotations", "format", [{"example.com/a": "any text"}], [{"a b": "c"}]),
        (JOB, "spec.selector", "format", [{"matchLabels": {"a": "b"}}], [{"matchLabels": {"a b": "c"}}]),
        ("kubernetes:rbac.authorization.k8s.io/v1:Role", "rules", "required",
         [[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]],
         [[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "nonResourceURLs": ["/metrics"]}]]),
        ("kubernetes:policy/v1:PodDisruptionBudget", "spec.selector", "enum",
         [{"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}],
         [{"matchExpressions": [{"key": "app", "operator": "Like", "values": ["a"]}]}]),
        ("kubernetes:networking.k8s.io/v1:NetworkPolicy", "spec.podSelector", "required",
         [{"matchExpressions": [{"key": "app", "operator": "Exists"}]}],
         [{"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]}]),
        ("kubernetes:core/v1:ConfigMap", "data", "range", [{"a": "b"}], []),
    ],
)  # fmt: skip
def test_an_input_has_the_form_of_what_it_names(
    kind: str, path: str, rule: str, right: list[Any], wrong: list[Any]
) -> None:
    def of_rule(value: Any) -> list[str]:
        findings = [finding for finding in found(kind, **of(kind, path, value)) if finding.rule == f"document-{rule}"]
        paths = [finding.path or "" for finding in findings]
        return [found_path for found_path in paths if re.sub(r"\[\d+\]", "", found_path).startswith(path)]

    assert [value for value in right if of_rule(value)] == []
    assert [value for value in wrong if not of_rule(value)] == []


@pytest.mark.parametrize(("duration", "count"), [("60s", 0), ("300s", 0), ("0s", 0), ("90s", 1), ("60.5s", 1)])
def test_a_length_of_time_is_a_multiple_where_its_api_counts_minutes(duration: str, count: int) -> None:
    condition = {"displayName": "a", "conditionThreshold": {"comparison": "COMPARISON_GT", "duration": duration}}
    rows = found("gcp:monitoring/alertPolicy:AlertPolicy", conditions=[condition], combiner="OR", displayName="a")

    assert len([row for row in rows if row.rule == "document-range"]) == count


@pytest.mark.parametrize(("drained", "paths"), [(["b"], []), (["b", "a"], ["drainNatIps[1]"])])
def test_what_is_drained_is_not_in_use(drained: list[str], paths: list[str]) -> None:
    rows = found(
        "gcp:compute/routerNat:RouterNat", router="a", natIpAllocateOption="MANUAL_ONLY", natIps=["a"],
        sourceSubnetworkIpRangesToNat="ALL_SUBNETWORKS_ALL_IP_RANGES", drainNatIps=drained,
    )  # fmt: skip

    assert [row.path for row in rows] == paths


def test_a_range_that_does_not_begin_at_its_first_address_is_doubted_where_nobody_saw_it_refused() -> None:
    (row,) = found(
        "gcp:compute/subnetwork:Subnetwork", name="nodes", network="a", region="us-central1", ipCidrRange="10.0.0.5/24"
    )

    assert (row.rule, row.severity, row.path) == ("document-format", "warning", "ipCidrRange")


def test_every_name_with_a_form_is_an_input_and_every_input_that_is_called_so_has_a_form() -> None:
    """A new input of a range, a time zone, a key or an account is judged as the others are, or has a reason."""
    content = json.loads((FOLDER / "google.json").read_text(encoding="utf-8"))
    names = __main__.content()["names"]["gcp"]
    fields = {name: content["shapes"][number] for shape in content["shapes"] for name, number in shape.get(
        "fields", {}).items() if content["shapes"][number]["is"] in ("text", "list", "int32", "int64")}  # fmt: skip
    called = re.compile(r"cidr|timezone|kmskey|serviceaccount|iamMember|^members?$|ranges$|email$", re.IGNORECASE)
    other = {  # names of ranges, flags in words, and lists of blocks
        "additionalIpRangesConfigs", "advertisedIpRanges", "aliasIpRanges", "aliasIpv6Ranges", "cidrBlock",
        "cidrBlocks",
        "controlPlaneDiskEncryptionKeyVersions", "customLearnedIpRanges", "enableCustomServiceAccount",
        "kmsKeyServiceAccount",
        "masterIpv4CidrBlock", "reservedIpRanges", "reservedPeeringRanges", "secondaryIpRanges", "serviceAccountId",
        "serviceAccountSigningKeys", "serviceAccountVerificationKeys", "serviceAccounts", "sourceNatActiveRanges",
        "sourceNatDrainRanges", "sourceSubnetworkIpRangesToNat",
    }  # fmt: skip

    assert {name for name in fields if called.search(name)} - names.keys() - other == set()
    assert names.keys() - fields.keys() == set()


def test_no_form_refuses_what_the_provider_takes_for_the_same() -> None:
    """Of each input that the provider compares by the name at a link's end, or in any case, by its source."""
    refused = []
    links = 0
    cases = 0
    for token, path, alike in _alike():
        shape = _shape(token, path)
        check = scalar(shape, strict=False)[1]
        if alike == "case":
            names = shape.limits.enum or ()
            cases += bool(names)
            pairs = [(name, other) for name in names for other in (name.lower(), name.upper())]
        else:
            name = next((name for name in NAMES if not _problems(check, name)), None)
            links += name is not None and bool(shape.limits.words().keys() - {"alike"})
            pairs = [(name, f"{start}projects/a/global/all/{name}") for start in LINKS if name is not None]
        refused += [(token, path, *pair) for pair in pairs if _problems(check, pair[1])]

    assert links > 20
    assert cases > 3
    assert refused == []


NAMES = ("default", "us-central1", "us-central1-a", "10.0.0.5")
LINKS = ("", "https://www.googleapis.com/compute/v1/", "//compute.googleapis.com/")


def _alike() -> list[tuple[str, str, str]]:
    rows = json.loads((FOLDER / "provider.json").read_text(encoding="utf-8"))["types"]
    return [(token, path, row["alike"]) for token, of_type in rows.items() for path, row in of_type.items()
            if "alike" in row]  # fmt: skip


def _shape(token: str, path: str) -> Shape:
    """Return what an input is held against, with all that is added to its document."""
    additions = Additions(strict=False)
    shape = additions.to_type(token, ShapeRows(GOOGLE["shapes"]).shape(GOOGLE["types"][token]))
    for part in path.split("."):
        shape = additions.by_name(shape).fields[part.removesuffix("[]")]
        shape = shape.inner if part.endswith("[]") else shape
    return shape


def _problems(check: Any, value: str) -> list[BrokenConstraint]:
    problems = list[BrokenConstraint]()
    check(value, (None, "input"), problems.append)
    return problems


def test_a_name_says_nothing_of_an_input_of_another_kind() -> None:
    flag = Shape(kind="flag")
    choice = Shape(kind="text", limits=Constraint(enum=["A"]))
    text = Shape(kind="text")
    block = Shape(kind="block", fields={"timeZone": flag, "member": choice, "zone": text})

    fields = Additions(strict=False).by_name(block).fields

    assert (fields["timeZone"], fields["member"]) == (flag, choice)
    assert fields["zone"].limits.words().keys() == {"pattern"}
    assert block.fields == {"timeZone": flag, "member": choice, "zone": text}, "shapes are shared"
