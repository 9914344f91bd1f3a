"""What Google Cloud, Kueue and the house refuse: rules over views, and the adapters that make the views."""

from modules.rules import (  # noqa: F401 # importing a module registers its rules
    addresses,
    clusters,
    compute_classes,
    consumption,
    disks,
    fabric,
    filestore,
    flavors,
    gpu,
    kueue,
    labels,
    machines,
    maintenance,
    nap,
    network,
    nodes,
    placement,
    pools,
    protection,
    reservations,
    together,
    tpu,
    versions,
    vertex,
    volumes,
)
from modules.rules.from_model import views_of_model
from modules.rules.from_plan import views_of_plan
from modules.rules.quota import ledger_findings, planned_demand
from modules.rules.registry import RULES, Rule, evaluate
from modules.rules.view import PRODUCTION, Program, View, program

__all__ = [
    "PRODUCTION",
    "RULES",
    "Program",
    "Rule",
    "View",
    "evaluate",
    "ledger_findings",
    "planned_demand",
    "program",
    "views_of_model",
    "views_of_plan",
]
