"""The share of violations that the rules find, and of accepted objects that they refuse: ``make holdout``.

Objects are drawn from manifests in checkouts of their owners' repositories, at commits that no test here and no figure
of docs/development/fidelity.md has used: objects of Kubernetes, and Google Cloud's resources as Config Connector
writes them. What an object's own authority refuses is left out. A violation is such an object with one damaged value,
or one that its owner keeps among examples of what is invalid; whether it is a violation, the authority decides: the
released provider, or an API server with the webhooks of Kueue, JobSet and LeaderWorkerSet. Both have to be on PATH, as
for the tests marked ``engine`` and ``kube``. Nothing is fetched, and nothing drawn is kept in the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Final, NamedTuple, TypeVar

import yaml

from tests.training_platform.rules.corpus import accepted, judged
from tests.violations.changes import LATER, LATER_FOR_WEBHOOKS, Changes
from tests.violations.draw import Json, damaged, drawn, valid
from tests.violations.refusers import UNKNOWN, provider, server, written
from training_platform.config.reading.finding import Finding
from training_platform.rules.documents import shapes

SETTING: Final = "TRAINING_PLATFORM_HOLDOUT"  # checkouts, with os.pathsep between them
PAGE: Final = Path(__file__).parents[2] / "docs" / "development" / "fidelity.md"
# Not deployed as they are: tests of what is wrong or odd, templates, and definitions, which our documents are made of.
_ASIDE: Final = re.compile(r"(^|/)(tests?|testdata|testing|e2e|templates|charts?|crds?|bases|hack|\.github)(/|$)")
_INVALID: Final = re.compile(r"(^|/)invalid[^/]*(/|$)")
_TEMPLATED: Final = re.compile(r"\{\{|\$\{|\$\(|<[A-Za-z]|\$[A-Z]{2}")
_GOOGLE: Final = "cnrm.cloud.google.com"
_LEFT_OUT: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "ownerReferences")


OTHER_VALUES: Final = 8  # changes of an object to values of others, and to odd ones
LARGEST: Final = 1 << 20  # bytes of a file: larger ones are data
NOT_KNOWN: Final = "<unknown>"  # as the accepted configurations of the tests have it
Row = TypeVar("Row")
_CLUSTER_WIDE = frozenset({
    "ResourceFlavor", "ClusterQueue", "Cohort", "Topology", "AdmissionCheck", "ProvisioningRequestConfig",
    "WorkloadPriorityClass", "ClusterPodMonitoring", "ClusterRules", "StorageClass", "PersistentVolume", "Namespace",
    "ValidatingAdmissionPolicy", "MultiKueueConfig", "MultiKueueCluster", "PriorityClass", "ClusterRole",
    "ClusterRoleBinding", "ValidatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration", "CustomResourceDefinition", "DeviceClass", "IngressClass", "RuntimeClass",
    "CSIDriver", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "VolumeAttributesClass", "FlowSchema",
    "PriorityLevelConfiguration",
})  # fmt: skip
_LATER: Final = (LATER, LATER_FOR_WEBHOOKS)  # an API server leaves it to controllers


class Drawn(NamedTuple):
    """One object of a checkout, with its type as providers name it and its inputs."""

    repository: str
    path: str
    type: str
    inputs: Json


class Outcome(NamedTuple):
    """One object or violation: its class, what its authority says, and what the rules find."""

    of: Drawn
    kind: str
    change: str
    says: str
    findings: list[Finding]

    @property
    def verdict(self) -> str:
        """What counts: whether the rules find an error, only a warning, or nothing."""
        severities = {finding.severity for finding in self.findings}
        return next((severity for severity in ("error", "warning") if severity in severities), "nothing")


def main() -> None:
    """Draw, ask, and print the figures; everything that has to be looked at is in a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True, help="a number that no earlier draw has used")
    parser.add_argument("--checkout", type=Path, action="append", help=f"a Git directory; or {SETTING} names them")
    parser.add_argument("--accepted", type=int, default=400, metavar="N", help="accepted objects, at most")
    parser.add_argument("--violations", type=int, default=600, metavar="N", help="violations, at most")
    parser.add_argument("--again", action="store_true", help="take commits and a seed that were used before")
    parser.add_argument("--into", type=Path, help="the folder of the lists; a new one below /tmp without it")
    options = parser.parse_args()
    checkouts = options.checkout or [
        Path(folder_name) for folder_name in os.environ.get(SETTING, "").split(os.pathsep) if folder_name
    ]
    if not checkouts:
        sys.exit(f"name checkouts with --checkout or {SETTING}")
    if missing := [str(path) for path in checkouts if not path.is_dir()]:
        sys.exit(f"no folder {', '.join(missing)}")
    commits = {path: _commit(path) for path in checkouts}
    if not options.again:
        refuse_what_was_used(options.seed, commits)
    folder = options.into or Path(mkdtemp(prefix="holdout-"))
    draw = random.Random(options.seed)
    objects, invalid = everything(checkouts)
    print(f"Seed {options.seed}; {len(objects)} objects and {len(invalid)} that are meant to be invalid, from")
    for path, commit in commits.items():
        print(f"  {_name(path)} at {commit[:12]}")
    with ExitStack() as stack:
        authority = Authority(stack)
        taken, outcomes = accepted_of(objects, options.accepted, draw, authority)
        violations, wrongly = violations_of(taken, options.violations, draw, authority)
    violations += [
        Outcome(drawn_object, "invalid by its owner", "", drawn_object.path, errors_and_warnings(drawn_object))
        for drawn_object in invalid
    ]
    report(folder, outcomes, violations, wrongly)


class Authority:
    """Who decides on an object: the provider, or the API server where it serves the kind."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._plugin = stack.enter_context(provider())
        self._cluster = stack.enter_context(server(Path(stack.enter_context(TemporaryDirectory())), teams=True))

    def says(self, of: Drawn, inputs: Json) -> str | None:
        """Return the refusal of an object, or "" if it is accepted; None if neither authority can decide."""
        try:
            if of.type.startswith("gcp:"):
                return self._plugin.refusal(of.type, written(inputs, UNKNOWN))
            refusal = self._cluster.applied(of.type, inputs)
        except ConnectionError:  # the plugin crashed: nothing is decided
            self._plugin = self._stack.enter_context(provider())
            return None
        except (AssertionError, KeyError, TypeError, ValueError):  # it cannot be sent, or no such group is served
            return None
        return None if "could not find the requested resource" in refusal else refusal


def refuse_what_was_used(seed: int, commits: dict[Path, str]) -> None:
    """End where a figure is of the seed, or where this repository names a commit: rules may come from it."""
    if PAGE.exists() and re.search(rf"\bseed {seed}\b", PAGE.read_text(encoding="utf-8")):
        sys.exit(f"seed {seed} is on {PAGE.name}: take another one")
    again = [f"{_name(path)} at {commit[:12]}" for path, commit in commits.items() if _is_named(commit[:7])]
    if again:
        sys.exit(f"used before: {', '.join(again)}")


def _is_named(text: str) -> bool:
    return subprocess.run(["git", "grep", "--quiet", text], cwd=PAGE.parents[1], check=False).returncode == 0


def everything(checkouts: Sequence[Path]) -> tuple[list[Drawn], list[Drawn]]:
    """Return the objects of all checkouts, each once and none that a test has, and those meant to be invalid."""
    rows = [*valid().values(), *(row for entry in accepted().values() for row in entry.get("resources", {}).values())]
    seen = {_likeness(row["type"], row["inputs"]) for row in rows}
    valid_objects: list[Drawn] = []
    invalid: list[Drawn] = []
    for checkout in sorted(checkouts):
        for path, text in _manifests(checkout):
            for type_, inputs in _objects(text):
                likeness = _likeness(type_, inputs)
                if likeness not in seen:
                    seen.add(likeness)
                    of_these = invalid if _INVALID.search(path) else valid_objects
                    if of_these is invalid or not _ASIDE.search(path):
                        of_these.append(Drawn(_name(checkout), path, type_, inputs))
    return valid_objects, invalid


def accepted_of(
    objects: list[Drawn], max_outcomes: int, draw: random.Random, authority: Authority
) -> tuple[list[Drawn], list[Outcome]]:
    """Return objects that their authority takes, or that none here knows, and what the rules find of them.

    Kinds take turns, as they do among violations: the many Services and Deployments do not stand for everything.
    """
    turns = in_turns(draw.sample(objects, len(objects)), lambda drawn_object: drawn_object.type)
    outcomes: list[Outcome] = []
    taken: list[Drawn] = []
    for drawn_object in turns:
        if len(outcomes) == max_outcomes:
            break
        says = authority.says(drawn_object, drawn_object.inputs)
        if says:
            continue
        if says is not None:
            taken.append(drawn_object)
        outcomes.append(Outcome(drawn_object, _class(drawn_object), "", says or "", errors_and_warnings(drawn_object)))
    return taken, outcomes


def violations_of(
    taken: list[Drawn], max_outcomes: int, draw: random.Random, authority: Authority
) -> tuple[list[Outcome], list[Outcome]]:
    """Return violations, half of them Google Cloud's if enough exist, and accepted changes with an error."""
    changes = Changes([(drawn_object.type, drawn_object.inputs) for drawn_object in taken], draw.getrandbits(32))
    violations: list[Outcome] = []
    wrongly: list[Outcome] = []
    for google in (True, False):
        objects = [drawn_object for drawn_object in taken if drawn_object.type.startswith("gcp:") is google]
        # An object is damaged when its turn comes: a large one has thousands of values, each with copies of all others.
        damages = [
            (drawn_object, change)
            for drawn_object in objects
            for change in (*drawn("", drawn_object.inputs), *[None] * OTHER_VALUES)
        ]
        count = 0
        for drawn_object, change in in_turns(draw.sample(damages, len(damages)), lambda row: row[0].type):
            if count == max_outcomes // 2:
                break
            kind = f"{drawn_object.type.partition(':')[0]}, {change.constraint if change else 'other values'}"
            values = change.values if change else {}
            worse = damaged(drawn_object.inputs, change) if change else changes.changed(drawn_object.inputs)
            says = authority.says(drawn_object, worse)
            if says is None:
                continue
            before = {(row.rule, row.path, row.message) for row in errors_and_warnings(drawn_object)}
            new = [row for row in errors_and_warnings(drawn_object._replace(inputs=worse))
                   if (row.rule, row.path, row.message) not in before]  # fmt: skip
            outcome = Outcome(drawn_object, kind, json.dumps(values or worse), says, new)
            if says:
                count += 1
                violations.append(outcome)
            elif not google and _is_wrong(outcome):  # the provider takes much that its API refuses
                wrongly.append(outcome)
    return violations, wrongly


def _is_wrong(taken: Outcome) -> bool:
    """Whether the rules refuse more of what a server takes than its controllers would."""
    kind = taken.of.type.rpartition(":")[2]
    errors = [f"{kind} {finding.path}: {finding.message}" for finding in taken.findings if finding.severity == "error"]
    return any(not any(later.match(error) for later in _LATER) for error in errors)


def errors_and_warnings(of: Drawn) -> list[Finding]:
    """Return what the rules find of an object by itself."""
    findings = judged({"resources": {"thing": {"type": of.type, "inputs": of.inputs}}})
    return [finding for finding in findings if finding.severity in ("error", "warning")]


def report(folder: Path, outcomes: list[Outcome], violations: list[Outcome], wrongly: list[Outcome]) -> None:
    """Print the figures by class, and write what is to be looked at: refused, missed, and wrongly refused changes."""
    for title, rows, names in (
        ("accepted", outcomes, {"error": "refused", "warning": "warned of", "nothing": "taken"}),
        ("violations", violations, {"error": "found", "warning": "warned of", "nothing": "missed"}),
    ):
        counts = Counter((row.kind, row.verdict) for row in rows)
        print(f"\n{title:34}{'all':>8}" + "".join(f"{name:>11}" for name in names.values()))
        for kind in [*sorted({row.kind for row in rows}), None]:
            totals = [sum(count for key, count in counts.items() if key[1] == verdict and kind in (None, key[0]))
                   for verdict in names]  # fmt: skip
            print(f"  {kind or 'all':32}{sum(totals):>8}" + "".join(f"{count:>11}" for count in totals))
    print(f"\n{len(wrongly)} changes that an API server takes are errors; lists in {folder}")
    _write(folder / "refused.txt", [row for row in outcomes if row.verdict == "error"])
    _write(folder / "missed.txt", [row for row in violations if row.verdict != "error"])
    _write(folder / "wrongly.txt", wrongly)


def _write(path: Path, rows: list[Outcome]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        f"{row.of.repository} {row.of.path}\n  {row.of.type} {row.change[:600]}\n  authority: {row.says[:600]}\n"
        + "".join(
            f"  {finding.severity} {finding.rule}: {finding.path}: {finding.message}\n" for finding in row.findings
        )
        for row in rows
    )
    path.write_text("\n".join(lines), encoding="utf-8")


def in_turns(rows: Sequence[Row], kind: Callable[[Row], str]) -> list[Row]:
    """Return rows so that each kind has one before any has a second one."""
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(kind(row), []).append(row)
    return [row for turn in zip_longest(*by_kind.values()) for row in turn if row is not None]


def _class(of: Drawn) -> str:
    provider_name, package, _ = of.type.split(":")
    return f"{provider_name}, {package.partition('/')[0]}"


def _likeness(type_: str, inputs: Json) -> str:
    """Return an object without its name and space: by it the same object in two places is drawn once."""
    nameless = {**inputs, "name": None}
    if type_.startswith("kubernetes:"):
        nameless["metadata"] = {**inputs.get("metadata", {}), "name": None, "namespace": None}
    return f"{type_} {json.dumps(nameless, sort_keys=True, default=str)}"


def _name(checkout: Path) -> str:
    """Return a repository's name: its folder's, or the parent's if the folder is Git's own."""
    return (checkout.parent if checkout.name in (".git", "repo") else checkout).name.replace("+", "/")


def _commit(checkout: Path) -> str:
    return subprocess.run(
        ["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()  # fmt: skip


def _manifests(checkout: Path) -> Iterator[tuple[str, str]]:
    """Yield the YAML files of a checkout's commit: its work tree is not looked at, and may be missing."""
    git = ["git", "-C", str(checkout)]
    rows = subprocess.run([*git, "ls-tree", "-r", "HEAD"], check=True, capture_output=True, text=True).stdout
    files = [row.split(maxsplit=3)[2:] for row in rows.splitlines() if row.endswith((".yaml", ".yml"))]
    with subprocess.Popen([*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        for digest, path in files:
            process.stdin.write(f"{digest}\n".encode())
            process.stdin.flush()
            *_, size = process.stdout.readline().split()
            if size == b"missing":  # a snapshot may lack its largest files
                continue
            content = process.stdout.read(int(size) + 1)
            if len(content) <= LARGEST:
                yield path, content.decode(errors="replace")
        process.stdin.close()


def _objects(text: str) -> Iterator[tuple[str, Json]]:
    """Yield the objects of a file that are judged by their documents, without those that a template still fills in."""
    try:
        documents = [
            document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if isinstance(document, dict)
        ]
    except (yaml.YAMLError, ValueError):
        return
    for document in documents:
        version = document.get("apiVersion")
        kind = document.get("kind")
        metadata = document.get("metadata")
        if not (isinstance(version, str) and isinstance(kind, str) and isinstance(metadata, dict)):
            continue
        written = json.dumps(document, default=str)  # dates become texts, as a client sends them
        if _TEMPLATED.search(written):
            continue
        converted = (
            _google(kind, json.loads(written)) if _GOOGLE in version else _kubernetes(version, json.loads(written))
        )
        if converted is not None and len(converted[1]) > 1:
            yield converted


def _kubernetes(version: str, document: Json) -> tuple[str, Json] | None:
    type_ = f"kubernetes:{version if '/' in version else f'core/{version}'}:{document['kind']}"
    if shapes.check_of(type_) is None:
        return None
    metadata = {key: value for key, value in document["metadata"].items() if key not in _LEFT_OUT}
    metadata["name"] = metadata.get("name") or f"{metadata.pop('generateName', 'thing-')}0"
    if document["kind"] not in _CLUSTER_WIDE:
        metadata["namespace"] = "default"
    inputs = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return type_, {"metadata": metadata, **inputs}


def _google(kind: str, document: Json) -> tuple[str, Json] | None:
    """Return a resource of Config Connector, whose fields are the provider's, as pulumi-gcp names them."""
    shapes_of, types = _google_shapes()
    type_ = next((token for token in types if _spelled(token) == kind.lower()), None)
    if type_ is None:
        return None
    fields = shapes_of[types[type_]]["fields"]
    inputs = _renamed(document.get("spec") or {}, shapes_of, types[type_])
    if "location" in inputs and "location" not in fields:
        place = inputs.pop("location")
        inputs |= {name: place for name in ("zone", "region") if name in fields and place != "global"}
    named = inputs.pop("resourceID", document["metadata"].get("name"))
    return type_, ({"name": named} if "name" in fields else {}) | inputs


@cache
def _google_shapes() -> tuple[list[Json], dict[str, int]]:
    content = json.loads((Path(shapes.__file__).parent / "google.json").read_text(encoding="utf-8"))
    return content["shapes"], content["types"]


def _spelled(token: str) -> str:
    _, package, name = token.split(":")
    return f"{package.partition('/')[0]}{name}".lower()


def _renamed(value: Any, rows: list[Json], shape: int | None) -> Any:
    """Return a block with plural names where pulumi-gcp has those; what a reference gives, only a deployment tells."""
    shape_of_value: Json = rows[shape] if shape is not None else {}
    if isinstance(value, list):
        return [_renamed(entry, rows, shape_of_value.get("of")) for entry in value]
    if not isinstance(value, dict):
        return value
    if (
        value.keys() & {"name", "external"}
        and value.keys() <= {"name", "external", "namespace", "kind"}
        and not shape_of_value
    ):
        return value.get("external", NOT_KNOWN)
    if value.keys() == {"value"} and shape_of_value.get("is") not in ("block", "map", "list"):
        return value["value"]
    if shape_of_value.get("is") == "list":  # a block of the one is a list of blocks of the other
        return [_renamed(value, rows, shape_of_value["of"])]
    fields: Json = shape_of_value.get("fields", {})
    renamed: Json = {}
    for key, inner in value.items():
        reference = key.removesuffix("Ref") if key not in fields else key
        plurals = (f"{reference}s", f"{reference}es", f"{reference.removesuffix('y')}ies", f"{reference}Url")
        name = next((candidate for candidate in (key, reference, *plurals) if candidate in fields), reference)
        if reference != key and isinstance(inner, dict):
            renamed[name] = inner.get("external", NOT_KNOWN)
        else:
            renamed[name] = _renamed(inner, rows, fields.get(name))
    return renamed


if __name__ == "__main__":
    main()
