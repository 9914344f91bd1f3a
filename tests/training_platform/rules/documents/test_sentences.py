"""Sentences of documents that constrain an input of a type that we deploy: each has a row, a rule or a reason.

``sentences.yaml`` names a sentence by its input and a digest, so a new version of the documents shows which are new.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import yaml
from pulumi import _types

from tools.documents.google import SENTENCE_END, Block, block, resource
from training_platform.resources.api_fields import DocumentField, field_of, root
from training_platform.resources.resource_types import RESOURCE_TYPES
from training_platform.rules import RULES
from training_platform.rules.documents import shapes as documents
from training_platform.rules.documents.additions import Additions
from training_platform.rules.documents.constraints import Shape, ShapeRows

RECORD = yaml.safe_load(Path(__file__).with_name("sentences.yaml").read_text(encoding="utf-8"))
TYPES = [token for token in RESOURCE_TYPES if token.startswith("gcp:")]
GOOGLE = json.loads((Path(documents.__file__).parent / "google.json").read_text(encoding="utf-8"))
ROWS = ShapeRows(GOOGLE["shapes"])
CONSTRAINS = re.compile(
    r"\brequired (?:for|when|if|with|by|only|unless)\b|\brequires?\b|\bunless\b|mutually exclusive|\bconflict"
    r"|\bonly (?:with|applicable|applies|if|when|for|valid|allowed|available|used|supported|supports?|one|relevant"
    r"|has effect|be (?:set|used|specified|enabled|applied|provided|created|present))\b"
    r"|(?:applicable|applies|valid|supported|allowed|available|used|usable|relevant|settable|enabled|required) only\b"
    r"|\bmust (?:also |not |only )?(?:be|set|specify|have|include|contain|match|use|exist|provide)\b"
    r"|\bcan(?:not|'t| not) (?:also )?be\b|\bmay not be\b|\bat (?:the )?most\b|in conjunction with"
    r"|\bif\b[^.]*\bis (?:set|specified|provided|true|enabled|used|present)\b"
    r"|\bnot (?:allowed|supported|permitted|valid|compatible|be (?:set|specified|used))\b"
    r"|\b(?:exactly|only|at least) one\b|\b(?:one of|either)\b[^.]*\b(?:must|may|can|should)\b",
    re.IGNORECASE,
)


class Place(NamedTuple):
    """Where a sentence is: a type and the path of its input."""

    token: str
    path: str


def test_every_sentence_has_a_row_a_rule_or_a_reason() -> None:
    new = {key: where for key, where in _sentences().items() if key not in _recorded()}

    assert not new, "\n".join(
        f"{key}: {places[0].token} {places[0].path}: {text}" for key, (text, places) in new.items()
    )


def test_a_sentence_is_recorded_once_and_while_a_document_has_it() -> None:
    keys = list(_recorded_keys())

    assert sorted(set(keys)) == sorted(keys)
    assert set(keys) - _sentences().keys() == set()


def test_an_input_that_a_row_holds_is_constrained() -> None:
    free = {
        key: places
        for key in RECORD["rows"]
        for places in [_sentences()[key][1]]
        if not any(path.startswith(f"{place.path}.") or path == place.path
                   for place in places for path in _constrained(place.token))
    }  # fmt: skip

    assert len(RECORD["rows"]) > 500
    assert free == {}


def test_a_rule_that_holds_a_sentence_exists() -> None:
    assert RECORD["rules"].keys() - RULES.keys() == set()


def _recorded_keys() -> Iterator[str]:
    yield from RECORD["rows"]
    for section in ("rules", "reasons"):
        for keys in RECORD[section].values():
            yield from keys


@cache
def _recorded() -> frozenset[str]:
    return frozenset(_recorded_keys())


@cache
def _sentences() -> Mapping[str, tuple[str, list[Place]]]:
    """Return by its key each sentence that constrains, and its places: pools have the sentences of clusters too."""
    sentences: dict[str, tuple[str, list[Place]]] = {}
    for token in TYPES:
        for path, text in _texts(resource(token), root(token), ""):
            for sentence in SENTENCE_END.split(re.sub(r"\s+", " ", text)):
                if CONSTRAINS.search(sentence):
                    name = path.rpartition(".")[2]
                    key = f"{name}~{hashlib.sha256(sentence.strip().encode()).hexdigest()[:6]}"
                    sentences.setdefault(key, (sentence.strip(), []))[1].append(Place(token, path))
    return sentences


def _texts(inputs: Block, field: DocumentField | None, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each input with what the provider says of it, and what the API does."""
    for name in sorted(inputs.inputs):
        place = field_of(name, field) if field else None
        path = f"{prefix}.{name}".removeprefix(".")
        yield path, inputs.docs.get(name, "")
        if place:
            yield path, place.field.schema.get("description", "")
        if inner := _block_of(inputs.inputs[name]):
            yield from _texts(inner, place.field if place else None, path)


def _block_of(kind: Any) -> Block | None:
    kind = _types.unwrap_type(kind)
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _block_of(get_args(kind)[0])
    return block(kind) if _types.is_input_type(kind) else None


@cache
def _constrained(token: str) -> frozenset[str]:
    """Return the paths of inputs for which the documents or a row say more than the type of their value."""
    shape = Additions(strict=False).to_type(token, ROWS.shape(GOOGLE["types"][token]))
    return frozenset(path.replace("[]", "").removeprefix(".") for path in _below(shape, ""))


def _below(shape: Shape, path: str) -> Iterator[str]:
    if shape.kind != "block":
        if shape.kind == "output" or shape.limits.words():
            yield path
        if shape.kind == "list":
            yield from _below(shape.inner, path)
        return
    shape = Additions(strict=False).by_name(shape)
    limits = shape.limits
    named = {*limits.required}
    named.update(*limits.exactly_one, *limits.at_most_one, *limits.at_least_one)
    named |= {name for order in limits.orders for name in (order.smaller, order.larger)}
    for case in limits.cases:
        named = named.union(*case)
    yield from (f"{path}.{name}" for name in named)
    for name, inner in shape.fields.items():
        yield from _below(inner, f"{path}.{name}")
