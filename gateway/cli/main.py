"""The program `gatehouse`: its groups of commands, and the options before them."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.cli import (
    access,
    agent_tree,
    approvals,
    backup,
    chat,
    configuration,
    doctor,
    explain,
    mailboxes,
    pairing,
    runs,
    schedules,
    serve,
    sessions,
    setup,
    slack,
    status,
    tasks,
)
from gateway.cli.common import Options, examples, group
from gateway.cli.telegram import app as telegram_app

app = group(
    "A self-hosted gateway that puts an agent into a team's chat.",
    epilog=examples("gatehouse serve", "gatehouse open", "gatehouse chat", "gatehouse doctor"),
    completion=True,
)


@app.callback()
def options(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", help="The configuration file to use.")
    ] = None,
) -> None:
    """A self-hosted gateway that puts an agent into a team's chat."""
    context.obj = Options(config)


app.command()(serve.serve)
app.command(epilog=chat.EXAMPLES)(chat.chat)
app.command("open")(access.open_)
for command in (
    status.status,
    setup.init,
    setup.migrate,
    setup.version,
    doctor.doctor,
    explain.context,
):
    app.command()(command)
for name, one in (
    ("token", access.token),
    ("config", configuration.app),
    ("pairing", pairing.app),
    ("sessions", sessions.app),
    ("runs", runs.app),
    ("tasks", tasks.app),
    ("schedules", schedules.app),
    ("mailboxes", mailboxes.app),
    ("approvals", approvals.app),
    ("agents", agent_tree.app),
    ("policy", explain.policy),
    ("slack", slack.app),
    ("telegram", telegram_app),
    ("backup", backup.app),
):
    app.add_typer(one, name=name)

_TEXT_FOLLOWS: Final = ("-m", "--message")


def hoist(arguments: list[str]) -> list[str]:
    """`--config FILE` may stand anywhere: it is moved before the command, where it is read."""
    front: list[str] = []
    rest: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            rest += arguments[at:]
            break
        if word in _TEXT_FOLLOWS:
            rest += arguments[at : at + 2]
            at += 2
        elif word == "--config" and at + 1 < len(arguments):
            front += arguments[at : at + 2]
            at += 2
        else:
            (front if word.startswith("--config=") else rest).append(word)
            at += 1
    return front + rest


def main() -> None:
    """Run the command line."""
    try:
        app(args=hoist(sys.argv[1:]), prog_name="gatehouse")
    except BrokenPipeError:
        # The reader of a pipe has seen enough; what is left has nowhere to go.
        sys.stderr.close()
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
