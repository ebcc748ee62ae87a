"""A shell command as simple commands, or why it is not read: the grammar for TOOL-7.

Two readings must agree. The grammar of tree-sitter says what the text is made of, and a node of any
kind that is not on the list ends it. The scanner below reads the same text by the shell's own rules
for words, pipes and quiet redirections, and by nothing else. Where the two find other words, nobody
knows what a shell would find. Whatever a shell would still work out (a variable, a substitution, a
brace list) is refused; only file name patterns are let through, and are marked. Pure.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 4096
"""Characters of a command that are read; it is read on the event loop, inside a decision."""
MOST = 50
"""Simple commands that are read. With both limits no text that we know takes a core 15 ms."""
_KINDS = frozenset(
    {
        *("program", "list", "pipeline", "command", "command_name", "comment"),
        *("word", "number", "concatenation", "string", "string_content", "raw_string"),
        *("redirected_statement", "file_redirect", "file_descriptor"),
        *('"', "|", "&&", "||", ";", "\n", "<", ">", ">>", ">&", "$"),
    }
)
_WORDS = frozenset({"word", "number", "concatenation", "string", "raw_string", "command_name"})
_PIECES = r"""
    (?P<escaped>\\[^\n])
  | '(?P<single>[^']*)'
  | "(?P<double>(?:[^"\\$`]|\\[^\n]|\$(?=["|)\ ]))*)"
  | (?P<plain>[^\s\\'"$`;|&<>(){}*?\[\]~]+ | (?<=[^\s=:;|&<>])~)
  | (?P<pattern>[*?\[\]])
"""
_PIECE = re.compile(_PIECES, re.VERBOSE)
# Character by character: a text is divided in one way only, so nothing is tried twice. Possessive
# repeats would do it too, but Python before 3.11.5 may forget the end of what they matched.
_BARE_PIECES = re.sub(r"\?P<\w+>", "?:", _PIECES).replace("~]+ |", "~] |")
_END = r"(?=[ \t\n;|&]|\Z)"
_TOKEN = re.compile(
    rf"""
    (?P<blank>[ \t]+)
  | (?P<comment>(?<![^\s;|&])\#[^\n]*)
  | (?P<redirect>(?:[012]?>&[12]|[012]?>>?[ \t]*/dev/null){_END})
  | (?P<input><(?![<&>(])[ \t]*)
  | (?P<joint>\|\||&&|\||;(?!;)|\n)
  | (?P<word>(?![#~])(?:{_BARE_PIECES})+){_END}
    """,
    re.VERBOSE,
)
_IN_QUOTES = re.compile(r'\\([\\"$`])')


class NotRead(Exception):
    """The command is not read; the text says which part of it and why, for the model."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word as the program gets it. A pattern is replaced by the names that it matches.

    `known` is what every such name begins with: the word itself, unless it is a pattern.
    """

    text: str
    known: str

    @property
    def pattern(self) -> bool:
        """Whether file names may take the word's place."""
        return self.text != self.known


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program's name and its arguments. There is always a name. `joint` is what stands between it
    and the command before: ``|``, ``&&``, ``||``, or ``;``, which a line break is as well. `inputs`
    are the files that it reads by ``<``."""

    words: tuple[Word, ...]
    joint: str = ";"
    inputs: tuple[str, ...] = ()


def simple_commands(text: str) -> tuple[SimpleCommand, ...]:
    """The simple commands of `text` in order, however they are joined. Raises `NotRead`."""
    if len(text) > LONGEST:
        raise NotRead(f"more than {LONGEST:,} characters are not read")
    strange = next((char for char in text if not char.isprintable() and char not in "\t\n"), None)
    if strange is not None:
        raise NotRead(f"a character {strange!r} is not read")
    commands, tokens = _scan(text)
    if len(commands) > MOST:
        raise NotRead(f"more than {MOST} commands are not read")
    if _grammar(text) != tokens:
        raise NotRead("it can be read in more than one way")
    if not commands:
        raise NotRead("there is no command in it")
    return tuple(commands)


class _Scan:
    """The scanner's reading. `tokens` are words, joints and redirections as they are written."""

    def __init__(self) -> None:
        self.commands: list[SimpleCommand] = []
        self.tokens: list[str] = []
        self._words: list[Word] = []
        self._inputs: list[str] = []
        self._joint = ";"
        self._input = False
        self._redirected = False

    def take(self, kind: str, token: str) -> None:
        """Take the next token. Raises `NotRead`."""
        if self._input and kind != "word":
            raise NotRead("the name of a file is missing behind <")
        match kind:
            case "word":
                self._word(token)
            case "joint":
                self._end(token)
            case "redirect":
                self._redirected = True
                self.tokens.append(_closed(token))
            case "input":
                self._input = self._redirected = True

    def _word(self, token: str) -> None:
        word = _word(token)
        if not self._input:
            self._words.append(word)
            self.tokens.append(token)
            return
        # bash opens connections for names such as /dev/tcp/HOST/PORT.
        if word.pattern or "/dev/" in word.text:
            raise NotRead(f"reading {token[:20]!r} by < is not read")
        self._input = False
        self._inputs.append(word.text)
        self.tokens.append(f"<{_closed(token)}")

    def _end(self, joint: str) -> None:
        ended = bool(self._words)
        if self._redirected and not ended:
            # It succeeds or fails like a command, which what is joined to it goes by.
            raise NotRead("a redirection without a command is not read")
        self._redirected = False
        if ended:
            inputs = tuple(self._inputs)
            self.commands.append(SimpleCommand(tuple(self._words), self._joint, inputs))
            self._words, self._inputs = [], []
        if joint != "\n":
            self.tokens.append(joint)
            self._joint = joint
        elif ended:
            # A line break behind `&&` or a pipe says nothing; behind a command it ends that.
            self._joint = ";"


def _scan(text: str) -> tuple[list[SimpleCommand], list[str]]:
    scan, place = _Scan(), 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise NotRead(f"{text[place : place + 20]!r} is not read")
        scan.take(str(found.lastgroup), found[0])
        place = found.end()
    scan.take("joint", "\n")
    return scan.commands, scan.tokens


def _word(token: str) -> Word:
    text, known = "", None
    for piece in _PIECE.finditer(token):
        kind, content = str(piece.lastgroup), piece[str(piece.lastgroup)]
        if kind == "pattern" and known is None:
            known = text
        elif kind == "escaped":
            content = content[1:]
        elif kind == "double":
            content = _IN_QUOTES.sub(r"\1", content)
        text += content
    return Word(text, text if known is None else known)


def _grammar(text: str) -> list[str]:
    """The tokens of `text` by the grammar. Raises `NotRead` for a node that is not on the list."""
    tree = _parser().parse(text.encode())
    tokens: list[str] = []
    left = [tree.root_node]
    while left:
        node = left.pop()
        if node.is_missing or node.type not in _KINDS:
            raise NotRead(f"{_text(node)[:20]!r} ({node.type}) is not read")
        if node.type == "file_redirect":
            tokens.append(_closed(_text(node)))
        elif node.type in _WORDS:
            tokens.append(_text(node))
        elif node.child_count:
            left += reversed(node.children)
            continue
        elif node.type not in ("comment", "\n"):
            tokens.append(node.type)
        _check_below(node)
    return tokens


def _check_below(node: "Node") -> None:
    """Raises `NotRead` for a part of a word or of a redirection that is not on the list."""
    left = list(node.children)
    while left:
        part = left.pop()
        if part.is_missing or part.type not in _KINDS:
            raise NotRead(f"{_text(part)[:20]!r} ({part.type}) is not read")
        left += part.children


def _text(node: "Node") -> str:
    return (node.text or b"").decode()


def _closed(token: str) -> str:
    return "".join(token.split())


@cache
def _parser() -> "Parser":
    # Four megabytes that a gateway without a session in plan or ask mode never needs.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
