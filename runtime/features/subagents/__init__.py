"""Subagents: children of a session, in trees (contract ids SUB-1 to SUB-25).

How one lives, and where that is:

- spawn: `spawn/spawn_call` opens the call, `spawn/spawn_requests` checks it, `spawn/children` makes
  the child, held while others go first, and starts it once they have ended.
- slot: `child_keeper` finds all that is due, and `slots` lets a child run.
- run: as any session does; `turn_guest` goes along, and `agent_messages` tells it more.
- wait: `waits/` for its parent's answer or other agents, `spawn/spawn_call` for its own children.
- stop: `ends/child_stop` marks who is to end, and ends those that are marked.
- end: `ends/child_end` settles it, unless `ends/child_retry` lets it begin anew.
- result: `ends/parent_results` gives it to the parent; `batch_card` shows a batch to people.

`kind` is where the message path meets all this, `rows/` has its statements.
"""
