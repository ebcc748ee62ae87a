"""What is known of the tools before they are made is what they are."""

from pathlib import Path

from runtime.tools.builtin import FACES
from tests.unit.tools.support import Desk


def test_the_faces_are_those_of_the_tools(tmp_path: Path) -> None:
    made = Desk(tmp_path).registry.tools
    assert [(one.name, one.effect) for one in FACES] == [(one.name, one.effect) for one in made]
