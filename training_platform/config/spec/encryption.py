"""Keys of your own, which encrypt what an environment and its teams keep."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from training_platform.catalog import REGIONS
from training_platform.config.reading.section import KMS_KEY, Section, unknown_name


def key_region(key: str) -> str:
    """Return the location of a key, which stands in its name, ``projects/*/locations/{location}/keyRings/*/...``."""
    return key.split("/")[3]


def _one_per_region(keys: tuple[str, ...]) -> tuple[str, ...]:
    regions = [key_region(key) for key in keys]
    for region in regions:
        if region not in REGIONS:
            raise unknown_name("region", region, REGIONS, REGIONS)
    if twice := sorted({region for region in regions if regions.count(region) > 1}):
        raise PydanticCustomError("twice", f"has several keys in {', '.join(twice)}", {"allowed": "one key per region"})
    return keys


class EncryptionSpec(Section):
    """Keys of Cloud KMS for disks, buckets, images, Filestore and Vertex AI. Adding or changing one replaces most."""

    keys: Annotated[
        tuple[Annotated[str, Field(pattern=KMS_KEY)], ...],
        AfterValidator(_one_per_region),
        Field(
            min_length=1,
            description="One key in each region that the environment and its teams use.",
            examples=[["projects/example-keys/locations/us-central1/keyRings/training/cryptoKeys/data"]],
        ),
    ]

    @property
    def projects(self) -> frozenset[str]:
        """The projects that the keys are in."""
        return frozenset(key.split("/")[1] for key in self.keys)

    @property
    def by_region(self) -> dict[str, str]:
        """The keys, by the region that each is for."""
        return {key_region(key): key for key in self.keys}
