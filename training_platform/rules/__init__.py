"""What Google Cloud, Kueue and the organisation refuse: rules, the typed models that rules read, and their adapters."""

from training_platform.config.reading.declaration import RULES, Rule
from training_platform.rules import (  # noqa: F401 # importing a group registers its rules
    documents,
    elsewhere,
    file_systems,
    gke,
    house,
    kubernetes,
    kueue,
    network,
    public_access,
    storage,
    vertex,
)
from training_platform.rules.evaluation import evaluate, view_rules
from training_platform.views.adapters import views_of_model, views_of_plan
from training_platform.views.view import View
from training_platform.views.whole_stack import Program, program

__all__ = [
    "RULES",
    "Program",
    "Rule",
    "View",
    "evaluate",
    "program",
    "view_rules",
    "views_of_model",
    "views_of_plan",
]
