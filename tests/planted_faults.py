"""Plant single faults in a room, drawn by a seed, and count how many its tests catch.

``python -m tests.planted_faults training_platform/quota --tests tests/training_platform/quota --count 30 --seed 7``

A fault changes one comparison, number, ``and`` or ``or``, arithmetic sign or ``not``. The tests are collected once. For
each fault, a forked process gives the faulty function its new code and runs the tests until the first failure, those
first whose file is named after the module. Code that runs when a module is imported is changed in a copy of the
checkout instead, where the tests are collected anew. A run that fails to collect, or hangs for ten minutes, is a fault
caught. Before the first fault the tests must pass without one. What is missed is printed with its line: a test is
missing, or the fault changes nothing that anybody sees.

``--coverage FILE`` makes hundreds of faults affordable: tests that ran the faulty line go first, by a data file of
``pytest --cov training_platform --cov-context test --cov-report=``.
"""

from __future__ import annotations

import argparse
import ast
import gc
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, NamedTuple

try:
    import pytest
    from coverage import CoverageData
except ModuleNotFoundError:
    sys.exit("tests.planted_faults needs the packages of the tests: run `make setup` first.")

ROOT: Final = Path(__file__).parent.parent
TIMEOUT: Final = 600.0  # seconds for the tests of a fault
LEFT_OUT: Final = ("cacheprovider", "xdist", "terminal", "unraisableexception", "threadexception")
"""Plugins of pytest that write files or output, or fail a forked process for what its parent has open."""
NOT_PLANTED: Final = 3  # exit code of a process whose functions could not be changed
_RUNS_IN_A_FUNCTION: Final = 1  # a flag of code objects: neither a module's nor a class's
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


def nested(code: CodeType) -> Iterator[CodeType]:
    """Yield code and the code of all functions and classes within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def own(code: CodeType) -> tuple[object, ...]:
    """Return what the code does itself, without the functions and classes within it."""
    constants = [repr(constant) for constant in code.co_consts if not isinstance(constant, CodeType)]
    return code.co_qualname, code.co_code, code.co_names, constants


def changed_function(fault: Fault) -> tuple[CodeType, CodeType] | None:
    """Return a faulty function's code without and with the fault, or None for code that runs at import."""
    source = fault.file.read_text(encoding="utf-8")
    versions = (source, fault.planted(source))
    before, after = (list(nested(compile(text, str(fault.file), "exec", dont_inherit=True))) for text in versions)
    pairs = [pair for pair in zip(before, after, strict=True) if own(pair[0]) != own(pair[1])]
    if len(pairs) != 1 or not pairs[0][0].co_flags & _RUNS_IN_A_FUNCTION:
        return None
    return pairs[0]


def replaced(code: CodeType, old: CodeType, new: CodeType) -> CodeType:
    """Return code with one function in it replaced."""
    if (code.co_firstlineno, *own(code)) == (old.co_firstlineno, *own(old)):
        return new
    constants = [replaced(item, old, new) if isinstance(item, CodeType) else item for item in code.co_consts]
    return code.replace(co_consts=tuple(constants))


def plant(fault: Fault) -> bool:
    """Give the functions of this process a fault. Whether it could be done: their module has been imported."""
    pair = changed_function(fault)
    functions = [
        live
        for live in gc.get_objects()
        if isinstance(live, FunctionType) and live.__code__.co_filename == str(fault.file)
    ]
    if pair is None or not functions:
        return False
    for function in functions:
        function.__code__ = replaced(function.__code__, *pair)
    return True


class Planter:
    """A plugin of pytest that runs collected tests once for each fault, in a forked process, in place of one run."""

    def __init__(self, faults: Sequence[Fault], tests_of_lines: Mapping[Fault, set[str]]) -> None:
        self.caught: dict[Fault, bool] = {}
        self._faults = faults
        self._tests_of_lines = tests_of_lines
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self._failed = self._failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge every fault that can be planted in a function. True says that the loop was run."""
        gc.unfreeze()  # tests/conftest.py hides what was imported from gc.get_objects
        if self._exit_code(session, None) != 0:
            sys.exit("The tests fail without a fault.")
        for fault in self._faults:
            if changed_function(fault) is not None:
                code = self._exit_code(session, fault)
                if code != NOT_PLANTED:
                    self.caught[fault] = code != 0
        return True

    def _exit_code(self, session: pytest.Session, fault: Fault | None) -> int:
        """Fork a process that runs the tests, with a fault if one is given, and return its exit code."""
        process = os.fork()
        if process == 0:
            os._exit(self._run(session, fault))
        return ended(process)

    def _run(self, session: pytest.Session, fault: Fault | None) -> int:
        """Run the tests until the first failure, and return 0 if there is none."""
        if fault and not plant(fault):
            return NOT_PLANTED
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, sys.stdout.fileno())
        os.dup2(silence, sys.stderr.fileno())
        items = session.items
        if fault:
            tests_of_line = self._tests_of_lines.get(fault, set())
            items = sorted(items, key=lambda item: distance(item.nodeid, fault, tests_of_line))
        for item, following in itertools.zip_longest(items, items[1:]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return 1
        return 0


def distance(test_id: str, fault: Fault, tests_of_line: set[str]) -> tuple[bool, bool]:
    """Return a key by which tests that ran the faulty line come first, and those named after its module."""
    return test_id not in tests_of_line, fault.file.stem not in test_id.partition("::")[0]


def ended(process: int) -> int:
    """Wait for a process, and return its exit code, or -1 if it hangs and is killed."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        finished, status = os.waitpid(process, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return -1


def caught_in_a_copy(fault: Fault, tests: list[str], copy: Path) -> bool:
    """Whether a test fails, or none can be collected, with the fault in a copy of the checkout."""
    target = copy / fault.file.relative_to(ROOT)
    source = target.read_text(encoding="utf-8")
    target.write_text(fault.planted(source), encoding="utf-8")
    files = [file for test in tests for file in sorted((copy / test).rglob("test_*.py")) or [copy / test]]
    files.sort(key=lambda file: fault.file.stem not in file.stem)
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, files)],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            check=False,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        target.write_text(source, encoding="utf-8")
    return run.returncode != 0


def tests_of_lines(chosen: Sequence[Fault], coverage_file: Path) -> dict[Fault, set[str]]:
    """Return the IDs of the tests that ran the line of each fault."""
    data = CoverageData(str(coverage_file))
    data.read()
    contexts = {file: data.contexts_by_lineno(str(file)) for file in {fault.file for fault in chosen}}
    return {
        fault: {context.rpartition("|")[0] for context in contexts[fault.file].get(fault.line, [])} for fault in chosen
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("rooms", nargs="+", help="folders or files in which to plant faults")
    parser.add_argument("--tests", nargs="+", required=True, help="folders or files of tests to run")
    parser.add_argument("--count", type=int, default=30, help="how many faults to plant")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--coverage", type=Path, metavar="FILE", help="data file that says which tests run a line")
    arguments = parser.parse_args()

    files = [file for room in arguments.rooms for file in sorted((ROOT / room).rglob("*.py")) or [ROOT / room]]
    candidates = [fault for file in files for fault in faults(file)]
    chosen = random.Random(arguments.seed).sample(candidates, min(arguments.count, len(candidates)))
    planter = Planter(chosen, tests_of_lines(chosen, arguments.coverage) if arguments.coverage else {})
    os.chdir(ROOT)
    plugins = [word for name in LEFT_OUT for word in ("-p", f"no:{name}")]
    pytest.main(["-s", *plugins, *arguments.tests], plugins=[planter])

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".git", ".venv*", ".mypy_cache", ".ruff_cache", ".hypothesis", "build")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for fault in chosen:
            if fault not in planter.caught:
                planter.caught[fault] = caught_in_a_copy(fault, arguments.tests, copy)
            old = fault.file.read_text(encoding="utf-8")[fault.start : fault.end]
            where = f"{fault.file.relative_to(ROOT)}:{fault.line}"
            verdict = "caught" if planter.caught[fault] else "MISSED"
            sys.stdout.write(f"{verdict} {where}: {old} -> {fault.new or '(nothing)'}\n")
            sys.stdout.flush()
    caught = sum(planter.caught.values())
    sys.stdout.write(f"{caught} of {len(chosen)} caught, seed {arguments.seed}, {len(candidates)} possible faults\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
