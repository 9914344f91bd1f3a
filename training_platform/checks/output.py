"""Writes reports to standard output, and to files that are written completely or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from training_platform.config.reading.finding import UserError

if TYPE_CHECKING:
    from training_platform.checks.report import Report


class Style(NamedTuple):
    """Options of a report: the prefix of links in Markdown and HTML, and whether the text shows everything."""

    links: str = ""
    verbose: bool = True


class ReportFormat(NamedTuple):
    """A report format with the function that writes it. The function imports its module when it is called.

    Reports in ``mixable`` formats may follow one another on standard output. A report in any other format is one
    document, and a second document after it would make the output invalid.
    """

    write: Callable[[Report, Style], str]
    mixable: bool = False


def _text(report: Report, style: Style) -> str:
    from training_platform.checks.reports.text import text_report

    return text_report(report, verbose=style.verbose)


def _json(report: Report, _style: Style) -> str:
    from training_platform.checks.reports.json_report import json_report

    return json_report(report)


def _markdown(report: Report, style: Style) -> str:
    from training_platform.checks.reports.markdown import markdown_report

    return markdown_report(report, style.links)


def _sarif(report: Report, _style: Style) -> str:
    from training_platform.checks.reports.sarif import sarif_report

    return sarif_report(report)


def _gitlab(report: Report, _style: Style) -> str:
    from training_platform.checks.reports.code_quality import gitlab_report

    return gitlab_report(report)


def _github(report: Report, _style: Style) -> str:
    from training_platform.checks.reports.code_quality import github_report

    return github_report(report)


def _html(report: Report, style: Style) -> str:
    from training_platform.checks.reports.html import html_report

    return html_report(report, style.links)


FORMATS: Mapping[str, ReportFormat] = {
    "text": ReportFormat(_text, mixable=True),
    "json": ReportFormat(_json),
    "markdown": ReportFormat(_markdown, mixable=True),
    "sarif": ReportFormat(_sarif),
    "gitlab": ReportFormat(_gitlab),
    "github": ReportFormat(_github, mixable=True),
    "html": ReportFormat(_html),
}
"""The formats, keyed by their names on the command line."""


def print_report(report: Report, to: str, *, links: str = "", verbose: bool = True) -> None:
    """Print a report in the format ``to``. Text has colours on a terminal, and is a summary unless ``verbose``."""
    if to == "text":
        from training_platform.checks.reports.terminal_tables import PrintableConsole
        from training_platform.checks.reports.text import print_report as print_text

        console = PrintableConsole(highlight=False)
        if console.is_terminal:
            print_text(report, console, verbose=verbose)
            return
    sys.stdout.write(_ended(render(report, to, links=links, verbose=verbose)))


def render(report: Report, to: str, *, links: str = "", verbose: bool = True) -> str:
    """Return a report in the format ``to``; ``links`` is the prefix of links in Markdown and HTML."""
    return FORMATS[to].write(report, Style(links, verbose))


def check_writable(paths: Iterable[Path]) -> None:
    """Raise UserError for a file that cannot be written. Call this before a long check."""
    for path in paths:
        if os.path.isdir(path):  # unlike Path.is_dir, it returns False for a name that is too long  # noqa: PTH112
            raise UserError(f"{path} cannot be written: it is a folder; name a file in it.")
        if not os.path.isdir(path.parent):  # noqa: PTH112
            raise UserError(f"{path} cannot be written: there is no folder {path.parent}.")


def write_files(texts: Mapping[Path, str], *, folders: bool = False) -> None:
    """Write all files or none: each is first written to a temporary file next to it, and all are renamed at the end.

    A path that is not a plain file, such as a pipe, is written directly. ``folders`` creates missing folders. Raises
    UserError.
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
    """Write a temporary file next to a file and return its path. A device or a pipe is written directly instead."""
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
