"""Views of a stack file without planning: what ``check --fast`` looks at."""

from __future__ import annotations

from training_platform.config.model.stack import Stack
from training_platform.config.names import Locator
from training_platform.config.workspace import Workspace
from training_platform.resources.model import planned_of_model
from training_platform.rules.adapters.plan import views_of_plan
from training_platform.rules.views.view import View


def views_of_model(stack: Stack, workspace: Workspace) -> list[View]:
    """Return the views of a stack; none for a file that the model rejects, or a team whose environment is missing."""
    locator = Locator(stack.section) if stack.section else None
    return views_of_plan(planned_of_model(stack, workspace), locator)
