"""Colours for code on the web page: what each piece of it is, as pieces and kinds. Pure.

A scanner of words, texts and comments, not a grammar of each language: it runs in time that is
linear in the code, whatever a model wrote, and pages are rendered while everybody waits. The
lexers that colour the terminal backtrack, which is why only a bounded stretch goes through them.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

Kind = Literal["", "comment", "text", "number", "keyword", "name", "added", "removed"]
MOST: Final = 50_000
"""Characters of one piece of code that are coloured; a longer one stays plain."""


class Piece(NamedTuple):
    """A stretch of code. The pieces together are the code."""

    text: str
    kind: Kind


def highlight(code: str, language: str) -> Iterator[Piece]:
    """The pieces of `code`; one plain piece where the language is not known."""
    scanner = _scanner(_ALIASES.get(language.lower(), language.lower()))
    if scanner is None or len(code) > MOST:
        yield Piece(code, "")
        return
    at = 0
    for found in scanner.finditer(code):
        if found.lastgroup is None or found.end() == found.start():
            continue
        if found.start() > at:
            yield Piece(code[at : found.start()], "")
        yield Piece(found[0], _KINDS[found.lastgroup])
        at = found.end()
    if at < len(code):
        yield Piece(code[at:], "")


_KINDS: Final[dict[str, Kind]] = {
    "c": "comment",
    "s": "text",
    "n": "number",
    "k": "keyword",
    "t": "name",
    "a": "added",
    "d": "removed",
}
# Every text may end at the end of the code: nothing is looked for twice.
_DOUBLE: Final = r'"(?:[^"\\\n]|\\.)*"?'
_SINGLE: Final = r"'(?:[^'\\\n]|\\.)*'?"
_BACKTICKS: Final = r"`(?:[^`\\]|\\[\s\S])*`?"
_TRIPLE: Final = r'"""[\s\S]*?(?:"""|\Z)' + r"|'''[\s\S]*?(?:'''|\Z)"
_BLOCK: Final = r"/\*[\s\S]*?(?:\*/|\Z)"
_NUMBER: Final = r"\b(?:0[xob][0-9A-Fa-f_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)\b"
_HASH: Final = r"(?:(?<=\s)|^)#[^\n]*"
_SLASHES: Final = r"//[^\n]*"


def _words(words: str) -> str:
    return rf"\b(?:{'|'.join(words.split())})\b"


class _Language(NamedTuple):
    """Patterns of what a language has; an empty one matches nothing."""

    comments: str = ""
    texts: str = f"{_DOUBLE}|{_SINGLE}"
    keywords: str = ""
    names: str = ""
    numbers: str = _NUMBER
    more: str = ""


_C_LIKE: Final = (
    "break case const continue default do else enum extern for goto if inline register return "
    "sizeof static struct switch typedef union volatile while bool char double float int long "
    "short signed unsigned void true false NULL nullptr "
)
_CLASSES: Final = (
    "abstract catch class extends final finally implements import instanceof interface new null "
    "override package private protected public super this throw throws try "
)
_SCRIPT: Final = (
    "async await break case catch class const continue debugger default delete do else export "
    "extends false finally for from function if import in instanceof let new null of return static "
    "super switch this throw true try typeof undefined var void while yield "
)
_TYPES: Final = (
    "abstract any as declare enum implements interface keyof namespace never number private "
    "protected public readonly string type unknown boolean "
)
_C_COMMENTS: Final = f"{_SLASHES}|{_BLOCK}"
_C_TEXTS: Final = f"{_DOUBLE}|{_SINGLE}|{_BACKTICKS}"
_KEYS: Final = r"^[ \t]*(?:-[ \t]+)*[\w.\"'/-]+(?=[ \t]*[:=])"
_LANGUAGES: Final[dict[str, _Language]] = {
    "python": _Language(
        comments=r"#[^\n]*",
        texts=f"{_TRIPLE}|{_DOUBLE}|{_SINGLE}",
        keywords=_words(
            "and as assert async await break case class continue def del elif else except False "
            "finally for from global if import in is lambda match None nonlocal not or pass raise "
            "return True try while with yield"
        ),
        names=r"@[\w.]+|(?<=\bdef )\w+|(?<=\bclass )\w+",
    ),
    "javascript": _Language(_C_COMMENTS, _C_TEXTS, _words(_SCRIPT)),
    "typescript": _Language(_C_COMMENTS, _C_TEXTS, _words(_SCRIPT + _TYPES)),
    "c": _Language(_C_COMMENTS, keywords=_words(_C_LIKE), names=r"^[ \t]*#[ \t]*\w+"),
    "cpp": _Language(
        _C_COMMENTS,
        keywords=_words(f"{_C_LIKE}{_CLASSES}auto constexpr delete namespace template using"),
        names=r"^[ \t]*#[ \t]*\w+",
    ),
    "java": _Language(
        _C_COMMENTS,
        f"{_TRIPLE}|{_DOUBLE}|{_SINGLE}",
        _words(
            f"{_C_LIKE}{_CLASSES}as async await boolean byte data foreach fun func guard in is let "
            "namespace object sealed string trait using val var when where"
        ),
        names=r"@\w+",
    ),
    "go": _Language(
        _C_COMMENTS,
        _C_TEXTS,
        _words(
            "break case chan const continue default defer else fallthrough for func go goto if "
            "import interface map package range return select struct switch type var nil true false"
        ),
    ),
    "rust": _Language(
        _C_COMMENTS,
        _DOUBLE,
        _words(
            "as async await break const continue crate dyn else enum extern false fn for if impl "
            "in let loop match mod move mut pub ref return self Self static struct super trait "
            "true type unsafe use where while"
        ),
        names=r"\b\w+!|#!?\[[^\]\n]*\]?",
    ),
    "ruby": _Language(
        _HASH,
        keywords=_words(
            "begin break class def do else elsif end ensure false for if in module next nil not "
            "or and redo rescue retry return self super then true unless until when while yield"
        ),
        names=r"(?<!:):\w+|@\w+",
    ),
    "php": _Language(
        f"{_C_COMMENTS}|{_HASH}",
        keywords=_words(_SCRIPT + _CLASSES + "echo fn use"),
        names=r"\$\w+",
    ),
    "shell": _Language(
        _HASH,
        keywords=_words(
            "case do done elif else esac export fi for function if in local return select set then "
            "until while sudo"
        ),
        names=r"\$\{?\w+\}?|(?<=\s)--?[A-Za-z][\w-]*",
        numbers=r"(?<![\w./-])\d+(?![\w./-])",
    ),
    "sql": _Language(
        rf"--[^\n]*|{_BLOCK}",
        keywords="(?i:"
        + _words(
            "add all alter and as asc begin between by case cast check column commit constraint "
            "create cross database default delete desc distinct drop else end exists foreign from "
            "full group having if in index inner insert into is join key left like limit not null "
            "offset on or order outer primary references returning right rollback select set table "
            "then transaction trigger union unique update using values view when where with"
        )
        + ")",
    ),
    "json": _Language(
        _SLASHES, _DOUBLE, _words("true false null"), r'"(?:[^"\\\n]|\\.)*"(?=[ \t]*:)'
    ),
    "yaml": _Language(_HASH, keywords=_words("true false null yes no on off"), names=_KEYS),
    "toml": _Language(
        rf"{_HASH}|^;[^\n]*",
        keywords=_words("true false"),
        names=rf"^\[[^\n]*\]|{_KEYS}",
    ),
    "html": _Language(
        r"<!--[\s\S]*?(?:-->|\Z)",
        keywords=r"</?[A-Za-z][\w:-]*|/?>",
        names=r"(?<![\w:-])[\w:-]+(?==)",
    ),
    "css": _Language(
        _BLOCK, keywords=r"@[\w-]+|![a-z]+", names=r"(?<![\w-])[\w-]+(?=[ \t]*:)|[.#][A-Za-z][\w-]*"
    ),
    "diff": _Language(
        r"^(?:diff|index|---|\+\+\+)[^\n]*",
        texts="",
        names=r"^@@[^\n]*",
        numbers="",
        more=r"(?P<a>^\+[^\n]*)|(?P<d>^-[^\n]*)",
    ),
    "lua": _Language(
        r"--[^\n]*",
        keywords=_words(
            "and break do else elseif end false for function goto if in local nil not or repeat "
            "return then true until while"
        ),
    ),
    "dockerfile": _Language(_HASH, keywords=r"^[A-Z]+\b", names=r"\$\{?\w+\}?"),
    "makefile": _Language(_HASH, keywords=r"^[\w./%-]+(?=[ \t]*:)", names=r"\$[({]\w+[)}]?"),
}
_ALIASES: Final = {
    **dict.fromkeys(("py", "python3", "pyi", "starlark"), "python"),
    **dict.fromkeys(("js", "jsx", "mjs", "node"), "javascript"),
    **dict.fromkeys(("ts", "tsx"), "typescript"),
    **dict.fromkeys(("h", "objc", "objective-c"), "c"),
    **dict.fromkeys(("c++", "hpp", "cc", "cxx"), "cpp"),
    **dict.fromkeys(
        ("c#", "cs", "csharp", "kotlin", "kt", "scala", "swift", "dart", "groovy"), "java"
    ),
    **dict.fromkeys(("golang",), "go"),
    **dict.fromkeys(("rs",), "rust"),
    **dict.fromkeys(("rb",), "ruby"),
    **dict.fromkeys(
        ("sh", "bash", "zsh", "fish", "console", "shell-session", "powershell"), "shell"
    ),
    **dict.fromkeys(("postgresql", "postgres", "mysql", "sqlite", "plsql"), "sql"),
    **dict.fromkeys(("jsonc", "json5", "jsonl"), "json"),
    **dict.fromkeys(("yml",), "yaml"),
    **dict.fromkeys(("ini", "cfg", "conf", "properties", "env", "dotenv"), "toml"),
    **dict.fromkeys(("xml", "svg", "xhtml", "vue", "svelte"), "html"),
    **dict.fromkeys(("scss", "less", "sass"), "css"),
    **dict.fromkeys(("patch",), "diff"),
    **dict.fromkeys(("docker",), "dockerfile"),
    **dict.fromkeys(("make",), "makefile"),
}


@lru_cache(maxsize=64)
def _scanner(name: str) -> re.Pattern[str] | None:
    language = _LANGUAGES.get(name)
    if language is None:
        return None
    # Names first: the key of an object is a text too.
    parts = (
        ("c", language.comments),
        ("t", language.names),
        ("s", language.texts),
        ("k", language.keywords),
        ("n", language.numbers),
    )
    patterns = [f"(?P<{group}>{pattern})" for group, pattern in parts if pattern]
    return re.compile("|".join((*patterns, *filter(None, [language.more]))), re.MULTILINE)
