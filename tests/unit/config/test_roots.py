"""The folders of `tools.roots` beside the workspace, and what the canary is granted of both."""

from pathlib import Path

import pytest

from gateway.workspaces import canary_grants, prepare_workspace
from runtime.domain.errors import Unavailable
from tests.unit.config.support import Read

pytestmark = pytest.mark.requirement("TOOL-5")


@pytest.mark.parametrize("place", ["", "home", "home/workspace", "home/workspace/skills"])
def test_a_root_that_opens_what_instructs_the_agent_stops_the_start(
    read: Read, tmp_path: Path, place: str
) -> None:
    config = read(f'[tools]\nroots = ["{tmp_path / place}"]\n')
    with pytest.raises(Unavailable, match=r"^tools\.roots: .* the workspace"):
        prepare_workspace(config)
    assert not (config.workspace / "AGENTS.md").exists()


def test_the_canary_gets_the_grants_of_a_real_command(read: Read, tmp_path: Path) -> None:
    (tmp_path / "projects").mkdir()
    config = read(f'[tools]\nroots = ["{tmp_path / "projects"}"]\n')
    assert canary_grants(config) is None, "there is no workspace yet"
    prepare_workspace(config)
    grants = canary_grants(config)
    assert grants is not None
    files = config.workspace / "files"
    assert grants.cwd == str(files)
    assert grants.writable == (str(files), str(tmp_path / "projects"))
    assert str(config.workspace / "AGENTS.md") in grants.readable
    assert str(config.home / "gatehouse.toml") in grants.hidden
    # What may be written holds nothing that must be hidden, so that one grant covers it.
    for path in (*grants.hidden, *grants.readable):
        assert not any(Path(path).is_relative_to(root) for root in grants.writable)
