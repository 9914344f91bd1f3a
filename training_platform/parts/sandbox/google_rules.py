"""The local cloud of the platform: it also refuses what breaks Google's rules, as ``check`` finds it."""

from __future__ import annotations

from typing import Final

from local_google_cloud.local_cloud import LocalCloud
from local_google_cloud.state.cloud import CloudSettings, Judge
from local_google_cloud.state.long_running import Clock
from local_google_cloud.state.quota_use import Projects
from local_google_cloud.state.store import Store
from training_platform.catalog.types import Json
from training_platform.config.reading.finding import Finding
from training_platform.rules import evaluate, program, view_rules
from training_platform.views.adapters import views_of_rest

# Google refuses no request by these rules: it applies a default, which costs something later.
_NOT_REFUSED: Final = frozenset({"vertex-boot-disk-written"})
_RULES: Final = tuple(
    rule
    for rule in view_rules()
    if (rule.owner, rule.severity) == ("google", "error") and not (rule.whole or rule.across or rule.id in _NOT_REFUSED)
)


class GoogleRules(Judge):
    """The rules of ``check`` that are Google's: the same functions, over views of REST bodies."""

    def findings(self, collection: str, body: Json, *, project: str, name: str) -> list[Finding]:
        """Return the errors in the body of a resource."""
        views = views_of_rest(collection, body, project=project, name=name)
        if not views:
            return []
        whole = program(views, stack="", environment="", team=None, production=False)
        return [finding for finding in evaluate(whole, _RULES) if finding.severity == "error"]


def judged_cloud(
    projects: Projects,
    *,
    store: Store | None = None,
    clock: Clock | None = None,
    settings: CloudSettings | None = None,
) -> LocalCloud:
    """Return a local cloud that refuses by Google's rules."""
    return LocalCloud(projects, store=store, clock=clock, settings=settings, judge=GoogleRules())
