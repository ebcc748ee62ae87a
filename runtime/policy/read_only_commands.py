"""Whether a command only reads: every program in it is known to change nothing (TOOL-7). Pure.

Doubt means no. The answer is for people and models, who mend a command by it; it is no promise on
which anything is written: what is judged so runs in a view of the sandbox that cannot be written.
"""

from collections.abc import Iterator, Sequence

from runtime.policy.read_only_programs import refused
from runtime.policy.shell_syntax import NotRead, SimpleCommand, Word, simple_commands

_FOLDERS = frozenset({"HOME", "PWD"})
"""Variables of the gateway and of the shell itself, which hold a folder."""


def not_read_only(command: str) -> str | None:
    """Why `command` may change something, in a few words; None when it surely only reads."""
    try:
        found = map(refused, _commands(simple_commands(command, loops=True)))
        return next((reason for reason in found if reason is not None), None)
    except NotRead as error:
        return str(error)


def _commands(simple: Sequence[SimpleCommand]) -> Iterator[tuple[Word, ...]]:
    """The words of each command. Raises `NotRead` for a variable of which nobody knows what it
    holds: a loop's own holds one of the words that are in the text, or a name of a file."""
    known, loops = set(_FOLDERS), 0
    for one in simple:
        loops += {"for": 1, "done": -1}.get(one.keyword, 0)
        if loops and not one.keyword and one.words[0].text == "cd":
            # Nobody counts how often, so nobody knows in which repository git runs behind it.
            raise NotRead("a cd in a loop is not read")
        unknown = [name for word in one.words for name in word.variables if name not in known]
        if unknown:
            raise NotRead(f"${unknown[0]} may hold anything")
        if one.keyword == "for":
            known.add(one.words[0].text)
        elif not one.keyword:
            yield one.words
