"""What was heard and helps what goes out; all of it can be asked for again or done without."""

from dataclasses import dataclass, field

from adapters.platforms.recent_values import Recent


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asked last in a thread: a stream in a channel is shown to somebody."""

    user: str
    team: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What was heard, for what goes out: chat -> the thread under which a status can be shown, and
    (chat, thread) -> who asked there."""

    last_heard: Recent[str, str] = field(default_factory=Recent)
    askers: Recent[tuple[str, str], Asker] = field(default_factory=Recent)
