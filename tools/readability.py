"""Report code and sentences that are hard to read, with the checks that can be automated. Part of ``make lint``.

``python -m tools.readability`` checks the files in ROOMS. With ``--count``, it prints the total of each kind of remark,
for any FILES. A line with ``# readable: REASON`` is exempt.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeGuard

ROOT: Final = Path(__file__).parent.parent
ROOMS: Final = (
    "__main__.py",
    "benchmarks",
    "docs",
    "examples",
    "kueue_model",
    "local_google_cloud",
    "pipelines",
    "tests",
    "tools",
    "training_platform",
)
"""Files and folders that must not cause any remarks. Others are added as soon as their remarks are resolved."""
EXEMPT: Final = "# readable: "

MOST_BY_POSITION: Final = 2
"""The number of fields that a reader of a named tuple or dataclass recognizes by position."""
_BY_POSITION: Final = re.compile(r"\b(NamedTuple|dataclass)\b")

Documented = ast.Module | ast.ClassDef | ast.FunctionDef

VAGUE_NAMES: Final = frozenset({
    "asked", "at", "each", "found", "given", "known", "least", "left", "made", "most", "one", "others", "own", "rest",
    "said", "wanted", "what",
})  # fmt: skip
"""Names that do not describe their value."""

PHRASES: Final = {
    r"\banew\b": "again",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\balone\b": "only",
    r"\bwhole numbers?\b": "integer",
    r"\b(is|are) there\b": "exists",  # readable: the pattern
    r"\bof which\b": "a possessive or a second sentence",
    r"\bwhat it is\b|\bwhat is there\b": "a noun",  # readable: a pattern
    r"\bno more\b": "no longer",
    r"\bwhere (there|that|it) (is|are) (no|none|not)\b": "if",
}
"""Phrases at which a native reader stops, with replacements."""


class Remark(NamedTuple):
    """A place that is hard to read. ``--count`` adds up the remarks of each kind."""

    line: int
    kind: str
    message: str


def remarks(source: str, by_position: Collection[str] = ()) -> Iterator[Remark]:
    """Yield the remarks about a module, except on exempt lines. ``by_position`` contains names from ``tuples``."""
    lines = source.splitlines()
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = [node.body[0] for node in nodes if _has_docstring(node)]
    read_apart = {id(statement.value) for statement in docstrings if isinstance(statement, ast.Expr)}
    for node in nodes:
        checks = [_packed_assignment, _hidden_condition, _dense_expression, _vague_name, _docstring_phrase]
        if id(node) not in read_apart:
            checks.append(_text_phrase)
        of_node = [remark for check in checks for remark in check(node)]
        for remark in (*of_node, *_fields_by_position(node, by_position)):
            if EXEMPT not in lines[remark.line - 1]:
                yield remark


def _has_docstring(node: ast.AST) -> TypeGuard[Documented]:
    return isinstance(node, Documented) and ast.get_docstring(node) is not None


def _packed_assignment(node: ast.AST) -> Iterator[Remark]:
    """Yield an assignment of several values that do not depend on each other."""
    match node:
        case ast.Assign(targets=[ast.Tuple() as targets], value=ast.Tuple() as values):
            if not _is_swap(targets, values):
                yield Remark(node.lineno, "packed assignment", message="one assignment for each value")


def _is_swap(targets: ast.Tuple, values: ast.Tuple) -> bool:
    """Return True if an assignment swaps values, or moves each value to the next name."""
    names = {ast.unparse(target) for target in targets.elts}
    return any(ast.unparse(part) in names for value in values.elts for part in ast.walk(value))


def _hidden_condition(node: ast.AST) -> Iterator[Remark]:
    """Yield a condition inside the iterable of a loop, or inside a value that extends a list or a call."""
    hidden: list[ast.expr] = []
    match node:
        case ast.For(iter=ast.IfExp() as condition) | ast.comprehension(iter=ast.IfExp() as condition):
            hidden.append(condition)
        case ast.Starred(value=ast.IfExp() as condition) | ast.keyword(arg=None, value=ast.IfExp() as condition):
            hidden.append(condition)
        case ast.Dict(keys=keys, values=values):
            unpacked = [value for key, value in zip(keys, values, strict=True) if key is None]
            hidden.extend(value for value in unpacked if isinstance(value, ast.IfExp))
    for expression in hidden:
        yield Remark(expression.lineno, "condition in an iterable", message="an if statement")


def _dense_expression(node: ast.AST) -> Iterator[Remark]:
    """Yield nested conditional expressions, conditional callees, and comprehensions that need a second reading."""
    match node:
        case ast.IfExp(body=ast.IfExp()) | ast.IfExp(orelse=ast.IfExp()):
            yield Remark(node.lineno, "nested conditional expression", message="if and elif")
        case ast.Call(func=ast.IfExp()):
            yield Remark(node.lineno, "callee chosen by a condition", message="an if statement with two calls")
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            if len(node.generators) > 2 or any(isinstance(part, ast.NamedExpr) for part in ast.walk(node)):
                yield Remark(node.lineno, "dense comprehension", message="a loop")


def _fields_by_position(node: ast.AST, by_position: Collection[str]) -> Iterator[Remark]:
    """Yield a construction that passes its third or a later argument by position, or unpacks a sequence."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in by_position:
            if len(arguments) > MOST_BY_POSITION or any(isinstance(argument, ast.Starred) for argument in arguments):
                message = f"{name}: name its fields from the third on, or use _make"
                yield Remark(node.lineno, "fields by position", message=message)


def tuples(source: str) -> Iterator[str]:
    """Yield the names of classes in a module that can be constructed by position and have three or more fields."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ClassDef(name=name, bases=bases, decorator_list=decorators, body=body):
                marks = ", ".join(map(ast.unparse, [*bases, *decorators]))
                annotations = [ast.unparse(part.annotation) for part in body if isinstance(part, ast.AnnAssign)]
                fields = [annotation for annotation in annotations if "ClassVar" not in annotation]
                if _BY_POSITION.search(marks) and "kw_only" not in marks and len(fields) > MOST_BY_POSITION:
                    yield name


def _vague_name(node: ast.AST) -> Iterator[Remark]:
    """Yield a local variable or a parameter whose name does not describe its value."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in VAGUE_NAMES:
            yield Remark(node.lineno, "vague name", message=f"{name}: say what the value is")


def _docstring_phrase(node: ast.AST) -> Iterator[Remark]:
    """Yield the phrases in the first line of a docstring at which a native reader stops."""
    if _has_docstring(node):
        summary = str(ast.get_docstring(node)).split("\n", maxsplit=1)[0]
        yield from _phrase_remarks(node.body[0].lineno, summary, "phrase in a docstring")


def _text_phrase(node: ast.AST) -> Iterator[Remark]:
    """Yield the phrases in a string of several words at which a native reader stops."""
    match node:
        case ast.Constant(value=str() as text) if " " in text.strip():
            yield from _phrase_remarks(node.lineno, text, "phrase in a text")


def _phrase_remarks(line: int, text: str, kind: str) -> Iterator[Remark]:
    for pattern, better in PHRASES.items():
        if match := re.search(pattern, text):
            yield Remark(line, kind, message=f"'{match[0]}': write {better}")


def _files(names: list[str]) -> Iterator[Path]:
    """Yield the Python files that git tracks among the named files and folders."""
    command = ["git", "ls-files", *names]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 # its own FILES
    for name in listed.stdout.splitlines():
        if name.endswith(".py"):
            yield ROOT / name


def _is_test(file: Path) -> bool:
    """Return True if a file is a test. Tables in tests may have rows by position."""
    return file.is_relative_to(ROOT / "tests")


def main() -> int:
    """Print remarks or totals. Exits 1 if there are remarks."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="*", default=list(ROOMS), help="files or folders to check")
    parser.add_argument("--count", action="store_true", help="print totals by kind, and exit 0")
    arguments = parser.parse_args()

    totals: Counter[str] = Counter()
    by_position = {
        name for file in _files(list(ROOMS)) if not _is_test(file) for name in tuples(file.read_text(encoding="utf-8"))
    }
    for file in _files(arguments.files):
        known_tuples = () if _is_test(file) else by_position
        for remark in sorted(set(remarks(file.read_text(encoding="utf-8"), known_tuples))):
            totals[remark.kind] += 1
            if not arguments.count:
                sys.stdout.write(f"{file.relative_to(ROOT)}:{remark.line}: {remark.kind}: {remark.message}\n")
    if arguments.count:
        for kind, total in totals.most_common():
            sys.stdout.write(f"{total:6,} {kind}\n")
        return 0
    return 1 if totals else 0


if __name__ == "__main__":
    sys.exit(main())
