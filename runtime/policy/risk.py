"""How risky a call is, by what it touches: for the person who is asked to allow it (UI-8). Pure.

It decides nothing. A command is judged by the reading that policy makes of it, program by program.
A program that is not in the tables below, or a text that is not read, counts as one that may do
anything: what is missing here makes a card more alarming, and never less.
"""

from collections.abc import Iterator, Sequence
from posixpath import basename
from typing import Final

from runtime.domain.decisions import Risk, RiskLevel, Touch
from runtime.domain.tools import Effect
from runtime.policy.code_files import code_files
from runtime.policy.code_programs import INTERPRETERS, MAKES, RUNNERS
from runtime.policy.decide import CallFacts
from runtime.policy.harmless import refused
from runtime.policy.shell_syntax import NotRead, SimpleCommand, simple_commands

_READS: Final = (Touch.READS, "reads files")
_WRITES: Final = (Touch.WRITES, "writes files in the workspace")
_OUTSIDE: Final = (Touch.WRITES, "writes files outside the workspace")
_ACTING: Final = (Touch.WRITES, "writes what later acts as an instruction or as code")
_DELETES: Final = (Touch.WRITES, "deletes or overwrites files")
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
    **_names("mkdir touch cp ln tee chmod chgrp patch gzip gunzip zip unzip tar split", _WRITES),
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
    **_names("reset clean checkout restore rm filter-branch gc", _DELETES),
    **_names("add commit mv merge rebase tag branch switch stash init apply am", _WRITES),
}


def risk_of(facts: CallFacts, *, sandboxed: bool) -> Risk:
    """What a call touches, in words, and how grave that is."""
    touches = facts.touches
    told = set(_of_command(touches.command) if touches.command is not None else _of_tool(facts))
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


def _of_command(command: str) -> Iterator[_Told]:
    try:
        found = simple_commands(command)
    except NotRead:
        yield from (_DELETES, _ANY_CODE)
        return
    for one in found:
        if refused(one.words) is None:
            yield _READS
        else:
            yield from _of_program(one)
    if not code_files(command).known and not _all_named(found):
        yield _ANY_CODE


def _of_program(one: SimpleCommand) -> Iterator[_Told]:
    name = basename(one.words[0].text)
    if name == "git":
        verbs = [word.text for word in one.words[1:] if word.text in _GIT]
        yield from _GIT[verbs[0]] if verbs else (_DELETES, _ANY_CODE)
        return
    if name == "find":
        yield _DELETES
        return
    yield from (*_PROGRAMS.get(name, (_CODE,)), *_SENDING.get(name, ()))


def _all_named(found: Sequence[SimpleCommand]) -> bool:
    """Whether the tables say of each program what it does, so that none runs what nobody knows."""
    named = {*_PROGRAMS, "git", "find"} - {*INTERPRETERS, *RUNNERS, *MAKES}
    return all(refused(one.words) is None or basename(one.words[0].text) in named for one in found)


def _sentence(words: Sequence[str], level: RiskLevel) -> str:
    said = f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
    only = "only " if level == "low" and words else ""
    return f"{_LEVELS[level]}: it {only}{said or 'touches nothing'}."


_LEVELS: Final[dict[RiskLevel, str]] = {
    "low": "Low risk",
    "medium": "Some risk",
    "high": "High risk",
}
