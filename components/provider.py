"""The package as the engine starts it: the SDK's provider of components, with errors that a user can act on."""

from __future__ import annotations

from typing import Any

from pulumi import ComponentResource
from pulumi.errors import InputPropertiesError
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from components.gke import Cluster, NodePools, NodeServiceAccount
from components.network import Network
from components.specs import with_descriptions
from components.storage import Bucket, Filestore
from components.vertex import PersistentResource, Tensorboard

NAME = "training-platform"
COMPONENTS: list[type[ComponentResource]] = [
    Bucket,
    Cluster,
    Filestore,
    Network,
    NodePools,
    NodeServiceAccount,
    PersistentResource,
    Tensorboard,
]


class Provider(ComponentProvider):
    """The components of this package, by the names of their classes."""

    def __init__(self, version: str) -> None:
        super().__init__(COMPONENTS, NAME, None, version)
        assert self.schema is not None
        self.schema = with_descriptions(self.schema)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Construct a component; what its inputs lack is said as that, not as a traceback of ours."""
        try:
            return super().construct(*args, **kwargs)
        except ComponentInitError as error:
            if isinstance(error.inner, InputPropertiesError):
                raise error.inner from error
            raise
