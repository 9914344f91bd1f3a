"""Where reports go: standard output, and files that appear whole or not at all."""

from __future__ import annotations

import io
import os
import pkgutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from training_platform.checks.report import Report
from training_platform.checks.reports.console import PrintableConsole, plain_width
from training_platform.checks.reports.text import print_report as print_text
from training_platform.config.reading.finding import UserError

Format = Literal["text", "json", "markdown", "sarif", "junit", "gitlab", "github", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
MIXABLE: tuple[Format, ...] = ("text", "markdown", "github")
"""Formats that may follow one another on standard output; any other is one document, which a second would spoil."""
_WRITERS: Mapping[Format, str] = {
    "json": "training_platform.checks.reports.json_report:json_report",
    "markdown": "training_platform.checks.reports.markdown:markdown_report",
    "sarif": "training_platform.checks.reports.sarif:sarif_report",
    "junit": "training_platform.checks.reports.junit:junit_report",
    "gitlab": "training_platform.checks.reports.gitlab:gitlab_report",
    "github": "training_platform.checks.reports.github:github_report",
    "html": "training_platform.checks.reports.html.page:html_report",
}
_LINKING: tuple[Format, ...] = ("markdown", "html")
_LOG_WIDTH = 160  # columns where no terminal says how wide it is: logs do not wrap


def print_report(report: Report, to: Format, *, links: str = "", verbose: bool = True) -> None:
    """Print a report in one format; text has colours on a terminal, and is a summary unless ``verbose``."""
    console = PrintableConsole(highlight=False)
    if to == "text" and console.is_terminal:
        print_text(report, console, verbose=verbose)
        return
    sys.stdout.write(_ended(render(report, to, links=links, verbose=verbose)))


def render(report: Report, to: Format, *, links: str = "", verbose: bool = True) -> str:
    """Return a report as text of one format; ``links`` goes before the paths that Markdown and HTML link to."""
    if to == "text":
        plain = io.StringIO()
        console = PrintableConsole(highlight=False, width=plain_width(_LOG_WIDTH), file=plain)
        print_text(report, console, verbose=verbose)
        return "\n".join(line.rstrip() for line in plain.getvalue().splitlines())  # tables are padded to their width
    writer = pkgutil.resolve_name(_WRITERS[to])  # imported when it is asked for: nobody waits for the others
    return str(writer(report, links) if to in _LINKING else writer(report))


def check_writable(paths: Mapping[Path, Format]) -> None:
    """Raise UserError for a file that surely cannot be written, so that nobody waits for a check in vain."""
    for path in paths:
        if os.path.isdir(path):  # unlike Path.is_dir, of a name that is too long it says no  # noqa: PTH112
            raise UserError(f"{path} cannot be written: it is a folder; name a file in it.")
        if not os.path.isdir(path.parent):  # noqa: PTH112
            raise UserError(f"{path} cannot be written: there is no folder {path.parent}.")


def write_files(texts: Mapping[Path, str], *, folders: bool = False) -> None:
    """Write every file, or none: each is written beside its place first, and moved there once all are.

    What is no plain file, such as a pipe, is written as it is; ``folders`` makes those that are missing. UserError.
    """
    beside: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            if folders:
                path.parent.mkdir(parents=True, exist_ok=True)
            beside[path] = _write_beside(path, text)
        for path, temporary in beside.items():
            if temporary != path:
                temporary.replace(path.resolve())
    except OSError as error:
        for other, temporary in beside.items():
            if temporary != other:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
        raise UserError(f"{path} cannot be written: {error.strerror}.") from error


def _write_beside(path: Path, text: str) -> Path:
    """Return the temporary file that now holds the text, or the path itself where it is a device or a pipe."""
    if path.exists() and not path.is_file():
        path.write_text(_ended(text), encoding="utf-8")
        return path
    target = path.resolve()  # a link stays a link
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(_ended(text), encoding="utf-8")
        if target.exists():
            temporary.chmod(target.stat().st_mode)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return temporary


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"
