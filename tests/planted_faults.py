"""Plant single faults in a room, drawn by a seed, and count how many its tests catch.

``python -m tests.planted_faults training_platform/quota --tests tests/training_platform/quota --count 30 --seed 7``

A fault changes one comparison, number, ``and`` or ``or``, arithmetic sign or ``not``. Each is planted in a copy of the
checkout, alone, and the tests run until the first failure, those first whose text names the faulty module. A run that
fails to collect, or hangs for ten minutes, is a fault caught. What is missed is printed with its line: a test is
missing, or the fault changes nothing that anybody sees.

``--coverage FILE`` makes many faults affordable: of the tests that ran the faulty line, by a data file of
``pytest --cov training_platform --cov-context test --cov-report=``, some go first, and ``--tests`` follows only where
those pass.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

try:
    from coverage import CoverageData
except ModuleNotFoundError:
    sys.exit("tests.planted_faults needs the packages of the tests: run `make setup` first.")

ROOT: Final = Path(__file__).parent.parent
TIMEOUT: Final = 600  # seconds for a run of tests
NEAREST: Final = 60  # tests that run a fault's line, tried before all others
SWAPS: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
}


class Fault(NamedTuple):
    """A change of one place: characters ``start`` to ``end`` of a file become ``new``."""

    file: Path
    line: int
    start: int
    end: int
    new: str

    def planted(self, source: str) -> str:
        """Return the file's text with the fault."""
        return source[: self.start] + self.new + source[self.end :]


class _Sites(ast.NodeVisitor):
    """Collects the faults that can be planted in a file. Annotations run no code, so they are not visited."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.source = file.read_text(encoding="utf-8")
        self.lines = self.source.splitlines(keepends=True)
        self.faults: list[Fault] = []

    def _offset(self, line: int, column: int) -> int:
        before = "".join(self.lines[: line - 1])
        return len(before) + len(self.lines[line - 1].encode()[:column].decode())

    def _swap(self, operator: ast.AST, first: ast.expr, second: ast.expr) -> None:
        old, new = SWAPS.get(type(operator), ("", ""))
        begin = self._offset(first.end_lineno or 0, first.end_col_offset or 0)
        end = self._offset(second.lineno, second.col_offset)
        position = self.source.find(old, begin, end)
        if old and position >= 0 and "#" not in self.source[begin:end]:
            line = self.source.count("\n", 0, position) + 1
            self.faults.append(Fault(self.file, line, position, position + len(old), new))

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for operator, first, second in zip(node.ops, operands, node.comparators, strict=False):
            self._swap(operator, first, second)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for first, second in itertools.pairwise(node.values):
            self._swap(node.op, first, second)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._swap(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start = self._offset(node.lineno, node.col_offset)
            self.faults.append(Fault(self.file, node.lineno, start, start + len("not "), ""))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, int):
            return
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or 0, node.end_col_offset or 0)
        new = not node.value if isinstance(node.value, bool) else node.value + 1
        self.faults.append(Fault(self.file, node.lineno, start, end, str(new)))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in [*node.defaults, *node.kw_defaults]:
            if default is not None:
                self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.visit(node.args)
        for statement in node.body:
            self.visit(statement)


def faults(file: Path) -> list[Fault]:
    """Return every fault that can be planted in a file."""
    sites = _Sites(file)
    sites.visit(ast.parse(sites.source))
    return sites.faults


def tests_in_order(tests: list[str], file: Path, copy: Path) -> list[str]:
    """Return the test files, those first that name the module of a fault."""
    names_module: dict[str, bool] = {}
    for test in tests:
        path = copy / test
        test_files = sorted(path.rglob("test_*.py")) or [path]
        for test_file in test_files:
            names_module[str(test_file.relative_to(copy))] = file.stem in test_file.read_text(encoding="utf-8")
    return sorted(names_module, key=lambda name: not names_module[name])


def tests_of_line(fault: Fault, coverage_file: Path) -> list[str]:
    """Return IDs of at most ``NEAREST`` tests that ran the faulty line, one of each file before a second of any.

    A line that runs only when its module is imported has no test: those that ran any line of the module are returned.
    """
    data = CoverageData(str(coverage_file))
    data.read()
    contexts_by_line = data.contexts_by_lineno(str(fault.file))
    contexts = [context for context in contexts_by_line.get(fault.line, []) if context]
    if not contexts:
        contexts = list({context for line in contexts_by_line.values() for context in line if context})
    tests_by_file: dict[str, list[str]] = {}
    for context in sorted(contexts):
        test_id = context.rpartition("|")[0]
        tests_by_file.setdefault(test_id.partition("::")[0], []).append(test_id)
    rounds = itertools.zip_longest(*tests_by_file.values())
    in_turn = [test_id for one_round in rounds for test_id in one_round if test_id is not None]
    return list(dict.fromkeys(in_turn))[:NEAREST]


def fails(tests: list[str], copy: Path) -> bool:
    """Whether a test fails in a copy of the checkout, or hangs."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        run = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            check=False,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return True
    return run.returncode != 0


def is_caught(fault: Fault, tests: list[str], copy: Path, coverage_file: Path | None) -> bool:
    """Whether a test fails with the fault planted in a copy of the checkout."""
    target = copy / fault.file.relative_to(ROOT)
    source = target.read_text(encoding="utf-8")
    target.write_text(fault.planted(source), encoding="utf-8")
    try:
        nearest = tests_of_line(fault, coverage_file) if coverage_file else []
        if nearest and fails(nearest, copy):
            return True
        return bool(tests) and fails(tests_in_order(tests, target, copy), copy)
    finally:
        target.write_text(source, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("rooms", nargs="+", help="folders or files in which to plant faults")
    parser.add_argument("--tests", nargs="+", default=[], help="folders or files of tests to run")
    parser.add_argument("--count", type=int, default=30, help="how many faults to plant")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--coverage", type=Path, metavar="FILE", help="data file that says which tests run a line")
    arguments = parser.parse_args()
    if not arguments.tests and arguments.coverage is None:
        parser.error("--tests or --coverage is missing")

    files = [file for room in arguments.rooms for file in sorted((ROOT / room).rglob("*.py")) or [ROOT / room]]
    candidates = [fault for file in files for fault in faults(file)]
    chosen = random.Random(arguments.seed).sample(candidates, min(arguments.count, len(candidates)))
    caught = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".git", ".venv*", ".mypy_cache", ".ruff_cache", ".hypothesis", "build")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for fault in chosen:
            is_red = is_caught(fault, arguments.tests, copy, arguments.coverage)
            caught += is_red
            old = fault.file.read_text(encoding="utf-8")[fault.start : fault.end]
            where = f"{fault.file.relative_to(ROOT)}:{fault.line}"
            sys.stdout.write(f"{'caught' if is_red else 'MISSED'} {where}: {old} -> {fault.new or '(nothing)'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{caught} of {len(chosen)} caught, seed {arguments.seed}, {len(candidates)} possible faults\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
