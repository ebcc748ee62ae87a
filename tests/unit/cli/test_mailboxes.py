"""How the command line shows a message between agents."""

import pytest

from gateway.cli.mailboxes import shown


@pytest.mark.requirement("OPS-2", "MBX-1")
@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"text": "look", "asset_ids": ["ast_1", "ast_2"]}, "S look [file: ast_1] [file: ast_2]"),
        (
            {
                "input_items": [
                    {"type": "text", "text": "first"},
                    {"type": "asset_reference", "asset_id": "ast_1", "name": None},
                    {"type": "inline_asset", "name": "b.png", "media_type": "image/png"},
                ]
            },
            "S first [file: ast_1] [file: b.png]",
        ),
    ],
)
def test_a_message_is_one_line_that_names_its_files(payload: dict[str, object], text: str) -> None:
    assert shown({"subject": "S", "payload": {"type": "task", **payload}})["text"] == text
