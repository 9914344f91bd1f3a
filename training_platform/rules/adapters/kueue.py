"""Views of Kueue's objects from the inputs of pulumi-kubernetes, which are the objects themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from training_platform.resources.planned import UNKNOWN
from training_platform.rules.adapters.inputs import Inputs, Resource, either, whole
from training_platform.rules.views.gke import Flavor, FlavorQuota
from training_platform.rules.views.view import View

COUNTED = frozenset({"google.com/tpu", "nvidia.com/gpu"})  # Kueue's other resources are only there to admit pods
_QUANTITY = re.compile(r"(-?[0-9]+)(k|M|G|Ki|Mi|Gi)?\Z")
_SUFFIXES = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def flavor(resource: Resource) -> Iterator[View]:
    """Yield the view of a ResourceFlavor."""
    inputs = resource.inputs
    labels = either(inputs.labels("spec", "nodeLabels"), {})
    yield Flavor(
        **resource.head,
        flavor=inputs.text("metadata", "name"),
        node_labels=labels,
        tolerated=tuple(each.text("key") for each in inputs.items("spec", "tolerations")),
    )


def cluster_queue(resource: Resource) -> Iterator[View]:
    """Yield a view for every accelerator flavor of a ClusterQueue."""
    inputs = resource.inputs
    for group in inputs.items("spec", "resourceGroups"):
        for row in group.items("flavors"):
            for counted in row.items("resources"):
                name = counted.text("name")
                if name is not UNKNOWN and name not in COUNTED:
                    continue
                yield FlavorQuota(
                    **resource.head,
                    queue=inputs.text("metadata", "name"),
                    cohort=inputs.text("spec", "cohortName"),
                    resource=name,
                    flavor=row.text("name"),
                    nominal_quota=_quantity(counted.get("nominalQuota")),
                    borrowing_limit=_quantity(counted.get("borrowingLimit")),
                    lending_limit=_quantity(counted.get("lendingLimit")),
                    checks=_checks(inputs, row.text("name")),
                )


def _checks(inputs: Inputs, flavor: Any) -> Any:
    """Return the admission checks that hold back jobs of a flavor; one that names no flavors holds all of them."""
    names = []
    for check in inputs.items("spec", "admissionChecksStrategy", "admissionChecks"):
        flavors = check.texts("onFlavors")
        if UNKNOWN in (flavors, flavor):
            return UNKNOWN
        if not flavors or flavor in flavors:
            names.append(check.text("name"))
    return UNKNOWN if UNKNOWN in names else tuple(names)


def _quantity(value: Any) -> Any:
    """Return a Kubernetes quantity that is a whole number."""
    match = _QUANTITY.match(value) if isinstance(value, str) else None
    return int(match[1]) * _SUFFIXES[match[2]] if match else whole(value)
