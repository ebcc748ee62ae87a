"""The folders of a configuration: its home, its workspace, and those of a person besides it."""

from pathlib import Path
from typing import Final

from gateway.config import Config
from runtime.domain.errors import Unavailable
from runtime.workspace.content import AGENTS_FOLDER
from runtime.workspace.scaffold import ScaffoldReport, find_template, scaffold
from runtime.workspace.snapshot import Workspace

CLAUDE: Final = f"~/.claude/{AGENTS_FOLDER}"


def make_home(config: Config) -> None:
    """Make the home folder, open to nobody else. Raises `Unavailable`."""
    try:
        config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"The home folder {config.home} cannot be made: {error.strerror}.",
            hint="Make its parent writable, or name another folder in GATEHOUSE_HOME.",
        ) from error


def prepare_workspace(
    config: Config, *, force: bool = False, dry_run: bool = False
) -> ScaffoldReport:
    """Make what is missing in the workspace (CTX-1). Raises `Unavailable`."""
    return scaffold(config.workspace, find_template(), force=force, dry_run=dry_run)


def open_workspace(config: Config) -> Workspace:
    """The workspace, with what came along and what its owner has elsewhere. Raises `Unavailable`.
    Reads nothing yet."""
    return Workspace(
        config.workspace,
        template=find_template(),
        env=config.variables,
        user_agents=user_agents(config),
    )


def user_agents(config: Config) -> tuple[Path, ...]:
    """The folders in which whoever runs the gateway defines subagents, the later of which wins."""
    own = config.home / AGENTS_FOLDER
    try:
        return Path(CLAUDE).expanduser(), own
    except RuntimeError:
        # Whoever has no home folder has none there.
        return (own,)
