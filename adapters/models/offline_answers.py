"""What the offline model says: who it is, what it can do, and what came of a call.

Pure, and honest in every text: it follows plain sentences and understands nothing else.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from adapters.models import offline_batches
from adapters.models.offline_grammar import Wanted
from adapters.models.offline_sentences import Step
from runtime.domain.files import ReceivedFile
from runtime.domain.tools import TO_THE_PERSON, ToolCall, ToolResult

_SHOWN: Final = 3_000
_QUOTED: Final = 80
_FILES: Final = 10
_GREETING: Final = re.compile(
    r"\s*(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings|yo|howdy|hallo|moin|hola|"
    r"salut|test|ping)\b[\s,!.?]*(?:there|gatehouse|all|everyone)?[\s!.?]*",
    re.IGNORECASE,
)
_HELP: Final = re.compile(
    r"\s*/?(?:help|what can you do(?: here)?|who are you|what are you|how do you work|"
    r"what is this)(?: me| please)?[\s!.?]*",
    re.IGNORECASE,
)
_REMINDER: Final = re.compile(r"\s*reminder:\s*(?P<text>.+)", re.IGNORECASE | re.DOTALL)

_ACCEPTED: Final = re.compile(r'^\{"status": "accepted", "agent_id": "([\w.-]+)"', re.MULTILINE)

WHO: Final = (
    "I am the offline model: I understand only a few plain sentences. "
    "I work without a key and without a network."
)
HOW: Final = (
    "For a real model, set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY` or "
    "`OPENAI_BASE_URL` and start the gateway again, or run Ollama on this machine, which I find "
    "by myself; `models.default` chooses one by name."
)
_EXAMPLES: Final[tuple[tuple[str, str], ...]] = (
    ("list_dir", "list files"),
    ("read_file", "read AGENTS.md and USER.md"),
    ("write_file", "write 'hello' to hello.txt"),
    ("edit_file", "write 'tea' to list.txt, then replace 'tea' with 'coffee' in list.txt"),
    ("apply_patch", "write 'plan' to draft.md, then rename draft.md to done.md"),
    ("send_file", "send me AGENTS.md"),
    ("glob", "write 'milk' to shopping.md, then find files *.md"),
    ("grep", "search for notes in AGENTS.md"),
    ("exec", "run `ls -l`"),
    ("web_fetch", "fetch https://example.com"),
    ("remember", "remember that the demo is on Friday"),
    ("recall", "what do you remember about the demo"),
    ("schedule_create", "remind me in 10 seconds to stretch"),
    ("sessions_spawn", "ask two explorers to read AGENTS.md and USER.md, then compare"),
    ("sessions_spawn", "ask two explorers to list files in the background"),
    ("ask_user", "ask me whether to go on: yes or no"),
    ("use_skill", "use skill meeting-notes"),
    ("exec", "run `sleep 5` in the background and tell me when it is done"),
    ("task_create", "add a task to water the plants"),
    ("task_list", "show my tasks"),
    ("list_dir", 'use tool `list_dir` with `{"path": "memory"}`'),
)
"""Each works as it stands in a home that was just made (OPS-11)."""

_ASK_BACK: Final = ("schedule_create", "schedule_update")
"""Tools that give what to ask the person: it is said as it stands."""
_REPEATED: Final = (
    "At a time that comes again, \u201cevery weekday at 9: TEXT\u201d has me do it, and "
    "\u201cremind me every weekday at 9: TEXT\u201d has me say it. `/schedules` lists both, and "
    "`/tasks` lists what there is to do."
)

_FAILURES: Final[Mapping[str, str]] = {"exec": "The command did not succeed:"}
_INTRODUCTIONS: Final[Mapping[str, str]] = {
    "list_dir": "Here is what I found:",
    "read_file": "Here is the content:",
    "glob": "These files match:",
    "grep": "This is what the search found:",
    "exec": "The command answered:",
    "web_fetch": "This is what the page says:",
    "recall": "This is what I remember:",
    "resolve_path": "It is here:",
    "use_skill": "The skill says:",
    "ask_user": "You answered:",
    "sessions_spawn": "The agents answered:",
    "remember": "I will remember that.",
    "schedule_create": "It is scheduled.",
    "task_create": "It is on the list:",
    "task_list": "These are the tasks:",
    "task_get": "This is the task:",
    "task_update": "It is changed:",
    "task_output": "This is how it stands:",
    "write_file": "It is written.",
    "send_file": "Here it is.",
    "send_message": "It is sent:",
    "edit_file": "It is changed.",
    "apply_patch": "The patch is applied:",
}


def about(text: str, *, wish: str, tools: Sequence[str]) -> str:
    """The answer to a message that asks for no tool; `wish` is the part that is not quoted."""
    if _GREETING.fullmatch(wish):
        return f"Hello. {WHO} Say `help` to see the sentences.\n\n{HOW}"
    if _HELP.fullmatch(wish):
        return help_text(tools)
    if reminder := _REMINDER.fullmatch(wish):
        return f"A reminder, as you asked: {reminder['text'].strip()}"
    if wish != text:
        return f"{WHO} This was handed to me:{_fenced(text)}"
    said = " ".join(text.split())
    quoted = f"{said[:_QUOTED]}..." if len(said) > _QUOTED else said
    heard = f"You said: \u201c{quoted}\u201d. " if quoted else ""
    return f"{WHO} {heard}I do not understand that. Say `help` to see what I understand.\n\n{HOW}"


def received(files: Sequence[ReceivedFile]) -> str:
    """One sentence about the files that came with what was asked."""
    lines = "; ".join(f"`{one.line}`" for one in files[:_FILES])
    more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
    count = "a file" if len(files) == 1 else f"{len(files)} files"
    return f"I got {count}, which I cannot read: {lines}{more}."


def noticed(notices: Sequence[str], needed: Collection[str] = ()) -> str:
    """The answer where nobody spoke but the gateway did: agents are back, or whatever it says.

    For those who are `needed` by others a line is enough: what came of them all is said later.
    """
    found = offline_batches.findings("\n".join(notices))
    if found:
        return "\n\n".join(
            f"`{one.name}` has finished. Another one continues with its result."
            if one.name in needed
            else f"`{one.name}` is back:\n\n{_cut(one.text)}"
            for one in found
        )
    return f"{WHO} The gateway tells me:{_fenced(chr(10).join(notices))}"


def news(notices: Sequence[str]) -> str:
    """What came from outside with words that ask for no tool, such as "tell me about new orders";
    empty where nothing came."""
    found = offline_batches.findings("\n".join(notices))
    return "\n\n".join(f"This is new:{_fenced(one.text)}" for one in found)


def left_undone(steps: Sequence[Step]) -> str:
    """Names the steps that were not taken because one before them failed."""
    tools = ", ".join(f"`{wanted.tool}`" for step in steps for wanted in step.calls)
    return f"So I did not go on with: {tools}."


def help_text(tools: Sequence[str]) -> str:
    """The sentences whose tools are there."""
    lines = [f"- {sentence}" for tool, sentence in _EXAMPLES if tool in tools]
    if not lines:
        return f"{WHO} There are no tools in this conversation, so I can only talk.\n\n{HOW}"
    examples = "\n".join(lines)
    repeated = f"\n\n{_REPEATED}" if "schedule_create" in tools else ""
    return (
        f"{WHO}\n\nTry:\n\n{examples}"
        "\n\nJoin two sentences with \u201cthen\u201d, and two readings with \u201cand\u201d. "
        "Say \u201cuse tool\u201d, as above, for any other tool, with its arguments as JSON."
        f"{repeated}"
        f"\n\n{HOW}"
    )


def not_offered(missing: Sequence[Wanted]) -> str:
    """The answer where a sentence was understood and its tool is not there."""
    tools = ", ".join(dict.fromkeys(f"`{wanted.tool}`" for wanted in missing))
    plural = "tools" if "," in tools else "tool"
    return f"{WHO} I understood you, but the {plural} {tools} may not be used in this conversation."


def report(calls: Sequence[ToolCall], results: Mapping[str, ToolResult]) -> str:
    """What came of the calls, one paragraph each."""
    return "\n\n".join(_outcome(call, results.get(call.id)) for call in calls)


def _outcome(call: ToolCall, result: ToolResult | None) -> str:
    if result is None or result.status == "unknown":
        return f"I do not know whether `{call.name}` took effect, so I stop here." + _block(result)
    match result.status:
        case "error" if call.name in _ASK_BACK and TO_THE_PERSON in result.content:
            return result.content.partition(TO_THE_PERSON)[2]
        case "error":
            return _FAILURES.get(call.name, f"`{call.name}` did not work:") + _block(result)
        case "denied":
            return f"`{call.name}` was not allowed:" + _block(result)
        case "cancelled":
            return f"`{call.name}` was stopped before it was done." + _block(result)
    if call.name == offline_batches.SPAWN:
        return _agents_answered(call, result)
    return _INTRODUCTIONS.get(call.name, f"`{call.name}` answered:") + _block(result)


def _agents_answered(call: ToolCall, result: ToolResult) -> str:
    """What those said whom nobody waits for: the others' words went into theirs."""
    needed = offline_batches.needed([call])
    if begun := _ACCEPTED.findall(result.content):
        names = ", ".join(f"`{name}`" for name in begun)
        way = "1 is on its way" if len(begun) == 1 else f"{len(begun)} are on their way"
        return f"{way}: {names}. I will tell you the result."
    found = offline_batches.findings(result.content)
    ends = [one for one in found if one.name not in needed]
    if not ends:
        return _INTRODUCTIONS[call.name] + _block(result)
    said = [f"`{one.name}` says:\n\n{_cut(one.text)}" for one in ends]
    said += [
        f"`{name}` said nothing: it {how}." for name, how in offline_batches.silent(result.content)
    ]
    return "\n\n".join(said)


def _block(result: ToolResult | None) -> str:
    return _fenced(result.content) if result is not None else ""


def _cut(content: str) -> str:
    cut = len(content) - _SHOWN
    return f"{content[:_SHOWN]}\n[{cut} more characters]" if cut > 0 else content


def _fenced(text: str) -> str:
    content = text.strip("\n")
    if not content.strip():
        return ""
    return f"\n\n{offline_batches.fenced(_cut(content))}"
