-- What the code of revision 0007 says to SQLite, each statement once.
-- Written by `python -m tests.upgrade.record`. What an older revision said is never written anew.

DELETE FROM accounts WHERE accounts.channel = ? AND accounts.account = ? AND accounts.user_id = ?;

DELETE FROM budget_reservations WHERE budget_reservations.run_id = ? RETURNING tokens, micro_usd, budgets;

DELETE FROM seen_files WHERE seen_files.session_id = ?;

DELETE FROM settings WHERE settings.name = ?;

INSERT INTO accounts (channel, account, user_id, person_id, name, trust, source, direct_chat, created_ms, updated_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

INSERT INTO agent_cards (id, run_id, step, shown, created_ms, next_ms) VALUES (?, ?, ?, ?, ?, ?);

INSERT INTO agent_results (session_id, digest, words, size, created_ms) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

INSERT INTO agent_slots (number, session_id) VALUES (?, ?) ON CONFLICT DO NOTHING;

INSERT INTO agent_waits (session_id, other_id, kind) VALUES (?, ?, ?);

INSERT INTO agents (session_id, tree_id, parent_id, name, place, depth, type, label, task, mode, on_failure, group_name, prompt, run_id, step, call_place, request_key, request_digest, share, retention, payer, stop, quiet, status, result, result_bytes, result_digest, artifacts, steps, tool_calls, input_tokens, output_tokens, cost_usd, created_ms, held_ms, settled_ms, retries, isolation, worktree, base, tree_state, description, deadline_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO audit (at_ms, actor, action, session_id, run_id, data) VALUES (?, ?, ?, ?, ?, ?);

INSERT INTO budget_reservations (run_id, step, tokens, micro_usd, budgets, created_ms) VALUES (?, ?, ?, ?, ?, ?);

INSERT INTO budgets (scope, scope_id, day, used_tokens, used_micro_usd) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

INSERT INTO events (session_id, seq, run_id, kind, data, at_ms, xid) VALUES (?, ?, ?, ?, ?, ?, 0);

INSERT INTO idempotency ("key", digest, response, created_ms) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

INSERT INTO inputs (id, session_id, seq, identity, origin, run_id, state, speaker, message, received_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

INSERT INTO lanes (session_id) VALUES (?);

INSERT INTO leases (name, holder, fence, expires_ms) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

INSERT INTO messages (session_id, seq, transcript, run_id, step, role, payload, tokens, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO open_calls (id, session_id, run_id, step, place, kind, digest, payload, state, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO outbox (id, session_id, run_id, kind, channel, account, chat, message, open_call_id, state, rank, next_ms, worker, fence, posted, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO pairings (code, channel, account, user_id, name, address, created_ms, expires_ms, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO personas (digest, files, created_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

INSERT INTO runs (id, session_id, seq, kind, state, collecting, ready_ms, target, reply_to, speaker, late, created_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

INSERT INTO seen_files (session_id, path, mtime_ns, size, digest) VALUES (?, ?, ?, ?, ?) ON CONFLICT (session_id, path) DO UPDATE SET mtime_ns = excluded.mtime_ns, size = excluded.size, digest = excluded.digest;

INSERT INTO sessions (id, "key", address, title, status, mode, queue_mode, agent, grants, created_ms, updated_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

INSERT INTO settings (name, value, updated_ms) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_ms = excluded.updated_ms;

INSERT INTO tool_calls (run_id, step, place, call_id, name, arguments, effect, state, decision, digest, result, started_ms, ended_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

SELECT EXISTS (SELECT * FROM agents WHERE agents.run_id = ? AND agents.step = ? AND settled_ms IS NULL) AS anon_1;

SELECT EXISTS (SELECT * FROM outbox WHERE outbox.open_call_id = ? AND outbox.state IN ('pending','sending','streaming')) AS anon_1;

SELECT accounts.channel, accounts.account, accounts.user_id, accounts.person_id, accounts.name, accounts.trust, accounts.source, accounts.direct_chat, accounts.created_ms, accounts.updated_ms FROM accounts ORDER BY accounts.created_ms;

SELECT accounts.channel, accounts.account, accounts.user_id, accounts.person_id, accounts.name, accounts.trust, accounts.source, accounts.direct_chat, accounts.created_ms, accounts.updated_ms FROM accounts WHERE accounts.channel = ? AND accounts.account = ? AND accounts.user_id = ?;

SELECT accounts.channel, accounts.account, accounts.user_id, accounts.person_id, accounts.name, accounts.trust, accounts.source, accounts.direct_chat, accounts.created_ms, accounts.updated_ms FROM accounts WHERE accounts.trust = ? ORDER BY accounts.created_ms;

SELECT agent_cards.id FROM agent_cards WHERE agent_cards.next_ms <= ? ORDER BY agent_cards.next_ms LIMIT ? OFFSET ?;

SELECT agent_cards.id, agent_cards.run_id, agent_cards.step, agent_cards.shown, agent_cards.created_ms, agent_cards.next_ms FROM agent_cards WHERE agent_cards.id = ?;

SELECT agent_results.session_id, agent_results.digest, agent_results.size FROM agent_results JOIN agents ON agents.session_id = agent_results.session_id WHERE agents.parent_id = ? OR agents.session_id IN (SELECT agent_waits.other_id FROM agent_waits WHERE agent_waits.session_id = ? AND agent_waits.kind = ?) ORDER BY agent_results.created_ms DESC, agents.place DESC LIMIT ? OFFSET ?;

SELECT agent_results.words FROM agent_results WHERE agent_results.session_id = ? AND agent_results.digest = ?;

SELECT agent_slots.number FROM agent_slots WHERE agent_slots.session_id IS NULL AND agent_slots.number <= ? ORDER BY agent_slots.number LIMIT ? OFFSET ?;

SELECT agent_waits.session_id, agent_waits.other_id FROM agent_waits JOIN agents ON agents.session_id = agent_waits.session_id WHERE agents.tree_id = ? AND agent_waits.kind = ?;

SELECT agents.session_id FROM agents WHERE agents.held_ms IS NOT NULL AND NOT (EXISTS (SELECT * FROM agent_waits, agents AS other WHERE agent_waits.session_id = agents.session_id AND other.session_id = agent_waits.other_id AND other.settled_ms IS NULL)) ORDER BY agents.held_ms, agents.place LIMIT ? OFFSET ?;

SELECT agents.session_id FROM agents WHERE agents.tree_id = ? AND agents.parent_id = ? AND agents.isolation = ? LIMIT ? OFFSET ?;

SELECT agents.session_id FROM agents WHERE deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL AND agents.deadline_ms <= ? ORDER BY agents.deadline_ms LIMIT ? OFFSET ?;

SELECT agents.session_id FROM agents WHERE stop IS NOT NULL AND settled_ms IS NULL ORDER BY agents.created_ms, agents.depth LIMIT ? OFFSET ?;

SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.label, agents.task, agents.mode, agents.on_failure, agents.group_name, agents.prompt, agents.run_id, agents.step, agents.call_place, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.created_ms, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.run_id = ? AND agents.step = ? ORDER BY agents.place;

SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.parent_id = ? AND settled_ms IS NULL ORDER BY agents.place;

SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.run_id = ? AND agents.step = ? AND agents.call_place = ? ORDER BY agents.place;

SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.session_id = ?;

SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.tree_id = ? ORDER BY agents.place;

SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms, agent_waits.kind FROM agents JOIN agent_waits ON agent_waits.other_id = agents.session_id WHERE agent_waits.session_id = ? ORDER BY agents.place;

SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms, lanes.gate, coalesce(lanes.wants_ms, lanes.ready_ms) AS due_ms, lanes.active_run, active.state AS run_state, CASE WHEN (agents.settled_ms IS NULL) THEN anon_2.used_steps ELSE agents.steps END AS anon_1, CASE WHEN (agents.settled_ms IS NULL) THEN anon_2.used_tokens ELSE agents.input_tokens + agents.output_tokens END AS anon_3, CASE WHEN (agents.settled_ms IS NULL) THEN anon_2.used_cost ELSE agents.cost_usd END AS anon_4, CASE WHEN (agents.settled_ms IS NULL) THEN anon_2.any_taint ELSE (SELECT count(*) AS count_1 FROM runs WHERE runs.session_id = agents.session_id AND runs.tainted = 1) END AS anon_5, anon_2.queued_runs, CASE WHEN (agents.settled_ms IS NULL) THEN anon_7.used_calls ELSE agents.tool_calls END AS anon_6, anon_8.approvals, anon_8.questions, anon_8.asks, newest.created_ms AS newest_ms, CASE WHEN (anon_2.errors > ? OR agents.settled_ms IS NOT NULL AND (agents.status != ? OR agents.retries > ?)) THEN (SELECT runs.error FROM runs WHERE runs.session_id = agents.session_id AND runs.error IS NOT NULL ORDER BY runs.seq DESC LIMIT ? OFFSET ?) END AS last_error, CASE WHEN (agents.settled_ms IS NULL) THEN (SELECT messages.payload FROM messages WHERE messages.session_id = agents.session_id AND messages.role = ? ORDER BY messages.seq DESC LIMIT ? OFFSET ?) END AS last_said FROM agents JOIN lanes ON lanes.session_id = agents.session_id LEFT OUTER JOIN runs AS active ON active.id = lanes.active_run LEFT OUTER JOIN (SELECT runs.session_id AS session_id, sum(runs.step) AS used_steps, sum(runs.input_tokens + runs.output_tokens) AS used_tokens, sum(runs.cost_usd) AS used_cost, max(CASE WHEN runs.tainted THEN ? ELSE ? END) AS any_taint, sum(CASE WHEN (runs.state = 'queued') THEN ? ELSE ? END) AS queued_runs, count(runs.error) AS errors FROM runs WHERE runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.run_id = ? AND agents.step = ? AND agents.settled_ms IS NULL) GROUP BY runs.session_id) AS anon_2 ON anon_2.session_id = agents.session_id LEFT OUTER JOIN (SELECT runs.session_id AS session_id, count(*) AS used_calls FROM runs JOIN tool_calls ON tool_calls.run_id = runs.id WHERE runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.run_id = ? AND agents.step = ? AND agents.settled_ms IS NULL) GROUP BY runs.session_id) AS anon_7 ON anon_7.session_id = agents.session_id LEFT OUTER JOIN (SELECT open_calls.session_id AS session_id, sum(CASE WHEN (open_calls.kind = ?) THEN ? ELSE ? END) AS approvals, sum(CASE WHEN (open_calls.kind = ?) THEN ? ELSE ? END) AS questions, max(CASE WHEN (open_calls.kind = ?) THEN ? ELSE ? END) AS asks FROM open_calls WHERE open_calls.session_id IN (SELECT agents.session_id FROM agents WHERE agents.run_id = ? AND agents.step = ? AND agents.settled_ms IS NULL) AND open_calls.state = ? GROUP BY open_calls.session_id) AS anon_8 ON anon_8.session_id = agents.session_id LEFT OUTER JOIN messages AS newest ON agents.settled_ms IS NULL AND newest.session_id = agents.session_id AND newest.seq = lanes.message_seq WHERE agents.run_id = ? AND agents.step = ? ORDER BY agents.tree_id, agents.place;

SELECT budgets.used_tokens, budgets.used_micro_usd, budgets.reserved_tokens, budgets.reserved_micro_usd, budgets.unpriced_calls FROM budgets WHERE budgets.scope = ? AND budgets.scope_id = ? AND budgets.day = ?;

SELECT coalesce(sum(runs.input_tokens), ?) AS coalesce_1, coalesce(sum(runs.output_tokens), ?) AS coalesce_3, coalesce(sum(runs.cached_tokens), ?) AS coalesce_5, sum(runs.cost_usd) AS sum_1 FROM runs WHERE runs.id = ? OR runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.payer = ?);

SELECT coalesce(sum(runs.input_tokens), ?) AS coalesce_1, coalesce(sum(runs.output_tokens), ?) AS coalesce_3, coalesce(sum(runs.cached_tokens), ?) AS coalesce_5, sum(runs.cost_usd) AS sum_1 FROM runs WHERE runs.session_id = ?;

SELECT coalesce(sum(runs.input_tokens), ?) AS coalesce_1, coalesce(sum(runs.output_tokens), ?) AS coalesce_3, coalesce(sum(runs.cached_tokens), ?) AS coalesce_5, sum(runs.cost_usd) AS sum_1 FROM runs WHERE runs.session_id = ? OR runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.tree_id = ?);

SELECT coalesce(sum(runs.input_tokens), ?) AS coalesce_1, coalesce(sum(runs.output_tokens), ?) AS coalesce_3, coalesce(sum(runs.cached_tokens), ?) AS coalesce_5, sum(runs.cost_usd) AS sum_1 FROM runs WHERE runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.tree_id = ?);

SELECT coalesce(sum(runs.step), ?) AS steps, coalesce(sum(runs.input_tokens), ?) AS taken, coalesce(sum(runs.output_tokens), ?) AS given, sum(runs.cost_usd) AS cost, max(runs.tainted) AS tainted FROM runs WHERE runs.session_id = ?;

SELECT count(*) AS count_1 FROM agent_slots;

SELECT count(*) AS count_1 FROM agents WHERE agents.run_id = ?;

SELECT count(*) AS count_1 FROM agents WHERE agents.tree_id = ? AND agents.created_ms >= ?;

SELECT count(*) AS count_1 FROM pairings WHERE pairings.channel = ? AND pairings.account = ? AND pairings.state = ? AND pairings.expires_ms > ?;

SELECT count(*) AS count_1 FROM runs;

SELECT count(*) AS count_1 FROM runs WHERE runs.session_id = ? AND (runs.kind = ? OR runs.kind = ?) AND runs.created_ms > ? AND NOT (EXISTS (SELECT * FROM inputs WHERE inputs.run_id = runs.id AND inputs.origin = ?));

SELECT count(*) AS count_1 FROM runs WHERE runs.session_id = ? AND runs.state = ?;

SELECT count(*) AS count_1 FROM sessions JOIN lanes ON lanes.session_id = sessions.id LEFT OUTER JOIN messages ON messages.session_id = sessions.id AND messages.seq = lanes.message_seq WHERE NOT (EXISTS (SELECT * FROM agents WHERE agents.session_id = sessions.id AND agents.retention = ? AND agents.settled_ms IS NOT NULL));

SELECT count(*) AS count_1 FROM tool_calls JOIN runs ON runs.id = tool_calls.run_id WHERE runs.session_id = ?;

SELECT count(*) AS count_1, count(lanes.active_run) AS count_2, count(lanes.ready_ms) AS count_3, coalesce(sum(lanes.input_seq), ?) AS coalesce_1 FROM lanes;

SELECT events.at_ms, events.data FROM events WHERE events.session_id = ? AND events.kind = ? ORDER BY events.seq;

SELECT events.position, events.session_id, events.seq, events.run_id, events.kind, events.data, events.at_ms, events.xid FROM events WHERE events.position > ? AND events.position < ? ORDER BY events.position LIMIT ? OFFSET ?;

SELECT events.position, events.session_id, events.seq, events.run_id, events.kind, events.data, events.at_ms, events.xid FROM events WHERE events.position > ? AND events.run_id = ? AND events.position < ? ORDER BY events.position LIMIT ? OFFSET ?;

SELECT events.position, events.session_id, events.seq, events.run_id, events.kind, events.data, events.at_ms, events.xid FROM events WHERE events.position > ? AND events.session_id = ? AND events.position < ? ORDER BY events.position LIMIT ? OFFSET ?;

SELECT idempotency."key" FROM idempotency WHERE idempotency."key" = ?;

SELECT idempotency.digest, idempotency.response FROM idempotency WHERE idempotency."key" = ?;

SELECT inputs.id, inputs.session_id, inputs.run_id FROM inputs WHERE inputs.identity = ?;

SELECT inputs.id, inputs.session_id, inputs.seq, inputs.identity, inputs.origin, inputs.run_id, inputs.state, inputs.speaker, inputs.message, inputs.received_ms FROM inputs JOIN runs ON runs.id = inputs.run_id WHERE inputs.session_id = ? AND inputs.state = ? AND (runs.state NOT IN (?, ?, ?, ?)) ORDER BY inputs.seq LIMIT ? OFFSET ?;

SELECT inputs.id, inputs.session_id, inputs.seq, inputs.identity, inputs.origin, inputs.run_id, inputs.state, inputs.speaker, inputs.message, inputs.received_ms FROM inputs WHERE inputs.run_id IN (?, ?) AND inputs.state = 'pending' ORDER BY inputs.seq;

SELECT inputs.id, inputs.session_id, inputs.seq, inputs.identity, inputs.origin, inputs.run_id, inputs.state, inputs.speaker, inputs.message, inputs.received_ms FROM inputs WHERE inputs.session_id = ? AND inputs.received_ms >= ? AND inputs.received_ms < ? AND (inputs.state IN (?, ?) OR inputs.state = ? AND (EXISTS (SELECT * FROM runs WHERE runs.id = inputs.run_id AND runs.state IN (?, ?, ?, ?)))) AND inputs.received_ms <= ? ORDER BY inputs.received_ms DESC, inputs.seq DESC LIMIT ? OFFSET ?;

SELECT inputs.id, inputs.session_id, inputs.seq, inputs.identity, inputs.origin, inputs.run_id, inputs.state, inputs.speaker, inputs.message, inputs.received_ms FROM inputs WHERE inputs.session_id = ? AND inputs.received_ms >= ? AND inputs.received_ms < ? AND (inputs.state IN (?, ?) OR inputs.state = ? AND (EXISTS (SELECT * FROM runs WHERE runs.id = inputs.run_id AND runs.state IN (?, ?, ?, ?)))) ORDER BY inputs.received_ms DESC, inputs.seq DESC LIMIT ? OFFSET ?;

SELECT inputs.identity FROM inputs WHERE inputs.session_id = ? AND inputs.run_id = ? AND (inputs.identity LIKE ? || '%');

SELECT lanes.session_id FROM lanes WHERE wants_ms IS NOT NULL AND lanes.wants_ms <= ? LIMIT ? OFFSET ?;

SELECT lanes.session_id, lanes.input_seq, lanes.run_seq, lanes.event_seq, lanes.message_seq, lanes.transcript, lanes.transcript_from, lanes.window_from, lanes.active_run, lanes.ready_ms, lanes.gate, lanes.wants_ms, ? AS at_ms FROM lanes JOIN sessions ON sessions.id = lanes.session_id WHERE sessions."key" = ?;

SELECT lanes.session_id, lanes.input_seq, lanes.run_seq, lanes.event_seq, lanes.message_seq, lanes.transcript, lanes.transcript_from, lanes.window_from, lanes.active_run, lanes.ready_ms, lanes.gate, lanes.wants_ms, ? AS at_ms FROM lanes WHERE lanes.ready_ms <= (SELECT ? AS anon_1) ORDER BY lanes.ready_ms LIMIT CAST(? AS INTEGER) OFFSET ?;

SELECT lanes.session_id, lanes.input_seq, lanes.run_seq, lanes.event_seq, lanes.message_seq, lanes.transcript, lanes.transcript_from, lanes.window_from, lanes.active_run, lanes.ready_ms, lanes.gate, lanes.wants_ms, ? AS at_ms FROM lanes WHERE lanes.session_id = (SELECT runs.session_id FROM runs WHERE runs.id = ?);

SELECT lanes.session_id, lanes.input_seq, lanes.run_seq, lanes.event_seq, lanes.message_seq, lanes.transcript, lanes.transcript_from, lanes.window_from, lanes.active_run, lanes.ready_ms, lanes.gate, lanes.wants_ms, ? AS at_ms FROM lanes WHERE lanes.session_id = ?;

SELECT lanes.session_id, lanes.input_seq, lanes.run_seq, lanes.event_seq, lanes.message_seq, lanes.transcript, lanes.transcript_from, lanes.window_from, lanes.active_run, lanes.ready_ms, lanes.gate, lanes.wants_ms, ? AS at_ms FROM lanes WHERE lanes.wants_ms <= (SELECT ? AS anon_1) ORDER BY lanes.wants_ms LIMIT CAST(? AS INTEGER) OFFSET ?;

SELECT leases.name, leases.holder, leases.fence, leases.expires_ms FROM leases WHERE leases.expires_ms > ? ORDER BY leases.name;

SELECT leases.name, leases.holder, leases.fence, leases.expires_ms, ? AS at_ms FROM leases WHERE leases.name = ?;

SELECT max(events.position) AS max_1 FROM events WHERE events.position < ?;

SELECT max(inputs.received_ms) AS max_1 FROM inputs WHERE inputs.session_id = ? AND inputs.origin = ?;

SELECT max(runs.created_ms) AS max_1 FROM runs JOIN inputs ON inputs.run_id = runs.id WHERE inputs.session_id = ? AND inputs.origin = ?;

SELECT messages.payload FROM messages WHERE messages.session_id = ? AND messages.seq > (SELECT lanes.message_seq FROM lanes WHERE lanes.session_id = ?) - ? AND messages.run_id = ? AND messages.role = ? ORDER BY messages.seq DESC;

SELECT messages.seq FROM messages WHERE messages.session_id = ? AND messages.seq >= ? AND messages.run_id = ? AND messages.step = ? AND messages.role = ?;

SELECT messages.session_id, messages.seq, messages.transcript, messages.run_id, messages.step, messages.role, messages.payload, messages.tokens, messages.created_ms FROM messages WHERE messages.session_id = ? AND messages.seq >= ? AND messages.transcript = ? ORDER BY messages.seq;

SELECT messages.session_id, messages.seq, messages.transcript, messages.run_id, messages.step, messages.role, messages.payload, messages.tokens, messages.created_ms FROM messages WHERE messages.session_id = ? AND messages.transcript = ? AND messages.role != ? AND (messages.created_ms < ? OR messages.created_ms = ? AND messages.seq < ?) ORDER BY messages.created_ms DESC, messages.seq DESC LIMIT ? OFFSET ?;

SELECT messages.session_id, messages.seq, messages.transcript, messages.run_id, messages.step, messages.role, messages.payload, messages.tokens, messages.created_ms FROM messages WHERE messages.session_id = ? AND messages.transcript = ? AND messages.role != ? ORDER BY messages.created_ms DESC, messages.seq DESC LIMIT ? OFFSET ?;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE lower(open_calls.id) LIKE ? ESCAPE '\' ORDER BY open_calls.id DESC LIMIT ? OFFSET ?;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.id = ?;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.run_id = ? AND open_calls.state = ? ORDER BY open_calls.step, open_calls.place;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = 'open' AND open_calls.expires_ms > ? AND open_calls.kind = ? ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = ? AND open_calls.expires_ms <= ? ORDER BY open_calls.expires_ms LIMIT ? OFFSET ?;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = ? AND open_calls.kind = ? ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = ? AND open_calls.kind IN (?) AND open_calls.session_id IN (SELECT ? AS anon_1 UNION ALL SELECT agents.session_id FROM agents WHERE agents.tree_id = ?) ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = ? AND open_calls.session_id = ? AND open_calls.kind = ? ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = ? ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

SELECT outbox.open_call_id, outbox.message FROM outbox WHERE outbox.open_call_id IN (?) AND outbox.kind = ? ORDER BY outbox.position;

SELECT outbox.open_call_id, outbox.message FROM outbox WHERE outbox.open_call_id IN (SELECT 1 FROM (SELECT 1) WHERE 1!=1) AND outbox.kind = ? ORDER BY outbox.position;

SELECT outbox.position FROM outbox WHERE outbox.channel = ? AND outbox.account = ? AND outbox.chat = ? AND state IN ('pending','sending','streaming') AND NOT (state = 'streaming') LIMIT 1 OFFSET ?;

SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.channel = ? AND outbox.account = ? AND outbox.chat = ? AND state IN ('pending','sending','streaming') AND state = 'streaming' AND outbox.run_id = ?;

SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.channel = ? AND outbox.account = ? AND outbox.state IN ('pending','sending','streaming') AND outbox.state = ? AND outbox.next_ms <= ? AND NOT (EXISTS (SELECT * FROM outbox AS earlier WHERE earlier.channel = outbox.channel AND earlier.account = outbox.account AND earlier.chat = outbox.chat AND earlier.position < outbox.position AND earlier.state IN ('pending','sending','streaming') AND earlier.kind != ? AND NOT (earlier.state = 'streaming'))) ORDER BY outbox.rank DESC, outbox.position LIMIT ? OFFSET ?;

SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.channel = ? AND outbox.account = ? AND outbox.state IN ('pending','sending','streaming') AND outbox.state IN (?, ?) ORDER BY outbox.position;

SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.open_call_id = ? AND outbox.kind IN (?, ?) ORDER BY outbox.position DESC LIMIT ? OFFSET ?;

SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.session_id IN (SELECT ? AS anon_1 UNION ALL SELECT agents.session_id FROM agents WHERE agents.tree_id = ?) AND outbox.created_ms >= ? AND outbox.created_ms < ? AND (outbox.kind IN (?, ?, ?, ?) OR outbox.kind = ? AND (EXISTS (SELECT * FROM runs WHERE runs.id = outbox.run_id AND runs.state = ?))) AND outbox.created_ms < ? ORDER BY outbox.created_ms DESC, outbox.position DESC LIMIT ? OFFSET ?;

SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.session_id IN (SELECT ? AS anon_1 UNION ALL SELECT agents.session_id FROM agents WHERE agents.tree_id = ?) AND outbox.created_ms >= ? AND outbox.created_ms < ? AND (outbox.kind IN (?, ?, ?, ?) OR outbox.kind = ? AND (EXISTS (SELECT * FROM runs WHERE runs.id = outbox.run_id AND runs.state = ?))) ORDER BY outbox.created_ms DESC, outbox.position DESC LIMIT ? OFFSET ?;

SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.state IN (?, ?) AND outbox.position < ? ORDER BY outbox.position DESC LIMIT ? OFFSET ?;

SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.state IN (?, ?) ORDER BY outbox.position DESC LIMIT ? OFFSET ?;

SELECT outbox.run_id, outbox.state FROM outbox WHERE outbox.run_id IN (?) AND outbox.kind = ?;

SELECT outbox.run_id, outbox.state FROM outbox WHERE outbox.run_id IN (SELECT 1 FROM (SELECT 1) WHERE 1!=1) AND outbox.kind = ?;

SELECT outbox.state, count(*) AS count_1, min(outbox.created_ms) AS min_1 FROM outbox WHERE state IN ('dead','unknown') GROUP BY outbox.state;

SELECT outbox.state, count(*) AS count_1, min(outbox.created_ms) AS min_1 FROM outbox WHERE state IN ('pending','sending','streaming') GROUP BY outbox.state;

SELECT pairings.code, pairings.channel, pairings.account, pairings.user_id, pairings.name, pairings.address, pairings.created_ms, pairings.expires_ms, pairings.state FROM pairings WHERE pairings.channel = ? AND pairings.account = ? AND pairings.user_id = ? AND pairings.state = ? AND pairings.expires_ms > ?;

SELECT pairings.code, pairings.channel, pairings.account, pairings.user_id, pairings.name, pairings.address, pairings.created_ms, pairings.expires_ms, pairings.state FROM pairings WHERE pairings.code = ?;

SELECT pairings.code, pairings.channel, pairings.account, pairings.user_id, pairings.name, pairings.address, pairings.created_ms, pairings.expires_ms, pairings.state FROM pairings WHERE pairings.state = ? AND pairings.expires_ms > ? ORDER BY pairings.created_ms;

SELECT personas.files FROM personas WHERE personas.digest = ?;

SELECT runs.id FROM runs ORDER BY runs.id DESC LIMIT ? OFFSET ?;

SELECT runs.id FROM runs WHERE runs.id < ? ORDER BY runs.id DESC LIMIT ? OFFSET ?;

SELECT runs.id FROM runs WHERE runs.session_id = ? AND runs.state = ? ORDER BY runs.id DESC LIMIT ? OFFSET ?;

SELECT runs.id, runs.cancel FROM runs WHERE runs.worker = ? AND runs.state = 'running' AND runs.cancel IS NOT NULL;

SELECT runs.id, runs.session_id, runs.seq, runs.transcript, runs.kind, runs.state, runs.collecting, runs.ready_ms, runs.target, runs.reply_to, runs.speaker, runs.step, runs.attempt, runs.worker, runs.fence, runs.cancel, runs.replaced, runs.steered, runs.late, runs.model, runs.input_tokens, runs.output_tokens, runs.cached_tokens, runs.cost_usd, runs.tainted, runs.error, runs.created_ms, runs.started_ms, runs.ended_ms FROM runs WHERE runs.id = ?;

SELECT runs.id, runs.session_id, runs.seq, runs.transcript, runs.kind, runs.state, runs.collecting, runs.ready_ms, runs.target, runs.reply_to, runs.speaker, runs.step, runs.attempt, runs.worker, runs.fence, runs.cancel, runs.replaced, runs.steered, runs.late, runs.model, runs.input_tokens, runs.output_tokens, runs.cached_tokens, runs.cost_usd, runs.tainted, runs.error, runs.created_ms, runs.started_ms, runs.ended_ms FROM runs WHERE runs.session_id = ? AND runs.state = 'queued' ORDER BY runs.seq;

SELECT runs.id, runs.session_id, runs.seq, runs.transcript, runs.kind, runs.state, runs.collecting, runs.ready_ms, runs.target, runs.reply_to, runs.speaker, runs.step, runs.attempt, runs.worker, runs.fence, runs.cancel, runs.replaced, runs.steered, runs.late, runs.model, runs.input_tokens, runs.output_tokens, runs.cached_tokens, runs.cost_usd, runs.tainted, runs.error, runs.created_ms, runs.started_ms, runs.ended_ms FROM runs WHERE runs.session_id = ? AND runs.state = 'queued' ORDER BY runs.seq DESC LIMIT 1 OFFSET ?;

SELECT runs.id, runs.session_id, runs.seq, runs.transcript, runs.kind, runs.state, runs.collecting, runs.ready_ms, runs.target, runs.reply_to, runs.speaker, runs.step, runs.attempt, runs.worker, runs.fence, runs.cancel, runs.replaced, runs.steered, runs.late, runs.model, runs.input_tokens, runs.output_tokens, runs.cached_tokens, runs.cost_usd, runs.tainted, runs.error, runs.created_ms, runs.started_ms, runs.ended_ms FROM runs WHERE runs.session_id IN (SELECT anon_1.value FROM json_each(?) AS anon_1) AND runs.state = 'queued' AND NOT (EXISTS (SELECT * FROM runs AS earlier WHERE earlier.session_id = runs.session_id AND earlier.state = 'queued' AND earlier.seq < runs.seq));

SELECT runs.ready_ms FROM runs WHERE runs.session_id = ? AND runs.state = 'queued' ORDER BY runs.seq LIMIT 1 OFFSET ?;

SELECT runs.state, count(*) AS count_1 FROM runs GROUP BY runs.state;

SELECT seen_files.path, seen_files.mtime_ns, seen_files.size, seen_files.digest FROM seen_files WHERE seen_files.session_id = ? ORDER BY seen_files.path;

SELECT sessions.id, CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END AS last_ms, lanes.active_run, coalesce(sessions.archived_ms >= CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END, 0) AS archived FROM sessions JOIN lanes ON lanes.session_id = sessions.id LEFT OUTER JOIN messages ON messages.session_id = sessions.id AND messages.seq = lanes.message_seq WHERE NOT (EXISTS (SELECT * FROM agents WHERE agents.session_id = sessions.id AND agents.retention = ? AND agents.settled_ms IS NOT NULL)) AND (CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END < ? OR CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END = ? AND sessions.id < ?) ORDER BY CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END DESC, sessions.id DESC LIMIT ? OFFSET ?;

SELECT sessions.id, CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END AS last_ms, lanes.active_run, coalesce(sessions.archived_ms >= CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END, 0) AS archived FROM sessions JOIN lanes ON lanes.session_id = sessions.id LEFT OUTER JOIN messages ON messages.session_id = sessions.id AND messages.seq = lanes.message_seq WHERE NOT (EXISTS (SELECT * FROM agents WHERE agents.session_id = sessions.id AND agents.retention = ? AND agents.settled_ms IS NOT NULL)) ORDER BY CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END DESC, sessions.id DESC LIMIT ? OFFSET ?;

SELECT sessions.id, CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END AS last_ms, lanes.active_run, coalesce(sessions.archived_ms >= CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END, 0) AS archived FROM sessions JOIN lanes ON lanes.session_id = sessions.id LEFT OUTER JOIN messages ON messages.session_id = sessions.id AND messages.seq = lanes.message_seq WHERE sessions.id = ? ORDER BY CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END DESC, sessions.id DESC;

SELECT sessions.id, sessions."key", sessions.address, sessions.title, sessions.status, sessions.mode, sessions.permission_mode, sessions.queue_mode, sessions.model, sessions.agent, sessions.grants, sessions.scope, sessions.persona, sessions.persona_digest, sessions.archived_ms, sessions.created_ms, sessions.updated_ms, lanes.transcript FROM sessions JOIN lanes ON lanes.session_id = sessions.id WHERE sessions."key" = ?;

SELECT sessions.id, sessions."key", sessions.address, sessions.title, sessions.status, sessions.mode, sessions.permission_mode, sessions.queue_mode, sessions.model, sessions.agent, sessions.grants, sessions.scope, sessions.persona, sessions.persona_digest, sessions.archived_ms, sessions.created_ms, sessions.updated_ms, lanes.transcript FROM sessions JOIN lanes ON lanes.session_id = sessions.id WHERE sessions.id = ?;

SELECT sessions.id, sessions."key", sessions.address, sessions.title, sessions.status, sessions.mode, sessions.permission_mode, sessions.queue_mode, sessions.model, sessions.agent, sessions.grants, sessions.scope, sessions.persona, sessions.persona_digest, sessions.archived_ms, sessions.created_ms, sessions.updated_ms, lanes.transcript FROM sessions JOIN lanes ON lanes.session_id = sessions.id WHERE sessions.id IN (SELECT anon_1.value FROM json_each(?) AS anon_1);

SELECT settings.name, settings.value FROM settings WHERE (settings.name LIKE ? || '%' ESCAPE '/');

SELECT settings.name, settings.value FROM settings WHERE settings.name IN (SELECT anon_1.value FROM json_each(?) AS anon_1) ORDER BY settings.name;

SELECT settings.value FROM settings WHERE settings.name = ?;

SELECT told.what, told.place FROM (SELECT 'runs' AS what, 0 AS place WHERE EXISTS (SELECT * FROM lanes WHERE lanes.ready_ms <= (SELECT ? AS anon_1)) UNION ALL SELECT 'children' AS what, 0 AS place WHERE (EXISTS (SELECT * FROM lanes WHERE lanes.wants_ms <= (SELECT ? AS anon_1))) OR (EXISTS (SELECT * FROM agents WHERE stop IS NOT NULL AND settled_ms IS NULL)) OR (EXISTS (SELECT agents.session_id FROM agents WHERE agents.held_ms IS NOT NULL AND NOT (EXISTS (SELECT * FROM agent_waits, agents AS other WHERE agent_waits.session_id = agents.session_id AND other.session_id = agent_waits.other_id AND other.settled_ms IS NULL)))) OR (EXISTS (SELECT * FROM agent_cards WHERE agent_cards.next_ms <= (SELECT ? AS anon_1))) OR (EXISTS (SELECT * FROM agents WHERE deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL AND agents.deadline_ms <= (SELECT ? AS anon_1))) UNION ALL SELECT 'abandoned' AS what, 0 AS place WHERE EXISTS (SELECT * FROM runs WHERE runs.state = 'running' AND NOT (EXISTS (SELECT * FROM leases WHERE leases.holder = runs.worker AND (leases.name LIKE 'process:' || '%') AND leases.expires_ms > (SELECT ? AS anon_1)))) UNION ALL SELECT 'expired' AS what, 0 AS place WHERE EXISTS (SELECT * FROM open_calls WHERE open_calls.state = 'open' AND open_calls.expires_ms <= (SELECT ? AS anon_1)) UNION ALL SELECT 'outbox' AS what, 0 AS place WHERE EXISTS (SELECT * FROM outbox WHERE outbox.channel = ? AND outbox.account = ? AND outbox.state IN ('pending','sending','streaming') AND (outbox.state != 'pending' OR outbox.next_ms <= (SELECT ? AS anon_1)))) AS told;

SELECT tool_calls.run_id, tool_calls.step, tool_calls.place, tool_calls.call_id, tool_calls.name, tool_calls.arguments, tool_calls.effect, tool_calls.state, tool_calls.decision, tool_calls.digest, tool_calls.result, tool_calls.started_ms, tool_calls.ended_ms FROM tool_calls WHERE tool_calls.run_id = ? AND tool_calls.step = ? ORDER BY tool_calls.place;

UPDATE accounts SET person_id=?, name=?, trust=?, source=?, direct_chat=?, updated_ms=? WHERE accounts.channel = ? AND accounts.account = ? AND accounts.user_id = ?;

UPDATE agent_cards SET shown=?, next_ms=? WHERE agent_cards.id = ?;

UPDATE agent_slots SET session_id=? WHERE agent_slots.number = ?;

UPDATE agent_slots SET session_id=? WHERE agent_slots.session_id = ?;

UPDATE agents SET held_ms=? WHERE agents.session_id = ?;

UPDATE agents SET status=?, result=?, result_bytes=?, result_digest=?, artifacts=?, steps=?, tool_calls=?, input_tokens=?, output_tokens=?, cost_usd=?, held_ms=?, settled_ms=? WHERE agents.session_id = ?;

UPDATE agents SET stop=? WHERE agents.session_id = ? AND settled_ms IS NULL AND agents.stop IS NULL;

UPDATE agents SET stop=coalesce(agents.stop, ?), quiet=? WHERE agents.parent_id = ? AND settled_ms IS NULL AND (agents.stop IS NULL OR agents.quiet IS 0);

UPDATE budgets SET used_tokens=(budgets.used_tokens + ?), used_micro_usd=(budgets.used_micro_usd + ?), reserved_tokens=(budgets.reserved_tokens + ?), reserved_micro_usd=(budgets.reserved_micro_usd + ?), unpriced_calls=(budgets.unpriced_calls + ?) WHERE budgets.scope = ? AND budgets.scope_id = ? AND budgets.day = ?;

UPDATE inputs SET state=? WHERE inputs.run_id = ? AND inputs.state = 'pending' AND inputs.seq <= ?;

UPDATE lanes SET event_seq=(lanes.event_seq + ?) WHERE lanes.session_id = ? RETURNING event_seq, ? AS at_ms;

UPDATE lanes SET input_seq=?, run_seq=?, event_seq=?, message_seq=?, transcript=?, transcript_from=?, window_from=?, active_run=?, ready_ms=?, gate=?, wants_ms=? WHERE lanes.session_id = ?;

UPDATE leases SET expires_ms=(? + ?) WHERE leases.name IN (SELECT anon_1.value FROM json_each(?) AS anon_1) AND leases.holder = ? AND leases.expires_ms > ? RETURNING name, fence;

UPDATE leases SET expires_ms=?;

UPDATE leases SET expires_ms=? WHERE leases.name = ? AND leases.holder = ? AND leases.fence = ?;

UPDATE leases SET holder=?, fence=?, expires_ms=? WHERE leases.name = ? AND leases.fence = ?;

UPDATE open_calls SET state=?, answer=?, answered_by=?, answered_ms=? WHERE open_calls.id = ? AND open_calls.state = ?;

UPDATE outbox SET begun_ms=? WHERE outbox.id = ? AND outbox.state = ? AND outbox.worker = ? AND outbox.fence = ?;

UPDATE outbox SET state=?, attempt=(outbox.attempt + ?), worker=?, fence=? WHERE outbox.id IN (?) AND outbox.state = ? RETURNING id;

UPDATE outbox SET state=?, error=?, settled_ms=? WHERE outbox.id = ? AND outbox.state = ? AND outbox.worker = ? AND outbox.fence = ?;

UPDATE outbox SET state=?, next_ms=?, worker=?, fence=?, begun_ms=?, posted=?, error=? WHERE outbox.id = ? AND outbox.state = ? AND outbox.worker = ? AND outbox.fence = ?;

UPDATE outbox SET state=?, posted=?, error=?, settled_ms=? WHERE outbox.id = ? AND outbox.state = ? AND outbox.worker = ? AND outbox.fence = ?;

UPDATE outbox SET worker=?, fence=? WHERE outbox.id = ? AND outbox.state = ? AND outbox.worker = ? AND outbox.fence = ?;

UPDATE pairings SET state=? WHERE pairings.code = ? AND pairings.state = ? AND pairings.expires_ms > ?;

UPDATE runs SET cancel=? WHERE runs.id = ?;

UPDATE runs SET ready_ms=?, reply_to=? WHERE runs.id = ?;

UPDATE runs SET state=?, attempt=?, worker=?, fence=? WHERE runs.id = ?;

UPDATE runs SET state=?, cancel=?, ended_ms=? WHERE runs.id = ?;

UPDATE runs SET state=?, error=?, ended_ms=? WHERE runs.id = ?;

UPDATE runs SET state=?, model=?, input_tokens=?, output_tokens=?, cached_tokens=?, cost_usd=?, error=?, ended_ms=? WHERE runs.id = ?;

UPDATE runs SET state=?, ready_ms=? WHERE runs.id = ?;

UPDATE runs SET state=?, step=?, model=?, input_tokens=?, output_tokens=?, cached_tokens=?, cost_usd=?, error=?, ended_ms=? WHERE runs.id = ?;

UPDATE runs SET state=?, worker=?, fence=? WHERE runs.id = ?;

UPDATE runs SET step=?, model=?, input_tokens=?, output_tokens=?, cached_tokens=?, cost_usd=? WHERE runs.id = ?;

UPDATE runs SET transcript=?, state=?, collecting=?, worker=?, fence=?, started_ms=? WHERE runs.id = ?;

UPDATE sessions SET archived_ms=?, updated_ms=? WHERE sessions.id = ?;

UPDATE sessions SET grants=?, updated_ms=? WHERE sessions.id = ?;

UPDATE sessions SET mode=?, updated_ms=? WHERE sessions.id = ?;

UPDATE sessions SET permission_mode=?, model=?, agent=?, grants=?, scope=?, persona=?, persona_digest=?, updated_ms=? WHERE sessions.id = ?;

UPDATE sessions SET permission_mode=?, updated_ms=? WHERE sessions.id = ?;

UPDATE sessions SET persona=?, persona_digest=?, updated_ms=? WHERE sessions.id = ?;

UPDATE sessions SET queue_mode=?, updated_ms=? WHERE sessions.id = ?;

UPDATE sessions SET status=?, updated_ms=? WHERE sessions.id = ?;

UPDATE sessions SET title=?, updated_ms=? WHERE sessions.id = ?;

UPDATE settings SET value=?, updated_ms=? WHERE settings.name = ? AND settings.value = ?;

UPDATE tool_calls SET state=? WHERE tool_calls.run_id = ? AND tool_calls.step = ? AND tool_calls.place = ?;

UPDATE tool_calls SET state=?, decision=?, result=?, ended_ms=? WHERE tool_calls.run_id = ? AND tool_calls.step = ? AND tool_calls.place = ?;

UPDATE tool_calls SET state=?, decision=?, started_ms=? WHERE tool_calls.run_id = ? AND tool_calls.step = ? AND tool_calls.place = ?;

UPDATE tool_calls SET state=?, digest=? WHERE tool_calls.run_id = ? AND tool_calls.step = ? AND tool_calls.place = ?;
