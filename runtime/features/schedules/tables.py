"""The tables of schedules: what is to happen when, what became of each time, and people's zones.

A row of `schedules` goes with the lane of the conversation where it was asked for: that is what the
deletion of a conversation removes, also when a process of an earlier version does it.
"""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, text

from runtime.store.metadata import metadata, partial_index

schedules = Table(
    "schedules",
    metadata,
    Column("id", Text, primary_key=True),
    # Who asked, and by which account of the place's platform.
    Column("owner_person_id", Text, nullable=False),
    Column("owner_user_id", Text),
    # The conversation where it was asked for.
    Column("session_id", ForeignKey("lanes.session_id", ondelete="CASCADE")),
    # The place, which never changes by itself.
    Column("channel", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("chat", Text, nullable=False),
    Column("chat_kind", Text, nullable=False),
    Column("thread", Text),
    Column("timezone", Text, nullable=False),
    # JSON; an interval counts from the anchor.
    Column("cadence", Text, nullable=False),
    Column("anchor_ms", BigInteger, nullable=False),
    Column("misfire", Text, nullable=False),
    # What is said as it stands, or the JSON of what a run is asked.
    Column("deliver_text", Text),
    Column("max_executions", Integer),
    Column("status", Text, nullable=False),
    # The next time of one that is active, and what was left until then of one that is paused.
    Column("next_fire_ms", BigInteger),
    Column("remaining_ms", BigInteger),
    Column("execution_count", Integer, nullable=False, server_default="0"),
    Column("revision", Integer, nullable=False, server_default="1"),
    Column("last_error", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Column("request", Text),
    Column("name", Text, nullable=False, server_default=""),
    # The session whose lane is its own; null where its runs are those of `session_id`.
    Column("lane_id", Text),
    # JSON: which agents, sessions and runs it is told to belong to.
    Column("origin", Text, nullable=False, server_default="{}"),
    Column("overlap", Text, nullable=False, server_default="skip"),
    # The time that waits for the one at work, the one that somebody asked for, and the one whose
    # dispatch is tried again.
    Column("queued_fire_ms", BigInteger),
    Column("trigger_ms", BigInteger),
    Column("retry_slot_ms", BigInteger),
    Column("retry_after_ms", BigInteger),
    Column("retry_attempt", Integer, nullable=False, server_default="0"),
    Column("last_scheduler_error", Text),
    Column("last_fire_ms", BigInteger),
    Column("last_run_id", Text),
    Column("consecutive_failures", Integer, nullable=False, server_default="0"),
    # The earlier of the trigger and of the next try.
    Column("wake_ms", BigInteger),
    # JSON: what a run is asked under a condition. `request` is null then, so that a process of an
    # earlier version, which knows no conditions, leaves the schedule alone.
    Column("conditions", Text),
    # How the approval of its gate stands, the id of the card that asks for it and what was shown
    # on it, and the digest of what was approved.
    Column("gate_state", Text),
    Column("gate_card", Text),
    Column("gate_asked", Text),
    Column("gate_digest", Text),
    # JSON: what its checks have seen so far.
    Column("seen", Text),
    # Who checks the time of `retry_slot_ms` now; another one may begin at `retry_after_ms`.
    Column("check_token", Text),
    # Since when something is to be got ready for it: the card of its gate, its first look.
    Column("prepare_ms", BigInteger),
    # Whether a model chose its words, and not a person or a program: then no address in them counts
    # as given. So it is where nobody knows.
    Column("worded_by_model", Boolean, nullable=False, server_default=text("true")),
    partial_index("ix_schedules_due", "next_fire_ms", where="status = 'active'"),
    partial_index("ix_schedules_wake", "wake_ms", where="status = 'active'"),
    partial_index("ix_schedules_prepare", "prepare_ms", where="prepare_ms IS NOT NULL"),
    Index(None, "session_id"),
    Index(None, "owner_person_id"),
    Index(None, "channel", "account", "chat"),
    Index(None, "gate_card"),
)

# Each time fires once, or its row says why it did not.
schedule_fires = Table(
    "schedule_fires",
    metadata,
    Column("schedule_id", ForeignKey("schedules.id", ondelete="CASCADE"), primary_key=True),
    Column("slot_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("status", Text, nullable=False),
    Column("reason", Text, nullable=False, server_default=""),
    Column("outbox_id", Text),
    Column("fired_ms", BigInteger, nullable=False),
    Column("run_id", Text),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("from_queued", Boolean, nullable=False, server_default=text("false")),
    Column("claimed_ms", BigInteger),
    Column("dispatched_ms", BigInteger),
    Column("settled_ms", BigInteger),
    # Whether a heartbeat had something to say; null for any other.
    Column("spoke", Boolean),
    partial_index("ix_schedule_fires_open", "run_id", where="status = 'dispatched'"),
)

# The lanes of schedules. One whose schedule went with its conversation is erased behind it.
schedule_lanes = Table(
    "schedule_lanes",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("schedule_id", ForeignKey("schedules.id", ondelete="SET NULL")),
    Index(None, "schedule_id"),
    partial_index("ix_schedule_lanes_left", "session_id", where="schedule_id IS NULL"),
)

person_zones = Table(
    "person_zones",
    metadata,
    Column("person_id", Text, primary_key=True),
    # The name of an IANA time zone.
    Column("zone", Text, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
)
