"""What an expression asks for, by a real parser of PromQL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser
import yaml

from training_platform.resources import monitoring

FILE = Path(monitoring.__file__).parent / "data" / "metrics.yaml"
OF_HISTOGRAMS = ("_bucket", "_count", "_sum")


@cache
def metrics() -> Mapping[str, Any]:
    """Return the sources of series by name, with what metrics and labels each has."""
    sources: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return sources


def selectors(query: str) -> list[promql_parser.VectorSelector]:
    """Return what a query selects. Raises ValueError for what is not PromQL."""
    return [node for node in nodes(query) if isinstance(node, promql_parser.VectorSelector)]


def nodes(query: str) -> list[object]:
    """Return every node of a query, the selector of a range as one of its own."""
    nodes_of_query: list[object] = []

    def visit(node: object) -> bool:
        nodes_of_query.append(node.vector_selector if isinstance(node, promql_parser.MatrixSelector) else node)
        return True

    promql_parser.walk(promql_parser.parse(query), pre_visit=visit)
    return nodes_of_query


def matchers(selector: promql_parser.VectorSelector) -> dict[str, str]:
    """Return the labels that a selector matches, with their values."""
    return {matcher.name: matcher.value for matcher in selector.matchers.matchers}


def problems(query: str, needs: str) -> list[str]:
    """Return metrics and labels of a query that its source does not have."""
    source = metrics()[needs]
    messages: list[str] = []
    known_labels: set[str] = set()
    for selector in selectors(query):
        name = str(selector.name)
        base = next((name.removesuffix(end) for end in OF_HISTOGRAMS if name.endswith(end)), name)
        labels_of_metric = source["metrics"].get(name, source["metrics"].get(base))
        if labels_of_metric is None:
            messages.append(f"metric {name} is not among those of {needs}")
            continue
        labels = {*source["labels"], *labels_of_metric}
        if name.endswith("_bucket"):
            labels.add("le")
        known_labels |= labels
        messages += [f"{name} has no label {label}" for label in matchers(selector) if label not in labels]
    return messages + [f"no metric has the label {label}" for label in sorted(grouped(query) - known_labels)]


def grouped(query: str) -> set[str]:
    """Return the labels that a query keeps, or joins by."""
    kept_labels: set[str] = set()
    for node in nodes(query):
        modifier = getattr(node, "modifier", None)
        if modifier is None:
            continue
        for part in (modifier, getattr(modifier, "matching", None)):
            kept_labels |= set(getattr(part, "labels", ()) or ())
    return kept_labels
