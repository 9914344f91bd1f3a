"""How resources of two services begin their own links."""

from __future__ import annotations

from typing import Final

COMPUTE_LINK: Final = "https://www.googleapis.com/compute/v1/"
CONTAINER_LINK: Final = "https://container.googleapis.com/v1/"
