"""A shell command as simple commands, or why it is not read: the grammar for TOOL-7.

Two readings must agree. The grammar of tree-sitter says what the text is made of, and a node of any
kind that is not on the list ends it. The scanner below reads the same text by the shell's own rules
for words, pipes and quiet redirections, and by nothing else. Where the two find other words, nobody
knows what a shell would find. Whatever a shell would still work out (a substitution, a brace
list) is refused; only file name patterns are let through, and are marked. Who asks for them gets
variables and loops over words as well. Pure.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from runtime.domain.printable import quoted

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
_LOOP_KINDS = frozenset(
    {
        *("for_statement", "do_group", "for", "in", "do", "done", "variable_name"),
        *("simple_expansion", "expansion", "${", "}"),
    }
)
"""Nodes of loops over words, and of variables."""
_KEYWORDS = frozenset({"for", "do", "done"})
_VALUES = frozenset({"variable_name", "simple_expansion", "expansion"})
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
"""Names of loops' variables. The shell gives no meaning to names in small letters."""
_WORDS = frozenset({"word", "number", "concatenation", "string", "raw_string", "command_name"})
_VARIABLE = r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})"
_PIECES = r"""
    (?P<escaped>\\[^\n])
  | '(?P<single>[^']*)'
  | "(?P<double>(?:[^"\\$`]|\\[^\n]|\$(?=["|)\ ]))*)"
  | (?P<plain>[^\s\\'"$`;|&<>(){}*?\[\]~]+ | (?<=[^\s=:;|&<>])~)
  | (?P<pattern>[*?\[\]])
"""
_PIECES_LOOPS = rf"(?P<variable>{_VARIABLE}) | " + _PIECES.replace(
    "|\\\\[^\\n]|", rf"|\\[^\n]|{_VARIABLE}|"
)
_PIECE = re.compile(_PIECES_LOOPS, re.VERBOSE)
# Character by character: a text is divided in one way only, so nothing is tried twice. Possessive
# repeats would do it too, but Python before 3.11.5 may forget the end of what they matched.
_END = r"(?=[ \t\n;|&]|\Z)"


def _token(pieces: str, *, outputs: bool = False) -> re.Pattern[str]:
    output = r"| (?P<output>[012]?>>?(?![>&|(])[ \t]*)" if outputs else ""
    bare = re.sub(r"\?P<\w+>", "?:", pieces).replace("~]+ |", "~] |")
    return re.compile(
        rf"""
        (?P<blank>[ \t]+)
      | (?P<comment>(?<![^\s;|&])\#[^\n]*)
      | (?P<redirect>(?:[012]?>&[12]|[012]?>>?[ \t]*/dev/null){_END})
      {output}
      | (?P<input><(?![<&>(])[ \t]*)
      | (?P<joint>\|\||&&|\||;(?!;)|\n)
      | (?P<word>(?![#~])(?:{bare})+){_END}
        """,
        re.VERBOSE,
    )


_TOKEN = _token(_PIECES)
_TOKEN_LOOPS = _token(_PIECES_LOOPS)
_TOKEN_OUTPUTS = _token(_PIECES, outputs=True)
_IN_QUOTES = re.compile(rf'\\(?P<escaped>[\\"$`])|\\[^\n]|(?P<variable>{_VARIABLE})')
_PATHS = frozenset({"HOME", "PWD"})
"""Variables whose values begin with a slash."""


class NotRead(Exception):
    """The command is not read; the text says which part of it and why, for the model."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word as the program gets it. A pattern is replaced by the names that it matches, and
    what holds `variables` by their values.

    `known` is what every such name begins with: the word itself, unless it is a pattern.
    """

    text: str
    known: str
    variables: tuple[str, ...] = ()

    @property
    def pattern(self) -> bool:
        """Whether file names or values may take the word's place."""
        return self.text != self.known


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program's name and its arguments. There is always a name. `joint` is what stands between it
    and the command before: ``|``, ``&&``, ``||``, or ``;``, which a line break is as well. `inputs`
    are the files that it reads by ``<``, `outputs` those that it writes, each behind its ``>`` or
    ``>>``. `keyword` is ``for`` for the head of a loop, whose words
    are its variable and its values, and ``done`` for its end, which has no words."""

    words: tuple[Word, ...]
    joint: str = ";"
    inputs: tuple[str, ...] = ()
    keyword: str = ""
    outputs: tuple[tuple[str, str], ...] = ()


def simple_commands(
    text: str, *, loops: bool = False, outputs: bool = False
) -> tuple[SimpleCommand, ...]:
    """The simple commands of `text` in order, however they are joined. Raises `NotRead`. With
    `loops`, loops over words and variables are read as well; with `outputs`, files that a
    redirection writes. Never both."""
    if len(text) > LONGEST:
        raise NotRead(f"more than {LONGEST:,} characters are not read")
    strange = next((char for char in text if not char.isprintable() and char not in "\t\n"), None)
    if strange is not None:
        raise NotRead(f"a character {quoted(strange)} is not read")
    pieces = _TOKEN_LOOPS if loops else _TOKEN_OUTPUTS if outputs else _TOKEN
    commands, tokens = _scan(text, pieces, loops=loops)
    if len(commands) > MOST:
        raise NotRead(f"more than {MOST} commands are not read")
    if _grammar(text, loops=loops) != tokens:
        raise NotRead("it can be read in more than one way")
    if not commands:
        raise NotRead("there is no command in it")
    return tuple(commands)


class _Scan:
    """The scanner's reading. `tokens` are words, joints and redirections as they are written."""

    def __init__(self, *, loops: bool) -> None:
        self.commands: list[SimpleCommand] = []
        self.tokens: list[str] = []
        self._loops = loops
        self._keyword = ""
        self._words: list[Word] = []
        self._inputs: list[str] = []
        self._outputs: list[tuple[str, str]] = []
        self._joint = ";"
        self._input = ""
        self._redirected = False

    def take(self, kind: str, token: str) -> None:
        """Take the next token. Raises `NotRead`."""
        if self._input and kind != "word":
            raise NotRead(f"the name of a file is missing behind {self._input.lstrip('012')}")
        match kind:
            case "word":
                self._word(token)
            case "joint":
                self._end(token)
            case "redirect":
                self._redirected = True
                self.tokens.append(_closed(token))
            case "input" | "output":
                self._input, self._redirected = token.strip(), True

    def _word(self, token: str) -> None:
        if not self._input:
            if not self._is_keyword(token):
                self._words.append(_word(token))
                self.tokens.append(token)
            return
        word = _word(token)
        # bash opens connections for names such as /dev/tcp/HOST/PORT.
        if word.pattern or "/dev/" in word.text:
            how = "reading" if self._input == "<" else "writing"
            raise NotRead(f"{how} {quoted(token, 20)} by {self._input} is not read")
        if self._input == "<":
            self._inputs.append(word.text)
        else:
            self._outputs.append((self._input.lstrip("012"), word.text))
        self.tokens.append(f"{self._input}{_closed(token)}")
        self._input = ""

    def _is_keyword(self, token: str) -> bool:
        """Take a word of the shell's own where one may stand. Raises `NotRead`."""
        if self._keyword == "done":
            raise NotRead(f"{quoted(token, 20)} behind done is not read")
        if self._keyword == "for" and len(self._words) < 2:
            if not self._words and not _NAME.fullmatch(token):
                raise NotRead(f"a loop with the variable {quoted(token, 20)} is not read")
            if len(self._words) == 1 and token == "in":
                self._words.append(Word(token, token))
                self.tokens.append(_keyword(token))
                return True
            if self._words:
                raise NotRead("a loop without values is not read")
            return False
        if not self._loops or self._words or self._keyword or token not in _KEYWORDS:
            return False
        self._keyword = "" if token == "do" else token
        self.tokens.append(_keyword(token))
        return True

    def _end(self, joint: str) -> None:
        ended = bool(self._words or self._keyword)
        if self._redirected and not ended:
            # It succeeds or fails like a command, which what is joined to it goes by.
            raise NotRead("a redirection without a command is not read")
        self._redirected = False
        if ended:
            one = SimpleCommand(
                tuple(self._words),
                self._joint,
                tuple(self._inputs),
                self._keyword,
                tuple(self._outputs),
            )
            self.commands.append(one)
            self._words, self._inputs, self._outputs, self._keyword = [], [], [], ""
        if joint != "\n":
            self.tokens.append(joint)
            self._joint = joint
        elif ended:
            # A line break behind `&&` or a pipe says nothing; behind a command it ends that.
            self._joint = ";"


def _scan(
    text: str, token: re.Pattern[str], *, loops: bool
) -> tuple[list[SimpleCommand], list[str]]:
    scan, place = _Scan(loops=loops), 0
    while place < len(text):
        found = token.match(text, place)
        if found is None:
            raise NotRead(f"{quoted(text[place : place + 21], 20)} is not read")
        scan.take(str(found.lastgroup), found[0])
        place = found.end()
    scan.take("joint", "\n")
    return scan.commands, scan.tokens


def _keyword(token: str) -> str:
    """How a word of the shell's own is told from any other."""
    return f"{token} "


def _word(token: str) -> Word:
    text, known, variables = "", None, list[str]()
    for piece in _PIECE.finditer(token):
        kind, content = str(piece.lastgroup), piece[str(piece.lastgroup)]
        if kind == "pattern" and known is None:
            known = text
        if kind == "variable":
            # Outside of quotes its value is parted at blanks, and any part may be a flag.
            known = ""
            variables.append(content.strip("${}"))
        elif kind == "escaped":
            content = content[1:]
        elif kind == "double":
            content, begins, named = _in_quotes(content)
            if known is None and begins is not None:
                known = text + begins
            variables += named
        text += content
    return Word(text, text if known is None else known, tuple(variables))


def _in_quotes(content: str) -> tuple[str, str | None, list[str]]:
    """What stands in double quotes: its text, what it begins with where it holds a variable, and
    the variables."""
    text, known, variables, place = "", None, list[str](), 0
    for found in _IN_QUOTES.finditer(content):
        text += content[place : found.start()]
        place = found.end()
        if found["variable"]:
            name = found["variable"].strip("${}")
            variables.append(name)
            if known is None:
                known = text + ("/" if name in _PATHS else "")
        text += found["escaped"] or found[0]
    return text + content[place:], known, variables


def _grammar(text: str, *, loops: bool) -> list[str]:
    """The tokens of `text` by the grammar. Raises `NotRead` for a node that is not on the list."""
    kinds = _KINDS | _LOOP_KINDS if loops else _KINDS
    tree = _parser().parse(text.encode())
    tokens: list[str] = []
    left = [tree.root_node]
    while left:
        node = left.pop()
        if node.is_missing or node.type not in kinds:
            raise NotRead(f"{quoted(_text(node), 20)} ({node.type}) is not read")
        if node.type == "file_redirect":
            tokens.append(_closed(_text(node)))
        elif node.type in _WORDS or (loops and node.type in _VALUES):
            tokens.append(_text(node))
        elif node.child_count:
            left += reversed(node.children)
            continue
        elif node.type not in ("comment", "\n"):
            word = node.type in _LOOP_KINDS
            tokens.append(_keyword(node.type) if word else node.type)
        _check_below(node, kinds)
    return tokens


def _check_below(node: "Node", kinds: frozenset[str]) -> None:
    """Raises `NotRead` for a part of a word or of a redirection that is not on the list."""
    left = list(node.children)
    while left:
        part = left.pop()
        if part.is_missing or part.type not in kinds:
            raise NotRead(f"{quoted(_text(part), 20)} ({part.type}) is not read")
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
