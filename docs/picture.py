"""Draw docs/picture.png, what ``check --base`` says of a change of the samples, for the README: ``make picture``.

The picture holds its text beside its pixels, so that a test can compare it with what ``check`` says now. The font
has to be installed; another one gives other pixels of the same text.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

ROOT: Final = Path(__file__).parents[1]
PICTURE: Final = ROOT / "docs" / "picture.png"
COLUMNS: Final = 110
FONT: Final = "DejaVu Sans Mono"
FONT_FILES: Final = {False: "DejaVuSansMono.ttf", True: "DejaVuSansMono-Bold.ttf"}  # by whether it is bold
FONT_FOLDER: Final = Path("/usr/share/fonts/truetype/dejavu")
POOL: Final = "          a100:\n            machine_type: a2-highgpu-8g\n"
BEFORE: Final = f"{POOL}            zone: us-central1-c\n            max_nodes: 4\n"
AFTER: Final = f"{POOL}            zone: us-central1-f\n            max_nodes: 5\n"
_KEYWORD: Final = b"Description"


def main() -> None:
    """Write the picture."""
    import novasvg  # the test of the text needs only this module, and novasvg prints its leaks when a process ends
    import novasvg.fonts

    for bold, file in FONT_FILES.items():
        novasvg.fonts.add_font_face_from_file(FONT, bold, False, str(FONT_FOLDER / file))
    text = terminal_text()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(text)
    title = "A change moves a node pool to another zone and adds a VM"
    svg = console.export_svg(title=title, theme=DEFAULT_TERMINAL_THEME).replace("Fira Code", FONT)
    novasvg.svg2png(svg, PICTURE, width=1040)
    PICTURE.write_bytes(with_text(PICTURE.read_bytes(), text.plain))


def terminal_text() -> Text:
    """Return what a terminal shows of ``check --base HEAD`` after the change, from the comparison to the verdict."""
    with tempfile.TemporaryDirectory() as folder:
        _change_samples(Path(folder))
        command = [str(Path(sys.executable).with_name("training-platform")), "check", "--base", "HEAD"]
        colors = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
        done = subprocess.run(command, cwd=folder, env=colors, check=False, capture_output=True, text=True)
    output = re.sub(r" \([0-9a-f]{12}\)", "", done.stdout)  # the commit of the samples differs from time to time
    lines = Text.from_ansi(output).split("\n")
    first = next(number for number, line in enumerate(lines) if "Since HEAD" in line.plain)
    last = next(number for number, line in enumerate(lines) if re.match(r"\d+ stacks: ", line.plain))
    return Text("\n").join([Text("$ training-platform check --base HEAD"), Text("..."), *lines[first : last + 1]])


def _change_samples(folder: Path) -> None:
    """Copy the samples to a repository of their own, commit them, and make the change."""
    for name in ("stacks", "jobs"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("Pulumi.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    for step in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Samples"]):
        subprocess.run([*git, *step], cwd=folder, check=True)
    stack = folder / "stacks" / "Pulumi.prod.yaml"
    text = stack.read_text(encoding="utf-8")
    if BEFORE not in text:
        raise LookupError("Pulumi.prod.yaml: the pool that the picture changes is not as docs/picture.py has it")
    stack.write_text(text.replace(BEFORE, AFTER), encoding="utf-8")


def with_text(png: bytes, text: str) -> bytes:
    """Return a PNG with a text, as a chunk before its last one."""
    content = b"iTXt" + _KEYWORD + b"\0\0\0\0\0" + text.encode()
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    end = png.rindex(b"IEND") - 4
    return png[:end] + chunk + png[end:]


def text_of(png: bytes) -> str:
    """Return the text that ``with_text`` put into a PNG. Raises ValueError if it has none."""
    start = png.index(b"iTXt" + _KEYWORD)
    (length,) = struct.unpack(">I", png[start - 4 : start])
    content = png[start + 4 : start + 4 + length]
    return content[len(_KEYWORD) + 5 :].decode()


if __name__ == "__main__":
    main()
