"""Text of files that others wrote, as a terminal and a pipeline's log can be given it: it is read, and does nothing."""

from __future__ import annotations

import re

# Control characters but tab and line feed, marks that turn the direction of what follows, and other ends of a line.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
# GitHub reads `::` at the start of a line and `##[` anywhere in it: actions/runner 079cdb1, ActionCommand.cs, read
# 2026-11-22. That Azure reads `##vso[` and `##[`, and TeamCity `##teamcity[`, is (unverified).
_COMMAND = re.compile(r"^(\s*:)(?=:)|(#)(?=#(?:\[|vso\[|teamcity\[))", re.MULTILINE | re.IGNORECASE)


def printable(text: str) -> str:
    r"""Return text with control characters as escapes (``\x1b``), and ``\`` within what starts a pipeline's command."""
    return _COMMAND.sub(lambda match: f"{match[0]}\\", _UNSEEN.sub(_escape, text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # what two digits hold
