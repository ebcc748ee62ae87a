"""What Alembic runs for each command: it configures itself with the connection that it is given.

`runtime.store.migrate` opens the connection and the transaction. Logging is not touched here: it
belongs to the process.
"""

from alembic import context

from runtime.store.metadata import metadata
from runtime.store.migrate import default_differs

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    # SQLite alters little by itself: Alembic copies the table, see `migrate`.
    render_as_batch=connection.dialect.name == "sqlite",
    compare_server_default=default_differs,
)
with context.begin_transaction():
    context.run_migrations()
