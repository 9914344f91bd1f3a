"""Compile the providers' SDKs so that no annotation is evaluated when they are imported: ``python -m tools.byte_code``.

The byte code lies where Python keeps it, for the source as it is, each of 2,400 files compiled as if it began with
``from __future__ import annotations``. A plan needs the types of a few dozen resources, which Pulumi's SDK resolves by
itself. Python compiles a file that changed as usual. From 3.14 on it evaluates no annotation early by itself.
"""

from __future__ import annotations
import __future__

import ast
import marshal
import os
import struct
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from sysconfig import get_path
from typing import Final

SDKS: Final = ("pulumi_gcp", "pulumi_kubernetes")


def main() -> None:
    """Compile every file of the SDKs that are installed, on all cores."""
    if sys.version_info < (3, 14):
        files = [file for sdk in SDKS for file in sorted(Path(get_path("purelib"), sdk).rglob("*.py"))]
        with ProcessPoolExecutor() as processes:
            for _ in processes.map(compile_file, files, chunksize=16):
                pass


def compile_file(file: Path) -> None:
    """Write a file's byte code, whole or not at all: where PEP 3147 has it, after the header of PEP 552."""
    source, status = file.read_bytes(), file.stat()
    tree = ast.parse(source if b"(TypedDict):" in source else "")
    for part in tree.body:
        if isinstance(part, ast.ClassDef) and any(ast.unparse(base) == "TypedDict" for base in part.bases):
            part.body = [ast.copy_location(ast.Pass(), part)]  # type checkers alone read its fields, from the source
    flags = __future__.annotations.compiler_flag
    code = compile(tree if tree.body else source, str(file), "exec", flags, dont_inherit=True)
    header = struct.pack("<III", 0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
    target = Path(cache_from_source(str(file)))
    target.parent.mkdir(exist_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(MAGIC_NUMBER + header + marshal.dumps(code))
    unfinished.replace(target)


if __name__ == "__main__":
    main()
