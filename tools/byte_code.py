"""Compile the providers' SDKs so that nothing is made before a program asks for it: ``python -m tools.byte_code``.

The byte code lies where Python keeps it, for the source as it is, and differs from Python's own in three things:

- No annotation is evaluated, as if each file began with ``from __future__ import annotations``.
- A package loads a file when one of the file's names is looked up.
- ``_inputs.py`` and ``outputs.py`` make a class when it is looked up. Annotations name a class of inputs by its module:
  Pulumi's SDK looks up those that it serialises.

Python compiles a file that changed as usual. What a package exports is read here: run this again after a change to it.
"""

from __future__ import annotations
import __future__

import ast
import marshal
import os
import struct
from collections.abc import Container
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from sysconfig import get_path
from types import CodeType
from typing import Final

SDKS: Final = ("pulumi_gcp", "pulumi_kubernetes")
INPUTS: Final = "_inputs"
CLASSES: Final = (INPUTS, "outputs")
NAMED: Final = "_sdk_inputs"  # of the SDK alone: Pulumi reads annotations with the names of a subclass's module, too

# What a package gets for each ``from .file import *``. Python binds an imported file in its package: where the package
# exports the same name from it, the export stays, as it does where all files are imported first.
_LAZY_FILES: Final = """
from importlib import import_module as _import_module
from sys import modules as _modules
from types import ModuleType as _ModuleType

class _Package(_ModuleType):
    def __getattr__(self, name):
        if name in _files:
            value = self.__dict__[name] = getattr(_import_module(_files[name], __name__), name)
            return value
        if f".{name}" in _files.values():
            return _import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __setattr__(self, name, value):
        if name not in _files or getattr(value, "__name__", "") != f"{__name__}.{name}":
            super().__setattr__(name, value)

    def __dir__(self):
        return sorted({*super().__dir__(), *_files, *(file[1:] for file in _files.values())})

    def __reduce__(self):
        return _import_module, (__name__,)

_modules[__name__].__class__ = _Package
"""
_ALL_NAMES: Final = "__all__ = sorted({*_files, *(name for name in globals() if name[0] != '_')})"

# What a file of classes gets for them. A thread that looks a class up while another makes it waits for it.
_LAZY_CLASSES: Final = """
from marshal import loads as _loads
from sys import modules as _modules
from threading import RLock as _RLock

_lock = _RLock()
_sdk_inputs = _modules[__name__]

def __getattr__(name):
    with _lock:
        if name in _classes:
            exec(_loads(_classes[name]), globals())
            del _classes[name]
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

def __dir__():
    return sorted({*globals(), *_classes})
"""

_ALL_INPUTS: Final = f"from .{INPUTS} import *"

# What a resource's file gets for that import.
_NAMED_INPUTS: Final = """
from . import _inputs as _sdk_inputs

def __getattr__(name):
    if name in _sdk_inputs.__all__:
        return getattr(_sdk_inputs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
"""


def main() -> None:
    """Compile every file of the SDKs that are installed, on all cores."""
    files = [file for sdk in SDKS for file in sorted(Path(get_path("purelib"), sdk).rglob("*.py"))]
    with ProcessPoolExecutor() as processes:
        for _ in processes.map(compile_file, files, chunksize=16):
            pass


def compile_file(file: Path) -> None:
    """Write a file's byte code, whole or not at all: where PEP 3147 has it, after the header of PEP 552."""
    source, status = file.read_bytes(), file.stat()
    if file.name == "__init__.py":
        code = _compiled(_loading_when_asked(ast.parse(source).body, file.parent), file)
    elif file.stem in CLASSES:
        code = _compiled(_making_when_asked(ast.parse(source).body, file), file)
    elif _ALL_INPUTS.encode() in source:
        code = _compiled(_naming_inputs(ast.parse(source).body, file), file)
    else:
        code = _compiled(source, file)
    header = struct.pack("<III", 0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
    target = Path(cache_from_source(str(file)))
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(MAGIC_NUMBER + header + marshal.dumps(code))
    unfinished.replace(target)


def _compiled(source: bytes | list[ast.stmt], file: Path) -> CodeType:
    whole = ast.Module(source, []) if isinstance(source, list) else source
    code: CodeType = compile(whole, str(file), "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    return code


def _loading_when_asked(body: list[ast.stmt], folder: Path) -> list[ast.stmt]:
    files: dict[str, str] = {}
    rest: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.ImportFrom(str(file), [ast.alias("*")], 1) if names := _exported(folder / f"{file}.py"):
                files |= dict.fromkeys(names, f".{file}")
            case _:
                rest.append(statement)
    return [*ast.parse(f"_files = {files!r}{_LAZY_FILES}").body, *rest, *ast.parse(_ALL_NAMES).body] if files else body


def _making_when_asked(body: list[ast.stmt], file: Path) -> list[ast.stmt]:
    classes = {part.name: part for part in body if isinstance(part, ast.ClassDef)}
    code: dict[str, bytes] = {}
    for name, part in classes.items():
        if any(isinstance(base, ast.Name) and base.id == "TypedDict" for base in part.bases):
            part.body = [ast.copy_location(ast.Pass(), part)]  # type checkers alone read its fields, from the source
        else:
            _look_up(part, classes)
        code[name] = marshal.dumps(_compiled([part], file))
    rest = [part for part in body if not isinstance(part, ast.ClassDef)]
    return [*rest, *ast.parse(f"_classes = {code!r}{_LAZY_CLASSES}").body]


def _naming_inputs(body: list[ast.stmt], file: Path) -> list[ast.stmt]:
    names = dict.fromkeys(_exported(file.with_name(f"{INPUTS}.py")))
    changed: list[ast.stmt] = []
    for part in body:
        if isinstance(part, ast.ImportFrom) and part.module == INPUTS:
            changed += ast.parse(_NAMED_INPUTS).body
        else:
            _look_up(part, names)
            changed.append(part)
    return changed


@lru_cache
def _exported(file: Path) -> tuple[str, ...]:
    """Return the names that ``*`` imports from a file: what ``__all__`` lists, or all that do not begin with ``_``."""
    source = file.read_text(encoding="utf-8") if file.exists() else ""
    _, _, listed = source.partition("\n__all__ = [")  # parsing all of the file would take as long as compiling it
    if listed:
        return tuple(ast.literal_eval(f"[{listed.partition(']')[0]}]"))
    names: list[str] = []
    for part in ast.parse(source).body:
        match part:
            case ast.ClassDef(name) | ast.FunctionDef(name):
                names.append(name)
            case ast.Import(imported) | ast.ImportFrom(names=imported):
                names += [each.asname or each.name.partition(".")[0] for each in imported]
    return tuple(name for name in names if not name.startswith("_"))


def _look_up(part: ast.stmt, names: Container[object]) -> None:
    """Turn each of these names into an attribute of the module of inputs, in all annotations of a class or function."""
    if isinstance(part, ast.ClassDef):
        for member in part.body:
            _look_up(member, names)
    elif isinstance(part, ast.FunctionDef):
        arguments = part.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation:
                argument.annotation = _Lookup(names).visit(argument.annotation)
        if part.returns:
            part.returns = _Lookup(names).visit(part.returns)


class _Lookup(ast.NodeTransformer):
    def __init__(self, names: Container[object]) -> None:
        self.names = names

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Leave the texts of ``Literal["Job"]`` as they are."""
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            return node
        self.generic_visit(node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Turn a text that names a class into a look-up."""
        match node.value.split(".") if isinstance(node.value, str) else ():
            case [name] if name in self.names:
                module = NAMED
            case ["outputs" as module, name]:
                pass
            case _:
                return node
        found = ast.Attribute(ast.Name(module, ast.Load()), name, ast.Load())
        return ast.fix_missing_locations(ast.copy_location(found, node))


if __name__ == "__main__":
    main()
