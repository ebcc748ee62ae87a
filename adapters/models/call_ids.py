"""Ids of tool calls that a provider did not give, or gave twice: made from what they stand for."""

import hashlib


def short_id(seed: str) -> str:
    """An id that every provider takes (29 characters), always the same for the same seed."""
    return f"call_{hashlib.sha256(seed.encode('utf-8', 'replace')).hexdigest()[:24]}"


def call_id(run_id: str, step: int, place: int) -> str:
    """The id of the call at `place` in the response of a run's `step`."""
    return short_id(f"{run_id}/{step}/{place}")
