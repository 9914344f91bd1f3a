"""A text that would act on a terminal or a pipeline, and a check for such texts."""

from __future__ import annotations

import re

HOSTILE = (
    "\n::error file=a,line=1::gone\n  ::set-env name=A::b\n##[add-path]/tmp ##vso[task.setvariable variable=A]b"
    "\x1b[2K\x9b31m\u202egnp\u2066"
)
SHOWN = r"\x1b[2K\x9b31m\u202egnp\u2066"
DOES = re.compile("^\\s*::|##\\[|##vso\\[|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", re.MULTILINE)
