"""The words of cards that ask a person, as Markdown. Pure."""

import re
from typing import Final

from runtime.domain.messages import ApprovalPart, QuestionPart

LABELS: Final = {
    "once": "Allow once",
    "session": "Allow for this session",
    "approve": "Approve",
    "deny": "Deny",
}
"""What the button of each choice says."""
SCOPES: Final = {"once": "once", "session": "for this session"}
"""For how long a choice that allows a call does so."""


def approval_text(part: ApprovalPart) -> str:
    """Which call, with what exactly, and why it is asked."""
    tick = fence(part.arguments)
    risk = f"**{part.risk.words}**\n\n" if part.risk else ""
    reason = f"{part.reason}\n\n" if part.reason else ""
    return (
        f"**Approval needed for** {code(part.tool)}\n\n{risk}{reason}"
        f"{tick}\n{part.arguments}\n{tick}"
    )


def question_text(part: QuestionPart) -> str:
    """What is asked, and the options by their numbers."""
    options = "".join(f"\n{number}. {text}" for number, text in enumerate(part.options, start=1))
    return f"{part.question}\n{options}"


def code(text: str) -> str:
    """`text` as Markdown's code inside a line."""
    ticks = fence(text, shortest=1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def fence(text: str, *, shortest: int = 3) -> str:
    """Backticks that `text` cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(shortest, longest + 1)
