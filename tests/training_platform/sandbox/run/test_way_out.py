"""How a run words the engine's refusals of what is protected."""

from __future__ import annotations

import pytest

from training_platform.sandbox.run.engine import with_way_out

SAID = "In the stack file the flag is deletion_protection: false, in the section that may go."


@pytest.mark.parametrize(
    "refusal",
    [
        'main-h100-pool: unable to replace resource "urn"\nas it is currently marked for protection. To unprotect',
        'main-h100-pool: resource "urn" cannot be deleted\nbecause it is protected. To unprotect the resource',
    ],
)
def test_a_refusal_of_the_engine_comes_with_what_to_write_in_the_stack_file(refusal: str) -> None:
    assert with_way_out(refusal + "\n").startswith(f"{refusal}\n{SAID}")


@pytest.mark.parametrize("message", ["", "main-h100-pool: creating NodePool: EOF\n"])
def test_another_error_is_left_as_it_is(message: str) -> None:
    assert with_way_out(message) == message
