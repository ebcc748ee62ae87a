"""The log: its two forms, and what never stands in it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from gateway.logs import MASK, Redactor, setup

SECRET = "made-up-configured-secret"


class Terminal(io.StringIO):
    """A stream that a person watches."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.requirement("OPS-7")
def test_a_program_reads_json_with_the_ids() -> None:
    stream = io.StringIO()
    setup(level="info", style="auto", secrets=(), stream=stream)
    structlog.get_logger("x").info("run_done", run_id="run_1", session_id="ses_1", agent_id="main")
    (line,) = lines(stream)
    assert line["event"] == "run_done"
    assert (line["run_id"], line["session_id"], line["agent_id"]) == ("run_1", "ses_1", "main")
    assert line["level"] == "info"
    assert str(line["timestamp"]).endswith("Z")


@pytest.mark.requirement("OPS-7")
def test_a_person_reads_words() -> None:
    stream = Terminal()
    setup(level="info", style="auto", secrets=(), stream=stream)
    structlog.get_logger("x").info("run_done", run_id="run_1")
    assert "run_done" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.requirement("OPS-7")
def test_texts_are_counted_not_written_but_at_debug() -> None:
    stream = io.StringIO()
    setup(level="info", style="json", secrets=(), stream=stream)
    structlog.get_logger("x").info("said", text="what somebody said", content=["a"])
    (line,) = lines(stream)
    assert line["text"] == "[18 characters]"
    assert line["content"] == "[not logged]"
    setup(level="debug", style="json", secrets=(), stream=stream)
    structlog.get_logger("x").debug("said", text="what somebody said")
    assert lines(stream)[-1]["text"] == "what somebody said"


@pytest.mark.requirement("POL-7")
@pytest.mark.parametrize(
    "text",
    [
        f"the key {SECRET} was refused",
        "xoxb-1234567890-abcdefghij in a url",
        "https://user:pass-word@example.org/x",
        "Authorization: Bearer abcdef0123456789",
        "bot 123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc failed",
        "sk-proj-0123456789abcdefghij",
    ],
)
def test_secrets_are_masked_wherever_they_stand(text: str) -> None:
    redact = Redactor([SECRET])
    masked = redact(None, "info", {"event": text, "deep": {"list": [text, {"key": text}]}})
    shown = str(masked)
    assert MASK in shown
    for secret in (SECRET, "xoxb-1234567890", "pass-word", "abcdef0123456789", "AAEhBOweik6ad9r"):
        assert secret not in shown
    assert "sk-proj" not in shown


@pytest.mark.requirement("POL-7")
def test_secrets_of_an_exception_and_of_libraries_are_masked() -> None:
    stream = io.StringIO()
    setup(level="info", style="json", secrets=[SECRET], stream=stream)
    try:
        raise RuntimeError(f"refused: {SECRET}")
    except RuntimeError:
        structlog.get_logger("x").exception("failed")
        logging.getLogger("library").exception("cannot use %s", SECRET)
    assert SECRET not in stream.getvalue()
    first, second = lines(stream)
    assert "RuntimeError" in str(first["exception"])
    assert "RuntimeError" in str(second)
    assert second["logger"] == "library"


def test_libraries_are_heard_from_warning_on() -> None:
    stream = io.StringIO()
    setup(level="info", style="json", secrets=(), stream=stream)
    logging.getLogger("library").info("what a message said")
    logging.getLogger("library").warning("something is odd")
    (line,) = lines(stream)
    assert line["event"] == "something is odd"


def test_other_secrets_are_masked_after_a_change() -> None:
    redact = Redactor(["made-up-old"])
    redact.change(["made-up-new"])
    assert redact.text("made-up-old made-up-new") == f"made-up-old {MASK}"
