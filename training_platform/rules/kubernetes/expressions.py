"""CEL expressions of admission policies, as far as they are read without a parser: brackets, quotes and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from training_platform.rules.kubernetes.objects import Json, Wrong, block, entries, object_rule, text
from training_platform.rules.kubernetes.pods import SERVER

_GROUP: Final = "admissionregistration.k8s.io"
_EXPRESSIONS: Final = {
    "validations": ("expression", "messageExpression"), "matchConditions": ("expression",),
    "variables": ("expression",), "auditAnnotations": ("valueExpression",),
}  # fmt: skip
# A text of CEL: raw or not, in three quotes or one, of which the last may not span lines; and a comment.
_TEXTS: Final = re.compile(
    r'[rR][bB]?"""[\s\S]*?"""|[rR][bB]?"[^"\n]*"|[rR][bB]?\'[^\'\n]*\'|"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\''
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*'
)
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}
_OPERATOR: Final = re.compile(r"(&&|\|\||[-+*/%<>=!?:,.]|\bin)\s*\Z")


@object_rule(
    "admission-expression", f"{_GROUP}:ValidatingAdmissionPolicy", f"{_GROUP}:MutatingAdmissionPolicy",
    ruleset="objects", source=SERVER,
)  # fmt: skip
def admission_expression(inputs: Json) -> Iterator[Wrong]:
    """Find CEL expressions that end too early: unclosed brackets or quotes, or nothing after an operator."""
    for part, names in _EXPRESSIONS.items():
        for index, row in entries(block(inputs, "spec"), part):
            for name in names:
                written = text(row, name)
                problem = _problem(written) if written is not None else None
                if problem:
                    yield Wrong(f"spec.{part}[{index}].{name}", f"the expression {problem}", "a complete expression")


def _problem(written: str) -> str | None:
    rest, opened = _TEXTS.sub(lambda match: "" if match[0].startswith("//") else "0", written), list[str]()
    if not rest.strip():
        return "is empty"
    for letter in rest:
        if letter in _CLOSING.values():
            opened.append(letter)
        elif letter in _CLOSING and (not opened or opened.pop() != _CLOSING[letter]):
            return f"has an unmatched {letter}"
        elif letter in "\"'":
            return "has an unclosed quote"
    if opened:
        return f"has an unclosed {opened[-1]}"
    last = _OPERATOR.search(rest)
    return f"ends in {last[1]}" if last else None
