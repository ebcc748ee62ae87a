"""Which keys of git's configuration start programs, and what takes their place (POL-9). Pure.

Keys come from every version of git that reads `GIT_CONFIG_COUNT` (2.31 and later). A test goes
through all that `git help --config` prints, and knows of each why it is harmless or what holds it.
Keys of programs that are no part of git are not looked at, but for those of git-lfs.
"""

import re
from collections.abc import Mapping
from typing import Final

from runtime.policy import read_only_git
from runtime.policy.shell_syntax import Word
from runtime.tools.git_config import BadConfig, Entry

FALSE: Final = "/bin/false"
_MOST_ALIAS: Final = 1000
"""Characters of an alias that is looked at closely."""

_DIFF: Final = (
    'f() { printf "diff --git a/%s b/%s\\n" "$1" "$1"; '
    'diff -u --label "a/$1" --label "b/$1" "$2" "$5"; return 0; }; f'
)
"""What an external diff is replaced by: git has no value that switches one off."""
_MERGE: Final = "git merge-file --marker-size=%L %A %O %B"
"""What git does itself where no driver is named."""
_ALIAS: Final = "!f() { echo 'git: this alias may start a program: it is off here' >&2; false; }; f"
_ALIAS_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_ALIAS_SPLIT: Final = re.compile(r"[ \t\r\n]+")
_ALIAS_QUOTES: Final = frozenset("'\"\\")

ALWAYS: Final[Mapping[str, str]] = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "core.editor": ":",
    "core.sshCommand": "ssh",
    # Git lists the branches of a repository whose objects are borrowed by another git, which it
    # starts without these settings.
    "core.alternateRefsCommand": "true",
    "sequence.editor": ":",
    "credential.helper": "",
    "protocol.ext.allow": "never",
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.defaultKeyCommand": FALSE,
    # Without a name it is a server in the repository's own folder, if there is one.
    "instaweb.httpd": FALSE,
}
"""Set whether or not a repository names something else: mostly git's own defaults."""
READING: Final[Mapping[str, str]] = {
    "log.showSignature": "false",
    "gpg.program": FALSE,
    "gpg.openpgp.program": FALSE,
    "gpg.ssh.program": FALSE,
    "gpg.x509.program": FALSE,
}
"""Beyond the others, in a mode in which nothing may be changed."""
PARTLY_SEEN: Final[Mapping[str, str]] = {
    "diff.ignoreSubmodules": "all",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
}
"""Beyond the others, where not every folder was looked at: a submodule may be in one of the rest,
and the command itself may be what makes it one."""
_NAMED: Final = (
    (r"alias(\..+)?\.[^.]+", _ALIAS),
    (r"core\.askpass", FALSE),
    # Other spellings of `.git` are checked out where these are off, for disks that take them so.
    (r"core\.protect(hfs|ntfs)", "true"),
    # The variables that git for Windows takes away from what it starts.
    (r"core\.unsetenvvars", "PERL5LIB"),
    (r"diff\.external|diff\..+\.command", _DIFF),
    (r"diff\..+\.textconv", "cat"),
    (r"filter\..+\.(clean|smudge|process)", ""),
    (r"filter\..+\.required", "false"),
    (r"merge\..+\.driver", _MERGE),
    (r"(merge|diff)tool\..+\.cmd", FALSE),
    (r"(merge|diff)tool\..+\.path", ""),
    # Read as shell by a script of git's.
    (r"mergetool\..+\.layout", "MERGED"),
    # Parsed as flags: of `-s octopus -X ...` a script of git's reads the option as shell.
    (r"branch\..+\.mergeoptions", ""),
    # A line break in it adds lines to the list that git carries out, and so does an encoding in
    # which another character becomes one.
    (r"rebase\.instructionformat", "%s"),
    (r"i18n\.(commitencoding|logoutputencoding)", "UTF-8"),
    # What is in there, such as a configuration, is copied into a new repository.
    (r"init\.templatedir", ""),
    (r"hook\..+\.command", "true"),
    (r"interactive\.difffilter", "cat"),
    (r"pager\..+", "false"),
    (r"credential\..+\.helper", ""),
    (r"gpg\..+\.(program|defaultkeycommand)", FALSE),
    (r"submodule\..+\.update", "checkout"),
    (r"trailer\..+\.(command|cmd)", "true"),
    (r"tar\..+\.command", "cat"),
    (r"sendemail\.(.+\.)?([^.]*cmd|smtpserver)", FALSE),
    (r"imap\.(.+\.)?tunnel", FALSE),
    (r"(browser|man|guitool)\..+\.(cmd|path)", FALSE),
    (r"(web\.browser|help\.browser|svn\.authorsprog)", FALSE),
    # Subversion's own configuration, which names programs for its connections.
    (r"svn\.configdir", "/dev/null"),
    # Written into the configuration of a server, or where one is looked for.
    (r"instaweb\.gitwebdir", "/usr/share/gitweb"),
    (r"instaweb\.port", "1234"),
    (r"instaweb\.local", "true"),
    (r"instaweb\.modulepath", ""),
    (r"instaweb\..+", FALSE),
    (r"gitcvs\.(.+\.)?dbdriver", "SQLite"),
    # The type ENG makes libcurl load a driver that the value of another key names.
    (r"http\.(.+\.)?(proxy)?ssl(cert|key)type", "PEM"),
    (r"lfs\.x\.(path|clean|smudge)", FALSE),
)
"""Keys that are set only where a repository has them, each with what takes its place."""
_PATTERNS: Final = tuple((re.compile(pattern, re.DOTALL), value) for pattern, value in _NAMED)
_TOOL: Final = re.compile(r"(merge|diff)\.(gui)?tool")
"""Names a script of git's own, which is read as shell; a path would lead to another."""
_PLAIN_NAME: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_-]*")
_STAY: Final = frozenset(
    {
        "gc.recentobjectshook",
        "remote.x.uploadpack",
        "remote.x.receivepack",
        # Flags of the machine's mail program; of some, they start others.
        "sendemail.smtpserveroption",
        "sendemail.x.smtpserveroption",
    }
)
"""Keys of which git uses every value, or the first: nothing that is set above takes one away."""
STRATEGIES: Final = frozenset({"ort", "recursive", "resolve", "octopus", "ours", "subtree"})
"""Git's own ways to merge. A pick starts any other as a program, and a name with a slash is a
path."""
_OWN: Final = frozenset({"git-upload-pack", "git-receive-pack"})
_SWITCHES: Final = frozenset({"", "0", "1", "false", "no", "off", "on", "true", "yes"})
_ENCODING: Final = re.compile(
    r"utf-?8|(us-)?ascii|iso-?8859-?[0-9]{1,2}|latin-?[0-9]{1,2}"
    r"|(cp|windows-?)125[0-8]|koi8-?[ru]|euc-?(jp|kr|cn|tw)|s(hift)?[_-]?jis|gbk|gb2312|gb18030"
    r"|big-?5"
)
"""Encodings in which no other character becomes a line break, as one does in CP856."""
_MERGE_FLAGS: Final = re.compile(
    r"(\s*--(no-)?(ff|ff-only|commit|edit|log|stat|squash|summary|signoff|verify|progress))*\s*"
)

# Where git speaks to another folder, the git on the other side obeys that repository without our
# settings. So there is a list of what a repository may set there, and not of what it may not.
_ACROSS: Final = re.compile(
    "|".join(
        (
            r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks)",
            r"core\.(precomposeunicode|autocrlf|eol|safecrlf|sharedrepository|longpaths|worktree)",
            r"core\.(quotepath|abbrev|compression|commentchar|untrackedcache)",
            r"extensions\.(worktreeconfig|objectformat|refstorage|relativeworktrees)",
            r"(user|author|committer)\.(name|email)|user\.(useconfigonly|signingkey)",
            r"(commit|tag)\.gpgsign|init\.defaultbranch",
            r"push\.(default|followtags|autosetupremote)|pull\.(rebase|ff)",
            r"fetch\.(prune|prunetags)|merge\.(ff|conflictstyle)|rebase\.auto(stash|squash)",
            r"(advice|color)\..+|pager\.[^.]+",
            r"remote\.x\.(url|pushurl|fetch|push|tagopt|prune|prunetags|mirror)",
            r"remote\.pushdefault|branch\.autosetup(merge|rebase)",
            r"branch\.x\.(remote|merge|rebase|description|pushremote|autosetuprebase)",
            # Editors and GitHub's own program keep these for themselves.
            r"branch\.x\.(vscode-merge-base|gh-merge-base|github-pr-owner-number)",
            r"submodule\.x\.(url|active|branch)|submodule\.active",
            r"gc\.(auto|autodetach)|maintenance\.(auto|strategy)",
            r"receive\.(deny[a-z]+|fsckobjects|shallowupdate|advertisepushoptions)",
            r"uploadpack\.allow[a-z0-9]+|http\.(receivepack|uploadpack)",
        )
    )
)
"""In small letters, and with `x` for a name in the middle."""


def stand_in(entry: Entry) -> str | None:
    """What to set above a variable of a repository; None where it starts no program. Raises
    `BadConfig` where nothing can be set above it."""
    plain = _plain(entry)
    value = entry.value or ""
    if plain in _STAY and value not in _OWN:
        raise BadConfig(f"{entry.key} starts a program and cannot be switched off")
    if plain in ("pull.twohead", "pull.octopus") and not STRATEGIES.issuperset(value.split()):
        # The first value holds for a pick.
        raise BadConfig(f"{entry.key} names a program and cannot be switched off")
    if plain == "remote.x.vcs" and not _PLAIN_NAME.fullmatch(value):
        raise BadConfig(f"{entry.key} leads to a program and cannot be switched off")
    if _TOOL.fullmatch(plain):
        return None if _PLAIN_NAME.fullmatch(value) else "vimdiff"
    if _harmless_value(entry, plain, value):
        return None
    return next((standing for pattern, standing in _PATTERNS if pattern.fullmatch(plain)), None)


def may_be_across(entry: Entry) -> bool:
    """Whether a repository on the other side of a push or a fetch may have this variable, which
    the git over there obeys."""
    plain = _plain(entry)
    if plain == "receive.denycurrentbranch":
        # It checks files out over there, by filters and into submodules.
        return (entry.value or "").casefold() != "updateinstead"
    return _ACROSS.fullmatch(plain) is not None and stand_in(entry) is None


def _plain(entry: Entry) -> str:
    """The key with `x` for the name in the middle.

    Git parts a key at its first and its last dot: `[remote.x "y"]` is the remote `x.y`. Between
    them may be nothing: `[diff ""]` is a driver as well.
    """
    section, dot, _ = entry.section.partition(".")
    return f"{section}.{'x.' if dot or entry.subsection is not None else ''}{entry.name}"


def _harmless_value(entry: Entry, plain: str, value: str) -> bool:
    """Whether a key that may start a program does not with this value."""
    match plain:
        case "i18n.commitencoding" | "i18n.logoutputencoding":
            return _ENCODING.fullmatch(value.casefold()) is not None
        case "branch.x.mergeoptions":
            return _MERGE_FLAGS.fullmatch(value) is not None
    match entry.section:
        case "alias":
            return _harmless_alias(value)
        case "submodule":
            return not value.lstrip().startswith("!")
        case "pager":
            return value.casefold() in _SWITCHES
    return False


def _harmless_alias(value: str) -> bool:
    """Whether an alias is another name of a subcommand, or words that are known to start nothing.
    One more would be a program in quotes (``'-c' core.pager=x``) or a flag (``grep -Ox``)."""
    if len(value) > _MOST_ALIAS:
        return False
    if _ALIAS_PLAIN.fullmatch(value):
        return True
    if _ALIAS_QUOTES & set(value):
        return False
    words = [word for word in _ALIAS_SPLIT.split(value) if word]
    return read_only_git.git([Word(word, word) for word in words]) is None
