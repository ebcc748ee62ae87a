"""What is said of a PostgreSQL server that cannot be reached, and which errors mean that."""

import pytest
from sqlalchemy.exc import ResourceClosedError

from runtime.domain.errors import StoreAway
from runtime.store.faults import postgres_fault

SERVER = "db:5432/gatehouse"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionError("unexpected connection_lost() call"), ": the connection broke."),
        (ConnectionError("cannot switch to state 11; another operation (2)"), ": the connection"),
        (ResourceClosedError("This Connection is closed"), ": the connection broke."),
        (ConnectionRefusedError(111, "Connection refused"), ": [Errno 111] Connection refused."),
        (TimeoutError(), f"{SERVER} cannot be reached or is busy."),
    ],
)
def test_a_server_that_is_away_is_said_to_be_in_plain_words(error: Exception, said: str) -> None:
    fault = postgres_fault(error, SERVER)
    assert isinstance(fault, StoreAway)
    assert said in str(fault)
    assert SERVER in str(fault)


def test_a_result_that_is_read_too_late_is_no_trouble_of_the_server() -> None:
    error = ResourceClosedError("This result object is closed.")
    assert postgres_fault(error, SERVER) is error
