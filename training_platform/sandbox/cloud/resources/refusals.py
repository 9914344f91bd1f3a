"""What Google refuses, by the rules that ``check`` runs: the same functions over views of REST bodies."""

from __future__ import annotations

from typing import Final

from training_platform.config.reading.finding import Finding
from training_platform.rules import RULES, evaluate, program
from training_platform.sandbox.cloud.requests.errors import ApiError
from training_platform.sandbox.cloud.resources.model import Call
from training_platform.sandbox.cloud.state.store import Record
from training_platform.views.adapters import views_of_rest

# Rules of Google's that no single request breaks: what is left to a default is taken, and costs something later.
_TAKEN: Final = frozenset({"vertex-boot-disk-written"})
_RULES: Final = tuple(
    each
    for each in RULES.values()
    if (each.owner, each.severity) == ("google", "error") and not (each.whole or each.across or each.id in _TAKEN)
)


def check(call: Call, record: Record, old: Record | None) -> None:
    """Raise ApiError with every rule that the resource breaks and, where it is changed, did not break before."""
    before = {(each.rule, each.message) for each in _findings(call, old)} if old else set()
    found = [each for each in _findings(call, record) if (each.rule, each.message) not in before]
    if found:
        raise ApiError(400, "; ".join(_sentence(each) for each in found))


def _findings(call: Call, record: Record) -> list[Finding]:
    collection = f"{call.service}.{record.name.split('/')[-2]}"
    views = views_of_rest(collection, record.body, project=record.project, name=record.name.partition("/")[2])
    if not views:
        return []
    whole = program(views, stack="", environment="", team=None, production=False)
    return [each for each in evaluate(whole, _RULES) if each.severity == "error"]


def _sentence(found: Finding) -> str:
    allowed = f" Allowed: {found.allowed}." if found.allowed else ""
    return f"{found.path}: {found.message}.{allowed}"
