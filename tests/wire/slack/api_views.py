"""Modals and the App Home: ``views.open``, ``push``, ``update``, ``publish``."""

from tests.wire.slack.answers import SlackError
from tests.wire.slack.api import Api
from tests.wire.slack.arguments import Arguments
from tests.wire.slack.blocks import block_problems
from tests.wire.slack.state import JsonObject, View, Workspace

_COMMON = {"type", "blocks", "private_metadata", "callback_id", "external_id"}
_MODAL = _COMMON | {"title", "submit", "close", "clear_on_close", "notify_on_close"}
MAX_TITLE = 24


def open_view(api: Api, args: Arguments) -> JsonObject:
    """`views.open` and `views.push`: both spend a trigger id."""
    body = checked_view(args.object("view") or {}, "modal")
    trigger = args.maybe("trigger_id")
    if trigger is None:
        raise SlackError("invalid_arguments", "missing required field: trigger_id")
    user = api.workspace.triggers.pop(trigger, None)
    if user is None:
        raise SlackError("exchanged_trigger_id")
    view = new_view(api.workspace, user, body)
    return {"view": view_json(api.workspace, view)}


def update_view(api: Api, args: Arguments) -> JsonObject:
    body = checked_view(args.object("view") or {}, "modal")
    found = [
        v
        for v in api.workspace.views.values()
        if v.open
        and (
            v.id == args.maybe("view_id")
            or (v.body.get("external_id") or "") == args.maybe("external_id")
        )
    ]
    if not found:
        raise SlackError("not_found")
    replace_view(api.workspace, found[0], body, args.maybe("hash"))
    return {"view": view_json(api.workspace, found[0])}


def publish_view(api: Api, args: Arguments) -> JsonObject:
    body = checked_view(args.object("view") or {}, "home")
    user = args.text("user_id")
    if user not in api.workspace.users:
        raise SlackError("user_not_found")
    home = api.workspace.homes.get(user)
    if home is None:
        home = View(id=api.workspace.new_id("V"), user=user, body=body, version="0")
        api.workspace.homes[user] = home
    replace_view(api.workspace, home, body, args.maybe("hash"))
    return {"view": view_json(api.workspace, home)}


def checked_view(view: JsonObject, kind: str) -> JsonObject:
    """Raises `SlackError` `invalid_arguments` with one line for each thing that is wrong."""
    known = _MODAL if kind == "modal" else _COMMON
    problems = [f"invalid additional property: {key}" for key in view if key not in known]
    if view.get("type") != kind:
        problems.append(f"view type must be {kind}")
    blocks = view.get("blocks")
    if not isinstance(blocks, list):
        problems.append("missing required field: blocks")
        blocks = []
    problems += block_problems(blocks, in_view=True)
    if kind == "modal":
        problems += _title_problems(view)
        inputs = any(isinstance(b, dict) and b.get("type") == "input" for b in blocks)
        if inputs and "submit" not in view:
            problems.append("submit is required when an input block is present")
    if problems:
        raise SlackError("invalid_arguments", *problems)
    return view


def _title_problems(view: JsonObject) -> list[str]:
    problems = []
    for name in ("title", "submit", "close"):
        shown = view.get(name)
        if shown is None and name != "title":
            continue
        text = shown.get("text") if isinstance(shown, dict) else None
        if not isinstance(text, str) or not 1 <= len(text) <= MAX_TITLE:
            problems.append(f"{name} must be plain_text of 1 to {MAX_TITLE} characters")
    return problems


def new_view(workspace: Workspace, user: str, body: JsonObject) -> View:
    view = View(id=workspace.new_id("V"), user=user, body=body, version="0")
    replace_view(workspace, view, body, None)
    workspace.views[view.id] = view
    return view


def replace_view(workspace: Workspace, view: View, body: JsonObject, version: str | None) -> None:
    """Raises `SlackError` `hash_conflict` when the caller saw an older version."""
    if version is not None and version != view.version:
        raise SlackError("hash_conflict")
    blocks = body["blocks"]
    assert isinstance(blocks, list)
    for block in blocks:
        block.setdefault("block_id", workspace.new_id("blk"))
    view.body = body
    view.version = workspace.new_id("hash.")


def view_json(workspace: Workspace, view: View) -> JsonObject:
    install = workspace.install
    return {
        "private_metadata": "",
        "callback_id": "",
        "external_id": "",
        **view.body,
        "id": view.id,
        "team_id": install.team_id,
        "app_id": install.app_id,
        "bot_id": install.bot_id,
        "hash": view.version,
        "root_view_id": view.id,
        "previous_view_id": None,
        "state": {"values": {}},
    }
