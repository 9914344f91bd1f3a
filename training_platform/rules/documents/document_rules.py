"""Rules about what upstream documents refuse, one for each kind of constraint. They share one pass over all objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from training_platform.catalog.nearest import find_nearest
from training_platform.config.reading.declaration import Draft, finding, rule
from training_platform.config.reading.section import enumeration
from training_platform.rules.documents.problems import BrokenConstraint, ConstraintKind
from training_platform.rules.documents.shapes import check_of, has_document, types_of_group, types_of_provider
from training_platform.views.whole_stack import ObjectView, Program

_CHARTS = "kubernetes:helm.sh/"  # rules read which chart a release is of
Problems = dict[ConstraintKind, list[tuple[ObjectView, BrokenConstraint]]]
PROVIDER = "10.2.0"
SOURCE = (
    f"Google's discovery documents (google-api-python-client 2.202.0) and pulumi-gcp {PROVIDER}; OpenAPI of Kubernetes "
    "1.36.3; CustomResourceDefinitions of Kueue 0.19.2, JobSet 0.12.0, Managed Prometheus 0.19, GKE's networks "
    "(gke-networking-api 34c617f) and Gateways (gke-gateway-api fc40d60), Gateway API 1.4.1, ComputeClass, "
    "LeaderWorkerSet 0.10.0, KubeRay 1.7.0 and Trainer 2.3.0; "
    "schemas of terraform-provider-google-beta 7.45; read 2026-11-22"
)


def _document_rule(kind: ConstraintKind, rule_id: str, summary: str) -> None:
    def check(program: Program) -> Iterator[Draft]:
        for view, problem in program.once(_problems)[kind]:
            severity = problem.severity
            message = problem.message
            if kind == "unknown" and severity == "warning" and _is_argument(view, problem.path):
                severity = "error"
                message = f"pulumi-gcp {PROVIDER} has no {problem.path} of {view.type}"
            yield finding(
                view, problem.path, message, allowed=problem.allowed, nearest=problem.nearest,
                severity=severity, unjudged="input that the documents lack" if severity == "warning" else "",
            )  # fmt: skip

    check.__doc__ = summary
    rule(rule_id, ruleset="documents", owner="documents", source=SOURCE)(check)


def _is_argument(view: ObjectView, path: str) -> bool:
    """Return True if the organisation's own code passes an input as an argument of a pulumi-gcp class.

    The schemas list all of these arguments.
    """
    return view.own_line is not None and view.type.startswith("gcp:") and not set(path) & {".", "["}


_document_rule("type", "document-type", "Find a value of the wrong type.")
_document_rule("enum", "document-enum", "Find a value that is not one of the input's enum.")
_document_rule("unknown", "document-unknown-field", "Find an input that its resource does not have.")
_document_rule("required", "document-required", "Find a resource or a block without a required input.")
_document_rule("range", "document-range", "Find a number, a length or a count that is out of range.")
_document_rule("format", "document-format", "Find a string that does not have the form that its input requires.")


def _problems(program: Program) -> Problems:
    """Return all broken constraints of all objects, keyed by the kind of constraint."""
    by_kind: Problems = defaultdict(list)
    for view in program.all(ObjectView):
        if (check := check_of(view.type)) is not None:
            problems: list[BrokenConstraint] = []
            check(view.inputs, (), problems.append)
            for problem in problems:
                by_kind[problem.kind].append((view, problem))
    return by_kind


@rule("document-missing", ruleset="documents", severity="note", owner="documents", source=SOURCE)
def document_missing(program: Program) -> Iterator[Draft]:
    """Find a type that no document describes: one that the provider does not have, a newer kind of object, or another.

    A misspelled Google Cloud type is an error. Another unknown type is a warning, because a later provider may have it.
    A type without a document is checked against the names and kinds of inputs in the provider's schema.
    """
    for view in program.all(ObjectView):
        if view.type.startswith("gcp:"):
            if check_of(view.type) is None:
                yield _unknown_type(view)
            elif not has_document(view.type):
                service = view.type.partition("/")[0]
                message = f"{view.type} has no document: only the names and kinds of its inputs are checked"
                yield finding(view, "", message, unjudged=f"resource of {service} beyond names and kinds of inputs")
        elif view.type.startswith(_CHARTS):
            if view.own_line is not None:
                message = f"the values of chart {view.read('chart')} are not checked"
                yield finding(view, "chart", message, unjudged="chart with unchecked values")
        elif check_of(view.type) is None:
            types = types_of_group(view.type)
            message = f"{view.type} is not in the documents of this version, so it is not checked"
            group = view.type.removeprefix("kubernetes:").partition("/")[0]
            yield finding(view, "kind", message, allowed=", ".join(types) or None, unjudged=f"object of {group}")


def _unknown_type(view: ObjectView) -> Draft:
    """Return the finding about a type that the provider does not have.

    It suggests a similar type of the most similar module: the module of ``gcp:pubsub/topics:Topic`` is pubsub.
    """
    by_module: dict[str, dict[str, str]] = defaultdict(dict)
    for token in types_of_provider():
        module, _, name = token.removeprefix("gcp:").partition("/")
        by_module[module][name] = token
    module, _, name = view.type.removeprefix("gcp:").partition("/")
    by_name = by_module.get(find_nearest(module, by_module) or "", {})
    similar_name = find_nearest(name, by_name)
    return finding(
        view,
        "type",
        f"pulumi-gcp {PROVIDER} has no type {view.type}",
        allowed=enumeration(by_name.values() or by_module),
        nearest=by_name.get(similar_name or ""),
        severity="error" if similar_name else "warning",
        unjudged="" if similar_name else "resource of an unknown type",
    )
