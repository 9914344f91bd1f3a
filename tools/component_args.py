"""Writes ``training_platform/modules/args.py``, the classes that programs pass to components; part of ``make schema``.

Pulumi's analyser reads these classes at run time. It does not support Literal, Annotated, unions, tuples or quoted
annotations, or descriptions of inherited fields. So each class repeats inherited fields, and fields with a fixed set of
values are strings at run time, and Literals only for type checkers.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from training_platform.config.component_arguments import COMPONENTS, FromDeployment, flat_fields
from training_platform.config.reading.section import Section

FILE: Final = Path(__file__).parents[1] / "training_platform" / "modules" / "args.py"
_HEAD: Final = '''\
"""The arguments of components: ``make schema`` writes them from ``training_platform/config/component_arguments.py``.

Its annotations are not deferred: Pulumi's analyser reads them as they are.
"""

# ruff: noqa: E501 # descriptions of the models' fields
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import pulumi
'''


class ArgsWriter:
    """Writes classes in the order of their dependencies. ``choices`` contains the types with a fixed set of values."""

    def __init__(self) -> None:
        self.choices: dict[str, tuple[str, ...]] = {}
        self.classes: dict[str, str] = {}
        self._models: dict[str, type[Section]] = {}

    def text(self) -> str:
        """Return the whole module."""
        for component, arguments in COMPONENTS.items():
            name = f"{component}Args"
            self.classes[name] = self._class(name, arguments.__doc__ or "", flat_fields(arguments))
        choices = ["if TYPE_CHECKING:", *(f"    {name} = {_literal(values)}" for name, values in self.choices.items())]
        strings = ["else:", f"    {' = '.join(self.choices)} = str"]
        names = ["__all__ = [", *(f'    "{name}",' for name in sorted(self.classes)), "]\n"]
        return "\n".join([_HEAD, *names, *choices, *strings, *self.classes.values()])

    def _class(self, name: str, doc: str, fields: dict[str, FieldInfo]) -> str:
        lines = [f"\n\nclass {name}(TypedDict):", _quoted(doc), ""]
        for field, info in fields.items():
            annotation = self._type(info.annotation, (name, field), info.metadata)
            if not info.is_required():
                # An output of a component may be empty once it is known.
                annotation = f"NotRequired[{annotation.replace('Input[str]', 'Input[str | None]')}]"
            lines.append(f"    {field}: {annotation}")
            lines.append(_quoted(_described(info)))
        return "\n".join(lines)

    def _type(self, annotation: Any, place: tuple[str, str], metadata: list[Any]) -> str:
        """Return the annotation that a field has in the written module. ``place`` is the field's class and name."""
        if any(isinstance(mark, FromDeployment) for mark in metadata):
            return "pulumi.Input[str]"
        origin = get_origin(annotation)
        inner = get_args(annotation)
        if origin is Annotated:
            return self._type(inner[0], place, list(inner[1:]))
        if origin in (Union, UnionType):
            (kept,) = (item for item in inner if item is not NoneType)
            return self._type(kept, place, [])
        if origin is Literal:
            return self._choice(place, inner)
        if origin is tuple:
            return f"list[{self._type(inner[0], place, [])}]"
        if origin is dict:
            return f"dict[str, {self._type(inner[1], place, [])}]"
        if annotation is Any:
            return "Any"
        if annotation is date:
            return "str"
        if issubclass(annotation, Section):
            return self._nested(annotation)
        assert annotation in (str, int, float, bool), f"{'.'.join(place)} is {annotation}"
        return str(annotation.__name__)

    def _choice(self, place: tuple[str, str], values: tuple[str, ...]) -> str:
        name = place[0].removesuffix("Args") + "".join(word.capitalize() for word in place[1].split("_"))
        same = [other for other, known_values in self.choices.items() if known_values == values]
        self.choices.setdefault(same[0] if same else name, values)
        return same[0] if same else name

    def _nested(self, model: type[Section]) -> str:
        name = model.__name__
        assert self._models.setdefault(name, model) is model, f"two models have the name {name}"
        assert not name.endswith("Args"), f"{name} would be {name}Args in other languages"
        if name not in self.classes:
            self.classes[name] = self._class(name, model.__doc__ or "", dict(model.model_fields))
        return name


def _literal(values: tuple[str, ...]) -> str:
    quoted = (f'"{value}"' for value in values)
    return f"Literal[{', '.join(quoted)}]"


def _described(info: FieldInfo) -> str:
    """Return the description of a field, with its default and an example if it has them."""
    assert info.description, f"a field has no description: {info}"
    text = info.description
    default = info.default
    if isinstance(default, str | int) and "default:" not in text:
        text += f" Default: {str(default).lower() if isinstance(default, bool) else default}."
    if info.examples:
        text += f" Example: {info.examples[0]}."
    return text


def _quoted(text: str) -> str:
    """Return a docstring for a class or field as one line, since the analyser keeps line breaks and indentation."""
    return f'    """{" ".join(text.split())}"""'.replace("``", "`").replace("\\", "\\\\")


def main() -> None:
    """Write the module. With --check, only exit with 1 if it is not up to date."""
    text = f"{ArgsWriter().text()}\n"
    is_current = FILE.exists() and FILE.read_text(encoding="utf-8") == text
    if "--check" in sys.argv:
        sys.exit(int(not is_current))
    if not is_current:
        FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
