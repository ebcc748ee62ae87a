"""What each method of the Bot API takes: names and kinds as documented (Bot API 9 and 10).

Only what a chat gateway has a use for is here. A method or field that is missing is refused by the
server, so a new one is added to this table on purpose.
"""

from collections.abc import Mapping

_SEND: Mapping[str, str] = {
    "chat_id": "chat",
    "business_connection_id": "str",
    "message_thread_id": "int",
    "direct_messages_topic_id": "int",
    "disable_notification": "bool",
    "protect_content": "bool",
    "allow_paid_broadcast": "bool",
    "message_effect_id": "str",
    "reply_parameters": "ReplyParameters",
    "reply_markup": "ReplyMarkup",
}
_FORMAT: Mapping[str, str] = {"parse_mode": "str"}
_CAPTION: Mapping[str, str] = {
    "caption": "str",
    "parse_mode": "str",
    "caption_entities": "list:MessageEntity",
}
_EDIT: Mapping[str, str] = {
    "chat_id": "chat",
    "message_id": "int",
    "inline_message_id": "str",
    "business_connection_id": "str",
    "reply_markup": "ReplyMarkup",
}
_COMMANDS: Mapping[str, str] = {"scope": "BotCommandScope", "language_code": "str"}

METHODS: Mapping[str, Mapping[str, str]] = {
    "getMe": {},
    "getUpdates": {
        "offset": "int",
        "limit": "int",
        "timeout": "int",
        "allowed_updates": "list:str",
    },
    "setWebhook": {
        "url": "str",
        "certificate": "file",
        "ip_address": "str",
        "max_connections": "int",
        "allowed_updates": "list:str",
        "drop_pending_updates": "bool",
        "secret_token": "str",
    },
    "deleteWebhook": {"drop_pending_updates": "bool"},
    "getWebhookInfo": {},
    "setMyCommands": {"commands": "list:BotCommand", **_COMMANDS},
    "getMyCommands": _COMMANDS,
    "deleteMyCommands": _COMMANDS,
    "sendMessage": {
        **_SEND,
        **_FORMAT,
        "text": "str",
        "entities": "list:MessageEntity",
        "link_preview_options": "LinkPreviewOptions",
    },
    "sendMessageDraft": {
        **_FORMAT,
        "chat_id": "chat",
        "message_thread_id": "int",
        "draft_id": "int",
        "text": "str",
        "entities": "list:MessageEntity",
    },
    "sendDocument": {
        **_SEND,
        **_CAPTION,
        "document": "file",
        "thumbnail": "file",
        "disable_content_type_detection": "bool",
    },
    "sendPhoto": {
        **_SEND,
        **_CAPTION,
        "photo": "file",
        "show_caption_above_media": "bool",
        "has_spoiler": "bool",
    },
    "sendVoice": {**_SEND, **_CAPTION, "voice": "file", "duration": "int"},
    "sendAudio": {
        **_SEND,
        **_CAPTION,
        "audio": "file",
        "duration": "int",
        "performer": "str",
        "title": "str",
        "thumbnail": "file",
    },
    "sendVideo": {
        **_SEND,
        **_CAPTION,
        "video": "file",
        "duration": "int",
        "width": "int",
        "height": "int",
        "thumbnail": "file",
        "supports_streaming": "bool",
    },
    "sendMediaGroup": {
        **{name: kind for name, kind in _SEND.items() if name != "reply_markup"},
        "media": "list:InputMedia",
    },
    "editMessageText": {
        **_EDIT,
        **_FORMAT,
        "text": "str",
        "entities": "list:MessageEntity",
        "link_preview_options": "LinkPreviewOptions",
    },
    "editMessageCaption": {**_EDIT, **_CAPTION, "show_caption_above_media": "bool"},
    "editMessageReplyMarkup": _EDIT,
    "deleteMessage": {"chat_id": "chat", "message_id": "int"},
    "deleteMessages": {"chat_id": "chat", "message_ids": "list:int"},
    "sendChatAction": {
        "chat_id": "chat",
        "action": "str",
        "message_thread_id": "int",
        "business_connection_id": "str",
    },
    "answerCallbackQuery": {
        "callback_query_id": "str",
        "text": "str",
        "show_alert": "bool",
        "url": "str",
        "cache_time": "int",
    },
    "setMessageReaction": {
        "chat_id": "chat",
        "message_id": "int",
        "reaction": "list:ReactionType",
        "is_big": "bool",
    },
    "getFile": {"file_id": "str"},
    "getChat": {"chat_id": "chat"},
    "getChatMember": {"chat_id": "chat", "user_id": "int"},
    "leaveChat": {"chat_id": "chat"},
}

# Absent ones are a fault of the client that the real server answers with many different texts.
# `chat_id`, `text` and `message_id` are left out: their real texts are answered by the methods.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "setMyCommands": ("commands",),
    "sendMessageDraft": ("draft_id",),
    "sendDocument": ("document",),
    "sendPhoto": ("photo",),
    "sendVoice": ("voice",),
    "sendAudio": ("audio",),
    "sendVideo": ("video",),
    "sendMediaGroup": ("media",),
    "sendChatAction": ("action",),
    "answerCallbackQuery": ("callback_query_id",),
    "getFile": ("file_id",),
    "getChatMember": ("user_id",),
}

SHAPES: Mapping[str, Mapping[str, str]] = {
    "MessageEntity": {
        "type": "str",
        "offset": "int",
        "length": "int",
        "url": "str",
        "user": "User",
        "language": "str",
        "custom_emoji_id": "str",
    },
    "User": {
        "id": "int",
        "is_bot": "bool",
        "first_name": "str",
        "last_name": "str",
        "username": "str",
        "language_code": "str",
    },
    "ReplyParameters": {
        "message_id": "int",
        "chat_id": "chat",
        "allow_sending_without_reply": "bool",
        "quote": "str",
        "quote_parse_mode": "str",
        "quote_entities": "list:MessageEntity",
        "quote_position": "int",
    },
    "LinkPreviewOptions": {
        "is_disabled": "bool",
        "url": "str",
        "prefer_small_media": "bool",
        "prefer_large_media": "bool",
        "show_above_text": "bool",
    },
    "ReplyMarkup": {
        "inline_keyboard": "list:list:InlineKeyboardButton",
        "force_reply": "bool",
        "input_field_placeholder": "str",
        "selective": "bool",
    },
    "InlineKeyboardButton": {
        "text": "str",
        "url": "str",
        "callback_data": "str",
        "style": "str",
        "icon_custom_emoji_id": "str",
    },
    "BotCommand": {"command": "str", "description": "str"},
    "BotCommandScope": {"type": "str", "chat_id": "chat", "user_id": "int"},
    "ReactionType": {"type": "str", "emoji": "str", "custom_emoji_id": "str"},
    "InputMedia": {
        "type": "str",
        "media": "file",
        "thumbnail": "file",
        "caption": "str",
        "parse_mode": "str",
        "caption_entities": "list:MessageEntity",
        "show_caption_above_media": "bool",
        "has_spoiler": "bool",
        "disable_content_type_detection": "bool",
        "duration": "int",
        "width": "int",
        "height": "int",
        "performer": "str",
        "title": "str",
    },
}

CANONICAL: Mapping[str, str] = {name.lower(): name for name in METHODS}

CHAT_ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)

UPDATE_TYPES = frozenset(
    {
        "message",
        "edited_message",
        "channel_post",
        "edited_channel_post",
        "callback_query",
        "my_chat_member",
        "chat_member",
        "message_reaction",
        "message_reaction_count",
        "inline_query",
        "chosen_inline_result",
        "shipping_query",
        "pre_checkout_query",
        "purchased_paid_media",
        "poll",
        "poll_answer",
        "chat_join_request",
        "chat_boost",
        "removed_chat_boost",
        "business_connection",
        "business_message",
        "edited_business_message",
        "deleted_business_messages",
        "managed_bot",
        "guest_message",
    }
)
# Sent only to a bot that asks for them by name.
UPDATES_ON_REQUEST = frozenset({"chat_member", "message_reaction", "message_reaction_count"})

SCOPES: Mapping[str, frozenset[str]] = {
    "default": frozenset(),
    "all_private_chats": frozenset(),
    "all_group_chats": frozenset(),
    "all_chat_administrators": frozenset(),
    "chat": frozenset({"chat_id"}),
    "chat_administrators": frozenset({"chat_id"}),
    "chat_member": frozenset({"chat_id", "user_id"}),
}
