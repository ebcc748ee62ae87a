"""The rules behind the plain sentences: a pattern and the call that it stands for.

Pure. A rule sees its text with the quotations taken out, so that "and", "then" and "in" inside of
quotes part nothing.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from runtime.domain.strict_json import read_json
from runtime.domain.value import JsonObject

Groups = Mapping[str, str]

_QUOTED: Final = re.compile(
    r"```(?:[\w-]*\n)?(?P<fence>.*?)```|`(?P<tick>[^`]+)`|“(?P<curly>[^”]*)”"
    r'|(?<![\w])"(?P<double>[^"]*)"(?!\w)|(?<![\w])\'(?P<single>[^\']*)\'(?!\w)',
    re.DOTALL,
)
_HIDDEN: Final = re.compile("\x00(\\d+)\x00")
_Q: Final = "\x00\\d+\x00"

FREE_TEXT: Final = frozenset(
    {
        "remember",
        "recall",
        "ask_user",
        "request_parent_clarification",
        "sessions_spawn",
        "schedule_create",
        "subagents",
        "task_create",
        "use_skill",
    }
)
"""Tools whose sentence runs to its end: an "and" in it parts nothing."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that a sentence asks for; arguments by the names that the contract gives them."""

    tool: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quotes:
    """What was quoted, with and without its marks."""

    inner: tuple[str, ...]
    whole: tuple[str, ...]

    def show(self, text: str) -> str:
        """A group's text: a quotation alone loses its marks, inside of a sentence it keeps them."""
        if alone := _HIDDEN.fullmatch(text):
            return self.inner[int(alone.group(1))]
        return self.show_within(text)

    def show_within(self, text: str) -> str:
        """The text with its quotations as they were written, marks and all."""
        return _HIDDEN.sub(lambda match: self.whole[int(match.group(1))], text)


def hide_quotes(text: str) -> tuple[str, Quotes]:
    """The text with each quotation replaced by a mark, and the quotations."""
    inner: list[str] = []
    whole: list[str] = []

    def hide(match: re.Match[str]) -> str:
        inner.append(next((group for group in match.groups() if group is not None), ""))
        whole.append(match.group())
        return f"\x00{len(inner) - 1}\x00"

    return _QUOTED.sub(hide, text.replace("\x00", "")), Quotes(tuple(inner), tuple(whole))


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence's pattern, and what it asks for; None when it is not meant after all."""

    pattern: re.Pattern[str]
    build: Callable[[Groups], Wanted | None]


def _rule(pattern: str, tool: str, **fixed: JsonValue) -> Rule:
    """A rule whose groups are the call's arguments; a digit tells alternatives of one apart."""

    def build(groups: Groups) -> Wanted:
        named = {name.rstrip("0123456789"): text for name, text in groups.items()}
        return Wanted(tool, {**fixed, **named})

    return _built(pattern, build)


def _built(pattern: str, build: Callable[[Groups], Wanted | None]) -> Rule:
    compiled = re.compile(pattern.replace("Q", _Q), re.IGNORECASE | re.DOTALL)
    return Rule(compiled, build)


_TO_FIVE: Final = ("one", "two", "three", "four", "five")
_TO_TEN: Final = (*_TO_FIVE, "six", "seven", "eight", "nine", "ten")
_NUMBERS: Final = {word: number for number, word in enumerate(_TO_TEN, start=1)} | {
    "a": 1,
    "an": 1,
    "another": 1,
    "some": 2,
    "both": 2,
}
AGENTS: Final = {
    "explore": "explore",
    "explorer": "explore",
    "general": "general",
    "helper": "general",
    "worker": "general",
    "plan": "plan",
    "planner": "plan",
    "researcher": "researcher",
    "reviewer": "reviewer",
}


_MARKS: Final = {
    "done": "completed",
    "finished": "completed",
    "open": "pending",
    "in progress": "in_progress",
    "running": "in_progress",
}
"""What people call a task's status."""
_STATUS: Final = (
    "pending|open|in_progress|in progress|running|blocked|completed|done|finished|failed|cancelled"
)
_COMMANDS: Final = dict.fromkeys(("the tests", "all tests", "the test suite"), "make test")
"""What a command is called that most people have."""
_NAMES: Final = re.compile(r",\s*(?:and\s+)?|\s+and\s+")


def number(word: str) -> int:
    """How many a word stands for; 0 where it is no number."""
    return _NUMBERS.get(word.lower()) or (int(word) if word.isdigit() else 0)


def _gated(groups: Groups) -> Wanted:
    command = _COMMANDS.get(groups["command"].lower(), groups["command"])
    # A script is seldom in the path, nor need it be executable.
    gate = f"sh {command}" if re.fullmatch(r"[\w./-]+\.sh", command) else command
    said: JsonObject = {"when": groups["when"], "text": groups["text"]}
    return Wanted("schedule_create", {**said, "gate": gate})


def _spawn(groups: Groups) -> Wanted | None:
    count, kind = number(groups["count"]), AGENTS.get(groups["kind"].lower().removesuffix("s"))
    if not 1 <= count <= 10 or kind is None:
        return None
    mode = "background" if groups.get("background") else "await"
    task = groups["task"]
    if count == 1:
        return Wanted("sessions_spawn", {"task": task, "type": kind, "mode": mode})
    agents: list[JsonValue] = [{"task": task, "type": kind} for _ in range(count)]
    return Wanted("sessions_spawn", {"agents": agents, "mode": mode})


def _question(groups: Groups) -> Wanted:
    text = groups["question"].strip()
    options: list[JsonValue] = []
    head, colon, tail = text.rpartition(":")
    if colon and " or " in f" {tail} ":
        text = head.strip()
        options = [one.strip() for one in re.split(r",|\bor\b", tail) if one.strip()]
    text = f"shall I {text[3:]}" if text.startswith("to ") else text
    question = f"{text[:1].upper()}{text[1:]}?"
    arguments: JsonObject = {"question": question}
    return Wanted("ask_user", arguments | ({"options": options} if options else {}))


def _listing(groups: Groups) -> Wanted:
    return Wanted("list_dir", {"path": groups.get("path") or groups.get("ls") or "."})


def _exec(groups: Groups) -> Wanted:
    said = groups["command"]
    arguments: JsonObject = {"command": _COMMANDS.get(said.lower(), said)}
    later = groups.get("background") or groups.get("told")
    return Wanted("exec", arguments | ({"background": True} if later else {}))


def _bare_exec(groups: Groups) -> Wanted:
    """A command without marks around it. One with a time in it is to run at that time."""
    if _TIMED.search(groups["command"]):
        return Wanted("schedule_create", {"text": f"run {groups['command']}", "ask": True})
    return _exec(groups)


def _task(groups: Groups) -> Wanted:
    named: list[JsonValue] = [*_NAMES.split(groups.get("blockers", ""))]
    blocked: JsonObject = {"blocked_by": named} if any(named) else {}
    return Wanted("task_create", {"title": groups["title"], **blocked})


def _waiting(groups: Groups) -> Wanted:
    named: list[JsonValue] = [*_NAMES.split(groups["blockers"])]
    return Wanted("task_update", {"id": groups["id"], "blocked_by": named})


def _marked(groups: Groups) -> Wanted:
    said = groups["status"].lower()
    return Wanted("task_update", {"id": groups["id"], "status": _MARKS.get(said, said)})


def _tasks(groups: Groups) -> Wanted | None:
    said = (groups.get("status") or groups.get("status2") or "").lower()
    status = _MARKS.get(said, said)
    return Wanted("task_list", {"status": status} if status else {})


def _moved(groups: Groups) -> Wanted:
    return _patch(f"*** Update File: {groups['path']}\n*** Move to: {groups['moved_to']}")


def _deleted(groups: Groups) -> Wanted:
    return _patch(f"*** Delete File: {groups['path']}")


def _patch(change: str) -> Wanted:
    return Wanted("apply_patch", {"patch": f"*** Begin Patch\n{change}\n*** End Patch\n"})


def _any_tool(groups: Groups) -> Wanted | None:
    try:
        arguments = read_json(groups.get("json", "{}"))
    except ValueError:
        return None
    return Wanted(groups["tool"], arguments) if isinstance(arguments, dict) else None


_BACKGROUND: Final = r"(?P<background>\s+in the background)?"
_DONE: Final = (
    r"tell me (?:when|once|as soon as) (?:it|they|this|that)"
    r"(?:(?: is|'s| are|'re) (?:done|over|finished|ready|through)| ends?| finish(?:es)?)"
)
JOINED: Final = re.compile(rf"\s*,?\s+(?:and )?(?={_DONE})", re.IGNORECASE)
"""What stands in front of a wish to be told of an end: it parts no sentences."""
_TOLD: Final = rf"(?P<told> {_DONE})?"
_ID: Final = r"(?P<id>\S+)"
_PATH: Final = r"(?P<path>Q|\S+)"
_FILE: Final = r"(?P<path>Q|[^\s\x00]*[./\\][^\s\x00]*|(?:README|LICENSE|Makefile|Dockerfile))"
_UNIT: Final = r"(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)\b"
_WEEKDAY: Final = (
    r"(?:mon|tue|tues|wed|thu|thurs|fri|sat|sun|monday|tuesday|wednesday|thursday|friday|saturday"
    r"|sunday)s?\b"
)
_OFTEN: Final = (
    rf"\b(?:every (?:\w+ )?(?:\d|(?:an )?{_UNIT}|{_WEEKDAY}|(?:weekday|weekend|month|year|morning"
    r"|afternoon|evening|night)s?\b))"
)
"""How what repeats begins. Which times there are is the tool's matter: it asks back for any other.
"""
_DAY: Final = rf"(?:(?:today|tomorrow|tonight|yesterday)\b|(?:on |next )?{_WEEKDAY})"
_ONCE: Final = (
    rf"(?:\bin (?:\d+ ?|half an |[a-z]+ ){_UNIT}|(?:{_DAY} )?\bat (?:\d[\d:.]* ?(?:[ap]\.?m\b\.?)?"
    rf"|noon\b|midnight\b)(?: {_DAY})?|\b{_DAY})"
)
_TIMED: Final = re.compile(rf"{_OFTEN}|(?<! -\w) {_ONCE}(?:\Z|,| and )", re.IGNORECASE)
_BEGINS: Final = rf"(?:in|at|on|next|noon|midnight)\b|{_DAY}|{_OFTEN}"

RULES: Final = (
    _built(r"(?:call|use) (?:the )?tool (?P<tool>Q|[\w.-]+)(?: with (?P<json>.+))?", _any_tool),
    _built(
        r"(?:list|show)(?: me)?(?: all)?(?: the| my)? files"
        rf"(?: (?:in|under|of) (?:the )?(?:folder |directory )?{_PATH})?"
        r"|ls(?: (?P<ls>Q|\S+))?|(?:what|which) files are (?:there|here)",
        _listing,
    ),
    _rule(
        r"read (?:the )?thread (?P<thread>Q|\S+)(?: in (?:the )?(?:channel )?"
        r"(?P<channel>Q|\S+))?",
        "read_channel_thread",
    ),
    _rule(
        r"(?:show|list|what)(?: me)?(?: are)?(?: the| my| all)? (?:schedules|reminders)",
        "schedule_list",
    ),
    _built(
        rf"(?:show|list)(?: me)?(?: the| my| all)?(?: (?P<status>{_STATUS}))? tasks"
        rf"(?: that are)?(?: (?P<status2>{_STATUS}))?",
        _tasks,
    ),
    _rule(
        r"(?:show|list)(?: me)?(?: the| my| all)? (?:agent types|types of agents)"
        r"|(?:which|what) agents (?:are there|can you (?:ask|spawn|start))",
        "agents_list",
    ),
    _rule(
        r"(?:show|list)(?: me)?(?: the| my| your| all)? (?:subagents|agents|children)",
        "subagents",
        action="list",
    ),
    _rule(
        r"(?P<action>show|stop|wait for) (?:the )?(?:subagent|agent|child) (?P<agent>\S+)",
        "subagents",
    ),
    _rule(
        r"(?:show )?(?:the )?output of (?:the )?(?:subagent|agent|child) (?P<agent>\S+)",
        "subagents",
        action="output",
    ),
    _rule(
        r"tell (?:the )?(?:subagent|agent|child) (?P<agent>\S+) (?:that |to )?(?P<text>.+)",
        "subagents",
        action="message",
    ),
    _rule(rf"show (?:the )?task {_ID}", "task_get"),
    _rule(r"stop (?:the )?task (?P<id>\S+?)(?:,? because (?P<reason>.+))?", "task_stop"),
    _built(
        rf"let (?:the )?task {_ID} wait for (?:the )?tasks? "
        r"(?P<blockers>\S+?(?:(?:,| and|, and) \S+?)*)",
        _waiting,
    ),
    _rule(rf"wait for (?:the )?task {_ID}", "task_output", wait_s=60),
    _rule(rf"(?:rename|call) (?:the )?task {_ID} (?:to )?(?P<title>.+)", "task_update"),
    _rule(rf"(?:show )?(?:the )?output of (?:the )?task {_ID}", "task_output"),
    _rule(
        rf"type (?P<text>Q) (?:into|to) (?P<command>Q) (?:of|in) (?:the )?task {_ID}", "task_write"
    ),
    _built(rf"mark (?:the )?task {_ID} (?:as )?(?P<status>in progress|\w+)", _marked),
    _built(
        r"(?:add|create|make) a task(?: to|:| for| named| called)? (?P<title>.+?)"
        r"(?:,? (?:after|blocked by|behind) (?:the )?tasks? "
        r"(?P<blockers>\S+?(?:(?:,| and|, and) \S+?)*))?",
        _task,
    ),
    *(
        _rule(rf"{verb} (?:the )?(?:schedule|reminder) {_ID}", f"schedule_{tool}")
        for verb, tool in (
            ("show", "get"),
            ("pause", "pause"),
            ("resume", "resume"),
            ("trigger", "trigger"),
            ("(?:cancel|delete)", "cancel"),
        )
    ),
    _rule(rf"rename (?:the )?(?:schedule|reminder) {_ID} to (?P<name>.+)", "schedule_update"),
    _rule(rf"move (?:the )?(?:schedule|reminder) {_ID} to (?P<when>.+)", "schedule_update"),
    _rule(
        rf"(?P<when>(?:{_BEGINS}).{{0,150}}?)[,:]? (?:please )?remind (?:me|us)[\s:,]+"
        r"(?:to |that |about )?(?P<text>.+)",
        "schedule_create",
    ),
    _rule(r"remind (?:me|us)[\s:,]+(?P<text>.+)", "schedule_create"),
    _built(
        rf"(?P<when>{_OFTEN}.{{0,100}}?)[,:]? (?:run|execute) (?:the command )?"
        r"(?P<command>Q|\S.*?),? and "
        r"(?P<text>(?:tell|inform|warn) (?:\w+ ){1,2}(?:about|of|if|when|whether)\b.+)",
        _gated,
    ),
    _rule(rf"(?P<text>{_OFTEN}.+)", "schedule_create", ask=True),
    _rule(r"remember(?: that|:)? (?P<content>.+)", "remember"),
    _rule(r"what do you (?:remember|know) about (?P<query>.+)|recall (?P<query2>.+)", "recall"),
    _rule(
        r"ask (?:your|the) parent(?: agent)?(?: whether| if| about)? (?P<question>.+)",
        "request_parent_clarification",
    ),
    _built(
        r"(?:ask|start|spawn|have|let) (?P<count>\w+) (?P<kind>[a-z]+)(?: agents?| subagents?)?"
        rf"(?: to)? (?P<task>.+?){_BACKGROUND}",
        _spawn,
    ),
    _built(r"ask me(?: whether| if| about)?:? (?P<question>.+)", _question),
    _rule(
        r"(?:use|load|read) (?:the )?skill (?P<name>Q|\S+)"
        r"|use the (?P<name2>Q|\S+) skill",
        "use_skill",
    ),
    _rule(
        rf"(?:write|save|put) (?P<content>Q) (?:to|into|in) (?:the )?(?:file )?{_PATH}",
        "write_file",
    ),
    _rule(
        rf"(?:create|make|write) (?:a |the )?(?:new )?file (?:named |called )?{_PATH} "
        r"(?:with|containing|that says|saying)(?: the)?(?: text| content)?:? (?P<content>.+)",
        "write_file",
    ),
    _rule(
        r"(?:replace|change) (?P<old_text>Q) (?:with|by|to|into) (?P<new_text>Q) in "
        rf"(?:the )?(?:file )?{_PATH}",
        "edit_file",
    ),
    _rule(r"apply (?:this|the) patch:?\s+(?P<patch>Q)", "apply_patch"),
    _built(
        rf"(?:move|rename) (?:the )?(?:file )?{_FILE} (?:to|into|as) (?P<moved_to>Q|\S+)", _moved
    ),
    _built(rf"(?:delete|remove) (?:the )?(?:file )?{_FILE}", _deleted),
    _rule(
        r"find (?:all )?(?:the )?files?(?: (?:matching|named|like))? (?P<pattern>Q|\S+)"
        r"|find (?P<pattern2>Q|\S*[*?]\S*)",
        "glob",
    ),
    _rule(
        r"(?:search for|grep(?: for)?|look for) (?P<pattern>Q|.+?)"
        r"(?: (?:in|under) (?P<path>Q|\S+))?",
        "grep",
    ),
    _built(rf"(?:run|execute) (?:the command )?(?P<command>Q){_BACKGROUND}{_TOLD}", _exec),
    _built(rf"(?:run|execute) (?:the command )?(?P<command>\S.*?){_BACKGROUND}{_TOLD}", _bare_exec),
    _rule(r"(?:fetch|get|open|read|download) (?P<url>https?://\S+)", "web_fetch"),
    _rule(
        r"where is (?:the )?(?:file )?(?P<filename>Q|\S+)"
        r"(?: in (?:the )?(?P<kind>workspace|memory|skills|outputs))?",
        "resolve_path",
        kind="workspace",
    ),
    _rule(
        rf"(?:send|give|upload|attach)(?: me)?(?: the| a)?(?: file)? {_FILE}"
        r"(?: (?:with|saying)(?: the)?(?: caption| words)? (?P<caption>Q))?",
        "send_file",
    ),
    _rule(r"send (?P<text>Q) to (?P<to>Q|\S+)", "send_message"),
    _rule(
        r"publish (?P<text>Q) (?:to|in) (?:the )?(?:channel )?(?P<channel>Q|\S+)",
        "publish_to_channel",
    ),
    _rule(
        r"react (?:to (?:the )?message )(?P<message>Q|\S+) with (?P<reaction>Q|\S+)"
        r"(?: in (?:the )?(?:channel )?(?P<channel>Q|\S+))?",
        "set_channel_reaction",
    ),
    _rule(
        r"(?:read|show|open|cat|print)(?: me)?(?: the)?(?: file)? "
        rf"{_FILE}",
        "read_file",
    ),
    _rule(r"(?:read|cat) (?:the )?(?:file )?(?P<path>[^\s\x00]+)", "read_file"),
)
