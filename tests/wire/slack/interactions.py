"""What people do with buttons, modals and slash commands, and what they get back."""

from collections.abc import Mapping

from tests.wire.slack.api_views import checked_view, new_view, replace_view, view_json
from tests.wire.slack.core import Core
from tests.wire.slack.deliveries import Delivery
from tests.wire.slack.present import message_json
from tests.wire.slack.state import JsonObject, Message, View

_RESPONSES = {"errors", "update", "push", "clear"}


class Interactions(Core):
    """Interactive payloads. Each act looks first whether a person could do it at all."""

    async def user_commands(
        self, channel: str, user: str, text: str = "", *, command: str = "/gatehouse"
    ) -> Delivery:
        """A slash command. What the application answers at once is `Delivery.response`."""
        place = self.workspace.channels[channel]
        if not self.workspace.may("commands"):
            raise LookupError("the application has no commands")
        payload: JsonObject = {
            "token": "verification-token",
            "team_id": self.install.team_id,
            "team_domain": "test-team",
            "channel_id": channel,
            "channel_name": "directmessage" if place.kind == "im" else place.name,
            "user_id": user,
            "user_name": self.workspace.users[user].name,
            "command": command,
            "text": text,
            "api_app_id": self.install.app_id,
            "is_enterprise_install": "false",
            "response_url": self._response_url(channel, "command", user),
            "trigger_id": self.workspace.new_trigger(user),
        }
        return await self.dispatch("slash_commands", payload, accepts_response=True)

    async def user_presses(
        self, channel: str, ts: str, user: str, action_id: str, *, value: str | None = None
    ) -> Delivery:
        """A person presses a button of a message; `value` tells equal action ids apart.

        Raises `LookupError` when the message shows no such button to this person.
        """
        message = self.workspace.channels[channel].messages[ts]
        if message.deleted or message.ephemeral_to not in {None, user}:
            raise LookupError(f"{user} cannot see {ts}")
        action = _find_action(message.blocks, action_id, value)
        place = self.workspace.channels[channel]
        payload: JsonObject = {
            **self._interaction("block_actions", user),
            "container": {
                "type": "message",
                "message_ts": ts,
                "channel_id": channel,
                "is_ephemeral": message.ephemeral_to is not None,
                **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
            },
            "channel": {"id": channel, "name": place.name or "directmessage"},
            "message": message_json(self.workspace, message, self.base_url),
            "state": {"values": {}},
            "response_url": self._response_url(channel, ts, user),
            "actions": [{**action, "action_ts": self.workspace.next_ts()}],
        }
        return await self.dispatch("interactive", payload)

    async def user_presses_home(
        self, user: str, action_id: str, *, value: str | None = None
    ) -> Delivery:
        """A person presses a button of their App Home."""
        home = self.workspace.homes[user]
        blocks = home.body["blocks"]
        assert isinstance(blocks, list)
        payload: JsonObject = {
            **self._interaction("block_actions", user),
            "container": {"type": "view", "view_id": home.id},
            "view": view_json(self.workspace, home),
            "actions": [
                {
                    **_find_action(blocks, action_id, value),
                    "action_ts": self.workspace.next_ts(),
                }
            ],
        }
        return await self.dispatch("interactive", payload)

    async def user_submits(
        self, view: View, values: Mapping[str, Mapping[str, str]] | None = None
    ) -> Delivery:
        """A person submits a modal; `values` is block id -> action id -> typed text.

        The application's response (`response_action`) takes effect in `modal_answered`.
        """
        if not view.open:
            raise LookupError(f"{view.id} is not on the screen")
        typed = {
            block: {a: {"type": "plain_text_input", "value": v} for a, v in actions.items()}
            for block, actions in (values or {}).items()
        }
        shown = {**view_json(self.workspace, view), "state": {"values": typed}}
        payload: JsonObject = {
            **self._interaction("view_submission", view.user),
            "view": shown,
            "response_urls": [],
        }
        return await self.dispatch("interactive", payload, accepts_response=True)

    async def modal_answered(self, view: View, delivery: Delivery) -> dict[str, str]:
        """Wait for the answer to a submission, apply it, and return the errors it shows."""
        await self.until(lambda: delivery.acked)
        response = delivery.response or {}
        action = response.get("response_action")
        if not response:
            view.open = False
        elif action not in _RESPONSES:
            self.complain("view_submission", f"unknown response_action: {action!r}")
        elif action == "errors":
            errors = response.get("errors")
            return {str(k): str(v) for k, v in errors.items()} if isinstance(errors, dict) else {}
        elif action == "clear":
            for each in self.workspace.views.values():
                each.open = each.open and each.user != view.user
        else:
            body = response.get("view")
            checked = checked_view(body if isinstance(body, dict) else {}, "modal")
            if action == "update":
                replace_view(self.workspace, view, checked, None)
            else:
                new_view(self.workspace, view.user, checked)
        return {}

    def _interaction(self, kind: str, user: str) -> JsonObject:
        person = self.workspace.users[user]
        team = {"id": self.install.team_id, "domain": "test-team"}
        return {
            "type": kind,
            "user": {
                "id": user,
                "username": person.name,
                "name": person.name,
                "team_id": self.install.team_id,
            },
            "api_app_id": self.install.app_id,
            "token": "verification-token",
            "trigger_id": self.workspace.new_trigger(user),
            "team": team,
            "enterprise": None,
            "is_enterprise_install": False,
        }

    def _response_url(self, channel: str, ts: str, user: str) -> str:
        return f"{self.base_url}/actions/{channel}/{ts}/{user}"


def buttons_of(message: Message) -> list[str]:
    """The labels of a message's buttons, in order."""
    found = []
    for block in message.blocks:
        for element in _elements(block):
            label = element.get("text")
            if element.get("type") == "button" and isinstance(label, dict):
                found.append(str(label.get("text")))
    return found


def _elements(block: JsonObject) -> list[JsonObject]:
    listed = block.get("elements") if block.get("type") == "actions" else []
    found = [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []
    accessory = block.get("accessory")
    return [*found, accessory] if isinstance(accessory, dict) else found


def _find_action(blocks: list[JsonObject], action_id: str, value: str | None) -> JsonObject:
    for block in blocks:
        for element in _elements(block):
            if element.get("action_id") == action_id and value in {None, element.get("value")}:
                keys = ("action_id", "text", "value", "type", "style")
                pressed = {k: element[k] for k in keys if k in element}
                return {**pressed, "block_id": block["block_id"]}
    raise LookupError(f"no element {action_id!r} is shown")
