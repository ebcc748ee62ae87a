"""Removes the files that the gateway keeps for a session: uploads, long outputs, sent copies."""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from runtime.tools.hidden_paths import OUTPUTS, UPLOADS, file_name, is_folder, made_folder
from runtime.tools.outgoing_files import SENT


def erase_files(workspace: Path, session_ids: Sequence[str], copies: Iterable[str]) -> None:
    """Remove them; what is not there is no error. Raises `OSError` for what cannot be removed.
    Blocks on the disk."""
    outputs = made_folder(workspace, OUTPUTS)
    tops = [top for top in (made_folder(workspace, (UPLOADS,)), outputs) if top is not None]
    for folder in (top / file_name(session_id) for top in tops for session_id in session_ids):
        if is_folder(folder):
            shutil.rmtree(folder)
    sent = None if outputs is None else outputs / SENT
    if sent is not None and is_folder(sent):
        for path in copies:
            # Rows hold paths of the workspace; the name alone says which copy it is.
            with suppress(FileNotFoundError):
                (sent / Path(path).name).unlink()
