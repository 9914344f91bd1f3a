"""Brings food-101 into a folder, such as a mounted bucket: the images and lists as torchvision expects them.

The archive is downloaded to the VM's own disk, and compared with its MD5 sum, before any of it is written: a bucket
takes each file whole, and a second run writes only what is missing. Standard library only.
Source: torchvision 0.29, datasets/food101.py, which has the address and the sum; read 2026-11-28.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import tarfile
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

URL = "https://data.vision.ee.ethz.ch/cvl/food-101.tar.gz"
MD5 = "85eeb15f3717b99a5da872d97d918f87"
BLOCK = 2**20


def main() -> None:
    """Download, compare, unpack, and write what the folder lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder that gets food-101/images and food-101/meta")
    parser.add_argument("--url", default=URL)
    parser.add_argument("--md5", default=MD5)
    parser.add_argument("--threads", type=int, default=32)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        unpacked = Path(temporary) / "unpacked"
        archive = download(options.url, options.md5, Path(temporary) / "archive.tar.gz")
        unpack(archive, unpacked)
        files = [path.relative_to(unpacked) for path in sorted(unpacked.rglob("*")) if path.is_file()]
        with ThreadPoolExecutor(options.threads) as pool:
            written = sum(pool.map(lambda file: write(unpacked / file, options.folder / file), files))
    print(f"{written} files written, {len(files) - written} were there", flush=True)


def download(url: str, md5: str, file: Path) -> Path:
    """Download an archive, and return its file. Ends the program if its sum is another."""
    digest = hashlib.md5(usedforsecurity=False)
    with urllib.request.urlopen(url) as response, file.open("wb") as target:  # noqa: S310 # the command line's own
        while block := response.read(BLOCK):
            digest.update(block)
            target.write(block)
    if digest.hexdigest() != md5:
        raise SystemExit(f"{url} is not the archive that was expected: its MD5 sum is {digest.hexdigest()}")
    return file


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the files of an archive. Ends the program for a member outside the folder."""
    with tarfile.open(archive) as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                raise SystemExit(f"{archive.name} has {member.name}, which is outside its folder")
            content = tar.extractfile(member) if member.isfile() else None
            if content is None:
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)


def write(source: Path, target: Path) -> bool:
    """Write a file unless one of its size exists; return whether it was written."""
    if target.is_file() and target.stat().st_size == source.stat().st_size:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    return True


if __name__ == "__main__":
    main()
