"""What was heard and helps what goes out; all of it can be asked for again or done without."""

from dataclasses import dataclass, field

from adapters.platforms.recent_values import Recent
from adapters.slack.experience import Experience


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asked last in a thread: a stream in a channel is shown to somebody."""

    user: str
    team: str


@dataclass(slots=True)
class Memory:
    """What was heard, for what goes out: chat -> the thread under which a status can be shown, and
    (chat, thread) -> who asked there. `experience` is what the events prove of the application."""

    last_heard: Recent[str, str] = field(default_factory=Recent)
    askers: Recent[tuple[str, str], Asker] = field(default_factory=Recent)
    experience: Experience | None = None

    def notice(self, proven: Experience | None) -> None:
        """Believe an event. The agent view cannot be undone: an older event that comes late, or
        again, proves nothing against it."""
        if proven is not None and self.experience != "agent":
            self.experience = proven
