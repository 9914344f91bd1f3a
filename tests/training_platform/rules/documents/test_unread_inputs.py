"""Every input of the views that rules read is read, or has a reason why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from training_platform.resources.resource_types import RESOURCE_TYPES
from training_platform.rules.documents import shapes as documents
from training_platform.rules.documents.additions import Additions
from training_platform.rules.documents.constraints import Shape, ShapeRows
from training_platform.views.access import LabelledView
from training_platform.views.adapters import VIEWS_OF

REASONS = yaml.safe_load(Path(__file__).with_name("unread_inputs.yaml").read_text(encoding="utf-8"))
OF_ALL = {LabelledView.__name__, "EncryptedView"}  # views that many types have for one input
FREE = ("text", "number", "any", "map")  # kinds that say nothing without a constraint


def test_an_input_that_neither_a_view_nor_a_document_reads_has_a_reason() -> None:
    unread = {path.rpartition(".")[2] for token in _judged() for path in _unread(token)}
    excused = {name for names in REASONS.values() for name in names}

    assert unread - excused == set()
    assert excused - unread == set(), "read by now"


def test_an_input_has_one_reason() -> None:
    names = [name for names in REASONS.values() for name in names]

    assert sorted(set(names)) == sorted(names)


def test_every_input_of_a_type_is_in_its_document() -> None:
    assert len(_judged()) >= 15
    assert sum(1 for token in _judged() for _ in _leaves(token)) > 1_000


def _judged() -> list[str]:
    """Return the types of Google's that rules read more of than labels and keys."""
    return [
        token for token, kinds in VIEWS_OF.items()
        if token.startswith("gcp:") and token in RESOURCE_TYPES and {kind.__name__ for kind in kinds} - OF_ALL
    ]  # fmt: skip


def _unread(token: str) -> Iterator[str]:
    fields = [field for kind in VIEWS_OF[token] for field in kind.FIELDS.values()]
    read = {_path(spelled) for field in fields for spelled in field.inputs}
    for path, shape in _leaves(token):
        seen = any(
            f"{path}.".startswith(f"{path_read}.") or f"{path_read}.".startswith(f"{path}.") for path_read in read
        )
        if not seen and shape.kind in FREE and not shape.limits.words():
            yield path


def _path(spelled: str) -> str:
    """Return an input as documents name it, without the places in lists."""
    return ".".join(part for part in spelled.split(".") if not part.isdecimal())


def _leaves(token: str) -> Iterator[tuple[str, Shape]]:
    content = json.loads((Path(documents.__file__).parent / "google.json").read_text(encoding="utf-8"))
    document = ShapeRows(content["shapes"]).shape(content["types"][token])
    yield from _below(Additions(strict=False).to_type(token, document), "")


def _below(shape: Shape, path: str) -> Iterator[tuple[str, Shape]]:
    if shape.kind == "block":
        for name, inner in Additions(strict=False).by_name(shape).fields.items():
            yield from _below(inner, f"{path}.{name}" if path else name)
    elif shape.kind == "list":
        yield from _below(shape.inner, path)
    else:
        yield path, shape
