"""What is heard of statements: only what was committed becomes a part of a story."""

from tests.upgrade.tap import Heard, Step

HELD, KEPT = "UPDATE runs SET state = ?", "INSERT INTO runs VALUES (?)"


def test_what_was_rolled_back_or_cut_off_is_not_in_the_story() -> None:
    heard, connection = Heard(), object()
    for statement in (
        *("BEGIN IMMEDIATE", HELD, "ROLLBACK"),
        # The connection is cut off, and the next one is known by the same id.
        *("BEGIN;", HELD),
        *("BEGIN;", KEPT, "SAVEPOINT one", HELD, "ROLLBACK TO one", "COMMIT;"),
    ):
        heard.say(connection, statement, ("x",))
    assert heard.changes() == [Step(KEPT, ("x",))]
