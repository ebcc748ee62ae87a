"""What a soak found, in numbers and in words. It measures nothing itself."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import linear_regression
from typing import Final

from tests.soak.ledger import Ledger

WINDOWS: Final = 10
WARM_UP_S: Final = 180.0
"""Of a process: windows of conversations fill and the allocator finds its size (measured: 6.5, 3.2,
1.5 and 1.2 MB in the minutes 2 to 5, with a steady number of objects)."""
LONG_ENOUGH_S: Final = 150.0
"""How long a process must be watched after its warm-up before its slope says anything."""
FLAT_MB_A_MINUTE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The weight of one gateway at one moment."""

    at: float
    pid: int
    resident_mb: float


@dataclass(frozen=True, slots=True)
class Slope:
    """The growth of the process that was watched for longest, `seconds` after its warm-up."""

    seconds: float
    megabytes_a_minute: float


@dataclass
class Report:
    """Everything to judge a soak by."""

    seconds: float
    seed: int
    ledger: Ledger
    samples: list[Sample] = field(default_factory=list)
    oddities: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    wrong_effects: list[str] = field(default_factory=list)
    unsent: dict[str, int] = field(default_factory=dict)
    effects: int = 0
    restarts: int = 0
    latest_s: float = 0.0

    @property
    def lost(self) -> list[str]:
        """What nobody answered and nothing excuses."""
        return [f"{one.token} {one.kind} in {one.place}" for one in self.ledger.open]

    @property
    def unexplained(self) -> list[str]:
        """Deliveries of unknown fate without a fault near them."""
        found = (one for one in self.ledger.unknown if not one.explained_by)
        return [f"{one.token or one.outbox_id}: {one.reason}" for one in found]

    def faults(self) -> list[str]:
        """Everything that must be empty, each line one fault of the gateway."""
        ledger = self.ledger
        named: dict[str, Sequence[str]] = {
            "lost": self.lost,
            "doubled": [f"{one.token} {one.posts} times in {one.place}" for one in ledger.doubled],
            "out of order": ledger.out_of_order,
            "astray": ledger.strays,
            "failed": ledger.failures,
            "dead delivery": self.dead,
            "unexplained": self.unexplained,
            "effect": self.wrong_effects,
            "odd": self.oddities,
            "still to be sent": [f"{state} {count}" for state, count in self.unsent.items()],
        }
        slope = self.slope()
        if slope and slope.seconds >= LONG_ENOUGH_S:
            grows = slope.megabytes_a_minute > FLAT_MB_A_MINUTE
            named["memory"] = [f"{slope.megabytes_a_minute:.2f} MB a minute"] if grows else []
        return [f"{name}: {one}" for name, found in named.items() for one in found]

    def slope(self) -> Slope | None:
        """How the resident memory grows; None where no process lived past its warm-up."""
        lives: dict[int, list[Sample]] = defaultdict(list)
        for sample in self.samples:
            lives[sample.pid].append(sample)
        longest = max(lives.values(), key=lambda life: life[-1].at - life[0].at, default=[])
        warm = [one for one in longest if one.at >= longest[0].at + WARM_UP_S]
        if len(warm) < 3:
            return None
        found = linear_regression([one.at for one in warm], [one.resident_mb for one in warm])
        return Slope(warm[-1].at - warm[0].at, found.slope * 60)

    def lines(self) -> Iterator[str]:
        """The report for people."""
        ledger = self.ledger
        answered = [one for one in ledger.wishes.values() if one.posts]
        excused = [one for one in ledger.wishes.values() if one.excuse == "stopped"]
        yield f"soak of {self.seconds:.0f} s, seed {self.seed}, closed at {self.latest_s:.0f} s"
        yield (
            f"messages {len(ledger.wishes)}, answered {len(answered)}, stopped {len(excused)}, "
            f"effects {self.effects}, of unknown outcome {len(ledger.unsure)}"
        )
        struck = Counter(one.name for one in ledger.faults)
        yield f"restarts {self.restarts}, faults " + ", ".join(
            f"{count} {name}" for name, count in sorted(struck.items())
        )
        yield (
            f"lost {len(self.lost)}, doubled {len(ledger.doubled)}, "
            f"out of order {len(ledger.out_of_order)}, failed {len(ledger.failures)}"
        )
        yield f"unknown deliveries {len(ledger.unknown)}, unexplained {len(self.unexplained)}"
        for one in ledger.unknown:
            shown = self._shown(one.token)
            yield f"  {one.token or one.outbox_id} ({shown}): {one.reason}; {one.explained_by}"
        yield from self._windows()
        slope = self.slope()
        if slope:
            yield (
                f"memory grows by {slope.megabytes_a_minute:+.2f} MB a minute over "
                f"{slope.seconds:.0f} s after warm-up"
            )
        found = self.faults()
        yield from (f"FAULT {one}" for one in found)
        yield "nothing is wrong" if not found else f"{len(found)} faults"

    def _shown(self, token: str) -> str:
        wish = self.ledger.wishes.get(token)
        if wish is None:
            return "no reply"
        return "seen" if wish.posts else "not seen"

    def _windows(self) -> Iterator[str]:
        yield "from s  answers   p50 ms   p95 ms   p99 ms   max ms  resident MB"
        width = max(self.seconds / WINDOWS, 1.0)
        edges = [width * number for number in range(WINDOWS + 1)]
        for since, until in pairwise(edges):
            took = self.ledger.latencies_ms(since, until)
            weights = [one.resident_mb for one in self.samples if since <= one.at < until]
            shares = [_share(took, share) for share in (0.5, 0.95, 0.99, 1.0)]
            columns = " ".join(f"{one:8.0f}" for one in shares)
            yield f"{since:6.0f} {len(took):8d} {columns} {max(weights, default=0):12.1f}"


def _share(ordered: Sequence[float], share: float) -> float:
    if not ordered:
        return 0.0
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
