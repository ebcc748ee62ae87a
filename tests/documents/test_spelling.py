"""Settings and commands that documents name exist."""

import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import typer.main
from typer.core import TyperGroup

from gateway.cli.main import app
from gateway.config_model import Settings
from tests.documents.examples import DOCUMENTS, ROOT, Block, blocks, inline

BLOCKS: Final = [block for document in DOCUMENTS for block in blocks(document)]
MADE_UP: Final = "made-up-value-of-an-example"
"""What stands for `...` in settings, long enough for a secret."""
KINDS: Final = frozenset(
    {"console", "toml", "json", "chat", "text", "markdown", "dockerfile", "nginx", "caddyfile"}
    | {"yaml", "python"}
)


def of_kind(language: str) -> list[Block]:
    """The blocks in one language."""
    return [block for block in BLOCKS if block.language == language]


def place(block: Block) -> str:
    """Where a reader finds it."""
    return f"{block.document}:{block.line}"


@pytest.mark.requirement("OPS-11")
@pytest.mark.parametrize("block", of_kind("toml"), ids=place)
def test_settings_of_a_document_are_accepted(block: Block) -> None:
    values = tomllib.loads(block.text.replace('"..."', f'"{MADE_UP}"'))
    assert values
    Settings.model_validate(values)


@pytest.mark.requirement("OPS-11")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: str(one.relative_to(ROOT)))
def test_commands_in_the_text_of_a_document_exist(document: Path) -> None:
    program = typer.main.get_command(app)
    for text in inline(document):
        if text.startswith("gatehouse ") and "COMMAND" not in text:
            assert named(program, shlex.split(text)[1:]), f"{document.name}: {text}"


@pytest.mark.requirement("OPS-13")
def test_the_page_on_the_command_line_names_every_command() -> None:
    page = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    commands = list(paths(typer.main.get_command(app), "gatehouse"))
    assert len(commands) > 30
    assert not [command for command in commands if command not in page]


def paths(command: object, words: str) -> Iterator[str]:
    """What a person types for a command, or for each of those in a group."""
    if not isinstance(command, TyperGroup):
        yield words
        return
    for name, below in command.commands.items():
        yield from paths(below, f"{words} {name}")


def named(program: object, words: list[str]) -> bool:
    """Whether the words are a command with options that it takes."""
    command, left = program, [word.strip("[]") for word in words]
    while isinstance(command, TyperGroup) and left and not left[0].startswith("-"):
        if left[0] not in command.commands:
            return False
        command = command.commands[left.pop(0)]
    parameters = getattr(command, "params", ())
    flags = {"--help", *(flag for one in parameters for flag in one.opts)}
    return all(word in flags for word in left if word.startswith("-"))


def test_a_command_that_does_not_exist_is_found() -> None:
    program = typer.main.get_command(app)
    assert named(program, ["backup", "restore", "FILE", "--force"])
    assert not named(program, ["backup", "restore", "FILE", "--forse"])
    assert not named(program, ["backups", "restore"])


def test_every_block_says_what_it_is() -> None:
    unknown = [place(block) for block in BLOCKS if block.language not in KINDS]
    unknown = [one for one in unknown if "rendering.md" not in one]
    assert not unknown
