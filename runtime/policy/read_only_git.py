"""The subcommands of `git` that only read, each with the flags that do no harm (TOOL-7). Pure data.

`git` takes programs to start from the repository's own files (`core.fsmonitor`, `diff.external`,
`textconv` and others), and a repository may be somebody else's. No list of flags helps against
that: such commands run with a configuration above the repository's, and in the read-only view.
"""

import re
from collections.abc import Sequence

from runtime.policy.program_flags import Given, Program, names
from runtime.policy.shell_syntax import Word

_BEFORE = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_DIFF_LETTERS = "puszRiEFPwbaDWq"
_DIFF_VALUED = "SGLnl"
_DIFF_ATTACHED = "UMCB"
_DIFF_WORDS = names(
    "stat shortstat numstat dirstat compact-summary summary name-only name-status patch no-patch "
    "raw patch-with-stat cached staged color no-color color-words word-diff no-renames "
    "find-renames find-copies find-copies-harder ignore-all-space ignore-space-change "
    "ignore-space-at-eol ignore-blank-lines no-ext-diff no-textconv check exit-code quiet minimal "
    "patience histogram text binary full-index abbrev no-abbrev pickaxe-all pickaxe-regex "
    "function-context relative no-relative merge-base no-prefix no-index ignore-submodules "
    "unified follow"
)
_DIFF_VALUED_WORDS = names("diff-filter inter-hunk-context diff-algorithm")
_LOG_WORDS = _DIFF_WORDS | names(
    "oneline graph all decorate no-decorate merges no-merges first-parent reverse abbrev-commit "
    "no-abbrev-commit date-order topo-order author-date-order relative-date full-history branches "
    "simplify-merges simplify-by-decoration tags remotes left-right left-only right-only cherry "
    "cherry-pick cherry-mark boundary no-walk pretty format count invert-grep all-match parents "
    "children regexp-ignore-case extended-regexp fixed-strings perl-regexp source use-mailmap "
    "no-mailmap no-notes root"
)
_LOG_VALUED_WORDS = _DIFF_VALUED_WORDS | names(
    "since until after before author committer grep max-count skip date min-parents max-parents"
)
_SIGNATURE = re.compile(r"%\(\*?signature")
_NO_OPERAND = "any operand, which would make or change one"


def _pretty(given: Given) -> str | None:
    """`%G` checks signatures, by a program that the configuration names. So does `%(signature)` of
    branches and tags, also where they are sorted by it."""
    if any("%G" in value for _, value in given.flags):
        return "a format with %G, which starts another program"
    signed = any(
        _SIGNATURE.search(value) or (name == "--sort" and "signature" in value)
        for name, value in given.flags
    )
    return "a format with %(signature), which starts another program" if signed else None


def _lists(given: Given) -> str | None:
    """Without `--list`, a name is the name of what is made."""
    listed = any(name in ("-l", "--list") for name, _ in given.flags)
    return _NO_OPERAND if given.operands and not listed else _pretty(given)


_LOG = Program(
    _DIFF_LETTERS + "gc",
    valued=_DIFF_VALUED,
    attached=_DIFF_ATTACHED,
    words=_LOG_WORDS,
    valued_words=_LOG_VALUED_WORDS,
    number=True,
    check=_pretty,
)


def _stash(arguments: Sequence[Word]) -> str | None:
    """Only what shows stashes; without a word it makes one."""
    words = {"list": _LOG, "show": _LOG}
    program = words.get(arguments[0].text) if arguments and not arguments[0].pattern else None
    return "anything but list and show" if program is None else program.refuses(arguments[1:])


def _reflog(arguments: Sequence[Word]) -> str | None:
    """Only what shows it: ``expire``, ``delete`` and others change it."""
    rest = arguments[1:] if arguments and arguments[0].text == "show" else arguments
    first = rest[0] if rest else None
    if first is not None and rest is arguments and not first.text.startswith("-"):
        return "anything but show"
    return _LOG.refuses(rest)


def _worktree(arguments: Sequence[Word]) -> str | None:
    """Only the list."""
    if not arguments or arguments[0].text != "list":
        return "anything but list"
    return Program("vz", words=names("porcelain verbose"), operands=0).refuses(arguments[1:])


def _config(arguments: Sequence[Word]) -> str | None:
    """Only what reads: two operands set a value."""
    reads = Program(
        "lz",
        words=names("list get get-all get-regexp name-only show-origin show-scope local null"),
        check=_gets,
    )
    return reads.refuses(arguments)


def _gets(given: Given) -> str | None:
    told = {name for name, _ in given.flags} & {"-l", "--list", "--get", "--get-all"}
    told |= {name for name, _ in given.flags} & {"--get-regexp"}
    plain = not any(one.pattern for one in given.operands)
    return None if told and plain else "anything but --get and --list"


_SPECIAL = {"stash": _stash, "reflog": _reflog, "worktree": _worktree, "config": _config}
"""Subcommands that have words of their own before flags."""
SUBCOMMANDS = {
    "log": _LOG,
    "whatchanged": _LOG,
    "show-ref": Program("dsq", words=names("head heads tags dereference hash abbrev verify quiet")),
    "for-each-ref": Program(
        words=names("shell perl python ignore-case"),
        valued_words=names("count sort format points-at merged no-merged contains no-contains"),
        check=_pretty,
    ),
    "name-rev": Program(words=names("tags all always name-only")),
    "count-objects": Program("vH", words=names("verbose human-readable"), operands=0),
    "check-ignore": Program("qvn", words=names("quiet verbose non-matching no-index")),
    "version": Program(operands=0),
    "show": _LOG,
    "rev-list": _LOG,
    "diff": Program(
        _DIFF_LETTERS,
        valued=_DIFF_VALUED,
        attached=_DIFF_ATTACHED,
        words=_DIFF_WORDS,
        valued_words=_DIFF_VALUED_WORDS,
        number=True,
    ),
    "status": Program(
        "sbvz",
        attached="u",
        words=names(
            "short branch porcelain long verbose untracked-files ignored show-stash no-renames "
            "ahead-behind no-ahead-behind null ignore-submodules"
        ),
    ),
    "blame": Program(
        "welpsftcb",
        attached="MC",
        valued="L",
        words=names("porcelain line-porcelain show-email show-name show-number root date"),
    ),
    "ls-files": Program(
        "cdmoisukzt",
        valued="x",
        words=names(
            "cached deleted modified others ignored stage unmerged killed directory full-name "
            "exclude-standard error-unmatch eol"
        ),
        valued_words=names("exclude"),
    ),
    "ls-tree": Program("dlrtz", words=names("long name-only name-status full-name full-tree")),
    "rev-parse": Program(
        "q",
        words=names(
            "abbrev-ref show-toplevel short verify quiet git-dir is-inside-work-tree show-prefix "
            "show-cdup symbolic-full-name is-bare-repository all branches tags remotes"
        ),
    ),
    "describe": Program(
        words=names("tags always dirty long abbrev all exact-match first-parent contains"),
        valued_words=names("match exclude candidates"),
    ),
    "merge-base": Program("a", words=names("all octopus independent is-ancestor fork-point")),
    "cat-file": Program("etps"),
    "shortlog": Program("nsec", words=_LOG_WORDS, valued_words=_LOG_VALUED_WORDS, check=_pretty),
    # No -l: it made a log in old versions.
    "branch": Program(
        "arvq",
        words=names("list all remotes verbose show-current color no-color ignore-case"),
        valued_words=names("contains no-contains merged no-merged points-at sort format"),
        check=_lists,
    ),
    "tag": Program(
        "li",
        attached="n",
        words=names("list color ignore-case"),
        valued_words=names("contains no-contains merged no-merged points-at sort format"),
        check=_lists,
    ),
    "remote": Program("v", words=names("verbose"), operands=0),
    "grep": Program(
        "acEFGHhIiLlnopPqrvwWz",
        valued="efmABC",
        words=names(
            "text count extended-regexp fixed-strings basic-regexp perl-regexp ignore-case "
            "name-only files-with-matches files-without-match line-number column only-matching "
            "show-function function-context invert-match word-regexp cached untracked no-index "
            "all-match heading break and or not color no-color full-name quiet"
        ),
        valued_words=names("max-depth context after-context before-context threads"),
    ),
}


def git(arguments: Sequence[Word]) -> str | None:
    """Why a call of `git` with these arguments may do harm, or None."""
    place = 0
    while place < len(arguments) and (arguments[place].text in (*_BEFORE, "-C")):
        if arguments[place].text == "-C":
            # Where git runs must be plain: its repositories are looked at before it starts.
            place += 1
            folder = arguments[place] if place < len(arguments) else None
            if folder is None or folder.pattern or folder.text[:1] in ("", "-"):
                return "-C without the name of one folder"
        place += 1
    if place == len(arguments):
        return "no subcommand"
    subcommand = arguments[place]
    if subcommand.text in _SPECIAL and not subcommand.pattern:
        found = _SPECIAL[subcommand.text](arguments[place + 1 :])
        return None if found is None else f"{subcommand.text} and {found}"
    program = None if subcommand.pattern else SUBCOMMANDS.get(subcommand.text)
    if program is None:
        return subcommand.text
    found = program.refuses(arguments[place + 1 :])
    return None if found is None else f"{subcommand.text} and {found}"
