"""The tables of tasks: what is to be done, what waits for what, and input for commands.

A row of `tasks` goes with the lane of its session, which is what the deletion of a conversation
removes.
"""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, text

from runtime.store.metadata import POSITION, metadata, partial_index

tasks = Table(
    "tasks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", ForeignKey("lanes.session_id", ondelete="CASCADE"), nullable=False),
    # todo or shell.
    Column("kind", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("status", Text, nullable=False),
    Column("owner_agent_id", Text),
    # JSON: what its makers say of it, and what the gateway found out.
    Column("metadata", Text, nullable=False, server_default="{}"),
    Column("facts", Text, nullable=False, server_default="{}"),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    # Where who asked for it is told of it, as JSON.
    Column("place", Text),
    Column("notify", Text, nullable=False, server_default="silent"),
    # The person whose run made it.
    Column("asked_by", Text),
    Column("stop_requested_ms", BigInteger),
    Column("stop_reason", Text),
    # Of commands: the process that holds one, and what tells its tree from others.
    Column("worker", Text),
    Column("host", Text),
    Column("token", Text),
    Column("pid", Integer),
    Column("started_ticks", BigInteger),
    # Whether its processes may be there still.
    Column("tree_open", Boolean, nullable=False, server_default=text("false")),
    Column("output_path", Text),
    Column("output_dropped", BigInteger, nullable=False, server_default="0"),
    Column("rotations", Integer, nullable=False, server_default="0"),
    Index(None, "session_id", "id"),
    partial_index("ix_tasks_live", "worker", where="kind = 'shell' AND status = 'in_progress'"),
    partial_index("ix_tasks_asked_by", "asked_by", where="asked_by IS NOT NULL"),
    partial_index("ix_tasks_tree_open", "host", where="tree_open"),
)

# `task_id` waits for `blocker_id`.
task_blocks = Table(
    "task_blocks",
    metadata,
    Column("task_id", ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Column("blocker_id", ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Index(None, "blocker_id"),
)

# What was typed for a command and has not reached it yet.
task_inputs = Table(
    "task_inputs",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=True),
    Column("task_id", ForeignKey("tasks.id", ondelete="CASCADE"), nullable=False),
    Column("text", Text, nullable=False),
    # Whether its input ends behind this.
    Column("closes", Boolean, nullable=False),
    Index(None, "task_id"),
)
