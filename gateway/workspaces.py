"""The folders of a configuration: its home, its workspace, and those of a person besides it."""

from pathlib import Path
from typing import Final

from gateway.config import Config
from gateway.config_engine import exec_settings
from runtime.domain.errors import Unavailable
from runtime.ports.sandbox import SandboxCommand
from runtime.tools.base import ToolContext
from runtime.tools.builtin.shell import ExecArguments, command_of
from runtime.tools.seen_versions import SeenFiles
from runtime.workspace.content import AGENTS_FOLDER
from runtime.workspace.layout import Layout
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
    """Make what is missing in the workspace (CTX-1). Raises `Unavailable`, also where a folder of
    `tools.roots` would let commands write what instructs the agent."""
    _refuse_roots(config)
    return scaffold(config.workspace, find_template(), force=force, dry_run=dry_run)


def _refuse_roots(config: Config) -> None:
    home = config.workspace.resolve()
    for root in config.settings.tools.roots:
        real = root.resolve()
        if home.is_relative_to(real) or real.is_relative_to(home):
            holds = "holds" if home.is_relative_to(real) else "lies in"
            raise Unavailable(
                f"tools.roots: {root} {holds} the workspace {config.workspace}, where commands "
                "may write in its working folder only.",
                hint="Name folders outside of the workspace.",
            )


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


def canary_grants(config: Config) -> SandboxCommand | None:
    """A command as the agent's tool makes it in a direct chat of the owner; None where there is no
    workspace yet. Blocks on files."""
    layout = Layout.of(config.workspace)
    if not layout.files.is_dir():
        return None
    context = ToolContext(
        session_id="ses_canary",
        run_id="run_canary",
        call_id="call_canary",
        layout=layout,
        roots=config.settings.tools.roots,
        files=SeenFiles(),
        emit=lambda _text: None,
        notes=True,
    )
    return command_of(ExecArguments(command="true"), context, exec_settings(config)).command
