"""Bringing the parts of albums together, and where a stopped batch goes on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram import albums
from runtime.domain.json_fields import number_of
from runtime.domain.value import JsonObject
from tests.support.profiles import examples


def update(number: int, album: str) -> JsonObject:
    message: JsonObject = {"chat": {"id": 5}, "message_id": number}
    if album:
        message["media_group_id"] = album
    return {"update_id": number, "message": message}


batches = st.lists(st.sampled_from(["", "", "a", "b", "c"]), min_size=1, max_size=12).map(
    lambda names: [update(number, name) for number, name in enumerate(names, start=10)]
)


@pytest.mark.requirement("TEL-2", "MSG-1")
@examples(75)
@given(batches, st.data())
def test_where_a_batch_goes_on_nothing_is_lost_and_no_album_is_torn(
    batch: list[JsonObject], data: st.DataObject
) -> None:
    units = albums.units_of(batch)
    assert sorted(number_of(u, "update_id") or 0 for unit in units for u in unit) == list(
        range(10, 10 + len(batch))
    )
    taken = data.draw(st.integers(0, len(units) - 1))
    at = albums.resume_at(units, taken)
    numbers = [[number_of(one, "update_id") or 0 for one in unit] for unit in units]
    assert all(number >= at for unit in numbers[taken:] for number in unit)
    for unit in numbers:
        assert len({number >= at for number in unit}) == 1, "it comes again as a whole or not"


def test_a_full_album_needs_no_waiting() -> None:
    parts = [update(number, "a") for number in range(10, 20)]
    assert albums.may_grow(parts[:9])
    assert not albums.may_grow(parts)
    assert not albums.may_grow([update(1, "")])


def test_a_batch_that_an_album_fills_alone_is_taken_as_it_is() -> None:
    full = [update(number, "a") for number in range(100)]
    assert albums.without_torn(full) == full
    mixed = [*[update(number, "") for number in range(95)], *full[95:]]
    assert len(albums.without_torn(mixed)) == 95
    assert albums.without_torn(mixed[:99]) == mixed[:99]
