"""The environment of a command: made from nothing, so that no secret of the gateway can pass."""

from runtime.domain.errors import InvalidInput
from runtime.domain.printable import quoted
from runtime.ports.sandbox import TASK_TOKEN, SandboxCommand

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment_of(command: SandboxCommand, *, temporary: str, token: str) -> dict[str, str]:
    """A minimal environment, then what the caller granted, then the token of the tree.

    Raises `InvalidInput` for a name of the gateway's own settings (GATEHOUSE_*) and for names and
    values that no environment can hold.
    """
    for name, value in command.env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise InvalidInput(
                "env", f"{quoted(name)} is no name of a variable, or its value has a NUL"
            )
        if name.upper().startswith("GATEHOUSE_"):
            raise InvalidInput("env", f"{name} is a setting of the gateway and stays out")
    return {
        "PATH": _PATH,
        "HOME": temporary,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **command.env,
        TASK_TOKEN: token,
    }
