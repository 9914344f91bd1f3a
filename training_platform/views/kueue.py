"""Views of Kueue objects. Their inputs are the objects themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from training_platform.config.reading.finding import Path
from training_platform.resources import resource_types
from training_platform.resources.stack_resource import StackResource
from training_platform.views import fields
from training_platform.views import inputs as of
from training_platform.views.inputs import at, rows
from training_platform.views.view import View

COUNTED = frozenset({"google.com/tpu", "nvidia.com/gpu"})  # Kueue's other resources only serve to admit pods
_ROW = "spec.resourceGroups.flavors"
_CHECKS = "spec.admissionChecksStrategy.admissionChecks"


class FlavorView(View):
    """A Kueue ResourceFlavor: its node labels, and the keys of the taints that pods of its jobs tolerate."""

    TYPES = (resource_types.RESOURCE_FLAVOR, resource_types.OLD_RESOURCE_FLAVOR)

    flavor = fields.required("metadata.name")
    node_labels = fields.texts_by_key("spec.nodeLabels", place="")
    topology = fields.text("spec.topologyName", place="")

    @fields.field("spec.tolerations", place="")
    def tolerated(self) -> tuple[str, ...]:
        """The keys of the taints that pods of the flavor's jobs tolerate."""
        return tuple(of.as_text(at(row, ("key",))) for row in rows(self.read("spec.tolerations")))


class FlavorQuotaView(View):
    """The quota of one flavor for one resource in a ClusterQueue, in chips or GPUs.

    ``checks`` are the names of admission checks.
    """

    TYPES = (resource_types.CLUSTER_QUEUE, resource_types.OLD_CLUSTER_QUEUE)
    EACH = ("spec", "resourceGroups", "flavors", "resources")

    queue = fields.required("metadata.name")
    cohort = fields.text("spec.cohortName", "spec.cohort")
    resource = fields.required(f"{_ROW}.resources.name")
    flavor = fields.required(f"{_ROW}.name")
    nominal_quota = fields.amount(f"{_ROW}.resources.nominalQuota")
    borrowing_limit = fields.quantity(f"{_ROW}.resources.borrowingLimit")
    lending_limit = fields.quantity(f"{_ROW}.resources.lendingLimit")

    @fields.field(_CHECKS)
    def checks(self) -> tuple[str, ...]:
        """The admission checks for jobs on the flavor. A check that lists no flavors applies to all flavors."""
        flavor = of.known(of.as_text(self.read(f"{_ROW}.name")))
        pairs = [(at(check, ("name",)), of.as_texts(at(check, ("onFlavors",)))) for check in rows(self.read(_CHECKS))]
        pairs += [(name, ()) for name in rows(self.read("spec.admissionChecks"))]  # as in v1beta1 too
        names = (of.as_text(name) for name, flavors in pairs if not of.known(flavors) or flavor in flavors)
        return tuple(of.known(name) for name in names)

    @classmethod
    def of(cls, planned: StackResource, origin: Path) -> Iterator[Self]:
        """Yield a view for each resource that is or may be an accelerator."""
        views = super().of(planned, origin)
        return (view for view in views if not view.known("resource") or view.resource in COUNTED)

    def path(self, name: str) -> Path:
        """Return the path of a field in the stack file, which is below the flavor in the team's share."""
        return (*self.origin, self.flavor, name) if self.known("flavor") else (*self.origin, name)
