"""Files: the two steps of an upload, what a file is, and its deletion.

The bytes travel outside the Web API: to the upload address that step one hands out, and from
``url_private``, which wants the bot token.
"""

from collections.abc import Iterator

from tests.wire.slack.answers import SlackError
from tests.wire.slack.api import Api
from tests.wire.slack.api_chat import checked_blocks
from tests.wire.slack.arguments import Arguments
from tests.wire.slack.present import file_json
from tests.wire.slack.state import JsonObject, Message, StoredFile


def get_upload_url(api: Api, args: Arguments) -> JsonObject:
    length = args.number("length", 0)
    if length < 1:
        raise SlackError("invalid_arguments", "length must be more than 0")
    stored = StoredFile(
        id=api.workspace.new_id("F"),
        name=args.text("filename"),
        title=args.text("filename"),
        mimetype="application/octet-stream",
        user=api.bot,
        created=int(api.workspace.now()),
        expected=length,
    )
    api.workspace.files[stored.id] = stored
    return {"upload_url": f"{api.base_url}/upload/v1/{stored.id}", "file_id": stored.id}


def complete_upload(api: Api, args: Arguments) -> JsonObject:
    wanted = args.items("files")
    if not wanted:
        raise SlackError("invalid_arguments", "files is empty")
    found = list(_uploaded(api, wanted))
    places = [args.text("channel_id")] if "channel_id" in args else []
    places += (args.maybe("channels") or "").split(",") if "channels" in args else []
    if args.maybe("thread_ts") is not None and len(places) != 1:
        raise SlackError("invalid_arguments", "thread_ts goes with one channel")
    blocks = checked_blocks(args)
    if any(block.get("type") == "markdown" for block in blocks):
        # As the real one answers, observed by others: slackapi/python-slack-sdk#1756.
        raise SlackError("internal_error")
    for place in places:
        _share(api, args, found, place)
    return {"files": [file_json(api.workspace, stored, api.base_url) for stored in found]}


def _uploaded(api: Api, wanted: list[JsonObject]) -> Iterator[StoredFile]:
    for item in wanted:
        if not set(item) <= {"id", "title", "highlight_type"}:
            raise SlackError("invalid_arguments", f"files: {sorted(item)}")
        stored = api.workspace.files.get(str(item.get("id")))
        if stored is None or stored.content is None:
            raise SlackError("file_not_found")
        stored.title = str(item.get("title", stored.title))
        yield stored


def _share(api: Api, args: Arguments, found: list[StoredFile], place: str) -> None:
    channel = api.open_channel(place)
    thread = args.maybe("thread_ts")
    if thread is not None:
        api.thread_root(channel, thread)
    install = api.workspace.install
    message = Message(
        channel=channel.id,
        ts=api.workspace.next_ts(),
        text=args.maybe("initial_comment") or "",
        user=install.bot_user,
        bot_id=install.bot_id,
        subtype="file_share",
        thread_ts=thread,
        # With a comment, blocks are passed over.
        blocks=[] if "initial_comment" in args else args.items("blocks"),
        files=list(found),
    )
    for stored in found:
        stored.shared_in.append(channel.id)
    api.workspace.store(message)
    api.announce(message)


def info(api: Api, args: Arguments) -> JsonObject:
    return {"file": file_json(api.workspace, _known(api, args), api.base_url)}


def delete(api: Api, args: Arguments) -> JsonObject:
    stored = _known(api, args)
    if stored.user != api.bot:
        raise SlackError("cant_delete_file")
    del api.workspace.files[stored.id]
    return {}


def _known(api: Api, args: Arguments) -> StoredFile:
    stored = api.workspace.files.get(args.text("file"))
    if stored is None or stored.content is None:
        raise SlackError("file_not_found")
    return stored
