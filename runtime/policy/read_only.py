"""Whether a command only reads: every program in it is known to change nothing (TOOL-7). Pure.

Doubt means no. The answer is for people and models, who mend a command by it; it is no promise on
which anything is written: what is judged so runs in a view of the sandbox that cannot be written.
"""

from runtime.policy.harmless import refused
from runtime.policy.shell_syntax import NotRead, simple_commands


def not_read_only(command: str) -> str | None:
    """Why `command` may change something, in a few words; None when it surely only reads."""
    try:
        found = (refused(simple.words) for simple in simple_commands(command))
        return next((reason for reason in found if reason is not None), None)
    except NotRead as error:
        return str(error)
