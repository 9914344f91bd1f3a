"""Fingerprints of findings: the same while a finding is the same, wherever in its file it stands."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

from checks.report import ordered
from modules.config.finding import Finding

# What a message names before these words tells two findings of one field apart; what follows are amounts, which change.
_SUBJECT_ENDS = {"quota-exceeded": " needs ", "quota-unknown": ", which "}


def fingerprinted(findings: Iterable[Finding]) -> Iterator[tuple[Finding, str]]:
    """Yield findings in order of place, each with a fingerprint that no other has: 64 hexadecimal digits.

    It rests on rule, file, path and resource, so neither a moved line nor a changed amount makes a finding new. Of
    several findings that agree in all of these the fingerprints differ by their order.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for finding in ordered(findings):
        identity = _identity(finding)
        seen[identity] += 1
        text = "\0".join((*identity, str(seen[identity])))
        yield finding, hashlib.sha256(text.encode()).hexdigest()


def _identity(finding: Finding) -> tuple[str, ...]:
    end = _SUBJECT_ENDS.get(finding.rule)
    subject = finding.message.partition(end)[0] if end else ""
    return (finding.rule, finding.file or finding.stack or "", finding.path, finding.resource or "", subject)
