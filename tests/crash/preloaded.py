"""What the process loads from which gateways are forked: everything, and their first messages."""

import tests.crash.process  # noqa: F401 - what is forked
from tests.scenario.first_use import fill_caches

fill_caches()
