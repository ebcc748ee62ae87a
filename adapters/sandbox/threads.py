"""Which threads of a process still live; standard library only, and little of it, as in
`launch_spec`.

A process whose first thread has left looks dead by its pid, although its other threads go on.
"""

import contextlib
import os

DEAD = (b"Z", b"X")


def stat_fields(process: str) -> list[bytes]:
    """What proc(5) stat says after the program's name, from the state on. Raises `OSError`.

    `process` is the folder of a process or a thread.
    """
    # The program's name stands in brackets and may hold anything, brackets and spaces included.
    with open(f"{process}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def living(pid: int) -> tuple[int, ...]:
    """The threads of a process that still run; none when all of it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                if stat_fields(f"/proc/{pid}/task/{thread}")[0] not in DEAD:
                    found.append(int(thread))
    return tuple(found)


def is_dead(pid: int, state: bytes) -> bool:
    """Whether nothing of a process in this state runs any more."""
    return state in DEAD and not living(pid)
