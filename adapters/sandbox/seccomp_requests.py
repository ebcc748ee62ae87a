"""The questions that a filter asks its supervisor, as seccomp_unotify(2) has them.

Standard library only, and little of it, as in `launch_spec`.
"""

import errno
import struct
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    Judge = Callable[["Question"], int | None]
    """The value of a call, or None to let it go on. Raises `OSError` to refuse it."""

_RECEIVE, _SEND, _STILL_VALID = 0xC0502100, 0xC0182101, 0x40082102
# struct seccomp_notif: id, pid, flags, nr, arch, instruction pointer, six arguments.
_QUESTION = struct.Struct("<QIIiIQ6Q")
# id, value, error, flags
_ANSWER = struct.Struct("<QqiI")
_CONTINUE = 1


class Question:
    """One call of a thread of this host: its number and its six arguments."""

    def __init__(self, listener: int, raw: bytes) -> None:
        self._listener = listener
        self._id, self.pid, _, self.number, _, _, *self.arguments = _QUESTION.unpack(raw)

    def still_asked(self) -> None:
        """Raises `OSError` where the caller is gone: its pid may be another's now."""
        ioctl(self._listener, _STILL_VALID, struct.pack("<Q", self._id))

    def answer(self, value: int, error: int, flags: int) -> None:
        """Let the caller go on with this. Raises `OSError` where it is gone."""
        ioctl(self._listener, _SEND, _ANSWER.pack(self._id, value, error, flags))


def answer_one(listener: int, judge: "Judge") -> None:
    """Take one question and answer it; a caller that died meanwhile is passed over."""
    buffer = bytearray(_QUESTION.size)
    with suppress(OSError):
        ioctl(listener, _RECEIVE, buffer)
        question = Question(listener, bytes(buffer))
        value, error, flags = 0, 0, 0
        try:
            answer = judge(question)
            value, flags = (0, _CONTINUE) if answer is None else (answer, 0)
        except OSError as refused:
            error = -(refused.errno or errno.EPERM)
        except (ValueError, OverflowError):
            error = -errno.EINVAL
        question.answer(value, error, flags)
