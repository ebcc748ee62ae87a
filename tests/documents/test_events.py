"""The table of events in `docs/api.md` has each kind that there is.

What `data` holds is compared with the table by each test that runs a gateway for programs: see
`tests.scenario.harness.site`.
"""

import pytest

from runtime.domain.events import EventKind
from tests.documents.event_table import documented


@pytest.mark.requirement("API-4")
def test_the_page_names_each_kind_of_event_with_its_keys() -> None:
    table = documented()
    assert list(table) == [kind.value for kind in EventKind]
    assert all(table.values())
