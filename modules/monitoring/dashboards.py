"""Dashboards of Cloud Monitoring."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
from pulumi_gcp import monitoring

from modules.register import register
from training_platform.resources.declared import Declared


class Dashboards(pulumi.ComponentResource):
    """The dashboards of a stack, as ``training_platform/resources/monitoring/dashboards.py`` says them."""

    def __init__(self, name: str, dashboards: Iterable[Declared], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:monitoring:Dashboards", name, {}, opts)
        for each in dashboards:
            register(monitoring.Dashboard, each, self)
        self.register_outputs({})
