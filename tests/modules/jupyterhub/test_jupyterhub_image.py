from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_platform.catalog import IMAGES
from training_platform.resources.jupyterhub import ImageName, split_image


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("quay.io/jupyter/minimal:2026-01-05", ("quay.io/jupyter/minimal", "2026-01-05")),
        ("localhost:5000/notebook:1.2", ("localhost:5000/notebook", "1.2")),
        ("localhost:5000/notebook", ("localhost:5000/notebook", "")),
        ("notebook", ("notebook", "")),
        ("r.example.com/notebook@sha256:0123abcd", ("r.example.com/notebook@sha256", "0123abcd")),
        ("r.example.com:443/notebook:1.2@sha256:0123abcd", ("r.example.com:443/notebook:1.2@sha256", "0123abcd")),
    ],
)
def test_an_image_is_split_where_the_chart_joins_it(image: str, expected: tuple[str, str]) -> None:
    assert split_image(image) == ImageName(*expected)


@given(st.text(alphabet="ab:/@.", min_size=1))
def test_the_two_parts_joined_are_the_image_again(image: str) -> None:
    name, tag = split_image(image)

    assert f"{name}:{tag}" == image if tag else name in {image, image.removesuffix(":")}


def test_the_catalogues_notebook_images_have_tags() -> None:
    assert all(split_image(IMAGES[name]).tag for name in ("notebook", "notebook-gpu"))
