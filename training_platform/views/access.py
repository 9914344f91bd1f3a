"""Views, the typed models that rules read, of service accounts, grants, alerts, labels, and Helm releases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from training_platform.catalog import CHARTS
from training_platform.catalog.types import Chart
from training_platform.config.reading.finding import Path
from training_platform.resources import resource_types
from training_platform.resources.stack_resource import StackResource
from training_platform.views import fields
from training_platform.views import inputs as of
from training_platform.views.inputs import at, unrolled
from training_platform.views.view import Settings, View


class AccountView(Settings):
    """A service account, whose e-mail address is derived from its id and project."""

    TYPES = (resource_types.SERVICE_ACCOUNT,)

    project = fields.project()

    @fields.field("accountId")
    def email(self) -> str:
        """The e-mail address."""
        return f"{of.known(of.as_text(self.read('accountId')))}@{self.project}.iam.gserviceaccount.com"


class RoleGrantView(Settings):
    """A role of one member in a project; ``account`` is set if the member is a service account."""

    TYPES = (resource_types.IAM_MEMBER, resource_types.IAM_BINDING)

    project = fields.project()
    role = fields.required("role")

    @classmethod
    def of(cls, planned: StackResource, origin: Path) -> Iterator[Self]:
        """Yield a view for each member of a grant."""
        lists = () if at(planned.inputs, ("member",)) is not None else ("members",)
        for inputs in unrolled(planned.inputs, lists):
            yield cls.viewed(planned, origin, inputs)

    @fields.field("member", "members")
    def account(self) -> str | None:
        """The service account, as an e-mail address or a logical name."""
        path = "member" if self.read("member") is not None else "members"
        name: str | None = self.refers((path,), resource_types.SERVICE_ACCOUNT)
        return name.removeprefix("serviceAccount:") if isinstance(name, str) else name


class AlertPolicyView(View):
    """An alert policy, with the number of its notification channels."""

    TYPES = (resource_types.ALERT_POLICY,)

    channels = fields.count("notificationChannels", place="emails")


_PATHS = {
    token: resource_types.labels_path(token) or () for token, row in resource_types.RESOURCE_TYPES.items() if row.labels
}


class LabelledView(View):
    """Any resource that supports labels; ``labels`` is None if the resource sets none."""

    TYPES = tuple(_PATHS)

    def spelled(self, name: str) -> str:
        """Return the path of the labels in the inputs of the resource's type."""
        return ".".join(_PATHS.get(self.type, ())) or super().spelled(name)

    @fields.field()
    def labels(self) -> dict[str, str] | None:
        """The labels, or None if the resource sets none."""
        labels: dict[str, str] | None = of.as_labels(at(self.inputs, _PATHS.get(self.type, ())))
        return labels


class ReleaseView(View):
    """A Helm release: the chart's name and version. The version of a chart in a folder is None."""

    TYPES = (resource_types.RELEASE,)

    version = fields.text("version")

    @fields.field("chart")
    def chart(self) -> str | None:
        """The last part of the chart's name, without a digest."""
        name = of.known(of.as_name(self.read("chart")))
        return name.partition("@")[0] if name else None

    @classmethod
    def of(cls, planned: StackResource, origin: Path) -> Iterator[Self]:
        """Yield the view of a release. The section of our own releases is the chart's key under ``charts``."""
        view = cls.viewed(planned, origin, planned.inputs)
        name = of.as_text(view.read("name"))
        if origin and name in CHARTS:
            view = cls.viewed(planned, ("charts", name), planned.inputs)
        yield view

    @property
    def catalogued(self) -> Chart | None:
        """The chart in the catalogue that has the same name. The release may have another repository."""
        return next((chart for chart in CHARTS.values() if chart.chart.rpartition("/")[2] == self.chart), None)

    def of_minor(self, minor: str) -> bool:
        """Return True if the chart's version is known and belongs to a minor version such as ``0.19``."""
        return f"{self.version}.".startswith(f"{minor}.")
