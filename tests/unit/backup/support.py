"""A place with a database and a workspace, and people whose messages arrive while a test runs."""

import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Connection

from gateway.config import Config, load
from runtime.domain.messages import ChatAddress, InboundMessage, OutboundMessage, TextPart
from runtime.domain.people import Sender, Speaker, Trust
from runtime.domain.runs import Holder
from runtime.sessions import outbox
from runtime.sessions.lanes import NewSession
from runtime.sessions.outbox import NewRow
from runtime.sessions.queue_modes import enqueue
from runtime.sessions.restored_rows import settle_restored
from runtime.sessions.unit import Unit
from runtime.store.backup.backup import DatabaseBackup
from runtime.store.migrate import MIGRATIONS
from runtime.store.revisions import Revisions
from tests.contract.store_support import StillClock
from tests.support.kinds import unit_of

NOW = 1_800_000_000_000
NAME = "gatehouse-20270115-080000.tar.gz"
CHAT = ChatAddress(channel="test", account="bot", chat_id="C1", chat_kind="group")
ADA = Speaker(
    person_id="per_ada", channel="test", account="bot", user_id="U1", name="Ada", trust=Trust.OWNER
)


def place(path: Path, **variables: str) -> Config:
    """The settings of a machine of its own."""
    home = path / "home"
    home.mkdir(exist_ok=True)
    return load(environment={"GATEHOUSE_HOME": str(home), **variables})


def base(config: Config, *, scripts: Path = MIGRATIONS) -> DatabaseBackup:
    """The database's side, by a version with these migrations."""
    return DatabaseBackup(
        config.database_url, clock=StillClock(NOW), settle=settle_restored, scripts=scripts
    )


def next_version(folder: Path) -> Path:
    """The migrations as a later version has them: with one more."""
    scripts = folder / "migrations"
    shutil.copytree(MIGRATIONS, scripts)
    (scripts / "versions" / "9999_next.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n\n"
        f'revision = "9999"\ndown_revision = {Revisions(MIGRATIONS).head!r}\n\n\n'
        'def upgrade() -> None:\n    op.add_column("settings", sa.Column("note", sa.Text()))\n'
    )
    return scripts


def say(conn: Connection, number: int) -> str:
    """One message of a person: its input and its run, in one unit; the session's id."""
    message = InboundMessage(
        channel="test",
        account="bot",
        chat_id="C1",
        chat_kind="group",
        message_id=f"m{number}",
        sender=Sender(id="U1", name="Ada"),
        text=f"message {number}",
        received_at_ms=number,
    )

    def work(unit: Unit) -> str:
        there = unit.session_by_key("test:bot:C1")
        new = NewSession("test:bot:C1", CHAT, "edit", "followup")
        lane = unit.create(new) if there is None else there[0]
        assert lane is not None
        assert enqueue(unit, lane, message, ADA, queue_mode="followup", debounce_ms=0) is not None
        return lane.session_id

    return unit_of(work)(conn)


def reply(conn: Connection, number: int, session_id: str, claim: Holder | None) -> str:
    """A reply that waits to be sent, or is being sent; its id."""
    name = f"out_{number}"
    message = OutboundMessage(
        outbox_id=name,
        target=CHAT.model_copy(update={"chat_id": f"C{number}"}),
        parts=(TextPart(markdown=f"reply {number}"),),
        session_id=session_id,
    )
    outbox.add(conn, NewRow("notice", message, claim=claim))
    return name


def pack(path: Path, members: Mapping[str, bytes]) -> Path:
    """A tar of plain files, in this order."""
    with tarfile.open(path, "w:gz", format=tarfile.GNU_FORMAT) as tar:
        for name, content in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return path


def members(archive: Path) -> dict[str, bytes]:
    """The contents of an archive by name, in its order."""
    with tarfile.open(archive) as tar:
        found = {}
        for one in tar:
            content = tar.extractfile(one)
            assert content is not None
            found[one.name] = content.read()
        return found


def raw(archive: Path) -> bytes:
    """The file's bytes."""
    return archive.read_bytes()


def everything(folder: Path) -> list[Path]:
    """All that is below a folder."""
    return sorted(folder.rglob("*"))
