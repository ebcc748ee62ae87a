"""Which files a command runs as code: scripts it names, and what its program reads first. Pure.

`make test` does what the Makefile says, so whoever allowed it allowed that Makefile (APR-9). The
files are named generously, because each of them is also one that is written only by asking. What
runs is called known sparingly: for commands that are harmless, and for programs with known entry
files or one script, in spellings that are on a list. What an entry file loads besides is the
sandbox's matter.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import chain, islice, pairwise
from operator import or_
from posixpath import basename, dirname, join

from runtime.policy import code_programs as tables
from runtime.policy.code_references import (
    MOST_NAMED,
    TOO_MUCH,
    UNKNOWN,
    CodeFiles,
    run_in,
    together,
)
from runtime.policy.command_folders import (
    BARE,
    MOST_GUESSED,
    MOST_STEPS,
    Folders,
    cleaned,
    command_folders,
    guessed_folders,
    pipelines,
)
from runtime.policy.read_only_programs import refused
from runtime.policy.shell_syntax import NotRead, SimpleCommand, Word, simple_commands

_MOST_STARTERS = 16
"""Programs that only start another, in front of one that does more."""
_MOST_TEXTS = 4
"""Words that a program may give to a shell."""
_MOST_ENTERED = 12
"""Words that may be a folder which a text enters."""
_OF_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib", "/opt/", "/nix/store/", "/gnu/store/")
"""Below these is no program of one's own: what one does there is unknown if no table has it."""
_QUOTES = re.compile(r"['\"\\]")
_MODULE = re.compile(r"-[bBdEhiIOPqsSuvVx?]*m(.*)", re.DOTALL)
"""Python's flag for a module, with others in front of it in the same word."""
_HERE = re.compile(r"\$(PWD|\{PWD\})/")
"""What stands for nothing in the name of a file."""


@lru_cache(maxsize=512)
def code_files(command: str) -> CodeFiles:
    """What a shell command runs as code."""
    if "\0" in command:
        return TOO_MUCH
    try:
        simple = simple_commands(command)
    except NotRead:
        return _guessed(command)
    parts = zip(simple, command_folders(simple), strict=True)
    return together(_as_left(simple, [run_in(here, _of_command(one)) for one, here in parts]))


def _as_left(simple: Sequence[SimpleCommand], found: Sequence[CodeFiles]) -> Iterator[CodeFiles]:
    """What each part runs. A part that may write can change what runs behind it, and beside it in a
    pipeline, so nothing of that is known: not even the same again, because the first ``make`` may
    write a `GNUmakefile` for the second."""
    writes = False
    for pipeline in pipelines(simple):
        writers = [at for at in pipeline if refused(simple[at].words) is not None]
        for at in pipeline:
            before = writes or any(writer != at for writer in writers)
            changed = before and found[at].names
            yield replace(found[at], known=False) if changed else found[at]
        writes = writes or bool(writers)


def _guessed(command: str) -> CodeFiles:
    """What any of the words of a text would run that is not read, in any folder that it enters;
    also as the words are where the shell takes their quotes away."""
    bare = _QUOTES.sub("", _HERE.sub("", command))
    found = _of_texts(command)
    if bare != command:
        found = together((found, _of_texts(bare)))
    return replace(found, known=False, read=False)


def _of_texts(command: str) -> CodeFiles:
    texts = BARE.findall(command)[:MOST_GUESSED]
    folders = guessed_folders(command)
    if not folders.told:
        # A substitution may print any of the words.
        printed = [text for text in texts[:_MOST_ENTERED] if text not in _STARTERS and text != "cd"]
        folders = reduce(or_, map(Folders().entered, printed), Folders()) | folders
    return run_in(folders, _of_any([Word(one, one) for one in texts]))


def _of_any(words: Sequence[Word]) -> CodeFiles:
    """What a program would run that begins at any of these words; never known."""
    # Behind a program that starts another is a word of its own here.
    names = [basename(word.text) for word in words]
    begun = [at for at, name in enumerate(names) if name not in _STARTERS]
    found = (_of_words(words[at:], 0) for at in begun)
    whole = together(code for code in found if code.names)
    return replace(whole, known=False, scripts=())


def _of_command(one: SimpleCommand) -> CodeFiles:
    code = _of_words(one.words)
    if code.known or not one.inputs:
        return code
    # An interpreter without a script reads one from there.
    return replace(code, paths=(*code.paths, *one.inputs))


def _of_words(words: Sequence[Word], starters: int = _MOST_STARTERS) -> CodeFiles:
    """What one program with its arguments runs. So many that start another are looked behind."""
    place = next((at for at, word in enumerate(words) if "=" not in word.text), len(words))
    if place:
        # An assignment, where the word before is one of the shell's own.
        return replace(_of_words(words[place:], starters), known=False)
    if not words or words[0].pattern:
        return UNKNOWN
    program, arguments = cleaned(words[0].text), [word.text for word in words[1:]]
    name = basename(program)
    plain = not any(word.pattern for word in words)
    system = "/" not in words[0].text or dirname(program) in tables.SYSTEM
    if system and refused((Word(name, name), *words[1:])) is None:
        return CodeFiles()
    if name in _STARTERS:
        code = _STARTERS[name](name, words[1:], starters - 1) if starters else TOO_MUCH
    elif (reader := next((read for table, read in _READERS if name in table), None)) is not None:
        code = reader(name, arguments)
    else:
        own = not system and not program.startswith(_OF_SYSTEM)
        code = CodeFiles(_scripts_among(arguments), known=own)
    code = code if plain else replace(code, known=False)
    if system:
        return code
    # It may be what its name says, and is a file of its own in any case.
    read = tables.BESIDE.get(name, tables.ENTRY_FILES[name] if name in tables.WRAPPERS else ())
    paths = (words[0].text, *code.paths, *(join(dirname(program), one) for one in read))
    return replace(code, paths=paths, scripts=(words[0].text, *code.scripts))


def _scripts_among(arguments: Iterable[str]) -> tuple[str, ...]:
    """Those that are named like scripts, also as the value of a flag: a program of one's own may
    run them."""
    values = chain.from_iterable(map(_values, arguments))
    return tuple(islice(filter(tables.SCRIPT.fullmatch, values), MOST_NAMED + 1))


def _values(word: str) -> Iterator[str]:
    """What a word may name: itself, or the value in the word of a flag or of a variable."""
    if not word.startswith("-"):
        yield word
    value = word.partition("=")[2] or ("" if word.startswith("--") else word[2:])
    if value and (word.startswith("-") or "=" in word):
        yield value


def _in_each(folders: Iterable[str], entries: Sequence[str]) -> Iterator[str]:
    """Entry files in what may be folders."""
    return (join(folder, entry) for folder in islice(folders, _MOST_ENTERED) for entry in entries)


def _script(name: str, arguments: Sequence[str]) -> CodeFiles:
    """A script behind flags of its interpreter."""
    left, flags = list(arguments), list[str]()
    plain = name in tables.SCRIPTS
    while left:
        word = left.pop(0)
        if name in tables.SHELLS and left and re.fullmatch("-[a-zA-Z]*c[a-zA-Z]*", word):
            code = code_files(left[0])
            if len(left) == 1:
                return replace(code, known=code.known and plain and word == "-c")
            # Behind more flags it is another of the words.
            code = together((code, *map(code_files, left[1 : _MOST_TEXTS + 1])))
            # The text may enter what the other words name.
            folders = Folders()
            for entered in left[1 : _MOST_ENTERED + 1]:
                folders |= folders.entered(entered)
            return replace(run_in(folders, code), known=False)
        module = _MODULE.fullmatch(word) if name.startswith("python") else None
        if module is not None and (module[1] or left):
            return _module([module[1], *left] if module[1] else left)
        if not word.startswith(("-", "+") if name in tables.SHELLS else "-"):
            if plain:
                return _named_script(name, word, left)
            return _any_script(name, (*flags, word, *left))
        valued = tables.VALUED.get(name, frozenset())
        if word in valued or (name in tables.SHELLS and re.fullmatch("[-+][a-zA-Z]+o", word)):
            del left[:1]
        elif word[:2] not in valued:
            flags.append(word)
        plain = plain and word in tables.SCRIPTS[name]
    return _any_script(name, flags) if flags else UNKNOWN


def _any_script(name: str, arguments: Sequence[str]) -> CodeFiles:
    """What an interpreter may run behind flags that are not all known: any word, and the value of
    any flag."""
    values = chain.from_iterable(map(_values, arguments))
    named = (one for value in values for one in _meant(name, value))
    first = islice(chain(tables.STARTUP.get(name, ()), named), MOST_NAMED + 1)
    return CodeFiles(tuple(first), known=False)


def _named_script(name: str, script: str, rest: Sequence[str]) -> CodeFiles:
    """A script by its name, behind flags that change nothing about what it is."""
    whole = name != "node" or script.endswith((".js", ".cjs", ".mjs"))
    paths = (*_meant(name, script), *_scripts_among(rest))
    return CodeFiles(paths, whole, scripts=(script,))


def _meant(name: str, script: str) -> tuple[str, ...]:
    """What an interpreter may take for a script: `node build` runs `build.js`."""
    if name == "node" and not script.endswith((".js", ".cjs", ".mjs")):
        ends = (".js", ".json", ".node", "/package.json", "/index.js", "/index.json", "/index.node")
        return (script, *(f"{script}{end}" for end in ends))
    if name.startswith("python") and not script.endswith(".py"):
        return (script, f"{script}/__main__.py")
    if name == "ruby" and not script.endswith(".rb"):
        return (script, f"{script}.rb")
    if name == "perl" and not script.endswith((".pl", ".pm")):
        return (script, f"{script.replace('::', '/')}.pm")
    return (script,)


def _module(words: Sequence[str]) -> CodeFiles:
    """`python -m NAME`: a module of the folder comes before one that is installed, and so do all
    that it loads. So it is never known what runs."""
    name, path = words[0], words[0].replace(".", "/")
    if name.count(".") > MOST_STEPS:
        return TOO_MUCH
    packages = [name.split(".")[:length] for length in range(1, name.count(".") + 2)]
    own = [f"{'/'.join(package)}/__init__.py" for package in packages]
    also = _entries(name, words[1:]) if name in tables.MODULES else CodeFiles()
    # `coverage run app.py`: a module may run any script that it is told of.
    named = _scripts_among(words[1:])
    paths = (f"{path}.py", f"{path}/__main__.py", *own, *also.paths, *named)
    return CodeFiles(paths, known=False, upward=also.upward)


def _entries(name: str, arguments: Sequence[str]) -> CodeFiles:
    """Entry files by their usual names, in the folder that a flag names, or what a flag names."""
    folder, chosen, named = ".", list[str](), list[str]()
    known = name in tables.SPELLINGS and tables.SPELLINGS[name](arguments)
    left = list(arguments)
    while left:
        word = left.pop(0)
        flag, value = _flag(name, word)
        if word in tables.CHOOSING_FLAGS.get(name, ()):
            named += [value[1:] for value in left[:1] if value.startswith("@")]
            del left[:1]
        elif flag in tables.FOLDER_FLAGS.get(name, ()) or flag in tables.FILE_FLAGS.get(name, ()):
            if value is None and not left:
                return CodeFiles(tables.ENTRY_FILES[name], known=False)
            value = left.pop(0) if value is None else value
            if flag in tables.FILE_FLAGS.get(name, ()):
                chosen.append(value)
            else:
                folder = join(folder, value)
        elif name in tables.MAKES and "=" in word:
            assigned = word.partition("=")[2]
            named += [] if tables.SWITCH.fullmatch(assigned) else [assigned]
        elif name in tables.FILE_ARGUMENTS and not word.startswith("-"):
            named.append(word.partition("::")[0])
    if name not in tables.MAKES:
        named += _scripts_among(arguments) if known else _perhaps_named(arguments)
    if not known:
        named += _in_each(_projects(name, arguments), tables.ENTRY_FILES[name])
    usual = _usual(name, chosen)
    usual += [one for word in arguments for one in tables.FOR_WORDS.get(name, {}).get(word, ())]
    around = (entry for path in named for entry in _around(name, path))
    first = islice(chain(usual, named, around), MOST_NAMED + 1)
    above = () if name in tables.HERE_ALONE else tables.ENTRY_FILES[name]
    return CodeFiles(
        tuple(join(folder, path) for path in first),
        known,
        folders=tuple(join(folder, path) for path in tables.PROGRAM_FOLDERS.get(name, ())),
        upward=tuple((folder, one) for one in above),
    )


def _usual(name: str, chosen: Sequence[str]) -> list[str]:
    """Entry files where some were chosen by a flag: make reads these alone, others more of them."""
    if name in tables.MAKES and chosen:
        return list(islice(tables.makefiles(*chosen), MOST_NAMED + 1))
    beside = _in_each(map(dirname, chosen), tables.ENTRY_FILES[name])
    return [*chosen, *tables.ENTRY_FILES[name], *tables.BELOW.get(name, ()), *beside]


def _with_started(name: str, arguments: Sequence[str]) -> CodeFiles:
    """A program with entry files, and what it may start besides."""
    own = _entries(name, arguments)
    started = _started(name, arguments, known=own.known)[:MOST_GUESSED]
    if not started:
        return own
    scripts = CodeFiles(tuple(filter(tables.FOLDER.fullmatch, started)), known=False)
    return together((own, scripts, _of_any([Word(word, word) for word in started])))


def _started(name: str, arguments: Sequence[str], *, known: bool) -> Sequence[str]:
    """The words of which each may be a program or a script that this one starts: those behind
    `npm exec`, and all where it may take any word for one."""
    if known:
        return ()
    if name in tables.STARTS_ANY:
        return arguments
    starting = tables.STARTING.get(name, frozenset())
    place = next((at for at, word in enumerate(arguments) if word in starting), None)
    return () if place is None else arguments[place + 1 :]


def _flag(name: str, word: str) -> tuple[str, str | None]:
    """A flag and the value in the same word: `-Cdocs` and `--dir=docs` are make's `-C docs`."""
    flag, equals, value = word.partition("=")
    attached = value if equals else None
    flags = (*tables.FOLDER_FLAGS.get(name, ()), *tables.FILE_FLAGS.get(name, ()))
    if flag in flags or name not in tables.MAKES or not word.startswith("-"):
        return flag, attached
    if word.startswith("--"):
        return next((whole for whole in flags if whole.startswith(flag)), flag), attached
    for place, letter in enumerate(word[1:], start=2):
        if f"-{letter}" in flags:
            return f"-{letter}", word[place:] or None
        if letter in tables.MAKE_VALUED:
            break
    return word, None


def _projects(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """Arguments that may be the folder of another project: `cmake ..`, `docker build img`."""
    bare = tables.FOLDER_WORDS.get(name)
    any_word = bare is not None and bare <= set(arguments)
    for before, word in pairwise(("", *arguments)):
        flag, equals, value = word.partition("=")
        if before in tables.CHOOSING_FLAGS.get(name, ()):
            continue
        if equals and flag in tables.FOLDER_VALUES.get(name, ()):
            yield value
        elif tables.FOLDER.fullmatch(word):
            told = before in tables.FOLDER_VALUES.get(name, ())
            path = "/" in word and name not in tables.MAKES
            if told or any_word or path or word.startswith("."):
                yield word


def _perhaps_named(arguments: Iterable[str]) -> Iterator[str]:
    """What any of these may name as a file: paths, scripts, and values in the word of a flag."""
    for word in islice(arguments, MOST_NAMED + 1):
        if not word.startswith("-"):
            value = word if "/" in word or tables.SCRIPT.fullmatch(word) else ""
        else:
            value = word.partition("=")[2] or ("" if word.startswith("--") else word[2:])
        if value and not tables.SWITCH.fullmatch(value):
            yield value


def _around(name: str, path: str) -> Iterator[str]:
    """What pytest reads on the way to a test."""
    if name not in ("pytest", "py.test"):
        return
    parts = ["/", *path.split("/")] if path.startswith("/") else path.split("/")
    for length in range(1, len(parts) + 1):
        folder = join(*parts[:length])
        yield from (join(folder, entry) for entry in tables.ENTRY_FILES[name])


def _go(_name: str, arguments: Sequence[str]) -> CodeFiles:
    files = [word for word in arguments if word.endswith(".go")]
    plain = all(map(tables.PLAIN.fullmatch, arguments))
    # What stands behind `run` is a file, or a package with arguments of its own.
    run = arguments[:1] == ["run"] and len(arguments) > 1 and arguments[1].endswith(".go")
    known = plain and (run or arguments[:1] in (["test"], ["build"], ["vet"]))
    entries = ("go.mod", "go.work")
    return CodeFiles((*entries, *files), known, upward=tuple((".", one) for one in entries))


def _git(_name: str, arguments: Sequence[str]) -> CodeFiles:
    """Git obeys no repository's configuration here (POL-9). Known is what puts nothing else into
    the working folder; a branch brings files along that nobody saw. A word may name a program."""
    words = iter(arguments[1:])
    known = bool(arguments) and arguments[0] in tables.GIT_ADDS
    for word in words:
        if word in ("-m", "--message", "-am"):
            next(words, "")
        elif word not in tables.GIT_FLAGS and not tables.PLAIN.fullmatch(word):
            known = False
    if known:
        return CodeFiles()
    values = [value for word in arguments[:MOST_GUESSED] for value in _values(word)]
    begun = [at for at, value in enumerate(values) if basename(value) in _STARTED]
    inner = [_of_words([Word(one, one) for one in values[at:]], 0) for at in begun]
    texts = [value for value in values if " " in value][:_MOST_TEXTS]
    started = next((at for at, word in enumerate(arguments) if word in _GIT_STARTS), len(arguments))
    scripts = (word for word in arguments[started:] if tables.SCRIPT.fullmatch(word) or "/" in word)
    named = CodeFiles(tuple(islice(scripts, MOST_NAMED + 1)), known=False)
    return replace(together((named, *inner, *map(code_files, texts))), known=False, scripts=())


def _runs(name: str, words: Sequence[Word], starters: int) -> CodeFiles:
    """`uv run make`, `poetry run pytest`: the project's files and what it starts, which may be a
    program or a script of the folder."""
    entries = (*tables.RUNNERS[name], "setup.py", "setup.cfg")
    upward = tuple((".", one) for one in entries)
    place = next((at for at, word in enumerate(words) if word.text == "run"), None)
    if place is None:
        return CodeFiles(entries, known=False, upward=upward)
    told, started = words[:place], words[place + 1 :]
    inner = _behind("run", started, starters)
    # A flag in front of it may name another folder, and a script needs no interpreter.
    folders = [word.text for word in told if not word.text.startswith("-")]
    named = _scripts_among(word.text for word in started)
    return replace(
        inner,
        paths=(*entries, *named, *inner.paths, *_in_each(folders, (*entries, *inner.paths))),
        known=False,
        folders=(".venv/bin", *inner.folders),
        upward=(*upward, *inner.upward),
    )


def _launched(name: str, words: Sequence[Word], _starters: int) -> CodeFiles:
    """What a program starts that any of the words behind it may be, and what it reads itself."""
    first = words[:MOST_GUESSED]
    folders = guessed_folders(" ".join(word.text for word in first))
    code = run_in(folders, _of_any(first))
    texts = [word.text for word in first if " " in word.text]
    code = together((code, *map(code_files, texts[:_MOST_TEXTS])))
    named = _scripts_among(word.text for word in first if " " not in word.text)
    own = tables.ENTRY_FILES.get(name, ())
    return replace(
        code,
        paths=(*own, *named, *code.paths),
        known=False,
        read=code.read and len(words) <= MOST_GUESSED,
        folders=(*tables.PROGRAM_FOLDERS.get(name, ()), *code.folders),
        upward=(*((".", entry) for entry in own), *code.upward),
    )


def _behind(_name: str, words: Sequence[Word], starters: int) -> CodeFiles:
    """What stands behind a program that only starts another. Behind flags it may be any word."""
    if not words or not words[0].text.startswith("-"):
        return _of_words(words, starters)
    folders = guessed_folders(" ".join(word.text for word in words[:MOST_GUESSED]))
    code = run_in(folders, _of_any(words[:MOST_GUESSED]))
    return replace(code, known=False, read=code.read and len(words) <= MOST_GUESSED)


def _behind_number(name: str, words: Sequence[Word], starters: int) -> CodeFiles:
    if words and re.fullmatch(r"[\d.]+[smhd]?", words[0].text):
        return _behind(name, words[1:], starters)
    return replace(_behind(name, words, starters), known=False)


def _behind_other(name: str, words: Sequence[Word], starters: int) -> CodeFiles:
    """Behind a program that changes how another runs, such as by variables."""
    place = next((at for at, word in enumerate(words) if "=" not in word.text), len(words))
    if any(word.text.startswith("-") for word in words[:place]):
        place = 0
    return replace(_behind(name, words[place:], starters), known=False)


def _sourced(_name: str, words: Sequence[Word], _starters: int) -> CodeFiles:
    """A file that the shell reads, which may change what all that follows means."""
    return CodeFiles((words[0].text,) if words else (), known=False)


_GIT_STARTS = frozenset({"run", "foreach", "-x", "--exec", "--extcmd"})
"""Words of git's subcommands behind which a program stands."""
_STARTED = frozenset({*tables.INTERPRETERS, *tables.ENTRY_FILES})
_Reader = Callable[[str, Sequence[str]], CodeFiles]
_READERS: tuple[tuple[frozenset[str], _Reader], ...] = (
    (tables.INTERPRETERS, _script),
    (frozenset(tables.ENTRY_FILES), _with_started),
    (frozenset({"go"}), _go),
    (frozenset({"git"}), _git),
)
_STARTERS: dict[str, Callable[[str, Sequence[Word], int], CodeFiles]] = {
    **dict.fromkeys(("time", "nohup", "nice"), _behind),
    **dict.fromkeys(("command", "exec", "sudo", "stdbuf", "env"), _behind_other),
    **dict.fromkeys(tables.RUNNERS, _runs),
    **dict.fromkeys(tables.LAUNCHERS, _launched),
    "timeout": _behind_number,
    **dict.fromkeys((".", "source"), _sourced),
}
"""Programs and words of the shell that start what stands behind them."""
