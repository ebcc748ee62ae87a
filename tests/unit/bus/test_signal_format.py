"""Payloads between replicas: whole, in order, and every loss is seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.bus.signal_format import MAX_SIGNAL_BYTES, Decoder, Encoder, to_json
from runtime.ports.bus import RUNS, Signal
from tests.support.profiles import examples


def signal(number: int = 1, text: str = "") -> Signal:
    return Signal(topic=RUNS, data={"number": number, "text": text})


def received(decoder: Decoder, payloads: list[str]) -> list[Signal]:
    found = [decoder.feed(payload) for payload in payloads]
    assert not any(one.gap for one in found)
    return [one.signal for one in found if one.signal is not None]


@examples(30)
@given(st.text(max_size=600), st.integers(80, 400))
def test_what_is_written_is_read_whatever_the_payload_holds(text: str, max_bytes: int) -> None:
    encoder = Encoder()
    payloads = encoder.encode(to_json(signal(1, text)), max_bytes)
    assert all(len(payload.encode()) <= max_bytes for payload in payloads)
    assert received(Decoder("me"), payloads) == [signal(1, text)]


def test_the_gap_of_one_reader_is_not_sent_on() -> None:
    body = to_json(signal().model_copy(update={"gap": True}))
    assert received(Decoder("me"), Encoder().encode(body, 7_999)) == [signal()]


def test_what_one_published_oneself_is_passed_over() -> None:
    encoder = Encoder()
    found = Decoder(encoder.publisher).feed(encoder.encode(to_json(signal()), 7_999)[0])
    assert found.signal is None
    assert not found.gap


def test_two_publishers_do_not_disturb_each_other() -> None:
    decoder, left, right = Decoder("me"), Encoder(), Encoder()
    long, short = signal(1, "x" * 400), signal(2)
    first, *others = left.encode(to_json(long), 200)
    payloads = [first, *right.encode(to_json(short), 200), *others]
    assert received(decoder, payloads) == [short, long]


@pytest.mark.requirement("MSG-21")
def test_a_lost_payload_is_a_gap_and_half_a_signal_is_none() -> None:
    decoder, encoder = Decoder("me"), Encoder()
    assert received(decoder, encoder.encode(to_json(signal()), 200)) == [signal()]
    pieces = encoder.encode(to_json(signal(2, "x" * 400)), 200)
    assert len(pieces) == 4
    found = [decoder.feed(piece) for piece in (pieces[0], pieces[2], pieces[3])]
    assert [one.gap for one in found] == [False, True, False]
    assert all(one.signal is None for one in found)
    assert received(decoder, encoder.encode(to_json(signal(3)), 200)) == [signal(3)]


@pytest.mark.requirement("MSG-21")
def test_a_signal_that_was_never_sent_is_a_gap_too() -> None:
    decoder, encoder = Decoder("me"), Encoder()
    received(decoder, encoder.encode(to_json(signal()), 200))
    encoder.skip()
    found = decoder.feed(encoder.encode(to_json(signal(2)), 200)[0])
    assert found.gap
    assert found.signal == signal(2)


def test_a_reader_that_comes_in_the_middle_of_a_signal_waits_for_the_next() -> None:
    decoder, encoder = Decoder("me"), Encoder()
    late = encoder.encode(to_json(signal(1, "x" * 400)), 200)[1:]
    assert received(decoder, late) == []
    assert received(decoder, encoder.encode(to_json(signal(2)), 200)) == [signal(2)]


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "hello",
        "p x 1/1 {}",
        "p 1 1 {}",
        "p 1 1/1 {}",
        "p 1 1/1 [",
        'p 1 1/1 {"topic": "runs", "data": {}, "more": 1}',
    ],
)
def test_what_no_replica_wrote_is_refused(payload: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Decoder("me").feed(payload)


def test_a_signal_without_an_end_is_not_collected_for_ever() -> None:
    decoder = Decoder("me")
    piece = "x" * (MAX_SIGNAL_BYTES // 2)
    decoder.feed(f"p 1 1/9 {piece}")
    decoder.feed(f"p 2 2/9 {piece}")
    with pytest.raises(ValueError, match="longer than any replica sends"):
        decoder.feed(f"p 3 3/9 {piece}")
