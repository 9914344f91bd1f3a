"""What a person can mend, as one exception: whatever ends a command by itself is a kind of it."""

from __future__ import annotations


class UserError(Exception):
    """Something that cannot be done as asked; the message is one sentence, and the command ends with exit code 2."""


def install(extra: str) -> str:
    """Return the commands that install one of this package's extras."""
    return f"pip install 'training-platform[{extra}]', or with the pins of a clone: make setup"
