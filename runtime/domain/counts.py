"""Numbers with what they count, as people say them."""


def counted(number: int, one: str, many: str = "") -> str:
    """``1 session``, ``2 sessions``; `many` is the plural where it is not made with an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
