"""Writing payloads: pure, deterministic and within the limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.rendering import utf16_length
from adapters.telegram import cards, egress, posts
from adapters.telegram.callbacks import Seal
from adapters.telegram.posts import Post, Posted
from runtime.domain.messages import ChatAddress, FilePart, OutboundMessage, TextPart
from runtime.domain.value import JsonObject
from tests.support.profiles import examples

SEAL = Seal("123456:TEST-TOKEN")
KEYBOARD: JsonObject = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}
GROUP = ChatAddress(channel="telegram", account="1", chat_id="-100", chat_kind="group")


def message(*parts: TextPart | FilePart) -> OutboundMessage:
    return OutboundMessage(outbox_id="out_1", target=GROUP, parts=parts)


@pytest.mark.parametrize("name", ["7", "7+", "-100:7", "-100:7+"])
def test_an_id_reads_as_it_was_written(name: str) -> None:
    assert str(posts.read_posted(name)) == name


def test_an_id_of_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match="no id of a Telegram message"):
        posts.read_posted("ts:1")


@pytest.mark.parametrize(
    ("posted", "expected"),
    [
        ((), (0, 0)),
        (("1", "2"), (2, 0)),
        (("1", "2+", "3"), (2, 0)),
        (("1", "2+", "3+"), (1, 2)),
        (("1+",), (0, 1)),
    ],
)
def test_progress_counts_whole_posts_and_pieces_of_the_next(
    posted: tuple[str, ...], expected: tuple[int, int]
) -> None:
    assert posts.progress(posted) == expected


def test_the_keyboard_of_a_card_is_below_its_last_post() -> None:
    made = cards.card("word " * 2000, "Decide.", keyboard=KEYBOARD)
    assert [post.keyboard for post in made] == [None, None, KEYBOARD]
    assert made[-1].text.endswith("Decide.")
    assert egress.edit_payload("5", 7, made[-1])["reply_markup"] == KEYBOARD


def test_plain_posts_keep_the_keyboard_at_the_end() -> None:
    plain = posts.plain_posts(Post("word " * 600, keyboard=KEYBOARD))
    assert [post.keyboard for post in plain] == [None, KEYBOARD]


def test_in_an_edit_a_plain_text_stays_one_post() -> None:
    (post,) = egress.posts_of(message(TextPart(markdown="**bold** " + "word " * 700)), SEAL)
    plain = posts.as_plain(post)
    assert (plain.text, plain.entities) == (post.text, ())


FILE = FilePart(name="report.pdf", path="/tmp/report.pdf")


@pytest.mark.parametrize(
    ("before", "texts"),
    [
        ((), [""]),
        (("Here it is.",), ["Here it is."]),
        (("One.", "Two."), ["One.", "Two.", ""]),
        (("word " * 300,), [("word " * 300).strip(), ""]),
    ],
)
@pytest.mark.requirement("TEL-4")
def test_a_short_text_before_a_file_is_its_caption(
    before: tuple[str, ...], texts: list[str]
) -> None:
    texts_before = [TextPart(markdown=text) for text in before]
    made = egress.posts_of(message(*texts_before, FILE), SEAL)
    assert [post.text for post in made] == texts
    assert [post.file for post in made] == [*[None] * (len(texts) - 1), FILE]


def test_nothing_to_see_makes_no_post() -> None:
    assert egress.posts_of(message(TextPart(markdown=" \n")), SEAL) == ()


def test_a_topic_and_a_reply_are_named_in_the_payload() -> None:
    topic = GROUP.model_copy(update={"chat_kind": "topic", "thread_id": "9"})
    payload = egress.message_payload(topic, Post("hi"), "4")
    assert payload == {
        "chat_id": -100,
        "message_thread_id": 9,
        "text": "hi",
        "link_preview_options": {"is_disabled": True},
        "reply_parameters": {"message_id": 4, "allow_sending_without_reply": True},
    }
    assert "reply_parameters" not in egress.message_payload(GROUP, Post("hi"), "web-1")


def test_a_language_and_an_address_are_part_of_their_entities() -> None:
    text = "[a](https://b.example)\n\n```py\nx\n```"
    (post,) = egress.posts_of(message(TextPart(markdown=text)), SEAL)
    entities = egress.message_payload(GROUP, post, None)["entities"]
    assert entities == [
        {"type": "text_link", "offset": 0, "length": 1, "url": "https://b.example"},
        {"type": "pre", "offset": 3, "length": 1, "language": "py"},
    ]


@pytest.mark.requirement("REN-3")
@examples(37)
@given(
    st.lists(
        st.sampled_from(["word", "\n", " ", "\U0001f468\u200d\U0001f469", "x" * 3000, "e\u0301"]),
        min_size=1,
        max_size=60,
    )
)
def test_plain_pieces_fit_and_hold_all_the_words(pieces: list[str]) -> None:
    text = "".join(["start", *pieces])[:4000]
    plain = posts.plain_posts(Post(text))
    assert all(0 < utf16_length(post.text) <= posts.PIECE_UNITS for post in plain)
    joined = "".join(post.text for post in plain)
    assert "".join(joined.split()) == "".join(text.split())


def test_a_grapheme_is_not_cut_between_pieces() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    first, second = posts.plain_posts(Post("x" * 2044 + family))
    assert (first.text, second.text) == ("x" * 2044, family)


def test_a_post_says_where_it_is() -> None:
    assert Posted(7, "-100", more=True) == posts.read_posted("-100:7+")
