"""Names of container images as JupyterHub's chart takes them: in two parts, which it joins with a colon."""

from __future__ import annotations

from typing import NamedTuple


class ImageName(NamedTuple):
    """What stands before and after the last colon; ``tag`` is empty where none is written."""

    name: str
    tag: str


def split_image(image: str) -> ImageName:
    """Split ``registry:port/path:tag`` or ``path@sha256:hex``; a port is no tag, and a digest is one to the chart."""
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:
        return ImageName(image, "")
    return ImageName(name, tag)
