"""Fills a folder with the files of another, such as a volume with a bucket's, and goes on where it was interrupted.

A file that is there with its source's size and time is left alone; one that was under way goes on from its last byte.
Files come into sight whole. What the source has no more stays in the destination, and is counted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHUNK_BYTES = 8 * 1024 * 1024
PART = ".part"


def main() -> int:
    """Copy what is missing; return 1 where a file could not be copied."""
    options = arguments()
    files = list(listed(options.source))
    with ThreadPoolExecutor(options.threads) as threads:
        outcomes = list(threads.map(lambda name: fetched(options.source / name, options.destination / name), files))
    counts = Counter(outcome for outcome, _ in outcomes)
    copied = sum(size for _, size in outcomes)
    extra = len(set(listed(options.destination)) - set(files))
    print(
        f"{counts['copied']} copied ({copied} bytes), {counts['there']} there already, {counts['failed']} failed, "
        f"{extra} only in the destination",
        flush=True,
    )
    return 1 if counts["failed"] else 0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("source", type=Path)
    parser.add_argument("destination", type=Path)
    parser.add_argument("--threads", type=int, default=16, help="files that are copied at a time")
    return parser.parse_args()


def listed(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, by their paths in it; neither links nor what is half copied."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            if not name.endswith(PART) and not path.is_symlink():
                yield path.relative_to(folder)


def fetched(source: Path, destination: Path) -> tuple[str, int]:
    """Copy one file unless it exists; return what became of it, and the bytes that were copied now."""
    try:
        original = source.stat()
        if destination.is_file() and same(original, destination.stat()):
            return "there", 0
        destination.parent.mkdir(parents=True, exist_ok=True)
        # Named after what it is a part of: another version of the source starts anew.
        part = destination.with_name(f"{destination.name}.{original.st_size}-{int(original.st_mtime)}{PART}")
        copied = continued(source, part)
        if part.stat().st_size != original.st_size:
            print(f"{source}: it changed while it was read", file=sys.stderr, flush=True)
            return "failed", 0
        os.utime(part, (original.st_mtime, original.st_mtime))
        part.replace(destination)
    except OSError as error:
        print(f"{source}: {error}", file=sys.stderr, flush=True)
        return "failed", 0
    return "copied", copied


def same(file: os.stat_result, other: os.stat_result) -> bool:
    """Whether two files have one size and, to the second, one time."""
    return file.st_size == other.st_size and int(file.st_mtime) == int(other.st_mtime)


def continued(source: Path, part: Path) -> int:
    """Append to a part what it lacks of the source; return the bytes that were appended."""
    with source.open("rb") as reader, part.open("ab") as writer:
        start = writer.tell()
        reader.seek(start)
        while chunk := reader.read(CHUNK_BYTES):
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())
        return writer.tell() - start


if __name__ == "__main__":
    sys.exit(main())
