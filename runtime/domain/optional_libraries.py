"""What a library finds installed: some load others where they can, for what is not used here."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without(library: str) -> Iterator[None]:
    """Modules loaded in the block find that `library` is not installed, unless it is loaded."""
    if library in sys.modules:
        yield
        return
    # The way to say so: https://docs.python.org/3/reference/import.html#the-module-cache
    sys.modules[library] = None  # type: ignore[assignment]  # typeshed knows modules alone
    try:
        yield
    finally:
        # Not what another thread, which came out of its block before, has loaded by now.
        if sys.modules.get(library, sys) is None:
            sys.modules.pop(library, None)
