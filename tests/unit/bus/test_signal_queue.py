"""What waits to be sent: joined where it is one text, bounded, in order."""

import pytest

from runtime.bus.signal_format import MAX_SIGNAL_BYTES, Decoder, Encoder
from runtime.bus.signal_queue import TEXT_CHARS, Outgoing
from runtime.domain.value import JsonObject
from runtime.ports.bus import EVENTS, LIVE, RUNS, Signal


class Pair:
    """A queue, and the reader of what comes out of it."""

    def __init__(self, *, limit: int = 100, limit_chars: int = 1_000_000) -> None:
        encoder = Encoder()
        self.queue = Outgoing(encoder, limit=limit, limit_chars=limit_chars)
        self._decoder = Decoder("me")
        self.gaps = 0

    def put(self, topic: str, data: JsonObject) -> None:
        self.queue.put(Signal(topic=topic, data=data))

    def text(self, offset: int, text: str, *, run: str = "run_1", step: int = 1) -> None:
        self.put(
            LIVE,
            {
                "type": "delta",
                "session_id": f"ses_of_{run}",
                "run_id": run,
                "step": step,
                "offset": offset,
                "text": text,
            },
        )

    def read(self, most: int = 1_000) -> list[Signal]:
        found = []
        for payload in self.queue.take(max_bytes=7_999, most=most):
            one = self._decoder.feed(payload)
            self.gaps += one.gap
            if one.signal is not None:
                found.append(one.signal)
        return found

    def read_texts(self) -> list[tuple[object, object, object]]:
        return [
            (one.data["run_id"], one.data["offset"], one.data["text"])
            if one.topic == LIVE
            else (one.topic, None, None)
            for one in self.read()
        ]


def test_the_pieces_of_one_step_become_one() -> None:
    pair = Pair()
    pair.text(0, "Hel")
    pair.text(3, "lo")
    pair.text(5, ", you")
    assert pair.read_texts() == [("run_1", 0, "Hello, you")]
    pair.text(10, "!")
    assert pair.read_texts() == [("run_1", 10, "!")]


def test_runs_that_write_at_once_are_joined_each_for_itself() -> None:
    pair = Pair()
    for offset in range(3):
        pair.text(offset, "a", run="run_1")
        pair.text(offset, "b", run="run_2")
        pair.put(RUNS, {})
    assert pair.read_texts() == [
        ("run_1", 0, "aaa"),
        ("run_2", 0, "bbb"),
        *[(RUNS, None, None)] * 3,
    ]


@pytest.mark.parametrize(
    ("step", "offset"), [(1, 0), (1, 4), (1, 2), (2, 3)], ids=["anew", "hole", "again", "next step"]
)
def test_what_does_not_follow_is_not_joined(step: int, offset: int) -> None:
    pair = Pair()
    pair.text(0, "abc")
    pair.text(offset, "def", step=step)
    assert pair.read_texts() == [("run_1", 0, "abc"), ("run_1", offset, "def")]


def test_text_does_not_pass_another_signal_of_its_session() -> None:
    pair = Pair()
    pair.text(0, "abc")
    pair.put(EVENTS, {"session_id": "ses_of_run_1"})
    pair.text(3, "def")
    assert pair.read_texts() == [("run_1", 0, "abc"), (EVENTS, None, None), ("run_1", 3, "def")]


def test_a_long_text_is_cut_at_offsets_and_joined_no_further() -> None:
    pair = Pair()
    text = "".join(chr(0x4E00 + number % 5_000) for number in range(2 * TEXT_CHARS + 10))
    pair.text(7, text)
    pair.text(7 + len(text), "x" * TEXT_CHARS)
    found = pair.read_texts()
    assert [(offset, len(str(piece))) for _, offset, piece in found] == [
        (7, TEXT_CHARS),
        (7 + TEXT_CHARS, TEXT_CHARS),
        (7 + 2 * TEXT_CHARS, 10),
        (17 + 2 * TEXT_CHARS, TEXT_CHARS),
    ]
    assert "".join(str(piece) for *_, piece in found) == text + "x" * TEXT_CHARS


def test_an_empty_text_that_starts_a_step_anew_is_sent() -> None:
    pair = Pair()
    pair.text(0, "")
    assert pair.read_texts() == [("run_1", 0, "")]


def test_a_delta_of_another_shape_goes_as_it_is() -> None:
    pair = Pair()
    data: JsonObject = {"type": "delta", "text": "x", "of a later version": True}
    pair.put(LIVE, data)
    assert [one.data for one in pair.read()] == [data]


@pytest.mark.requirement("MSG-21")
def test_the_oldest_give_way_and_the_reader_sees_it() -> None:
    pair = Pair(limit=3)
    pair.put(RUNS, {"number": -1})
    pair.read()
    for number in range(5):
        pair.put(RUNS, {"number": number})
    assert pair.queue.dropped == 2
    assert [one.data["number"] for one in pair.read()] == [2, 3, 4]
    assert pair.gaps == 1


@pytest.mark.requirement("MSG-21")
def test_the_queue_is_bounded_in_characters_too() -> None:
    pair = Pair(limit_chars=10_000)
    for number in range(100):
        pair.text(number * 1_000, "x" * 1_000)
    kept = sum(len(str(text)) for *_, text in pair.read_texts())
    assert kept == 10_000
    pair.text(0, "y" * 50_000)
    assert sum(len(str(text)) for *_, text in pair.read_texts()) == 10_000


def test_a_dropped_text_takes_no_more() -> None:
    pair = Pair(limit=1)
    pair.text(0, "abc")
    pair.put(RUNS, {})
    pair.text(3, "def")
    assert pair.read_texts() == [("run_1", 3, "def")]


@pytest.mark.requirement("MSG-21")
def test_a_signal_that_is_too_long_is_counted_and_seen_as_lost() -> None:
    pair = Pair(limit_chars=10 * MAX_SIGNAL_BYTES)
    pair.put(RUNS, {"number": 1})
    pair.put(RUNS, {"text": "x" * MAX_SIGNAL_BYTES})
    pair.put(RUNS, {"number": 2})
    assert pair.queue.dropped == 1
    assert [one.data for one in pair.read(most=1)] == [{"number": 1}]
    assert pair.gaps == 0
    assert [one.data for one in pair.read()] == [{"number": 2}]
    assert pair.gaps == 1


def test_a_batch_takes_the_oldest_and_leaves_the_others() -> None:
    pair = Pair()
    for number in range(5):
        pair.put(RUNS, {"number": number})
    assert [one.data["number"] for one in pair.read(most=2)] == [0, 1]
    assert len(pair.queue) == 3
    assert [one.data["number"] for one in pair.read()] == [2, 3, 4]
    assert pair.queue.take(max_bytes=7_999, most=10) == []
