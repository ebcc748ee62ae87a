"""How risky a call is, by what it touches: for the person who is asked to allow it (UI-8). Pure.

It decides nothing. A command is judged by the reading that policy makes of it, program by program.
A program that is not in the tables below, or a text that is not read, counts as one that may do
anything: what is missing here makes a card more alarming, and never less.
"""

import re
from collections.abc import Iterator, Sequence
from posixpath import basename, dirname
from typing import Final

from runtime.domain.decisions import Risk, RiskLevel, Touch
from runtime.domain.tools import Effect
from runtime.policy.code_files import code_files
from runtime.policy.code_programs import INTERPRETERS, MAKES, RUNNERS
from runtime.policy.decide import CallFacts
from runtime.policy.read_arguments import only_reads, paths
from runtime.policy.read_only_programs import not_read_only
from runtime.policy.shell_syntax import NotRead, SimpleCommand, simple_commands

_READS: Final = (Touch.READS, "reads files")
_READS_OUTSIDE: Final = (Touch.READS, "reads files outside the working folder")
_WRITES: Final = (Touch.WRITES, "writes files in the workspace")
_OUTSIDE: Final = (Touch.WRITES, "writes files outside the workspace")
_ACTING: Final = (Touch.WRITES, "writes what later acts as an instruction or as code")
_DELETES: Final = (Touch.WRITES, "deletes or overwrites files")
_RIGHTS: Final = (Touch.WRITES, "changes who may use files")
_NETWORK: Final = (Touch.NETWORK, "uses the network")
_SENDS: Final = (Touch.SENDS, "sends something to others")
_CODE: Final = (Touch.CODE, "runs code of this folder")
_ANY_CODE: Final = (Touch.CODE, "runs code that nobody has looked at")
_FREE: Final = (Touch.CODE, "runs outside a sandbox")
_AGENTS: Final = (Touch.AGENTS, "gives work to subagents")
_UNSAID: Final = (Touch.WRITES, "changes something that it does not name")
_Told = tuple[Touch, str]
_GRAVE: Final = frozenset({_OUTSIDE, _ACTING, _DELETES, _SENDS, _ANY_CODE, _FREE, _UNSAID})
_LIGHT: Final = frozenset({_READS, _AGENTS})
_ORDER: Final = tuple(Touch)


def _names(text: str, *told: _Told) -> dict[str, tuple[_Told, ...]]:
    return dict.fromkeys(text.split(), told)


_PROGRAMS: Final[dict[str, tuple[_Told, ...]]] = {
    **_names("chmod chgrp chown", _RIGHTS),
    **_names("mkdir touch cp ln tee patch gzip gunzip zip unzip tar split", _WRITES),
    **_names("rm rmdir unlink shred truncate dd mv mkfs wipefs fdisk sed perl", _DELETES),
    **_names("curl wget ping dig host nslookup http aria2c", _NETWORK, _WRITES),
    **_names("ssh scp sftp rsync nc ncat telnet ftp mail sendmail gh glab aws gcloud az", _NETWORK),
    **_names("kill pkill killall shutdown reboot systemctl service crontab at", _UNSAID),
    **_names("pip pip3 pipx uv poetry gem cargo go apt apt-get brew dnf apk", _NETWORK, _ANY_CODE),
    **_names("docker podman kubectl terraform ansible-playbook helm sudo su doas", _ANY_CODE),
    **_names("eval source . xargs parallel env nohup timeout watch exec", _ANY_CODE),
}
"""What a program does beyond reading, where it is none that runs files which policy knows."""
_SENDING: Final = _names("ssh scp sftp rsync nc ncat mail sendmail gh glab aws gcloud az", _SENDS)
_GIT: Final[dict[str, tuple[_Told, ...]]] = {
    **_names("push send-email request-pull", _NETWORK, _SENDS),
    **_names("pull fetch clone ls-remote remote submodule", _NETWORK, _WRITES),
    **_names("reset clean checkout restore rm gc", _DELETES),
    **_names("add commit mv merge rebase tag branch switch stash init apply am", _WRITES),
    **_names("cherry-pick revert", _WRITES),
}

_GIT_LOSES: Final = {
    "branch": re.compile(r"-[a-zA-Z]*[dDfMC].*|--(?:d|f).*"),
    "tag": re.compile(r"-[a-zA-Z]*[df].*|--(?:d|f).*"),
    "switch": re.compile(r"-[a-zA-Z]*[fC].*|--(?:d|f).*"),
    "mv": re.compile(r"-[a-zA-Z]*f.*|--f.*"),
    "stash": re.compile("clear|drop|pop"),
}
"""Arguments with which a command of git's that otherwise adds loses something."""
_UPLOADS: Final = {
    "curl": re.compile(
        r"-[a-zA-Z#:]*[dFTXQK].*|--(?:conf|da|expand|fo|js|mail|quo|req|up|url-q|va).*"
        # What stands behind `@` is a file, also that of a header.
        r"|@.+|-[a-zA-Z#:]*H@.*|--h[a-z]*=@.*"
    ),
    "wget": re.compile(r"--(?:po|bo|me).*"),
    "http": re.compile(r"(?i:post|put|patch|delete)|[^-].*(?:=|@).*|--(?:f|m|r).*"),
}
"""Arguments by which a program sends something with its request."""
_BRACES: Final = re.compile(r"(?<=\s)\{\}(?=\s|$)")
_PLAIN_FLAGS: Final = {
    **dict.fromkeys(
        ("chmod", "chgrp", "chown"),
        re.compile("-[RvfcugoarwxXst,=+-]+|--(?:recursive|verbose|changes|quiet|silent)"),
    ),
    **dict.fromkeys(("mkdir", "rmdir"), re.compile("-[pvm]+|--parents|--verbose|--mode=.*")),
    "touch": re.compile("-[acmdtr]+|--date=.*|--no-create"),
    "cp": re.compile(
        "-[arRfinpuvlsLPdTt]+|--(?:archive|recursive|force|verbose|update|no-clobber|parents)"
        "|--preserve(?:=.*)?|--target-directory=.*"
    ),
    "mv": re.compile("-[finuvTt]+|--(?:force|verbose|update|no-clobber|target-directory=.*)"),
    "ln": re.compile("-[sfnvrT]+|--(?:symbolic|force|relative|verbose|no-dereference)"),
    "rm": re.compile("-[rRfvidI]+|--(?:recursive|force|verbose|dir|one-file-system)"),
    "tee": re.compile("-a|--append"),
    "patch": re.compile(r"-p\d|-[NRi]|--dry-run|--forward|--reverse|--strip=\d+|--input=.*"),
    **dict.fromkeys(
        ("gzip", "gunzip"),
        re.compile("-[dkrfvcl1-9]+|--(?:decompress|keep|force|recursive|best|fast)"),
    ),
    "zip": re.compile("-[rqj0-9]+"),
    "unzip": re.compile("-[oqdnj]+"),
    "tar": re.compile(
        r"-?[xctzjJvfpC]+|--(?:extract|create|list|gzip|bzip2|xz|zstd|verbose|keep-old-files)"
        r"|--(?:exclude|directory|file)=.*|--strip-components=\d+"
    ),
    "split": re.compile(r"-[lbnda]+\d*"),
    "truncate": re.compile(r"-s.*|--size=.*"),
    "curl": re.compile("-.*"),
    "wget": re.compile("-[qOcNnvPrl]+|--(?:quiet|continue|post|body|method).*"),
    "http": re.compile("-.*"),
    "ping": re.compile(r"-[cnW46]\d*"),
    "kill": re.compile(r"-[A-Z\d]+"),
    "sed": re.compile("-[inErsuze]+"),
    "perl": re.compile("(?!)"),
    "find": re.compile(r"-(?!exec|ok).*"),
}
"""Flags of a program that name no other program. Any other flag may name one."""
_GIT_PLAIN: Final = {
    "add": re.compile("-[AufvnN]+|--(?:all|update|force)"),
    "commit": re.compile("-[amqsvnC]+|--(?:all|amend|no-edit|message=.*|quiet|allow-empty)"),
    "branch": re.compile("-[adDfmMcCrvuq]+|--(?:delete|force|move|copy|list|all)"),
    "tag": re.compile("-[adfmln]+|--(?:delete|force|list)"),
    "switch": re.compile("-[cCfdtq]+|--(?:create|detach|discard-changes|force)"),
    "checkout": re.compile("-[bBfqt]+|--(?:ours|theirs|force|detach|)"),
    "restore": re.compile("-[SWq]+|--(?:staged|worktree|source=.*|)"),
    "reset": re.compile("-q|--(?:hard|soft|mixed|keep|merge|)"),
    "clean": re.compile("-[fdxXnq]+|--force"),
    "rm": re.compile("-[rfnq]+|--(?:cached|)"),
    "stash": re.compile("-[umqak]+|--(?:include-untracked|keep-index|all)"),
    **dict.fromkeys(
        ("cherry-pick", "revert"), re.compile("-[nx]+|--(?:no-commit|no-edit|abort|continue|skip)")
    ),
    "merge": re.compile("-[mqn]+|--(?:no-ff|ff-only|squash|abort|continue|no-edit)"),
    "rebase": re.compile("-q|--(?:abort|continue|skip|quit|onto|autostash)"),
    "pull": re.compile("-[qvr]+|--(?:rebase|ff-only|prune|tags|no-rebase)"),
    "fetch": re.compile("-[apqtv]+|--(?:all|prune|tags|depth=.*)"),
    "push": re.compile("-[fuqnd]+|--(?:force|force-with-lease|set-upstream|tags|delete|all)"),
    "clone": re.compile("-[bq]+|--(?:depth|depth=.*|branch|bare)"),
}
"""Flags of git's commands that name no program; a command that is not here has none."""
_GIT_RUNS: Final = frozenset({"submodule", "send-email"})


def risk_of(facts: CallFacts, *, sandboxed: bool) -> Risk:
    """What a call touches, in words, and how grave that is."""
    touches = facts.touches
    told = set(_of_tool(facts) if touches.command is None else _of_command(touches.command, facts))
    if facts.sinks:
        told.add(_ACTING)
    if touches.command is not None and told != {_READS}:
        if not touches.network:
            # What the sandbox closes is no risk.
            told.discard(_NETWORK)
        elif told & {_ANY_CODE, _CODE}:
            told.add(_NETWORK)
        if not sandboxed:
            told.add(_FREE)
    if _ANY_CODE in told:
        told.discard(_CODE)
    level: RiskLevel = "medium"
    if told & _GRAVE:
        level = "high"
    elif told <= _LIGHT:
        level = "low"
    if len(told) > 1:
        told.discard(_READS)
    ordered = sorted(told, key=lambda one: (_ORDER.index(one[0]), one[1]))
    return Risk(
        level=level,
        touches=tuple(dict.fromkeys(touch for touch, _ in ordered)),
        words=_sentence([words for _, words in ordered], level),
    )


def _of_tool(facts: CallFacts) -> Iterator[_Told]:
    touches = facts.touches
    if touches.reads:
        yield _READS
    if touches.writes:
        yield _OUTSIDE if facts.outside_workspace else _WRITES
    if touches.network:
        yield _NETWORK
    if touches.sends:
        yield _SENDS
    if touches.delegates or touches.spawns or touches.own_agents:
        yield _AGENTS
    said = (touches.writes, touches.network, touches.sends, touches.replies, touches.own_agents)
    if facts.effect is not Effect.READ and not any(said):
        yield _UNSAID
    elif not any((touches.reads, touches.delegates, touches.spawns, *said)):
        yield _READS


def _of_command(command: str, facts: CallFacts) -> Iterator[_Told]:
    if facts.touches.typed:
        # Whoever reads it may take it for anything.
        yield _ANY_CODE
    # A shell takes these braces as they are; `find` puts names of files in their place.
    command = _BRACES.sub("'{}'", command)
    try:
        found = simple_commands(command, outputs=True)
    except NotRead:
        yield from _of_loops(command, facts.touches.reads)
        return
    for one in found:
        if only_reads(one.words):
            yield _READS
        else:
            yield from _of_program(one)
        for how, path in one.outputs:
            yield _WRITES if how == ">>" else _DELETES
            if _is_outside(path, facts.touches.writes):
                yield _OUTSIDE
        if _leads_out(one, facts.touches.reads):
            yield _READS_OUTSIDE
    if not code_files(command).known and not _all_named(found):
        yield _ANY_CODE


def _of_loops(command: str, folders: Sequence[str]) -> Iterator[_Told]:
    """What is not read as simple commands: loops and variables may still only read."""
    if not_read_only(command) is not None:
        yield from (_DELETES, _ANY_CODE)
        return
    yield _READS
    found = [one for one in simple_commands(command, loops=True) if one.words]
    home = any("HOME" in word.variables for one in found for word in one.words)
    if home or any(_leads_out(one, folders) for one in found):
        yield _READS_OUTSIDE


def _leads_out(one: SimpleCommand, folders: Sequence[str]) -> bool:
    """Whether an argument may be a path outside of `folders`, which the call says that it reads."""
    return any(_is_outside(path, folders) for path in (*paths(one.words), *one.inputs))


def _is_outside(path: str, folders: Sequence[str]) -> bool:
    if ".." in path.split("/"):
        return True
    inside = any(f"{path}/".startswith(f"{folder.rstrip('/')}/") for folder in folders)
    return path.startswith("/") and not inside


def _of_program(one: SimpleCommand) -> Iterator[_Told]:
    if not _is_of_system(one):
        yield _CODE
        return
    name, *arguments = _spelling(one)
    if name == "git":
        yield from _of_git(arguments)
        return
    if name == "find":
        yield _DELETES
        return
    if name == "cp" and any(word.startswith("/dev/") for word in arguments):
        yield _DELETES
    uploads = _UPLOADS.get(name)
    if uploads is not None and any(uploads.fullmatch(word) for word in arguments):
        yield _SENDS
    yield from (*_PROGRAMS.get(name, (_CODE,)), *_SENDING.get(name, ()))


def _of_git(arguments: Sequence[str]) -> Iterator[_Told]:
    verb = arguments[0] if arguments else ""
    made = arguments[2:] if arguments[1:2] == ["-b"] else []
    if verb == "checkout" and made and not any(word.startswith("-") for word in made):
        # It makes a branch and overwrites nothing, as `switch -c`.
        yield _WRITES
        return
    yield from _GIT.get(verb, (_DELETES, _ANY_CODE))
    loses = _GIT_LOSES.get(verb)
    if loses is not None and any(loses.fullmatch(word) for word in arguments[1:]):
        yield _DELETES


def _all_named(found: Sequence[SimpleCommand]) -> bool:
    """Whether the tables say of each program what it does, so that none runs what nobody knows."""
    return all(
        only_reads(one.words) or (_is_of_system(one) and _is_named(_spelling(one))) for one in found
    )


def _is_of_system(one: SimpleCommand) -> bool:
    """Whether a program is found by its name alone, or where the system's programs are."""
    folder = dirname(one.words[0].text)
    return folder in ("", "/bin", "/usr/bin")


def _is_named(spelling: Sequence[str]) -> bool:
    """Whether the tables know a program, and no argument of it may name another one."""
    name, *arguments = spelling
    if name not in {*_PROGRAMS, "git", "find"} - {*INTERPRETERS, *RUNNERS, *MAKES}:
        return False
    plain = _PLAIN_FLAGS.get(name)
    if name == "git":
        verb, *arguments = arguments or [""]
        plain = _GIT_PLAIN.get(verb)
        if verb not in _GIT or verb in _GIT_RUNS or any("::" in word for word in arguments):
            return False
    flags = [word for word in arguments if word.startswith("-") and word not in ("-", "--")]
    if name == "tar":
        # Its first word is flags with or without a dash, and a colon names another machine.
        flags += arguments[:1]
        if any(":" in word for word in arguments):
            return False
    return all(plain is not None and plain.fullmatch(flag) for flag in flags)


def _spelling(one: SimpleCommand) -> list[str]:
    return [basename(one.words[0].text), *(word.text for word in one.words[1:])]


def _sentence(words: Sequence[str], level: RiskLevel) -> str:
    said = f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
    only = "only " if level == "low" and words else ""
    return f"{_LEVELS[level]}: it {only}{said or 'touches nothing'}."


_LEVELS: Final[dict[RiskLevel, str]] = {
    "low": "Low risk",
    "medium": "Some risk",
    "high": "High risk",
}
