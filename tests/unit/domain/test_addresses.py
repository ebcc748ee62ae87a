"""Which addresses were given by somebody other than the model (POL-10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.addresses import given_address
from runtime.domain.tools import ToolCall, ToolResult
from runtime.domain.transcript import (
    AssistantMessage,
    NoticeMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
)

pytestmark = pytest.mark.requirement("POL-10")
PAGE = "https://docs.example.org/a/Page.html?x=1"


def says(text: str) -> UserMessage:
    return UserMessage(text=text)


def result(text: str, *, outside: bool = True) -> ToolMessage:
    return ToolMessage(
        results=(ToolResult(call_id="c", name="web_fetch", content=text, outside=outside),)
    )


def wrote(text: str = "", *, arguments: str = "{}") -> AssistantMessage:
    return AssistantMessage(
        text=text, tool_calls=(ToolCall(id="c", name="x", arguments=arguments),)
    )


@pytest.mark.parametrize(
    "text",
    [
        PAGE,
        f"Look at {PAGE}, please.",
        f"<{PAGE}|the page>",
        f"[page]({PAGE})",
        f'"{PAGE}"!',
        f"{PAGE}#part",
        f"({PAGE}).",
        "docs.example.org/a/Page.html?x=1",
        "see HTTPS://Docs.Example.org/a/Page.html?x=1",
        f"первый: {PAGE}\nвторой",
    ],
)
def test_a_whole_address_in_a_persons_message_is_given(text: str) -> None:
    assert given_address([says(text)], PAGE)
    assert given_address([says(text)], f"{PAGE}#elsewhere")


@pytest.mark.parametrize(
    "text",
    [
        f"{PAGE}........more",
        f"{PAGE}{'!' * 40}more",
        f"{PAGE}2",
        f"{PAGE}&secret=1",
        f"{PAGE}.more",
        "https://docs.example.org/a/page.html?x=1",
        "https://docs.example.org/a/",
        "http://docs.example.org.evil.test/a/Page.html?x=1",
        "https://evil.test/docs.example.org/a/Page.html?x=1",
        "https://evil-docs.example.org/a/Page.html?x=1",
        "nothing",
        "",
    ],
)
def test_a_part_or_another_address_is_not(text: str) -> None:
    assert not given_address([says(text)], PAGE)


def test_the_root_of_a_host_is_one_address_with_and_without_a_slash() -> None:
    for said in ("https://example.org", "https://example.org/", "go to example.org."):
        for address in ("https://example.org", "https://example.org/", "https://EXAMPLE.org/#a"):
            assert given_address([says(said)], address)
    assert not given_address([says("https://example.org")], "https://example.org/x")


def test_a_result_from_outside_gives_and_what_the_model_made_does_not() -> None:
    assert given_address([wrote(), result(f"Next: {PAGE}")], PAGE)
    assert not given_address([wrote(), result(f"Next: {PAGE}", outside=False)], PAGE)
    assert not given_address([result("docs.example.org/a/Page.html?x=1")], PAGE)
    for said in (wrote(PAGE), NoticeMessage(text=PAGE), wrote(arguments=f'{{"url": "{PAGE}"}}')):
        assert not given_address([said], PAGE)


ENCODED = "https%3A%2F%2Fdocs.example.org%2Fa%2FPage.html%3Fx%3D1"


@pytest.mark.parametrize(
    "said",
    [PAGE, f"https://mirror.test/?to={PAGE}", f"https://mirror.test/?to={ENCODED}"],
)
def test_what_the_model_wrote_first_is_not_given_by_an_echo(said: str) -> None:
    echo = [wrote(arguments=f'{{"url": "{said}"}}'), result(f"You asked for {PAGE}")]
    assert not given_address(echo, PAGE)
    # What a page gave before stays given, also after the model spoke of it.
    assert given_address([result(PAGE), *echo], PAGE)
    assert given_address([*echo, says(PAGE)], PAGE)


SECRETS = st.text(alphabet="abcdefXYZ0123456789-_/%", min_size=1, max_size=40)


@given(secret=SECRETS, where=st.sampled_from(["path", "query", "host", "part"]))
def test_nothing_that_the_model_adds_is_given(secret: str, where: str) -> None:
    told: list[TranscriptMessage] = [says(f"read {PAGE} now"), wrote(), result(f"see {PAGE}.")]
    address = {
        "path": f"https://docs.example.org/{secret}",
        "query": f"{PAGE}&{secret}",
        "host": f"https://{secret.strip('-_/%') or 'x'}.evil.test/a/Page.html?x=1",
        "part": f"{PAGE}{secret}",
    }[where]
    assert not given_address(told, address)


def test_what_the_model_wrote_in_escapes_is_not_given_by_an_echo() -> None:
    hidden = PAGE.replace("docs.example", "docs\\u002eexample")
    for arguments in (f'{{"url": "x{hidden}"}}', f'{{"a": [{{"b": "x,{hidden}"}}]}}'):
        assert not given_address([wrote(arguments=arguments), result(PAGE)], PAGE)
    assert given_address([wrote(arguments="{"), result(PAGE)], PAGE)


def test_what_a_model_had_itself_asked_later_gives_no_address() -> None:
    later = UserMessage(text=f"read {PAGE}", by_model=True)
    assert not given_address([later], PAGE)
    assert not given_address([later, result(f"see {PAGE}")], PAGE)
    assert given_address([later, says(f"read {PAGE}")], PAGE)
