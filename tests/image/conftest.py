"""The image of this checkout, and what a container of it needs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.build import Image, missing, mounted


@pytest.fixture(scope="session")
def image() -> Iterator[Image]:
    """The built image; the first test that asks waits for minutes where it is not built yet."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with mounted() as made:
        yield made


@pytest.fixture
def volume(image: Image, tmp_path: Path) -> Path:
    """A fresh volume, as an engine makes it: with the owner that the image's folder has."""
    made = tmp_path / "volume"
    made.mkdir()
    found = (image.root / "data").stat()
    os.chown(made, found.st_uid, found.st_gid)
    return made
