"""Files to Slack, in its three steps: an address, the bytes, and the share, which people see.

The share is the point of no return. What went wrong before it is tried again from the start; where
the answer to it is missing, Slack is asked where the file is.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog
from pydantic import JsonValue

from adapters.slack.client import SlackClient
from adapters.slack.egress import Upload
from adapters.slack.failures import (
    Refused,
    SlackFailure,
    Unanswered,
    delivery_error,
    file_refusal,
    refuses_form,
    repeatable_error,
)
from runtime.domain.errors import DeliveryUnknown
from runtime.domain.json_fields import object_of
from runtime.domain.messages import ChatAddress
from runtime.domain.value import JsonObject

log = structlog.get_logger(__name__)

_PLACES = ("channels", "groups", "ims")


@dataclass(eq=False)
class NoFile(Exception):
    """The file is not sent: it is gone or empty, or Slack does not take it; `reason` says which to
    the person, `refused` is what Slack answered, for the operator."""

    reason: str
    refused: str = ""


class Uploader:
    """Shares files in chats. It keeps nothing."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client

    async def upload(self, target: ChatAddress, upload: Upload, blocks: list[JsonValue]) -> str:
        """The id of the file that was shared, with `blocks` beside it.

        Raises `NoFile` or `DeliveryError`.
        """
        try:
            content, length = await asyncio.to_thread(_opened, Path(upload.path))
        except OSError as error:
            raise NoFile("it cannot be read any more") from error
        with content:
            if length == 0:
                raise NoFile("it cannot be read any more: it is empty")
            try:
                file_id = await self._sent(upload, content, length)
            except SlackFailure as failure:
                _refuse(failure)
                # Nobody sees the file before it is shared.
                raise repeatable_error(failure) from failure
        await self._share(target, upload, file_id, blocks)
        return file_id

    async def _sent(self, upload: Upload, content: BinaryIO, length: int) -> str:
        asked: dict[str, str | int | bool] = {"filename": upload.name, "length": length}
        answer = await self._client.read("files.getUploadURLExternal", asked)
        address, file_id = answer.get("upload_url"), answer.get("file_id")
        if not (isinstance(address, str) and isinstance(file_id, str)):
            raise Unanswered("files.getUploadURLExternal gave no address")
        await self._client.put(address, content)
        return file_id

    async def _share(
        self, target: ChatAddress, upload: Upload, file_id: str, blocks: list[JsonValue]
    ) -> None:
        body: JsonObject = {
            "files": [{"id": file_id, "title": upload.name}],
            "channel_id": target.chat_id,
        }
        if target.thread_id is not None:
            body["thread_ts"] = target.thread_id
        try:
            await self._complete(body, blocks)
        except SlackFailure as failure:
            _refuse(failure)
            verdict = delivery_error(failure)
            if isinstance(verdict, DeliveryUnknown) and await self._is_in(target, file_id):
                return
            raise verdict from failure

    async def _complete(self, body: JsonObject, blocks: list[JsonValue]) -> None:
        try:
            await self._client.write("files.completeUploadExternal", {**body, "blocks": blocks})
        except Refused as refusal:
            if not refuses_form(refusal):
                raise
            log.warning("slack.file_without_mark", reason=str(refusal))
            await self._client.write("files.completeUploadExternal", body)

    async def _is_in(self, target: ChatAddress, file_id: str) -> bool:
        try:
            found = object_of(await self._client.read("files.info", {"file": file_id}), "file")
        except SlackFailure:
            return False
        listed = map(found.get, _PLACES)
        return any(isinstance(chats, list) and target.chat_id in chats for chats in listed)


def _refuse(failure: SlackFailure) -> None:
    """Raises `NoFile` where Slack will never take the file."""
    reason = file_refusal(failure)
    if reason:
        raise NoFile(reason, str(failure)) from failure


def _opened(path: Path) -> tuple[BinaryIO, int]:
    content = path.open("rb")
    return content, os.fstat(content.fileno()).st_size
