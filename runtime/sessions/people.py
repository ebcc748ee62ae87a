"""Platform accounts and pairings: who is owner, member or a stranger with a code."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    bindparam,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)

from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.sessions.tables import accounts, pairings
from runtime.store.database import now_ms
from runtime.store.payloads import kept
from runtime.store.row_values import from_row
from runtime.store.statements import hot, insert_new


@dataclass(frozen=True, slots=True)
class Account:
    """A platform account that the gateway knows. `direct_chat` is where to reach its person.

    The trust of one that is not `paired` is the configuration's to give and to take.
    """

    speaker: Speaker
    direct_chat: ChatAddress | None
    paired: bool = True

    @property
    def trusted(self) -> Speaker | None:
        """The speaker, where this row is what gives the trust."""
        return self.speaker if self.paired else None


@dataclass(frozen=True, slots=True)
class Pairing:
    """A stranger's request to be let in; `state` is pending, approved, denied or expired."""

    code: str
    channel: str
    account: str
    user_id: str
    name: str
    address: ChatAddress
    created_ms: int
    expires_ms: int
    state: str


_ACCOUNT = hot(
    select(accounts).where(
        accounts.c.channel == bindparam("on_channel"),
        accounts.c.account == bindparam("on_account"),
        accounts.c.user_id == bindparam("the_user"),
    )
)


def find(conn: Connection, *, channel: str, account: str, user_id: str) -> Account | None:
    """The account, or None for a stranger."""
    row = _ACCOUNT.first(conn, on_channel=channel, on_account=account, the_user=user_id)
    return None if row is None else _account(row._mapping)


def find_all(
    conn: Connection, wanted: Collection[tuple[str, str, str]]
) -> Mapping[tuple[str, str, str], Account]:
    """The known ones of accounts, by channel, account and user id."""
    key = tuple_(accounts.c.channel, accounts.c.account, accounts.c.user_id)
    rows = conn.execute(select(accounts).where(key.in_(wanted))).mappings()
    return {(row["channel"], row["account"], row["user_id"]): _account(row) for row in rows}


def put(
    conn: Connection,
    speaker: Speaker,
    *,
    direct_chat: ChatAddress | None = None,
    paired: bool = True,
) -> None:
    """Make an account known, or change its trust and name; a known direct chat is kept."""
    where = _is(speaker)
    values: dict[str, object] = {
        "person_id": speaker.person_id,
        "name": speaker.name,
        "trust": speaker.trust.value,
        "source": "paired" if paired else "configured",
        "updated_ms": now_ms(conn),
    }
    if direct_chat is not None:
        values["direct_chat"] = direct_chat.model_dump_json()
    if conn.execute(update(accounts).where(where).values(values)).rowcount == 0:
        first = {
            "channel": speaker.channel,
            "account": speaker.account,
            "user_id": speaker.user_id,
            "direct_chat": None,
            "created_ms": values["updated_ms"],
            **values,
        }
        if not insert_new(conn, accounts, first):
            # Two first messages of one person at the same moment: whoever came first named them.
            del values["person_id"]
            conn.execute(update(accounts).where(where).values(values))


def with_trust(conn: Connection, trust: Trust) -> Sequence[Account]:
    """Every account of one trust, oldest first."""
    return _accounts(conn, accounts.c.trust == trust.value)


def of_person(conn: Connection, person_id: str) -> Sequence[Account]:
    """The accounts of one person, oldest first."""
    return _accounts(conn, accounts.c.person_id == person_id)


def forget_configured(conn: Connection, *, keep: Mapping[str, Collection[str]]) -> None:
    """Drop the accounts that the configuration named once; `keep` are its user ids by channel."""
    for account in listing(conn):
        speaker = account.speaker
        if not account.paired and speaker.user_id not in keep.get(speaker.channel, ()):
            conn.execute(delete(accounts).where(_is(speaker)))


def _is(speaker: Speaker) -> ColumnElement[bool]:
    return (
        (accounts.c.channel == speaker.channel)
        & (accounts.c.account == speaker.account)
        & (accounts.c.user_id == speaker.user_id)
    )


def listing(conn: Connection) -> Sequence[Account]:
    """Every known account, oldest first."""
    return _accounts(conn)


def _accounts(conn: Connection, *which: ColumnElement[bool]) -> Sequence[Account]:
    rows = conn.execute(select(accounts).where(*which).order_by(accounts.c.created_ms)).mappings()
    return [_account(row) for row in rows]


def add_pairing(conn: Connection, pairing: Pairing) -> None:
    """Keep a new request."""
    conn.execute(
        insert(pairings).values(
            code=pairing.code,
            channel=pairing.channel,
            account=pairing.account,
            user_id=pairing.user_id,
            name=pairing.name,
            address=pairing.address.model_dump_json(),
            created_ms=pairing.created_ms,
            expires_ms=pairing.expires_ms,
            state=pairing.state,
        )
    )


def pending_of(conn: Connection, *, channel: str, account: str, user_id: str) -> Sequence[Pairing]:
    """A stranger's own requests that have not run out."""
    rows = conn.execute(
        select(pairings).where(
            pairings.c.channel == channel,
            pairings.c.account == account,
            pairings.c.user_id == user_id,
            _waits(conn),
        )
    ).mappings()
    return [_pairing(row) for row in rows]


def count_pending(conn: Connection, *, channel: str, account: str) -> int:
    """How many strangers of one platform account wait for the owner."""
    return conn.execute(
        select(func.count())
        .select_from(pairings)
        .where(
            pairings.c.channel == channel,
            pairings.c.account == account,
            _waits(conn),
        )
    ).scalar_one()


def pairing(conn: Connection, code: str) -> Pairing | None:
    """A request by its code, in whatever state."""
    row = conn.execute(select(pairings).where(pairings.c.code == code)).mappings().first()
    return None if row is None else _pairing(row)


def pairings_pending(conn: Connection) -> Sequence[Pairing]:
    """All requests that an owner may still answer, oldest first."""
    rows = conn.execute(
        select(pairings).where(_waits(conn)).order_by(pairings.c.created_ms)
    ).mappings()
    return [_pairing(row) for row in rows]


def settle_pairing(conn: Connection, *, code: str, state: str) -> bool:
    """Answer a request once; False when it was answered or has run out."""
    changed = conn.execute(
        update(pairings).where(pairings.c.code == code, _waits(conn)).values(state=state)
    )
    return changed.rowcount == 1


def _waits(conn: Connection) -> ColumnElement[bool]:
    """Whether a request may still be answered."""
    return (pairings.c.state == "pending") & (pairings.c.expires_ms > now_ms(conn))


def _account(row: RowMapping) -> Account:
    chat = row["direct_chat"]
    return Account(
        Speaker(
            person_id=row["person_id"],
            channel=row["channel"],
            account=row["account"],
            user_id=row["user_id"],
            name=row["name"],
            trust=Trust(row["trust"]),
        ),
        None if chat is None else kept(ChatAddress, chat),
        paired=row["source"] == "paired",
    )


def _pairing(row: RowMapping) -> Pairing:
    return from_row(Pairing, row, address=kept(ChatAddress, row["address"]))
