"""Output of reports: standard output, and files that are written completely or not at all."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from training_platform.config.reading.finding import UserError

if TYPE_CHECKING:
    from training_platform.checks.report import Report


class ReportFormat(NamedTuple):
    """A format of reports, with the name of its writing function, which is imported when it is needed.

    ``mixable`` ones may follow one another on standard output; any other is one document, which a second would spoil.
    The writer of a ``linked`` one also takes the address before the paths that it links to.
    """

    writer: str
    mixable: bool = False
    linked: bool = False


_REPORTS = "training_platform.checks.reports"
FORMATS: Mapping[str, ReportFormat] = {
    "text": ReportFormat(f"{_REPORTS}.text:text_report", mixable=True),
    "json": ReportFormat(f"{_REPORTS}.json_report:json_report"),
    "markdown": ReportFormat(f"{_REPORTS}.markdown:markdown_report", mixable=True, linked=True),
    "sarif": ReportFormat(f"{_REPORTS}.sarif:sarif_report"),
    "gitlab": ReportFormat(f"{_REPORTS}.code_quality:gitlab_report"),
    "github": ReportFormat(f"{_REPORTS}.code_quality:github_report", mixable=True),
    "html": ReportFormat(f"{_REPORTS}.html:html_report", linked=True),
}
"""Formats by their names on the command line."""


def print_report(report: Report, to: str, *, links: str = "", verbose: bool = True) -> None:
    """Print a report in one format; text has colours on a terminal and is a summary unless ``verbose``."""
    if to == "text":
        from training_platform.checks.reports.terminal_tables import PrintableConsole  # noqa: PLC0415 # loads rich
        from training_platform.checks.reports.text import print_report as print_text  # noqa: PLC0415

        console = PrintableConsole(highlight=False)
        if console.is_terminal:
            print_text(report, console, verbose=verbose)
            return
    sys.stdout.write(_ended(render(report, to, links=links, verbose=verbose)))


def render(report: Report, to: str, *, links: str = "", verbose: bool = True) -> str:
    """Return a report in one format; ``links`` is the prefix of links in Markdown and HTML."""
    writer = pkgutil.resolve_name(FORMATS[to].writer)
    if to == "text":
        return str(writer(report, verbose=verbose))
    return str(writer(report, links) if FORMATS[to].linked else writer(report))


def check_writable(paths: Iterable[Path]) -> None:
    """Raise UserError for a file that cannot be written, before a long check."""
    for path in paths:
        if os.path.isdir(path):  # unlike Path.is_dir, it returns False for a name that is too long  # noqa: PTH112
            raise UserError(f"{path} cannot be written: it is a folder; name a file in it.")
        if not os.path.isdir(path.parent):  # noqa: PTH112
            raise UserError(f"{path} cannot be written: there is no folder {path.parent}.")


def write_files(texts: Mapping[Path, str], *, folders: bool = False) -> None:
    """Write every file or none: each is first written to a temporary file beside it, and all are moved at the end.

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
    """Write a temporary file and return its path, or write the path itself if it is a device or a pipe."""
    if path.exists() and not path.is_file():
        path.write_text(_ended(text), encoding="utf-8")
        return path
    target = path.resolve()  # links stay links
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
