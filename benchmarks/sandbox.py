"""``sandbox up`` of one stack beside ``sandbox preview`` of it, and beside the chain of resources that it waits for.

With operations of no length the engine's own work is what is seen, with long ones whether anything waits for what it
does not need. The gcp provider's fixed wait after it made a service account is taken from what is compared with a
preview, and is in the chain like every resource's own time. Needs the engine and its gcp plugin on PATH.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.engine import TOOLS
from benchmarks.measure import ORGANISATION, PROGRAM, ROOT, run, table

STACK: Final = "dev"
DURATIONS: Final = ("*=0", "real/20", "real/10")
ACCOUNT_WAIT: Final = 10.0  # seconds that the provider sleeps after it made a service account


def measure() -> None:
    """Bring the stack up once for each length of operations, each time from nothing, and print a table."""
    title = f"The sandbox, stack {STACK}"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"\n## {title}\n\nNot installed: {', '.join(missing)}")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = _checkout(folder / "checkout")
        preview = _sandbox(root, folder / "preview", "preview")
        rows: list[tuple[str, ...]] = [("preview", f"{preview:.1f}", "", "", "", "")]
        for index, duration in enumerate(DURATIONS):
            place = folder / str(index)
            wall = _sandbox(root, place, "up", "--duration", duration)
            rows.append(_row(duration, wall, preview, _summary(place)))
    head = ("run", "wall s", "without the fixed wait, previews", "changes s", "chain s", "changes / chain")
    table(title, head, rows)


def _checkout(root: Path) -> Path:
    """Lay out this program with the stacks that tests own."""
    shutil.copytree(ORGANISATION, root)
    for part in ("modules", "policies", "training_platform"):
        (root / part).symlink_to(ROOT / part)
    return root


def _sandbox(root: Path, workspace: Path, command: str, *args: str) -> float:
    place = ("--root", str(root), "--workspace", str(workspace))
    return run([PROGRAM, "sandbox", command, STACK, *place, *args]).wall


def _summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "stacks" / STACK / "summary.json").read_text(encoding="utf-8"))
    return found


def _row(duration: str, wall: float, preview: float, summary: dict[str, Any]) -> tuple[str, ...]:
    seconds, chain = summary["seconds"], summary["path_seconds"]
    times = (wall - ACCOUNT_WAIT) / preview
    return f"up, {duration}", f"{wall:.1f}", f"{times:.1f}", f"{seconds:.1f}", f"{chain:.1f}", f"{seconds / chain:.2f}"
