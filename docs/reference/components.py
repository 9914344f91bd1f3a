"""Writes the part of ``docs/components.md`` on each component, from its class, its arguments and a program that has it.

It reads the sources, so that ``make reference`` needs no Pulumi.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from training_platform.config.component_arguments import COMPONENTS, flat_fields

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "components.md"
README: Final = ROOT / "modules" / "README.md"
_PROGRAM: Final = ROOT / "examples" / "components" / "__main__.py"
_CLASSES: Final = ROOT / "training_platform" / "modules" / "components.py"
_BEGINNING: Final = "<!-- from the classes, by make reference -->\n"
_END: Final = "<!-- end -->"


def component_pages() -> dict[Path, str]:
    """Return the texts of the files that list the components, with the part between the marks as it is now."""
    return {PAGE: _between_marks(PAGE, _sections()), README: _between_marks(README, _rows())}


def _between_marks(path: Path, lines: Iterator[str]) -> str:
    before, mark, following = path.read_text(encoding="utf-8").partition(_BEGINNING)
    _, end, after = following.partition(_END)
    assert mark, f"{path} has no {_BEGINNING}"
    assert end, f"{path} has no {_END}"
    return before + mark + "\n".join(lines) + "\n" + end + after


def _classes() -> dict[str, ast.ClassDef]:
    tree = ast.parse(_CLASSES.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _rows() -> Iterator[str]:
    """Yield a table of the components."""
    classes = _classes()
    yield "\n| component | content |\n| --- | --- |"
    for name in COMPONENTS:
        purpose = " ".join((ast.get_docstring(classes[name]) or "").split())  # a blank line would end the table
        yield f"| `{name}` | {purpose} |"


def _sections() -> Iterator[str]:
    """Yield a section for each component: its purpose, arguments, outputs, and the statement of a program with it."""
    classes = _classes()
    program = _PROGRAM.read_text(encoding="utf-8")
    for name, arguments in COMPONENTS.items():
        fields = flat_fields(arguments)
        yield f"\n### {name}\n"
        yield ast.get_docstring(classes[name]) or ""
        required = [f"`{field}`" for field, info in fields.items() if info.is_required()]
        optional = [f"`{field}`" for field, info in fields.items() if not info.is_required()]
        yield f"\n- Required arguments: {', '.join(required) or 'none'}."
        yield f"- Optional arguments: {', '.join(optional) or 'none'}."
        outputs = [f"`{output}` ({_in_a_sentence(text)})" for output, text in _outputs(classes[name])]
        yield f"- Outputs: {', '.join(outputs) or 'none'}."
        yield f"\n```python\n{_construction(name, program)}\n```"


def _in_a_sentence(text: str) -> str:
    """Return a text without its full stop, and with a small first letter unless the first word is an abbreviation."""
    first = text if text[:2].isalpha() and text[:2].isupper() else text[0].lower() + text[1:]
    return first.rstrip(".")


def _outputs(component: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the outputs of a component, with the text below each."""
    for output, described in zip(component.body, component.body[1:], strict=False):
        if isinstance(output, ast.AnnAssign) and isinstance(output.target, ast.Name):
            assert isinstance(described, ast.Expr), f"{output.target.id} has no description"
            assert isinstance(described.value, ast.Constant)
            yield output.target.id, str(described.value.value)


def _construction(name: str, program: str) -> str:
    """Return the statement of the program that constructs a component."""
    for statement in ast.parse(program).body:
        call = getattr(statement, "value", None)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name:
            return ast.get_source_segment(program, statement) or ""
    raise ValueError(f"{_PROGRAM} has no {name}")
