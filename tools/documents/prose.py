"""What descriptions of inputs say of sizes and forms, in sentences that are regular enough to be read by machine.

A sentence is read where it names bounds that hold always, as ``Must be from 0 to 59``; what holds for some cases alone,
or is advised, is left to people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from training_platform.rules.documents.openapi import Shape

_NUMBER: Final = r"(?:<code>)?[`\[(+]*(-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?)`?(?!,[0-9]{3}|\.?[0-9])"
_UNIT: Final = r"(?: ?(?:hours?|minutes|days?|\([^)]*\)))?"  # the unit that the input counts, said again
_OTHER: Final = r"(?!\]? ?(?:%|\*|[KMGT]i?B|characters|bytes|UTF|Unicode|total))"  # what counts something else
_CHARACTERS: Final = r" ?(?:Unicode |UTF-8 )?(?:characters|chars|bytes)\b"
_UP_TO: Final = (
    r"(?:more than|(?:may|must|should|does|can) ?not exceed|limited to|up to|at (?:the )?most|"
    r"max(?:imum)?(?: size| length)?(?: allowed)?(?: [^.;]{0,50}?)?(?: is| of)?|(?:no|be) longer than|length <|<=|"
    r"less than or equal to)"
)
_WITHIN: Final = (
    r"\b(?:must|value|values|integer|range|Validation)\b[^.;]*?\b(?:between|from|range|in|are)(?: the)?(?: range)?"
    rf"(?: of| is)?(?: from)?:? ?{_NUMBER}{_UNIT} ?(?:to|and|,|-|through) ?{_NUMBER}{_OTHER}"
)
_BOTH: Final = (
    rf"(?:>=|greater than or equal to|at least) ?{_NUMBER}{_UNIT},? and (?:must be )?"
    rf"(?:<=|less than or equal to) ?{_NUMBER}{_OTHER}"
)
_LEAST: Final = (
    r"(?:minimum (?:allowed |lifetime )?value is|cannot be less than|must (?:be )?greater than or equal to|must be >=) "
    rf"{_NUMBER}{_OTHER}(?! (?:hour|minute|day))"
)
_MOST: Final = rf"maximum (?:allowed value|value allowed) is[^0-9.;]*{_NUMBER}(?!\.)s?{_OTHER}"
_ENTRIES: Final = rf"\b(?:up to|at (?:the )?most|a maximum of|no more than|limited to|limit is) {_NUMBER}{_OTHER}"
_RULES: Final[Mapping[str, tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]]] = {
    kind: tuple((re.compile(pattern, re.IGNORECASE), names) for pattern, names in rows)
    for kind, rows in {
        "number": (
            (_WITHIN, ("least", "most")),
            (rf"\brange is ?{_NUMBER}(?:,| to) ?{_NUMBER}{_OTHER}", ("least", "most")),
            (rf"(?:^|\) ?)(?:between|range:) {_NUMBER} ?(?:to|and|,) ?{_NUMBER}{_OTHER}", ("least", "most")),
            (_BOTH, ("least", "most")),
            (rf"minimum value[^.;]*? is {_NUMBER} and the maximum value is {_NUMBER}{_OTHER}", ("least", "most")),
            (_MOST, ("most",)),
            (_LEAST, ("least",)),
        ),
        "text": (
            (rf"(?:between )?\b([0-9]+)(?:-| and | to )([0-9]+){_CHARACTERS}", ("shortest", "longest")),
            (rf"\b{_UP_TO} {_NUMBER}{_CHARACTERS}", ("longest",)),
            (rf"\b{_NUMBER}{_CHARACTERS} or (?:less|fewer)", ("longest",)),
        ),
        "list": ((_ENTRIES, ("most",)),),
    }.items()
}
_SENTENCE: Final = re.compile(r"(?<=[.!])\s+(?=[A-Z*`(-])|(?<=[a-z])\.(?=[A-Z])|(?<=:)\s+(?=[-*])")
_SOMETIMES: Final = re.compile(
    r"\b(?:if (?!set\b|specified\b)|when |whe(?:n|re)ver |for (?!this field|the year)|depending|recommend|custom |"
    r"approximately|valid values? (?:are|is) \S+,|by default|resulting name|unless|minimum \(default\)|API may|"
    r"or a valid|typically)",
    re.IGNORECASE,
)
# Older than what the API takes: IOPS of Hyperdisks begin at 3,000, and a cluster has up to 100 authorized networks.
_OUTDATED: Final = ("between 10,000 and 120,000", "up to 10 external networks")
_PATH: Final = re.compile(r"Format: `?projects/")  # beside a name alone, whose length is told
_LABEL: Final = re.compile(r"1-63 characters(?: long)?,? and comply with ?\[?RFC ?1035", re.IGNORECASE)


def said(kind: str, texts: Sequence[str], shape: Mapping[str, Any]) -> Shape:
    """Return the bounds and forms that descriptions give an input of a kind; of two that differ the last one's."""
    if kind == "text" and ("pattern" in shape or any(map(_PATH.search, texts))):
        return {}
    found: Shape = {}
    for sentence in (each for text in texts for each in _SENTENCE.split(re.sub(r"\s+", " ", text))):
        if not _SOMETIMES.search(sentence) and not any(each in sentence for each in _OUTDATED):
            found |= _facts(kind, sentence)
    return {name: value for name, value in found.items() if (name, value) != ("shortest", 1)}  # empty is not written


def _facts(kind: str, sentence: str) -> Shape:
    if kind == "text" and _LABEL.search(sentence):
        return {"pattern": "^([a-z]([-a-z0-9]{0,61}[a-z0-9])?)?$"}
    for pattern, names in _RULES[kind]:
        if match := pattern.search(sentence):
            bounds = {name: _number(text) for name, text in zip(names, match.groups(), strict=True)}
            if re.search(r"\bor 0\b", sentence) and "least" in bounds:
                bounds["least"] = 0
            return bounds
    return {}


def _number(text: str) -> int | float:
    plain = text.replace(",", "")
    return float(plain) if "." in plain and float(plain) % 1 else int(float(plain))
