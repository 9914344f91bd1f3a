"""food-101 is brought into a folder whole, once, and only if its archive is the expected one."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.places import ROOT

PROGRAM = ROOT / "examples" / "experiments" / "vit_storage" / "fetch.py"
FILES = {"food-101/images/apple_pie/1.jpg": b"apple", "food-101/meta/train.json": b"{}"}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "served").mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served")))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def archive(tmp_path: Path, files: dict[str, bytes]) -> str:
    """Serve an archive of files, and return its MD5 sum."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    (tmp_path / "served" / "food.tar.gz").write_bytes(content.getvalue())
    return hashlib.md5(content.getvalue(), usedforsecurity=False).hexdigest()


def fetch(tmp_path: Path, server: str, md5: str) -> subprocess.CompletedProcess[str]:
    options = [f"--url={server}/food.tar.gz", f"--md5={md5}", "--threads=2"]
    command = [sys.executable, str(PROGRAM), str(tmp_path / "bucket"), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_run_writes_only_what_is_missing(tmp_path: Path, server: str) -> None:
    md5 = archive(tmp_path, FILES)

    first = fetch(tmp_path, server, md5)
    (tmp_path / "bucket" / "food-101" / "meta" / "train.json").unlink()
    second = fetch(tmp_path, server, md5)

    assert (first.stdout, second.stdout) == ("2 files written, 0 were there\n", "1 files written, 1 were there\n")
    assert contents(tmp_path / "bucket") == FILES


@pytest.mark.parametrize(
    ("files", "md5", "says"),
    [(FILES, "0" * 32, "is not the archive that was expected"), ({"../a": b"a"}, None, "which is outside its folder")],
)
def test_another_archive_writes_nothing(
    tmp_path: Path, server: str, files: dict[str, bytes], md5: str | None, says: str
) -> None:
    served = archive(tmp_path, files)

    ran = fetch(tmp_path, server, md5 or served)

    assert (ran.returncode, says in ran.stderr) == (1, True)
    assert not (tmp_path / "bucket").exists()
