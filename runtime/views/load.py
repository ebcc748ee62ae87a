"""What is open now, for each scrape of the metrics: it costs no more where there is a long past."""

from runtime.sessions import outbox, totals
from runtime.store import Connection, Database, leases
from runtime.views.models import LeaseView, LoadView
from runtime.views.shapes import unsent


class LoadReader:
    """Reads a `LoadView`. Raises `StoreUnavailable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self) -> LoadView:
        """One read of one snapshot."""
        return await self._database.read(_read)


def _read(conn: Connection) -> LoadView:
    counts, load = outbox.counts(conn), totals.load(conn)
    return LoadView(
        leases=held_leases(conn),
        runs=dict(load.runs),
        outbox=unsent(counts),
        outbox_oldest_ms=counts["oldest_ms"],
        lanes_ready=load.ready,
        lane_deepest=load.deepest,
        open_calls=load.open_calls,
    )


def held_leases(conn: Connection) -> tuple[LeaseView, ...]:
    """Who holds what, as it is shown."""
    return tuple(
        LeaseView(name=one.name, holder=one.holder, fence=one.fence, expires_at_ms=one.expires_ms)
        for one in leases.listing(conn)
    )
