"""What Vertex AI keeps for training jobs, for programs in any language."""

from typing import TypedDict

import pulumi

from components.given import read
from components.models import Place, TensorboardSpec
from components.specs import of_models
from modules import vertex
from training_platform.config.model.team import PersistentResourceSpec


@of_models
class PersistentResourceArgs(TypedDict):
    """What a persistent resource is."""

    place: Place
    """Whose it is."""

    spec: PersistentResourceSpec
    """What a stack file says of a persistent resource."""


class PersistentResource(pulumi.ComponentResource):
    """A Vertex AI persistent resource: machines that wait for jobs. Any change of its pools replaces it."""

    resource_name: pulumi.Output[str]
    """projects/PROJECT/locations/REGION/persistentResources/ID."""

    def __init__(self, name: str, args: PersistentResourceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:index:PersistentResource", name, {}, opts)
        scope, spec = read(name, args, PersistentResourceSpec)
        resource = vertex.PersistentResource(
            name,
            vertex.PersistentResourceArgs(scope=scope, key=name, spec=spec),
            pulumi.ResourceOptions(parent=self),
        )
        self.resource_name = resource.resource_name
        self.register_outputs({"resourceName": self.resource_name})


@of_models
class TensorboardArgs(TypedDict):
    """Where a TensorBoard is."""

    place: Place
    """Whose it is."""

    spec: TensorboardSpec
    """Its region."""


class Tensorboard(pulumi.ComponentResource):
    """A Vertex AI TensorBoard for the experiments of jobs in its region."""

    resource_name: pulumi.Output[str]
    """projects/PROJECT/locations/REGION/tensorboards/ID."""

    def __init__(self, name: str, args: TensorboardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("training-platform:index:Tensorboard", name, {}, opts)
        scope, spec = read(name, args, TensorboardSpec)
        board = vertex.Tensorboard(
            name,
            vertex.TensorboardArgs(scope=scope, region=spec.region),
            pulumi.ResourceOptions(parent=self),
        )
        self.resource_name = board.resource_name
        self.register_outputs({"resourceName": self.resource_name})
