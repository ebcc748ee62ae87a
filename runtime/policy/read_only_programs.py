"""Whether a command only reads, and the programs that read-only mode runs, each with the flags that
do no harm (TOOL-7). Pure.

Doubt means no. The answer is for people and models, who mend a command by it; it is no promise on
which anything is written: what is judged so runs in a view of the sandbox that cannot be written.

A program is here when no flag on its list writes a file, starts another program, opens a connection
or sets something outside of its own process, in the GNU and BSD versions; a flag that is not on its
list is refused. What a hostile file or repository could make a program do besides is held by the
sandbox's read-only view.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from runtime.policy.program_flags import Given, Program, actions, dashed, names, refused_pattern
from runtime.policy.read_only_git import git
from runtime.policy.shell_syntax import NotRead, SimpleCommand, Word, simple_commands

_FOLDERS = frozenset({"HOME", "PWD"})
"""Variables of the gateway and of the shell itself, which hold a folder."""
_CONVERSION = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?[sdiouxXfeEgGcbq])")
_REGEX = r"/(?:[^/\\\[\n]|\\[^c\n]|\[\^?\]?[^\]/\\\n]*\])*/"
"""A regular expression of sed's that ends at the same slash for every version of it."""
_ADDRESS = rf"(?:\d+|\$|{_REGEX}I?)"
_TEXT = r"(?:[^/\\\n]|\\[^c\n])*"
_SED = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,(?:\+?\d+|{_ADDRESS}))?\s*!?\s*)?"
    rf"(?:[pdq=]|s{_REGEX}{_TEXT}/[gpIi\d]*)?\s*(?:;|\Z)"
)
"""A command of sed's that prints, leaves out or changes what is printed, with its addresses. No
other letter: ``w`` writes a file, and ``e`` starts a program."""
_ARCHIVE_LIST = re.compile(r"-?[vzjJ]*t[vzjJ]*f?[vzjJ]*|-?[vzjJ]*f?[vzjJ]*t[vzjJ]*f")
_FIND_PLAIN = frozenset({"(", ")", "!", ","}) | actions(
    "H L P a and o or not print print0 prune quit ls depth d xdev mount follow daystart empty "
    "executable readable writable true false nouser nogroup noleaf ignore_readdir_race "
    "noignore_readdir_race nowarn warn"
)
_FIND_VALUED = actions(
    "name iname path ipath wholename iwholename regex iregex regextype lname ilname type xtype "
    "size maxdepth mindepth mtime ctime atime mmin cmin amin newer anewer cnewer newermt newerct "
    "newerat perm user group uid gid inum links samefile fstype used printf"
)
_FIND_LESS = re.compile(r"-\d.*|-[0-7ugoarwxXst,=+]+")
"""Values of tests that may begin with a dash: fewer than so many, at least these permissions."""
_SUMS = Program(
    "bctwz", words=names("check tag quiet status strict warn zero text binary"), safe=True
)
_GREP = Program(
    "EFGPiyvwxcLlqsobHhnTUzrRaI",
    valued="efmABCdD",
    number=True,
    words=names(
        "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case "
        "word-regexp line-regexp invert-match count files-without-match files-with-matches "
        "only-matching quiet silent no-messages byte-offset with-filename no-filename line-number "
        "initial-tab null null-data recursive dereference-recursive text color colour"
    ),
    valued_words=names(
        "regexp file max-count after-context before-context context include exclude exclude-dir "
        "exclude-from binary-files directories devices label"
    ),
    safe=True,
)


def _find(arguments: Sequence[Word]) -> str | None:
    """`find` reads its arguments by rules of its own: paths, then tests and actions."""
    left = list(reversed(arguments))
    while left:
        word = left.pop()
        if word.pattern and (not word.known or word.known[0] in "-(!,)"):
            return f"{word.text} could match a file that is named like an action"
        if word.text in _FIND_VALUED:
            value = left.pop() if left else None
            dashed = value is not None and value.text.startswith("-")
            if value is None or value.pattern or (dashed and not _FIND_LESS.fullmatch(value.text)):
                return f"{word.text} without a plain value; quote it"
        elif word.text.startswith("-") and word.text not in _FIND_PLAIN:
            return word.text
    return None


def _printf(arguments: Sequence[Word]) -> str | None:
    """The shell's `printf` can set variables, by `-v` and by `%n`, and runs what is in an index."""
    if not arguments or arguments[0].pattern:
        return "a pattern as its format, or none"
    form = arguments[0].text
    if form.startswith("-"):
        return form
    return "a conversion that is not plain" if "%" in _CONVERSION.sub("", form) else None


def _date(given: Given) -> str | None:
    """`date` with an operand that is no format sets the clock."""
    set_to = next((one.text for one in given.operands if not one.text.startswith("+")), None)
    return None if set_to is None else f"the operand {set_to}, which sets the clock"


def _sed(given: Given) -> str | None:
    """`sed` is let through where it only prints, whatever it changes of what it prints."""
    scripts = [value for name, value in given.flags if name in ("-e", "--expression")]
    if not scripts and given.operands:
        if given.operands[0].pattern:
            return "a pattern in the script's place"
        scripts = [given.operands[0].text]
    if not scripts:
        return "no script"
    bad = next((script for script in scripts if not _prints(script)), None)
    return None if bad is None else f"the script {bad}, which may do more than print"


def _prints(script: str) -> bool:
    place = 0
    while place < len(script):
        found = _SED.match(script, place)
        if found is None or found.end() == place:
            return False
        place = found.end()
    return True


def _test(arguments: Sequence[Word]) -> str | None:
    """`test -v` and `-R` carry out what stands in an index."""
    bad = next((word for word in arguments if word.text in ("-v", "-R") or word.pattern), None)
    return None if bad is None else bad.text


def _tar(arguments: Sequence[Word]) -> str | None:
    """`tar` lists an archive by `t`, `f` and the letters for its kind. A name with a colon is a
    file of another machine."""
    if not arguments or not _ARCHIVE_LIST.fullmatch(arguments[0].text):
        return "anything but the letters t, v, z, j, J and f"
    bad = (word for word in arguments[1:] if refused_pattern(word) or word.text.startswith("-"))
    found = next(bad, None) or next((word for word in arguments[1:2] if ":" in word.text), None)
    if found is not None:
        return found.text
    return "no archive" if len(arguments) < 2 or arguments[1].pattern else None


def _xargs(arguments: Sequence[Word]) -> str | None:
    """`xargs` adds words that nobody knows to a program. So it must be one to which no word at all
    does harm."""
    left = list(reversed(arguments))
    while left and left[-1].text.startswith("-"):
        flag = left.pop().text
        if flag in ("-n", "-L", "-s") and left and left[-1].text.isdecimal():
            left.pop()
        elif not _XARGS_FLAG.fullmatch(flag):
            return flag
    if not left:
        return "no program"
    program = left.pop()
    known = None if program.pattern else PROGRAMS.get(program.text)
    if known is None or not known.safe:
        return f"{program.text}, which reads for sure only what is listed"
    return known.refuses(left[::-1])


def _jq(arguments: Sequence[Word]) -> str | None:
    """`jq` has flags of two values, which are taken out before the rest is read."""
    rest: list[Word] = []
    left = list(reversed(arguments))
    while left:
        word = left.pop()
        if word.text not in ("--arg", "--argjson", "--slurpfile", "--rawfile"):
            rest.append(word)
        elif len(left) < 2 or left.pop().pattern or left.pop().pattern:
            return f"{word.text} without two plain values"
    return _JQ.refuses(rest)


def _unzip(arguments: Sequence[Word]) -> str | None:
    """`unzip` writes files unless it is told to list or to test them, in front of the archive:
    behind it, `-l` is the name of a file to take out."""
    found = next((at for at, word in enumerate(arguments) if not dashed(word.text)), len(arguments))
    flags, rest = arguments[:found], arguments[found:]
    bad = next((word for word in flags if not _UNZIP_FLAGS.fullmatch(word.text)), None)
    bad = bad or next((word for word in rest if dashed(word.text) or refused_pattern(word)), None)
    if bad is not None:
        return bad.text
    told = any(letter in word.text for word in flags for letter in "lvtZ")
    return None if told else "no -l in front of the archive"


def _xxd(arguments: Sequence[Word]) -> str | None:
    """`xxd` looks at the beginning of a word alone (`-bs` is `-b`) and takes no flag behind the
    first file: a second file, of whatever name, is where it writes to."""
    left = list(reversed(arguments))
    while left and dashed(left[-1].text):
        flag = left.pop()
        if _XXD_VALUED.fullmatch(flag.text):
            value = left.pop() if left else None
            if value is None or value.pattern or dashed(value.text):
                return f"{flag.text} without a plain value"
        elif flag.pattern or not _XXD_FLAG.fullmatch(flag.text):
            return flag.text
    if len(left) > 1 or any(word.pattern for word in left):
        return "more than 1 operand"
    return None


def _ps(given: Given) -> str | None:
    """`ps` takes letters without a dash, which change what it shows."""
    bad = next((one for one in given.operands if not re.fullmatch(r"[a-zA-Z]+", one.known)), None)
    return None if bad is None else bad.text


def _cd(given: Given) -> str | None:
    """Where `cd` leads must be plain, because git is kept from the repositories that are there."""
    (target, *more) = given.operands or (None,)
    plain = target is not None and target.text and not target.pattern and not more
    return None if plain else "anything but the name of one folder"


def _command(arguments: Sequence[Word]) -> str | None:
    """`command -v NAME` tells where a program is; any other use runs it."""
    asks = len(arguments) > 1 and arguments[0].text in ("-v", "-V")
    return None if asks and not any(word.pattern for word in arguments) else "running a program"


_JQ = Program(
    "nrRjasceSCM",
    words=names(
        "null-input raw-input raw-output raw-output0 join-output ascii-output slurp "
        "compact-output exit-status sort-keys color-output monochrome-output tab unbuffered "
        "stream stream-errors seq args jsonargs"
    ),
    valued_words=names("indent"),
)
_UNZIP_FLAGS = re.compile(r"-[lvqZ1ht]+")
_XXD_FLAG = re.compile(r"-(?:[beipuE]|ps|plain|[clgos]\d+)")
_XXD_VALUED = re.compile(r"-[clgos]")
_XARGS_FLAG = re.compile(r"-[0rtx]+|-[nLs]\d+|--null|--no-run-if-empty")
_SPECIAL: dict[str, Callable[[Sequence[Word]], str | None]] = {
    "find": _find,
    "printf": _printf,
    "jq": _jq,
    "command": _command,
    "git": git,
    "test": _test,
    "tar": _tar,
    "xargs": _xargs,
    "unzip": _unzip,
    "xxd": _xxd,
    # Of the shell itself; whatever they are told, they change nothing.
    **dict.fromkeys(("echo", "true", "false", ":"), lambda _: None),
}
PROGRAMS = {
    "ls": Program(
        "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        valued="ITw",
        words=names(
            "all almost-all author escape ignore-backups color directory classify file-type "
            "format full-time group-directories-first no-group human-readable si dereference hide "
            "inode kibibytes numeric-uid-gid literal indicator-style quote-name quoting-style "
            "reverse recursive size sort time time-style width context zero"
        ),
        valued_words=names("ignore block-size"),
        safe=True,
    ),
    "cat": Program(
        "AbeEnstTuv",
        words=names(
            "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"
        ),
        safe=True,
    ),
    "head": Program(
        "qvz",
        valued="cn",
        words=names("quiet silent verbose zero-terminated"),
        valued_words=names("bytes lines"),
        number=True,
        safe=True,
    ),
    "tail": Program(
        "qvzr",
        valued="cn",
        words=names("quiet silent verbose zero-terminated"),
        valued_words=names("bytes lines"),
        number=True,
        safe=True,
    ),
    "wc": Program("clLmw", words=names("bytes chars lines words max-line-length total"), safe=True),
    "stat": Program(
        "fLtx",
        valued="c",
        words=names("dereference file-system terse"),
        valued_words=names("format printf"),
        safe=True,
    ),
    "du": Program(
        "0abcDhHklLmPsSx",
        valued="dBt",
        words=names(
            "all apparent-size bytes total dereference summarize human-readable si separate-dirs "
            "one-file-system inodes null time time-style count-links"
        ),
        valued_words=names("max-depth block-size threshold exclude"),
        safe=True,
    ),
    "df": Program(
        "ahHiklPT",
        valued="tBx",
        words=names("all human-readable si inodes local portability print-type total output"),
        valued_words=names("type block-size exclude-type"),
        safe=True,
    ),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": Program(
        "aivnNwlcoFPUxsSHIhLpqu.0",
        valued="egtTABCmrdjEM",
        words=names(
            "files hidden no-ignore no-ignore-vcs count count-matches files-with-matches pcre2 "
            "stats files-without-match json line-number no-line-number no-heading heading "
            "multiline trim multiline-dotall fixed-strings ignore-case smart-case case-sensitive "
            "word-regexp pretty line-regexp invert-match only-matching follow no-config text "
            "vimgrep no-messages column with-filename no-filename null quiet type-list "
            "unrestricted"
        ),
        valued_words=names(
            "glob iglob type type-not max-count max-depth context after-context before-context "
            "sort sortr color colors regexp replace threads encoding max-columns max-filesize"
        ),
    ),
    "sort": Program(
        "bdfgihnRrVcCmsuzM",
        valued="ktS",
        words=names(
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort numeric-sort "
            "ignore-nonprinting month-sort human-numeric-sort random-sort reverse version-sort "
            "check merge stable unique zero-terminated"
        ),
        valued_words=names("key field-separator buffer-size parallel sort"),
    ),
    # A second operand is where it writes to.
    "uniq": Program(
        "cdDiuz",
        valued="fsw",
        words=names("count repeated all-repeated ignore-case unique zero-terminated group"),
        valued_words=names("skip-fields skip-chars check-chars"),
        operands=1,
    ),
    "cut": Program(
        "nsz",
        valued="bcdf",
        words=names("complement only-delimited zero-terminated"),
        valued_words=names("bytes characters delimiter fields output-delimiter"),
        safe=True,
    ),
    "tr": Program("cCdst", words=names("complement delete squeeze-repeats truncate-set1")),
    "nl": Program("p", valued="bdfhilnsvw", safe=True),
    "tac": Program("br", valued="s", safe=True),
    "rev": Program(safe=True),
    "comm": Program("123z", words=names("check-order nocheck-order total zero-terminated")),
    "paste": Program("sz", valued="d", words=names("serial zero-terminated"), safe=True),
    "fold": Program("bs", valued="w", safe=True),
    **dict.fromkeys(("zcat", "gzcat", "bzcat", "xzcat"), Program("fq")),
    "hexdump": Program("bcdoxCv", valued="ns"),
    "strings": Program("afw", valued="nte"),
    "zipinfo": Program("12smlvhtTz"),
    "ps": Program(
        "AaefFlHjuxwvcLNTdry",
        valued="ptuUgGsCoO",
        words=names("forest headers no-headers"),
        valued_words=names("pid ppid user group sort format cols columns"),
        check=_ps,
    ),
    "uptime": Program("ps", words=names("pretty since"), operands=0),
    "free": Program("bkmghtw", words=names("human si total wide mega giga"), operands=0),
    "hostname": Program("fsidIA", operands=0),
    "arch": Program(operands=0),
    "tty": Program("s", operands=0),
    "groups": Program(),
    "locale": Program("a", operands=0),
    "sleep": Program(),
    "expr": Program(),
    "lscpu": Program(operands=0),
    "lsblk": Program("fapnlr", operands=0),
    "getconf": Program("a"),
    "column": Program("txe", valued="csoN"),
    "seq": Program("w", valued="fs"),
    "od": Program("abcdfiloxv", valued="AjNtw"),
    "cmp": Program("bls", valued="in", words=names("print-bytes verbose quiet silent")),
    "diff": Program(
        "abBcdeEHiNnpqrsTtuwyZ",
        valued="CUWFIxX",
        words=names(
            "unified context brief report-identical-files side-by-side recursive new-file text "
            "ignore-case ignore-all-space ignore-blank-lines ignore-space-change color normal "
            "minimal no-dereference suppress-common-lines"
        ),
        valued_words=names("exclude label width"),
    ),
    "file": Program(
        "bhikLNr0s",
        valued="F",
        words=names("brief mime mime-type mime-encoding no-dereference dereference extension"),
    ),
    "sed": Program(
        "nErsuz",
        valued="e",
        words=names("quiet silent regexp-extended separate unbuffered null-data"),
        valued_words=names("expression"),
        check=_sed,
    ),
    "date": Program(
        "uR",
        valued="dr",
        attached="I",
        words=names("utc universal rfc-email iso-8601"),
        valued_words=names("date reference rfc-3339"),
        operands=1,
        check=_date,
    ),
    "tree": Program(
        "adfilpsuhgDFqNCnJXr",
        valued="LPI",
        apart=True,
        words=names("dirsfirst noreport prune gitignore du inodes"),
    ),
    **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "sha512sum", "b2sum", "cksum"), _SUMS),
    "basename": Program("az", valued="s"),
    "dirname": Program("z"),
    "realpath": Program("eLmPqsz", valued_words=names("relative-to relative-base")),
    "readlink": Program("efmnqsvz"),
    "which": Program("as", safe=True),
    "type": Program("afptP"),
    "pwd": Program("LP"),
    "cd": Program(check=_cd),
    "id": Program("agGnruz"),
    "whoami": Program(operands=0),
    "uname": Program("asnrvmpio", operands=0),
    "nproc": Program(words=names("all")),
    # With an operand it starts a program.
    "env": Program("0", operands=0),
    "printenv": Program("0"),
}


def refused(words: tuple[Word, ...]) -> str | None:
    """Why a simple command may do harm, or None. `words` begins with the program's name."""
    program, arguments = words[0], words[1:]
    if program.pattern:
        return f"{program.text} is no name of a program"
    name = program.text
    if name in _SPECIAL:
        found = _SPECIAL[name](arguments)
    elif name in PROGRAMS:
        found = PROGRAMS[name].refuses(arguments)
    else:
        return f"{name[:40]} is not among the programs that only read"
    return None if found is None else f"{name} with {found[:80]}"


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
