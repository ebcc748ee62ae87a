-- What the code of revision 0007 says to PostgreSQL, each statement once.
-- Written by `python -m tests.upgrade.record`. What an older revision said is never written anew.

-- (varchar, varchar, varchar) -> ()
DELETE FROM accounts WHERE accounts.channel = $1::VARCHAR AND accounts.account = $2::VARCHAR AND accounts.user_id = $3::VARCHAR;

-- (varchar) -> (int8, int8, text)
DELETE FROM budget_reservations WHERE budget_reservations.run_id = $1::VARCHAR RETURNING budget_reservations.tokens, budget_reservations.micro_usd, budget_reservations.budgets;

-- (varchar) -> ()
DELETE FROM seen_files WHERE seen_files.session_id = $1::VARCHAR;

-- (varchar) -> ()
DELETE FROM settings WHERE settings.name = $1::VARCHAR;

-- (varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, int8, int8) -> ()
INSERT INTO accounts (channel, account, user_id, person_id, name, trust, source, direct_chat, created_ms, updated_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR, $9::BIGINT, $10::BIGINT) ON CONFLICT DO NOTHING;

-- (varchar, varchar, int4, varchar, int8, int8) -> ()
INSERT INTO agent_cards (id, run_id, step, shown, created_ms, next_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::INTEGER, $4::VARCHAR, $5::BIGINT, $6::BIGINT);

-- (varchar, varchar, varchar, int4, int8) -> ()
INSERT INTO agent_results (session_id, digest, words, size, created_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::INTEGER, $5::BIGINT) ON CONFLICT DO NOTHING;

-- (int4, varchar) -> ()
INSERT INTO agent_slots (number, session_id) VALUES ($1::INTEGER, $2::VARCHAR) ON CONFLICT DO NOTHING;

-- (varchar, varchar, varchar) -> ()
INSERT INTO agent_waits (session_id, other_id, kind) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR);

-- (varchar, varchar, varchar, varchar, int4, int4, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, int4, int4, varchar, varchar, varchar, varchar, varchar, varchar, bool, varchar, varchar, int4, varchar, varchar, int4, int4, int8, int8, float8, int8, int8, int8, int4, varchar, varchar, varchar, varchar, varchar, int8) -> ()
INSERT INTO agents (session_id, tree_id, parent_id, name, place, depth, type, label, task, mode, on_failure, group_name, prompt, run_id, step, call_place, request_key, request_digest, share, retention, payer, stop, quiet, status, result, result_bytes, result_digest, artifacts, steps, tool_calls, input_tokens, output_tokens, cost_usd, created_ms, held_ms, settled_ms, retries, isolation, worktree, base, tree_state, description, deadline_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::INTEGER, $6::INTEGER, $7::VARCHAR, $8::VARCHAR, $9::VARCHAR, $10::VARCHAR, $11::VARCHAR, $12::VARCHAR, $13::VARCHAR, $14::VARCHAR, $15::INTEGER, $16::INTEGER, $17::VARCHAR, $18::VARCHAR, $19::VARCHAR, $20::VARCHAR, $21::VARCHAR, $22::VARCHAR, $23::BOOLEAN, $24::VARCHAR, $25::VARCHAR, $26::INTEGER, $27::VARCHAR, $28::VARCHAR, $29::INTEGER, $30::INTEGER, $31::BIGINT, $32::BIGINT, $33::FLOAT, $34::BIGINT, $35::BIGINT, $36::BIGINT, $37::INTEGER, $38::VARCHAR, $39::VARCHAR, $40::VARCHAR, $41::VARCHAR, $42::VARCHAR, $43::BIGINT);

-- (int8, varchar, varchar, varchar, varchar, varchar) -> ()
INSERT INTO audit (at_ms, actor, action, session_id, run_id, data) VALUES ($1::BIGINT, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR);

-- (varchar, int4, int8, int8, varchar, int8) -> ()
INSERT INTO budget_reservations (run_id, step, tokens, micro_usd, budgets, created_ms) VALUES ($1::VARCHAR, $2::INTEGER, $3::BIGINT, $4::BIGINT, $5::VARCHAR, $6::BIGINT);

-- (varchar, varchar, varchar, int8, int8) -> ()
INSERT INTO budgets (scope, scope_id, day, used_tokens, used_micro_usd) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::BIGINT, $5::BIGINT) ON CONFLICT DO NOTHING;

-- (varchar, int8, varchar, varchar, varchar, int8) -> ()
INSERT INTO events (session_id, seq, run_id, kind, data, at_ms, xid) VALUES ($1::VARCHAR, $2::BIGINT, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::BIGINT, CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT));

-- (varchar, varchar, varchar, int8) -> ()
INSERT INTO idempotency (key, digest, response, created_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::BIGINT) ON CONFLICT DO NOTHING;

-- (varchar, varchar, int8, varchar, varchar, varchar, varchar, varchar, varchar, int8) -> ()
INSERT INTO inputs (id, session_id, seq, identity, origin, run_id, state, speaker, message, received_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::BIGINT, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR, $9::VARCHAR, $10::BIGINT) ON CONFLICT DO NOTHING;

-- (varchar) -> ()
INSERT INTO lanes (session_id) VALUES ($1::VARCHAR);

-- (varchar, varchar, int8, int8) -> ()
INSERT INTO leases (name, holder, fence, expires_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::BIGINT, $4::BIGINT) ON CONFLICT DO NOTHING;

-- (varchar, int8, int4, varchar, int4, varchar, varchar, int4, int8) -> ()
INSERT INTO messages (session_id, seq, transcript, run_id, step, role, payload, tokens, created_ms) VALUES ($1::VARCHAR, $2::BIGINT, $3::INTEGER, $4::VARCHAR, $5::INTEGER, $6::VARCHAR, $7::VARCHAR, $8::INTEGER, $9::BIGINT);

-- (varchar, varchar, varchar, int4, int4, varchar, varchar, varchar, varchar, int8, int8) -> ()
INSERT INTO open_calls (id, session_id, run_id, step, place, kind, digest, payload, state, created_ms, expires_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::INTEGER, $5::INTEGER, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR, $9::VARCHAR, $10::BIGINT, $11::BIGINT);

-- (varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, int4, int8, varchar, int8, varchar, int8) -> ()
INSERT INTO outbox (id, session_id, run_id, kind, channel, account, chat, message, open_call_id, state, rank, next_ms, worker, fence, posted, created_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR, $9::VARCHAR, $10::VARCHAR, $11::INTEGER, $12::BIGINT, $13::VARCHAR, $14::BIGINT, $15::VARCHAR, $16::BIGINT);

-- (varchar, varchar, varchar, varchar, varchar, varchar, int8, int8, varchar) -> ()
INSERT INTO pairings (code, channel, account, user_id, name, address, created_ms, expires_ms, state) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::BIGINT, $8::BIGINT, $9::VARCHAR);

-- (varchar, varchar, int8) -> ()
INSERT INTO personas (digest, files, created_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::BIGINT) ON CONFLICT DO NOTHING;

-- (varchar, varchar, int8, varchar, varchar, bool, int8, varchar, varchar, varchar, bool, int8) -> ()
INSERT INTO runs (id, session_id, seq, kind, state, collecting, ready_ms, target, reply_to, speaker, late, created_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::BIGINT, $4::VARCHAR, $5::VARCHAR, $6::BOOLEAN, $7::BIGINT, $8::VARCHAR, $9::VARCHAR, $10::VARCHAR, $11::BOOLEAN, $12::BIGINT);

-- (varchar, varchar, int8, int8, varchar) -> ()
INSERT INTO seen_files (session_id, path, mtime_ns, size, digest) VALUES ($1::VARCHAR, $2::VARCHAR, $3::BIGINT, $4::BIGINT, $5::VARCHAR) ON CONFLICT (session_id, path) DO UPDATE SET mtime_ns = excluded.mtime_ns, size = excluded.size, digest = excluded.digest;

-- (varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, int8, int8) -> ()
INSERT INTO sessions (id, key, address, title, status, mode, queue_mode, agent, grants, created_ms, updated_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR, $9::VARCHAR, $10::BIGINT, $11::BIGINT) ON CONFLICT DO NOTHING;

-- (varchar, varchar, int8) -> ()
INSERT INTO settings (name, value, updated_ms) VALUES ($1::VARCHAR, $2::VARCHAR, $3::BIGINT) ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_ms = excluded.updated_ms;

-- (varchar, int4, int4, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, int8, int8) -> ()
INSERT INTO tool_calls (run_id, step, place, call_id, name, arguments, effect, state, decision, digest, result, started_ms, ended_ms) VALUES ($1::VARCHAR, $2::INTEGER, $3::INTEGER, $4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR, $8::VARCHAR, $9::VARCHAR, $10::VARCHAR, $11::VARCHAR, $12::BIGINT, $13::BIGINT);

-- () -> (int8)
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- () -> (int8)
SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) AS pg_snapshot_xmin_1;

-- (varchar, int4) -> (bool)
SELECT EXISTS (SELECT * FROM agents WHERE agents.run_id = $1::VARCHAR AND agents.step = $2::INTEGER AND settled_ms IS NULL) AS anon_1;

-- (varchar) -> (bool)
SELECT EXISTS (SELECT * FROM outbox WHERE outbox.open_call_id = $1::VARCHAR AND outbox.state IN ('pending','sending','streaming')) AS anon_1;

-- () -> (text, text, text, text, text, text, text, text, int8, int8)
SELECT accounts.channel, accounts.account, accounts.user_id, accounts.person_id, accounts.name, accounts.trust, accounts.source, accounts.direct_chat, accounts.created_ms, accounts.updated_ms FROM accounts ORDER BY accounts.created_ms;

-- (varchar, varchar, varchar) -> (text, text, text, text, text, text, text, text, int8, int8)
SELECT accounts.channel, accounts.account, accounts.user_id, accounts.person_id, accounts.name, accounts.trust, accounts.source, accounts.direct_chat, accounts.created_ms, accounts.updated_ms FROM accounts WHERE accounts.channel = $1::VARCHAR AND accounts.account = $2::VARCHAR AND accounts.user_id = $3::VARCHAR;

-- (varchar) -> (text, text, text, text, text, text, text, text, int8, int8)
SELECT accounts.channel, accounts.account, accounts.user_id, accounts.person_id, accounts.name, accounts.trust, accounts.source, accounts.direct_chat, accounts.created_ms, accounts.updated_ms FROM accounts WHERE accounts.trust = $1::VARCHAR ORDER BY accounts.created_ms;

-- (int8, int4) -> (text)
SELECT agent_cards.id FROM agent_cards WHERE agent_cards.next_ms <= $1::BIGINT ORDER BY agent_cards.next_ms LIMIT $2::INTEGER;

-- (varchar) -> (text, text, int4, text, int8, int8)
SELECT agent_cards.id, agent_cards.run_id, agent_cards.step, agent_cards.shown, agent_cards.created_ms, agent_cards.next_ms FROM agent_cards WHERE agent_cards.id = $1::VARCHAR FOR NO KEY UPDATE;

-- (varchar, varchar, int4) -> (text, text, int4)
SELECT agent_results.session_id, agent_results.digest, agent_results.size FROM agent_results JOIN agents ON agents.session_id = agent_results.session_id WHERE agents.parent_id = $1::VARCHAR OR agents.session_id IN (SELECT agent_waits.other_id FROM agent_waits WHERE agent_waits.session_id = $1::VARCHAR AND agent_waits.kind = $2::VARCHAR) ORDER BY agent_results.created_ms DESC, agents.place DESC LIMIT $3::INTEGER;

-- (varchar, varchar) -> (text)
SELECT agent_results.words FROM agent_results WHERE agent_results.session_id = $1::VARCHAR AND agent_results.digest = $2::VARCHAR;

-- (int4, int4) -> (int4)
SELECT agent_slots.number FROM agent_slots WHERE agent_slots.session_id IS NULL AND agent_slots.number <= $1::INTEGER ORDER BY agent_slots.number LIMIT $2::INTEGER FOR NO KEY UPDATE SKIP LOCKED;

-- (varchar, varchar) -> (text, text)
SELECT agent_waits.session_id, agent_waits.other_id FROM agent_waits JOIN agents ON agents.session_id = agent_waits.session_id WHERE agents.tree_id = $1::VARCHAR AND agent_waits.kind = $2::VARCHAR;

-- (int4) -> (text)
SELECT agents.session_id FROM agents WHERE agents.held_ms IS NOT NULL AND NOT (EXISTS (SELECT * FROM agent_waits, agents AS other WHERE agent_waits.session_id = agents.session_id AND other.session_id = agent_waits.other_id AND other.settled_ms IS NULL)) ORDER BY agents.held_ms, agents.place LIMIT $1::INTEGER;

-- (varchar, varchar, varchar, int4) -> (text)
SELECT agents.session_id FROM agents WHERE agents.tree_id = $1::VARCHAR AND agents.parent_id = $2::VARCHAR AND agents.isolation = $3::VARCHAR LIMIT $4::INTEGER;

-- (int8, int4) -> (text)
SELECT agents.session_id FROM agents WHERE deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL AND agents.deadline_ms <= $1::BIGINT ORDER BY agents.deadline_ms LIMIT $2::INTEGER;

-- (int4) -> (text)
SELECT agents.session_id FROM agents WHERE stop IS NOT NULL AND settled_ms IS NULL ORDER BY agents.created_ms, agents.depth LIMIT $1::INTEGER;

-- (varchar, int4) -> (text, text, text, text, int4, int4, text, text, text, text, text, text, text, text, int4, int4, text, text, text, text, text, text, bool, text, text, int4, text, text, int4, int4, int8, int8, float8, int8, int8, int8, int4, text, text, text, text, text, int8)
SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.label, agents.task, agents.mode, agents.on_failure, agents.group_name, agents.prompt, agents.run_id, agents.step, agents.call_place, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.created_ms, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.run_id = $1::VARCHAR AND agents.step = $2::INTEGER ORDER BY agents.place;

-- (varchar) -> (text, text, text, text, int4, int4, text, text, text, text, text, int4, int4, int8, text, text, text, text, text, text, text, text, text, bool, text, text, int4, text, text, int4, int4, int8, int8, float8, int8, int8, int4, text, text, text, text, text, int8)
SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.parent_id = $1::VARCHAR AND settled_ms IS NULL ORDER BY agents.place;

-- (varchar, int4, int4) -> (text, text, text, text, int4, int4, text, text, text, text, text, int4, int4, int8, text, text, text, text, text, text, text, text, text, bool, text, text, int4, text, text, int4, int4, int8, int8, float8, int8, int8, int4, text, text, text, text, text, int8)
SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.run_id = $1::VARCHAR AND agents.step = $2::INTEGER AND agents.call_place = $3::INTEGER ORDER BY agents.place;

-- (varchar) -> (text, text, text, text, int4, int4, text, text, text, text, text, int4, int4, int8, text, text, text, text, text, text, text, text, text, bool, text, text, int4, text, text, int4, int4, int8, int8, float8, int8, int8, int4, text, text, text, text, text, int8)
SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.session_id = $1::VARCHAR;

-- (varchar) -> (text, text, text, text, int4, int4, text, text, text, text, text, int4, int4, int8, text, text, text, text, text, text, text, text, text, bool, text, text, int4, text, text, int4, int4, int8, int8, float8, int8, int8, int4, text, text, text, text, text, int8)
SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms FROM agents WHERE agents.tree_id = $1::VARCHAR ORDER BY agents.place;

-- (varchar) -> (text, text, text, text, int4, int4, text, text, text, text, text, int4, int4, int8, text, text, text, text, text, text, text, text, text, bool, text, text, int4, text, text, int4, int4, int8, int8, float8, int8, int8, int4, text, text, text, text, text, int8, text)
SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms, agent_waits.kind FROM agents JOIN agent_waits ON agent_waits.other_id = agents.session_id WHERE agent_waits.session_id = $1::VARCHAR ORDER BY agents.place;

-- (int4, varchar, int4, int4, varchar, int4, int4, int4, int4, int4, varchar, int4, varchar, int4, int4, varchar, int4, int4, varchar, int4, int4, varchar) -> (text, text, text, text, int4, int4, text, text, text, text, text, int4, int4, int8, text, text, text, text, text, text, text, text, text, bool, text, text, int4, text, text, int4, int4, int8, int8, float8, int8, int8, int4, text, text, text, text, text, int8, text, int8, text, text, int8, numeric, float8, int8, int8, int8, int8, int8, int4, int8, text, text)
SELECT agents.session_id, agents.tree_id, agents.parent_id, agents.name, agents.place, agents.depth, agents.type, agents.task, agents.mode, agents.on_failure, agents.run_id, agents.step, agents.call_place, agents.created_ms, agents.label, agents.group_name, agents.prompt, agents.request_key, agents.request_digest, agents.share, agents.retention, agents.payer, agents.stop, agents.quiet, agents.status, agents.result, agents.result_bytes, agents.result_digest, agents.artifacts, agents.steps, agents.tool_calls, agents.input_tokens, agents.output_tokens, agents.cost_usd, agents.held_ms, agents.settled_ms, agents.retries, agents.isolation, agents.worktree, agents.base, agents.tree_state, agents.description, agents.deadline_ms, lanes.gate, coalesce(lanes.wants_ms, lanes.ready_ms) AS due_ms, lanes.active_run, active.state AS run_state, CASE WHEN (agents.settled_ms IS NULL) THEN anon_2.used_steps ELSE agents.steps END AS anon_1, CASE WHEN (agents.settled_ms IS NULL) THEN anon_2.used_tokens ELSE agents.input_tokens + agents.output_tokens END AS anon_3, CASE WHEN (agents.settled_ms IS NULL) THEN anon_2.used_cost ELSE agents.cost_usd END AS anon_4, CASE WHEN (agents.settled_ms IS NULL) THEN anon_2.any_taint ELSE (SELECT count(*) AS count_1 FROM runs WHERE runs.session_id = agents.session_id AND runs.tainted) END AS anon_5, anon_2.queued_runs, CASE WHEN (agents.settled_ms IS NULL) THEN anon_7.used_calls ELSE agents.tool_calls END AS anon_6, anon_8.approvals, anon_8.questions, anon_8.asks, newest.created_ms AS newest_ms, CASE WHEN (anon_2.errors > $1::INTEGER OR agents.settled_ms IS NOT NULL AND (agents.status != $2::VARCHAR OR agents.retries > $3::INTEGER)) THEN (SELECT runs.error FROM runs WHERE runs.session_id = agents.session_id AND runs.error IS NOT NULL ORDER BY runs.seq DESC LIMIT $4::INTEGER) END AS last_error, CASE WHEN (agents.settled_ms IS NULL) THEN (SELECT messages.payload FROM messages WHERE messages.session_id = agents.session_id AND messages.role = $5::VARCHAR ORDER BY messages.seq DESC LIMIT $6::INTEGER) END AS last_said FROM agents JOIN lanes ON lanes.session_id = agents.session_id LEFT OUTER JOIN runs AS active ON active.id = lanes.active_run LEFT OUTER JOIN (SELECT runs.session_id AS session_id, sum(runs.step) AS used_steps, sum(runs.input_tokens + runs.output_tokens) AS used_tokens, sum(runs.cost_usd) AS used_cost, max(CASE WHEN runs.tainted THEN $7::INTEGER ELSE $8::INTEGER END) AS any_taint, sum(CASE WHEN (runs.state = 'queued') THEN $9::INTEGER ELSE $10::INTEGER END) AS queued_runs, count(runs.error) AS errors FROM runs WHERE runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.run_id = $11::VARCHAR AND agents.step = $12::INTEGER AND agents.settled_ms IS NULL) GROUP BY runs.session_id) AS anon_2 ON anon_2.session_id = agents.session_id LEFT OUTER JOIN (SELECT runs.session_id AS session_id, count(*) AS used_calls FROM runs JOIN tool_calls ON tool_calls.run_id = runs.id WHERE runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.run_id = $11::VARCHAR AND agents.step = $12::INTEGER AND agents.settled_ms IS NULL) GROUP BY runs.session_id) AS anon_7 ON anon_7.session_id = agents.session_id LEFT OUTER JOIN (SELECT open_calls.session_id AS session_id, sum(CASE WHEN (open_calls.kind = $13::VARCHAR) THEN $14::INTEGER ELSE $15::INTEGER END) AS approvals, sum(CASE WHEN (open_calls.kind = $16::VARCHAR) THEN $17::INTEGER ELSE $18::INTEGER END) AS questions, max(CASE WHEN (open_calls.kind = $19::VARCHAR) THEN $20::INTEGER ELSE $21::INTEGER END) AS asks FROM open_calls WHERE open_calls.session_id IN (SELECT agents.session_id FROM agents WHERE agents.run_id = $11::VARCHAR AND agents.step = $12::INTEGER AND agents.settled_ms IS NULL) AND open_calls.state = $22::VARCHAR GROUP BY open_calls.session_id) AS anon_8 ON anon_8.session_id = agents.session_id LEFT OUTER JOIN messages AS newest ON agents.settled_ms IS NULL AND newest.session_id = agents.session_id AND newest.seq = lanes.message_seq WHERE agents.run_id = $11::VARCHAR AND agents.step = $12::INTEGER ORDER BY agents.tree_id, agents.place;

-- (varchar, varchar, varchar) -> (int8, int8, int8, int8, int8)
SELECT budgets.used_tokens, budgets.used_micro_usd, budgets.reserved_tokens, budgets.reserved_micro_usd, budgets.unpriced_calls FROM budgets WHERE budgets.scope = $1::VARCHAR AND budgets.scope_id = $2::VARCHAR AND budgets.day = $3::VARCHAR;

-- (varchar, varchar, varchar) -> (int8, int8, int8, int8, int8)
SELECT budgets.used_tokens, budgets.used_micro_usd, budgets.reserved_tokens, budgets.reserved_micro_usd, budgets.unpriced_calls FROM budgets WHERE budgets.scope = $1::VARCHAR AND budgets.scope_id = $2::VARCHAR AND budgets.day = $3::VARCHAR FOR NO KEY UPDATE;

-- (int4, int4, int4, varchar, varchar) -> (numeric, numeric, numeric, float8)
SELECT coalesce(sum(runs.input_tokens), $1::INTEGER) AS coalesce_1, coalesce(sum(runs.output_tokens), $2::INTEGER) AS coalesce_3, coalesce(sum(runs.cached_tokens), $3::INTEGER) AS coalesce_5, sum(runs.cost_usd) AS sum_1 FROM runs WHERE runs.id = $4::VARCHAR OR runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.payer = $5::VARCHAR);

-- (int4, int4, int4, varchar) -> (numeric, numeric, numeric, float8)
SELECT coalesce(sum(runs.input_tokens), $1::INTEGER) AS coalesce_1, coalesce(sum(runs.output_tokens), $2::INTEGER) AS coalesce_3, coalesce(sum(runs.cached_tokens), $3::INTEGER) AS coalesce_5, sum(runs.cost_usd) AS sum_1 FROM runs WHERE runs.session_id = $4::VARCHAR;

-- (int4, int4, int4, varchar, varchar) -> (numeric, numeric, numeric, float8)
SELECT coalesce(sum(runs.input_tokens), $1::INTEGER) AS coalesce_1, coalesce(sum(runs.output_tokens), $2::INTEGER) AS coalesce_3, coalesce(sum(runs.cached_tokens), $3::INTEGER) AS coalesce_5, sum(runs.cost_usd) AS sum_1 FROM runs WHERE runs.session_id = $4::VARCHAR OR runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.tree_id = $5::VARCHAR);

-- (int4, int4, int4, varchar) -> (numeric, numeric, numeric, float8)
SELECT coalesce(sum(runs.input_tokens), $1::INTEGER) AS coalesce_1, coalesce(sum(runs.output_tokens), $2::INTEGER) AS coalesce_3, coalesce(sum(runs.cached_tokens), $3::INTEGER) AS coalesce_5, sum(runs.cost_usd) AS sum_1 FROM runs WHERE runs.session_id IN (SELECT agents.session_id FROM agents WHERE agents.tree_id = $4::VARCHAR);

-- (int4, int4, int4, varchar) -> (int8, numeric, numeric, float8, bool)
SELECT coalesce(sum(runs.step), $1::INTEGER) AS steps, coalesce(sum(runs.input_tokens), $2::INTEGER) AS taken, coalesce(sum(runs.output_tokens), $3::INTEGER) AS given, sum(runs.cost_usd) AS cost, bool_or(runs.tainted) AS tainted FROM runs WHERE runs.session_id = $4::VARCHAR;

-- () -> (int8)
SELECT count(*) AS count_1 FROM agent_slots;

-- (varchar) -> (int8)
SELECT count(*) AS count_1 FROM agents WHERE agents.run_id = $1::VARCHAR;

-- (varchar, int8) -> (int8)
SELECT count(*) AS count_1 FROM agents WHERE agents.tree_id = $1::VARCHAR AND agents.created_ms >= $2::BIGINT;

-- (varchar, varchar, varchar, int8) -> (int8)
SELECT count(*) AS count_1 FROM pairings WHERE pairings.channel = $1::VARCHAR AND pairings.account = $2::VARCHAR AND pairings.state = $3::VARCHAR AND pairings.expires_ms > $4::BIGINT;

-- () -> (int8)
SELECT count(*) AS count_1 FROM runs;

-- (varchar, varchar, varchar, int8, varchar) -> (int8)
SELECT count(*) AS count_1 FROM runs WHERE runs.session_id = $1::VARCHAR AND (runs.kind = $2::VARCHAR OR runs.kind = $3::VARCHAR) AND runs.created_ms > $4::BIGINT AND NOT (EXISTS (SELECT * FROM inputs WHERE inputs.run_id = runs.id AND inputs.origin = $5::VARCHAR));

-- (varchar, varchar) -> (int8)
SELECT count(*) AS count_1 FROM runs WHERE runs.session_id = $1::VARCHAR AND runs.state = $2::VARCHAR;

-- (varchar) -> (int8)
SELECT count(*) AS count_1 FROM sessions JOIN lanes ON lanes.session_id = sessions.id LEFT OUTER JOIN messages ON messages.session_id = sessions.id AND messages.seq = lanes.message_seq WHERE NOT (EXISTS (SELECT * FROM agents WHERE agents.session_id = sessions.id AND agents.retention = $1::VARCHAR AND agents.settled_ms IS NOT NULL));

-- (varchar) -> (int8)
SELECT count(*) AS count_1 FROM tool_calls JOIN runs ON runs.id = tool_calls.run_id WHERE runs.session_id = $1::VARCHAR;

-- (int4) -> (int8, int8, int8, numeric)
SELECT count(*) AS count_1, count(lanes.active_run) AS count_2, count(lanes.ready_ms) AS count_3, coalesce(sum(lanes.input_seq), $1::INTEGER) AS coalesce_1 FROM lanes;

-- (varchar, varchar) -> (int8, text)
SELECT events.at_ms, events.data FROM events WHERE events.session_id = $1::VARCHAR AND events.kind = $2::VARCHAR ORDER BY events.seq;

-- (int8, int8, int4) -> (int8, text, int8, text, text, text, int8, int8)
SELECT events.position, events.session_id, events.seq, events.run_id, events.kind, events.data, events.at_ms, events.xid FROM events WHERE events.position > $1::BIGINT AND events.position < $2::BIGINT ORDER BY events.position LIMIT $3::INTEGER;

-- (int8, varchar, int8, int4) -> (int8, text, int8, text, text, text, int8, int8)
SELECT events.position, events.session_id, events.seq, events.run_id, events.kind, events.data, events.at_ms, events.xid FROM events WHERE events.position > $1::BIGINT AND events.run_id = $2::VARCHAR AND events.position < $3::BIGINT ORDER BY events.position LIMIT $4::INTEGER;

-- (int8, varchar, int8, int4) -> (int8, text, int8, text, text, text, int8, int8)
SELECT events.position, events.session_id, events.seq, events.run_id, events.kind, events.data, events.at_ms, events.xid FROM events WHERE events.position > $1::BIGINT AND events.session_id = $2::VARCHAR AND events.position < $3::BIGINT ORDER BY events.position LIMIT $4::INTEGER;

-- (int8, varchar) -> (text, int8, int8, int8, int8, int4, int8, int8, text, int8, text, int8, int8)
SELECT held.session_id, held.input_seq, held.run_seq, held.event_seq, held.message_seq, held.transcript, held.transcript_from, held.window_from, held.active_run, held.ready_ms, held.gate, held.wants_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS at_ms FROM (SELECT lanes.session_id AS session_id, lanes.input_seq AS input_seq, lanes.run_seq AS run_seq, lanes.event_seq AS event_seq, lanes.message_seq AS message_seq, lanes.transcript AS transcript, lanes.transcript_from AS transcript_from, lanes.window_from AS window_from, lanes.active_run AS active_run, lanes.ready_ms AS ready_ms, lanes.gate AS gate, lanes.wants_ms AS wants_ms FROM lanes JOIN sessions ON sessions.id = lanes.session_id WHERE sessions.key = $2::VARCHAR FOR NO KEY UPDATE OF lanes) AS held;

-- (int8, int4) -> (text, int8, int8, int8, int8, int4, int8, int8, text, int8, text, int8, int8)
SELECT held.session_id, held.input_seq, held.run_seq, held.event_seq, held.message_seq, held.transcript, held.transcript_from, held.window_from, held.active_run, held.ready_ms, held.gate, held.wants_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS at_ms FROM (SELECT lanes.session_id AS session_id, lanes.input_seq AS input_seq, lanes.run_seq AS run_seq, lanes.event_seq AS event_seq, lanes.message_seq AS message_seq, lanes.transcript AS transcript, lanes.transcript_from AS transcript_from, lanes.window_from AS window_from, lanes.active_run AS active_run, lanes.ready_ms AS ready_ms, lanes.gate AS gate, lanes.wants_ms AS wants_ms FROM lanes WHERE lanes.ready_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1) ORDER BY lanes.ready_ms LIMIT CAST($2::INTEGER AS INTEGER) FOR NO KEY UPDATE SKIP LOCKED) AS held;

-- (int8, varchar) -> (text, int8, int8, int8, int8, int4, int8, int8, text, int8, text, int8, int8)
SELECT held.session_id, held.input_seq, held.run_seq, held.event_seq, held.message_seq, held.transcript, held.transcript_from, held.window_from, held.active_run, held.ready_ms, held.gate, held.wants_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS at_ms FROM (SELECT lanes.session_id AS session_id, lanes.input_seq AS input_seq, lanes.run_seq AS run_seq, lanes.event_seq AS event_seq, lanes.message_seq AS message_seq, lanes.transcript AS transcript, lanes.transcript_from AS transcript_from, lanes.window_from AS window_from, lanes.active_run AS active_run, lanes.ready_ms AS ready_ms, lanes.gate AS gate, lanes.wants_ms AS wants_ms FROM lanes WHERE lanes.session_id = $2::VARCHAR FOR NO KEY UPDATE) AS held;

-- (int8, varchar) -> (text, int8, int8, int8, int8, int4, int8, int8, text, int8, text, int8, int8)
SELECT held.session_id, held.input_seq, held.run_seq, held.event_seq, held.message_seq, held.transcript, held.transcript_from, held.window_from, held.active_run, held.ready_ms, held.gate, held.wants_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS at_ms FROM (SELECT lanes.session_id AS session_id, lanes.input_seq AS input_seq, lanes.run_seq AS run_seq, lanes.event_seq AS event_seq, lanes.message_seq AS message_seq, lanes.transcript AS transcript, lanes.transcript_from AS transcript_from, lanes.window_from AS window_from, lanes.active_run AS active_run, lanes.ready_ms AS ready_ms, lanes.gate AS gate, lanes.wants_ms AS wants_ms FROM lanes WHERE lanes.session_id = (SELECT runs.session_id FROM runs WHERE runs.id = $2::VARCHAR) FOR NO KEY UPDATE) AS held;

-- (int8, int4) -> (text, int8, int8, int8, int8, int4, int8, int8, text, int8, text, int8, int8)
SELECT held.session_id, held.input_seq, held.run_seq, held.event_seq, held.message_seq, held.transcript, held.transcript_from, held.window_from, held.active_run, held.ready_ms, held.gate, held.wants_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS at_ms FROM (SELECT lanes.session_id AS session_id, lanes.input_seq AS input_seq, lanes.run_seq AS run_seq, lanes.event_seq AS event_seq, lanes.message_seq AS message_seq, lanes.transcript AS transcript, lanes.transcript_from AS transcript_from, lanes.window_from AS window_from, lanes.active_run AS active_run, lanes.ready_ms AS ready_ms, lanes.gate AS gate, lanes.wants_ms AS wants_ms FROM lanes WHERE lanes.wants_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1) ORDER BY lanes.wants_ms LIMIT CAST($2::INTEGER AS INTEGER) FOR NO KEY UPDATE SKIP LOCKED) AS held;

-- (varchar) -> (text, text)
SELECT idempotency.digest, idempotency.response FROM idempotency WHERE idempotency.key = $1::VARCHAR;

-- (varchar) -> (text)
SELECT idempotency.key FROM idempotency WHERE idempotency.key = $1::VARCHAR;

-- (varchar) -> (text, text, text)
SELECT inputs.id, inputs.session_id, inputs.run_id FROM inputs WHERE inputs.identity = $1::VARCHAR;

-- (varchar, varchar, int4, varchar, varchar, varchar, varchar) -> (text, text, int8, text, text, text, text, text, text, int8)
SELECT inputs.id, inputs.session_id, inputs.seq, inputs.identity, inputs.origin, inputs.run_id, inputs.state, inputs.speaker, inputs.message, inputs.received_ms FROM inputs JOIN runs ON runs.id = inputs.run_id WHERE inputs.session_id = $1::VARCHAR AND inputs.state = $2::VARCHAR AND (runs.state NOT IN ($4::VARCHAR, $5::VARCHAR, $6::VARCHAR, $7::VARCHAR)) ORDER BY inputs.seq LIMIT $3::INTEGER;

-- (text, text) -> (text, text, int8, text, text, text, text, text, text, int8)
SELECT inputs.id, inputs.session_id, inputs.seq, inputs.identity, inputs.origin, inputs.run_id, inputs.state, inputs.speaker, inputs.message, inputs.received_ms FROM inputs WHERE inputs.run_id IN ($1, $2) AND inputs.state = 'pending' ORDER BY inputs.seq;

-- (varchar, int8, int8, varchar, int4, varchar, varchar, varchar, varchar, varchar, varchar) -> (text, text, int8, text, text, text, text, text, text, int8)
SELECT inputs.id, inputs.session_id, inputs.seq, inputs.identity, inputs.origin, inputs.run_id, inputs.state, inputs.speaker, inputs.message, inputs.received_ms FROM inputs WHERE inputs.session_id = $1::VARCHAR AND inputs.received_ms >= $2::BIGINT AND inputs.received_ms < $3::BIGINT AND (inputs.state IN ($6::VARCHAR, $7::VARCHAR) OR inputs.state = $4::VARCHAR AND (EXISTS (SELECT * FROM runs WHERE runs.id = inputs.run_id AND runs.state IN ($8::VARCHAR, $9::VARCHAR, $10::VARCHAR, $11::VARCHAR)))) ORDER BY inputs.received_ms DESC, inputs.seq DESC LIMIT $5::INTEGER;

-- (varchar, int8, int8, varchar, int8, int4, varchar, varchar, varchar, varchar, varchar, varchar) -> (text, text, int8, text, text, text, text, text, text, int8)
SELECT inputs.id, inputs.session_id, inputs.seq, inputs.identity, inputs.origin, inputs.run_id, inputs.state, inputs.speaker, inputs.message, inputs.received_ms FROM inputs WHERE inputs.session_id = $1::VARCHAR AND inputs.received_ms >= $2::BIGINT AND inputs.received_ms < $3::BIGINT AND (inputs.state IN ($7::VARCHAR, $8::VARCHAR) OR inputs.state = $4::VARCHAR AND (EXISTS (SELECT * FROM runs WHERE runs.id = inputs.run_id AND runs.state IN ($9::VARCHAR, $10::VARCHAR, $11::VARCHAR, $12::VARCHAR)))) AND inputs.received_ms <= $5::BIGINT ORDER BY inputs.received_ms DESC, inputs.seq DESC LIMIT $6::INTEGER;

-- (varchar, varchar, varchar) -> (text)
SELECT inputs.identity FROM inputs WHERE inputs.session_id = $1::VARCHAR AND inputs.run_id = $2::VARCHAR AND (inputs.identity LIKE $3::VARCHAR || '%');

-- (int8) -> (text)
SELECT lanes.session_id FROM lanes WHERE lanes.ready_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1) LIMIT 1;

-- (int8, int4) -> (text)
SELECT lanes.session_id FROM lanes WHERE wants_ms IS NOT NULL AND lanes.wants_ms <= $1::BIGINT LIMIT $2::INTEGER;

-- (int8) -> (text, text, int8, int8)
SELECT leases.name, leases.holder, leases.fence, leases.expires_ms FROM leases WHERE leases.expires_ms > $1::BIGINT ORDER BY leases.name;

-- (int8, varchar) -> (text, text, int8, int8, int8)
SELECT leases.name, leases.holder, leases.fence, leases.expires_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS at_ms FROM leases WHERE leases.name = $2::VARCHAR;

-- () -> (int8)
SELECT max(events.position) AS max_1 FROM events;

-- (int8) -> (int8)
SELECT max(events.position) AS max_1 FROM events WHERE events.position < $1::BIGINT;

-- (varchar, varchar) -> (int8)
SELECT max(inputs.received_ms) AS max_1 FROM inputs WHERE inputs.session_id = $1::VARCHAR AND inputs.origin = $2::VARCHAR;

-- (varchar, varchar) -> (int8)
SELECT max(runs.created_ms) AS max_1 FROM runs JOIN inputs ON inputs.run_id = runs.id WHERE inputs.session_id = $1::VARCHAR AND inputs.origin = $2::VARCHAR;

-- (varchar, varchar, int8, varchar, varchar) -> (text)
SELECT messages.payload FROM messages WHERE messages.session_id = $1::VARCHAR AND messages.seq > (SELECT lanes.message_seq FROM lanes WHERE lanes.session_id = $2::VARCHAR) - $3::BIGINT AND messages.run_id = $4::VARCHAR AND messages.role = $5::VARCHAR ORDER BY messages.seq DESC;

-- (varchar, int8, varchar, int4, varchar) -> (int8)
SELECT messages.seq FROM messages WHERE messages.session_id = $1::VARCHAR AND messages.seq >= $2::BIGINT AND messages.run_id = $3::VARCHAR AND messages.step = $4::INTEGER AND messages.role = $5::VARCHAR;

-- (varchar, int8, int4) -> (text, int8, int4, text, int4, text, text, int4, int8)
SELECT messages.session_id, messages.seq, messages.transcript, messages.run_id, messages.step, messages.role, messages.payload, messages.tokens, messages.created_ms FROM messages WHERE messages.session_id = $1::VARCHAR AND messages.seq >= $2::BIGINT AND messages.transcript = $3::INTEGER ORDER BY messages.seq;

-- (varchar, int4, varchar, int8, int8, int8, int4) -> (text, int8, int4, text, int4, text, text, int4, int8)
SELECT messages.session_id, messages.seq, messages.transcript, messages.run_id, messages.step, messages.role, messages.payload, messages.tokens, messages.created_ms FROM messages WHERE messages.session_id = $1::VARCHAR AND messages.transcript = $2::INTEGER AND messages.role != $3::VARCHAR AND (messages.created_ms < $4::BIGINT OR messages.created_ms = $5::BIGINT AND messages.seq < $6::BIGINT) ORDER BY messages.created_ms DESC, messages.seq DESC LIMIT $7::INTEGER;

-- (varchar, int4, varchar, int4) -> (text, int8, int4, text, int4, text, text, int4, int8)
SELECT messages.session_id, messages.seq, messages.transcript, messages.run_id, messages.step, messages.role, messages.payload, messages.tokens, messages.created_ms FROM messages WHERE messages.session_id = $1::VARCHAR AND messages.transcript = $2::INTEGER AND messages.role != $3::VARCHAR ORDER BY messages.created_ms DESC, messages.seq DESC LIMIT $4::INTEGER;

-- (int4, int4, int8, int4, int8, int8) -> (int8)
SELECT min(anon_1.position) AS min_1 FROM (SELECT events.position AS position, events.at_ms AS at_ms, events.xid AS xid, lag(events.position, $1::INTEGER, $2::INTEGER) OVER (ORDER BY events.position) AS before FROM events WHERE events.position > $3::BIGINT) AS anon_1 WHERE anon_1.position > anon_1.before + $4::INTEGER AND (anon_1.at_ms > $5::BIGINT OR anon_1.xid >= $6::BIGINT);

-- (varchar, int4) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE lower(open_calls.id) LIKE $1::VARCHAR ESCAPE '\' ORDER BY open_calls.id DESC LIMIT $2::INTEGER;

-- (varchar) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.id = $1::VARCHAR;

-- (varchar, varchar) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.run_id = $1::VARCHAR AND open_calls.state = $2::VARCHAR ORDER BY open_calls.step, open_calls.place;

-- (varchar, int8, int4) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = $1::VARCHAR AND open_calls.expires_ms <= $2::BIGINT ORDER BY open_calls.expires_ms LIMIT $3::INTEGER;

-- (varchar, varchar) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = $1::VARCHAR AND open_calls.kind = $2::VARCHAR ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

-- (varchar, varchar, varchar, varchar) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = $1::VARCHAR AND open_calls.kind IN ($4::VARCHAR) AND open_calls.session_id IN (SELECT $2::VARCHAR AS anon_1 UNION ALL SELECT agents.session_id FROM agents WHERE agents.tree_id = $3::VARCHAR) ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

-- (varchar, varchar, varchar) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = $1::VARCHAR AND open_calls.session_id = $2::VARCHAR AND open_calls.kind = $3::VARCHAR ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

-- (varchar) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = $1::VARCHAR ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

-- (int8, varchar) -> (text, text, text, int4, int4, text, text, text, text, text, text, int8, int8, int8)
SELECT open_calls.id, open_calls.session_id, open_calls.run_id, open_calls.step, open_calls.place, open_calls.kind, open_calls.digest, open_calls.payload, open_calls.state, open_calls.answer, open_calls.answered_by, open_calls.answered_ms, open_calls.created_ms, open_calls.expires_ms FROM open_calls WHERE open_calls.state = 'open' AND open_calls.expires_ms > $1::BIGINT AND open_calls.kind = $2::VARCHAR ORDER BY open_calls.created_ms, open_calls.run_id, open_calls.step, open_calls.place;

-- (varchar, varchar) -> (text, text)
SELECT outbox.open_call_id, outbox.message FROM outbox WHERE outbox.open_call_id IN ($2::VARCHAR) AND outbox.kind = $1::VARCHAR ORDER BY outbox.position;

-- (varchar) -> (text, text)
SELECT outbox.open_call_id, outbox.message FROM outbox WHERE outbox.open_call_id IN (NULL) AND (1 != 1) AND outbox.kind = $1::VARCHAR ORDER BY outbox.position;

-- (varchar, varchar, varchar) -> (int8)
SELECT outbox.position FROM outbox WHERE outbox.channel = $1::VARCHAR AND outbox.account = $2::VARCHAR AND outbox.chat = $3::VARCHAR AND state IN ('pending','sending','streaming') AND NOT (state = 'streaming') LIMIT 1;

-- (varchar, varchar, varchar, varchar) -> (int8, text, text, text, text, text, text, text, text, text, text, int4, int4, int8, text, int8, int8, text, text, text, int8, int8)
SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.channel = $1::VARCHAR AND outbox.account = $2::VARCHAR AND outbox.chat = $3::VARCHAR AND state IN ('pending','sending','streaming') AND state = 'streaming' AND outbox.run_id = $4::VARCHAR;

-- (varchar, varchar, varchar, int8, varchar, int8) -> (int8, text, text, text, text, text, text, text, text, text, text, int4, int4, int8, text, int8, int8, text, text, text, int8, int8)
SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.channel = $1::VARCHAR AND outbox.account = $2::VARCHAR AND outbox.state IN ('pending','sending','streaming') AND outbox.state = $3::VARCHAR AND outbox.next_ms <= $4::BIGINT AND NOT (EXISTS (SELECT * FROM outbox AS earlier WHERE earlier.channel = outbox.channel AND earlier.account = outbox.account AND earlier.chat = outbox.chat AND earlier.position < outbox.position AND earlier.state IN ('pending','sending','streaming') AND earlier.kind != $5::VARCHAR AND NOT (earlier.state = 'streaming'))) ORDER BY outbox.rank DESC, outbox.position LIMIT $6;

-- (varchar, varchar, varchar, varchar) -> (int8, text, text, text, text, text, text, text, text, text, text, int4, int4, int8, text, int8, int8, text, text, text, int8, int8)
SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.channel = $1::VARCHAR AND outbox.account = $2::VARCHAR AND outbox.state IN ('pending','sending','streaming') AND outbox.state IN ($3::VARCHAR, $4::VARCHAR) ORDER BY outbox.position;

-- (varchar, int4, varchar, varchar) -> (int8, text, text, text, text, text, text, text, text, text, text, int4, int4, int8, text, int8, int8, text, text, text, int8, int8)
SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.open_call_id = $1::VARCHAR AND outbox.kind IN ($3::VARCHAR, $4::VARCHAR) ORDER BY outbox.position DESC LIMIT $2::INTEGER;

-- (varchar, varchar, int8, int8, varchar, varchar, int4, varchar, varchar, varchar, varchar) -> (int8, text, text, text, text, text, text, text, text, text, text, int4, int4, int8, text, int8, int8, text, text, text, int8, int8)
SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.session_id IN (SELECT $1::VARCHAR AS anon_1 UNION ALL SELECT agents.session_id FROM agents WHERE agents.tree_id = $2::VARCHAR) AND outbox.created_ms >= $3::BIGINT AND outbox.created_ms < $4::BIGINT AND (outbox.kind IN ($8::VARCHAR, $9::VARCHAR, $10::VARCHAR, $11::VARCHAR) OR outbox.kind = $5::VARCHAR AND (EXISTS (SELECT * FROM runs WHERE runs.id = outbox.run_id AND runs.state = $6::VARCHAR))) ORDER BY outbox.created_ms DESC, outbox.position DESC LIMIT $7::INTEGER;

-- (varchar, varchar, int8, int8, varchar, varchar, int8, int4, varchar, varchar, varchar, varchar) -> (int8, text, text, text, text, text, text, text, text, text, text, int4, int4, int8, text, int8, int8, text, text, text, int8, int8)
SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.session_id IN (SELECT $1::VARCHAR AS anon_1 UNION ALL SELECT agents.session_id FROM agents WHERE agents.tree_id = $2::VARCHAR) AND outbox.created_ms >= $3::BIGINT AND outbox.created_ms < $4::BIGINT AND (outbox.kind IN ($9::VARCHAR, $10::VARCHAR, $11::VARCHAR, $12::VARCHAR) OR outbox.kind = $5::VARCHAR AND (EXISTS (SELECT * FROM runs WHERE runs.id = outbox.run_id AND runs.state = $6::VARCHAR))) AND outbox.created_ms < $7::BIGINT ORDER BY outbox.created_ms DESC, outbox.position DESC LIMIT $8::INTEGER;

-- (int4, varchar, varchar) -> (int8, text, text, text, text, text, text, text, text, text, text, int4, int4, int8, text, int8, int8, text, text, text, int8, int8)
SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.state IN ($2::VARCHAR, $3::VARCHAR) ORDER BY outbox.position DESC LIMIT $1::INTEGER;

-- (int8, int4, varchar, varchar) -> (int8, text, text, text, text, text, text, text, text, text, text, int4, int4, int8, text, int8, int8, text, text, text, int8, int8)
SELECT outbox.position, outbox.id, outbox.session_id, outbox.run_id, outbox.kind, outbox.channel, outbox.account, outbox.chat, outbox.message, outbox.open_call_id, outbox.state, outbox.rank, outbox.attempt, outbox.next_ms, outbox.worker, outbox.fence, outbox.begun_ms, outbox.stream, outbox.posted, outbox.error, outbox.created_ms, outbox.settled_ms FROM outbox WHERE outbox.state IN ($3::VARCHAR, $4::VARCHAR) AND outbox.position < $1::BIGINT ORDER BY outbox.position DESC LIMIT $2::INTEGER;

-- (varchar, varchar) -> (text, text)
SELECT outbox.run_id, outbox.state FROM outbox WHERE outbox.run_id IN ($2::VARCHAR) AND outbox.kind = $1::VARCHAR;

-- (varchar) -> (text, text)
SELECT outbox.run_id, outbox.state FROM outbox WHERE outbox.run_id IN (NULL) AND (1 != 1) AND outbox.kind = $1::VARCHAR;

-- () -> (text, int8, int8)
SELECT outbox.state, count(*) AS count_1, min(outbox.created_ms) AS min_1 FROM outbox WHERE state IN ('dead','unknown') GROUP BY outbox.state;

-- () -> (text, int8, int8)
SELECT outbox.state, count(*) AS count_1, min(outbox.created_ms) AS min_1 FROM outbox WHERE state IN ('pending','sending','streaming') GROUP BY outbox.state;

-- (varchar, varchar, varchar, varchar, int8) -> (text, text, text, text, text, text, int8, int8, text)
SELECT pairings.code, pairings.channel, pairings.account, pairings.user_id, pairings.name, pairings.address, pairings.created_ms, pairings.expires_ms, pairings.state FROM pairings WHERE pairings.channel = $1::VARCHAR AND pairings.account = $2::VARCHAR AND pairings.user_id = $3::VARCHAR AND pairings.state = $4::VARCHAR AND pairings.expires_ms > $5::BIGINT;

-- (varchar) -> (text, text, text, text, text, text, int8, int8, text)
SELECT pairings.code, pairings.channel, pairings.account, pairings.user_id, pairings.name, pairings.address, pairings.created_ms, pairings.expires_ms, pairings.state FROM pairings WHERE pairings.code = $1::VARCHAR;

-- (varchar, int8) -> (text, text, text, text, text, text, int8, int8, text)
SELECT pairings.code, pairings.channel, pairings.account, pairings.user_id, pairings.name, pairings.address, pairings.created_ms, pairings.expires_ms, pairings.state FROM pairings WHERE pairings.state = $1::VARCHAR AND pairings.expires_ms > $2::BIGINT ORDER BY pairings.created_ms;

-- (varchar) -> (text)
SELECT personas.files FROM personas WHERE personas.digest = $1::VARCHAR;

-- (int4) -> (text)
SELECT runs.id FROM runs ORDER BY runs.id DESC LIMIT $1::INTEGER;

-- (varchar, int4) -> (text)
SELECT runs.id FROM runs WHERE runs.id < $1::VARCHAR ORDER BY runs.id DESC LIMIT $2::INTEGER;

-- (varchar, varchar, int4) -> (text)
SELECT runs.id FROM runs WHERE runs.session_id = $1::VARCHAR AND runs.state = $2::VARCHAR ORDER BY runs.id DESC LIMIT $3::INTEGER;

-- (varchar) -> (text, text)
SELECT runs.id, runs.cancel FROM runs WHERE runs.worker = $1::VARCHAR AND runs.state = 'running' AND runs.cancel IS NOT NULL;

-- (varchar) -> (text, text, int8, int4, text, text, bool, int8, text, text, text, int4, int4, text, int8, text, bool, bool, bool, text, int8, int8, int8, float8, bool, text, int8, int8, int8)
SELECT runs.id, runs.session_id, runs.seq, runs.transcript, runs.kind, runs.state, runs.collecting, runs.ready_ms, runs.target, runs.reply_to, runs.speaker, runs.step, runs.attempt, runs.worker, runs.fence, runs.cancel, runs.replaced, runs.steered, runs.late, runs.model, runs.input_tokens, runs.output_tokens, runs.cached_tokens, runs.cost_usd, runs.tainted, runs.error, runs.created_ms, runs.started_ms, runs.ended_ms FROM runs WHERE runs.id = $1::VARCHAR;

-- (varchar) -> (text, text, int8, int4, text, text, bool, int8, text, text, text, int4, int4, text, int8, text, bool, bool, bool, text, int8, int8, int8, float8, bool, text, int8, int8, int8)
SELECT runs.id, runs.session_id, runs.seq, runs.transcript, runs.kind, runs.state, runs.collecting, runs.ready_ms, runs.target, runs.reply_to, runs.speaker, runs.step, runs.attempt, runs.worker, runs.fence, runs.cancel, runs.replaced, runs.steered, runs.late, runs.model, runs.input_tokens, runs.output_tokens, runs.cached_tokens, runs.cost_usd, runs.tainted, runs.error, runs.created_ms, runs.started_ms, runs.ended_ms FROM runs WHERE runs.session_id = $1::VARCHAR AND runs.state = 'queued' ORDER BY runs.seq;

-- (varchar) -> (text, text, int8, int4, text, text, bool, int8, text, text, text, int4, int4, text, int8, text, bool, bool, bool, text, int8, int8, int8, float8, bool, text, int8, int8, int8)
SELECT runs.id, runs.session_id, runs.seq, runs.transcript, runs.kind, runs.state, runs.collecting, runs.ready_ms, runs.target, runs.reply_to, runs.speaker, runs.step, runs.attempt, runs.worker, runs.fence, runs.cancel, runs.replaced, runs.steered, runs.late, runs.model, runs.input_tokens, runs.output_tokens, runs.cached_tokens, runs.cost_usd, runs.tainted, runs.error, runs.created_ms, runs.started_ms, runs.ended_ms FROM runs WHERE runs.session_id = $1::VARCHAR AND runs.state = 'queued' ORDER BY runs.seq DESC LIMIT 1;

-- (text[]) -> (text, text, int8, int4, text, text, bool, int8, text, text, text, int4, int4, text, int8, text, bool, bool, bool, text, int8, int8, int8, float8, bool, text, int8, int8, int8)
SELECT runs.id, runs.session_id, runs.seq, runs.transcript, runs.kind, runs.state, runs.collecting, runs.ready_ms, runs.target, runs.reply_to, runs.speaker, runs.step, runs.attempt, runs.worker, runs.fence, runs.cancel, runs.replaced, runs.steered, runs.late, runs.model, runs.input_tokens, runs.output_tokens, runs.cached_tokens, runs.cost_usd, runs.tainted, runs.error, runs.created_ms, runs.started_ms, runs.ended_ms FROM runs WHERE runs.session_id = ANY ($1::TEXT[]) AND runs.state = 'queued' AND NOT (EXISTS (SELECT * FROM runs AS earlier WHERE earlier.session_id = runs.session_id AND earlier.state = 'queued' AND earlier.seq < runs.seq));

-- (varchar) -> (int8)
SELECT runs.ready_ms FROM runs WHERE runs.session_id = $1::VARCHAR AND runs.state = 'queued' ORDER BY runs.seq LIMIT 1;

-- () -> (text, int8)
SELECT runs.state, count(*) AS count_1 FROM runs GROUP BY runs.state;

-- (varchar) -> (text, int8, int8, text)
SELECT seen_files.path, seen_files.mtime_ns, seen_files.size, seen_files.digest FROM seen_files WHERE seen_files.session_id = $1::VARCHAR ORDER BY seen_files.path;

-- (varchar, int8, int8, varchar, int4) -> (text, int8, text, bool)
SELECT sessions.id, CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END AS last_ms, lanes.active_run, coalesce(sessions.archived_ms >= CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END, false) AS archived FROM sessions JOIN lanes ON lanes.session_id = sessions.id LEFT OUTER JOIN messages ON messages.session_id = sessions.id AND messages.seq = lanes.message_seq WHERE NOT (EXISTS (SELECT * FROM agents WHERE agents.session_id = sessions.id AND agents.retention = $1::VARCHAR AND agents.settled_ms IS NOT NULL)) AND (CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END < $2::BIGINT OR CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END = $3::BIGINT AND sessions.id < $4::VARCHAR) ORDER BY CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END DESC, sessions.id DESC LIMIT $5::INTEGER;

-- (varchar, int4) -> (text, int8, text, bool)
SELECT sessions.id, CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END AS last_ms, lanes.active_run, coalesce(sessions.archived_ms >= CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END, false) AS archived FROM sessions JOIN lanes ON lanes.session_id = sessions.id LEFT OUTER JOIN messages ON messages.session_id = sessions.id AND messages.seq = lanes.message_seq WHERE NOT (EXISTS (SELECT * FROM agents WHERE agents.session_id = sessions.id AND agents.retention = $1::VARCHAR AND agents.settled_ms IS NOT NULL)) ORDER BY CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END DESC, sessions.id DESC LIMIT $2::INTEGER;

-- (varchar) -> (text, int8, text, bool)
SELECT sessions.id, CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END AS last_ms, lanes.active_run, coalesce(sessions.archived_ms >= CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END, false) AS archived FROM sessions JOIN lanes ON lanes.session_id = sessions.id LEFT OUTER JOIN messages ON messages.session_id = sessions.id AND messages.seq = lanes.message_seq WHERE sessions.id = $1::VARCHAR ORDER BY CASE WHEN (messages.created_ms > sessions.updated_ms) THEN messages.created_ms ELSE sessions.updated_ms END DESC, sessions.id DESC;

-- (varchar) -> (text, text, text, text, text, text, text, text, text, text, text, text, text, text, int8, int8, int8, int4)
SELECT sessions.id, sessions.key, sessions.address, sessions.title, sessions.status, sessions.mode, sessions.permission_mode, sessions.queue_mode, sessions.model, sessions.agent, sessions.grants, sessions.scope, sessions.persona, sessions.persona_digest, sessions.archived_ms, sessions.created_ms, sessions.updated_ms, lanes.transcript FROM sessions JOIN lanes ON lanes.session_id = sessions.id WHERE sessions.id = $1::VARCHAR;

-- (text[]) -> (text, text, text, text, text, text, text, text, text, text, text, text, text, text, int8, int8, int8, int4)
SELECT sessions.id, sessions.key, sessions.address, sessions.title, sessions.status, sessions.mode, sessions.permission_mode, sessions.queue_mode, sessions.model, sessions.agent, sessions.grants, sessions.scope, sessions.persona, sessions.persona_digest, sessions.archived_ms, sessions.created_ms, sessions.updated_ms, lanes.transcript FROM sessions JOIN lanes ON lanes.session_id = sessions.id WHERE sessions.id = ANY ($1::TEXT[]);

-- (varchar) -> (text, text, text, text, text, text, text, text, text, text, text, text, text, text, int8, int8, int8, int4)
SELECT sessions.id, sessions.key, sessions.address, sessions.title, sessions.status, sessions.mode, sessions.permission_mode, sessions.queue_mode, sessions.model, sessions.agent, sessions.grants, sessions.scope, sessions.persona, sessions.persona_digest, sessions.archived_ms, sessions.created_ms, sessions.updated_ms, lanes.transcript FROM sessions JOIN lanes ON lanes.session_id = sessions.id WHERE sessions.key = $1::VARCHAR;

-- (varchar) -> (text, text)
SELECT settings.name, settings.value FROM settings WHERE (settings.name LIKE $1::VARCHAR || '%' ESCAPE '/');

-- (text[]) -> (text, text)
SELECT settings.name, settings.value FROM settings WHERE settings.name = ANY ($1::TEXT[]) ORDER BY settings.name;

-- (varchar) -> (text)
SELECT settings.value FROM settings WHERE settings.name = $1::VARCHAR;

-- (int8, varchar, varchar) -> (text, int4)
SELECT told.what, told.place FROM (SELECT 'runs' AS what, 0 AS place WHERE EXISTS (SELECT * FROM lanes WHERE lanes.ready_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1)) UNION ALL SELECT 'children' AS what, 0 AS place WHERE (EXISTS (SELECT * FROM lanes WHERE lanes.wants_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1))) OR (EXISTS (SELECT * FROM agents WHERE stop IS NOT NULL AND settled_ms IS NULL)) OR (EXISTS (SELECT agents.session_id FROM agents WHERE agents.held_ms IS NOT NULL AND NOT (EXISTS (SELECT * FROM agent_waits, agents AS other WHERE agent_waits.session_id = agents.session_id AND other.session_id = agent_waits.other_id AND other.settled_ms IS NULL)))) OR (EXISTS (SELECT * FROM agent_cards WHERE agent_cards.next_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1))) OR (EXISTS (SELECT * FROM agents WHERE deadline_ms IS NOT NULL AND settled_ms IS NULL AND stop IS NULL AND agents.deadline_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1))) UNION ALL SELECT 'abandoned' AS what, 0 AS place WHERE EXISTS (SELECT * FROM runs WHERE runs.state = 'running' AND NOT (EXISTS (SELECT * FROM leases WHERE leases.holder = runs.worker AND (leases.name LIKE 'process:' || '%') AND leases.expires_ms > (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1)))) UNION ALL SELECT 'expired' AS what, 0 AS place WHERE EXISTS (SELECT * FROM open_calls WHERE open_calls.state = 'open' AND open_calls.expires_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1)) UNION ALL SELECT 'outbox' AS what, 0 AS place WHERE EXISTS (SELECT * FROM outbox WHERE outbox.channel = $2::VARCHAR AND outbox.account = $3::VARCHAR AND outbox.state IN ('pending','sending','streaming') AND (outbox.state != 'pending' OR outbox.next_ms <= (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT AS anon_1)))) AS told;

-- (varchar, int4) -> (text, int4, int4, text, text, text, text, text, text, text, text, int8, int8)
SELECT tool_calls.run_id, tool_calls.step, tool_calls.place, tool_calls.call_id, tool_calls.name, tool_calls.arguments, tool_calls.effect, tool_calls.state, tool_calls.decision, tool_calls.digest, tool_calls.result, tool_calls.started_ms, tool_calls.ended_ms FROM tool_calls WHERE tool_calls.run_id = $1::VARCHAR AND tool_calls.step = $2::INTEGER ORDER BY tool_calls.place;

-- (varchar, varchar, varchar, varchar, varchar, int8, varchar, varchar, varchar) -> ()
UPDATE accounts SET person_id=$1::VARCHAR, name=$2::VARCHAR, trust=$3::VARCHAR, source=$4::VARCHAR, direct_chat=$5::VARCHAR, updated_ms=$6::BIGINT WHERE accounts.channel = $7::VARCHAR AND accounts.account = $8::VARCHAR AND accounts.user_id = $9::VARCHAR;

-- (varchar, int8, varchar) -> ()
UPDATE agent_cards SET shown=$1::VARCHAR, next_ms=$2::BIGINT WHERE agent_cards.id = $3::VARCHAR;

-- (varchar, int4) -> ()
UPDATE agent_slots SET session_id=$1::VARCHAR WHERE agent_slots.number = $2::INTEGER;

-- (varchar, varchar) -> ()
UPDATE agent_slots SET session_id=$1::VARCHAR WHERE agent_slots.session_id = $2::VARCHAR;

-- (int8, varchar) -> ()
UPDATE agents SET held_ms=$1::BIGINT WHERE agents.session_id = $2::VARCHAR;

-- (varchar, varchar, int4, varchar, varchar, int4, int4, int8, int8, float8, int8, int8, varchar) -> ()
UPDATE agents SET status=$1::VARCHAR, result=$2::VARCHAR, result_bytes=$3::INTEGER, result_digest=$4::VARCHAR, artifacts=$5::VARCHAR, steps=$6::INTEGER, tool_calls=$7::INTEGER, input_tokens=$8::BIGINT, output_tokens=$9::BIGINT, cost_usd=$10::FLOAT, held_ms=$11::BIGINT, settled_ms=$12::BIGINT WHERE agents.session_id = $13::VARCHAR;

-- (varchar, varchar) -> ()
UPDATE agents SET stop=$1::VARCHAR WHERE agents.session_id = $2::VARCHAR AND settled_ms IS NULL AND agents.stop IS NULL;

-- (varchar, bool, varchar) -> ()
UPDATE agents SET stop=coalesce(agents.stop, $1::VARCHAR), quiet=$2::BOOLEAN WHERE agents.parent_id = $3::VARCHAR AND settled_ms IS NULL AND (agents.stop IS NULL OR agents.quiet IS false);

-- (int8, int8, int8, int8, int8, varchar, varchar, varchar) -> ()
UPDATE budgets SET used_tokens=(budgets.used_tokens + $1::BIGINT), used_micro_usd=(budgets.used_micro_usd + $2::BIGINT), reserved_tokens=(budgets.reserved_tokens + $3::BIGINT), reserved_micro_usd=(budgets.reserved_micro_usd + $4::BIGINT), unpriced_calls=(budgets.unpriced_calls + $5::BIGINT) WHERE budgets.scope = $6::VARCHAR AND budgets.scope_id = $7::VARCHAR AND budgets.day = $8::VARCHAR;

-- (varchar, varchar, int8) -> ()
UPDATE inputs SET state=$1::VARCHAR WHERE inputs.run_id = $2::VARCHAR AND inputs.state = 'pending' AND inputs.seq <= $3::BIGINT;

-- (int8, varchar, int8) -> (int8, int8)
UPDATE lanes SET event_seq=(lanes.event_seq + $1::BIGINT) WHERE lanes.session_id = $2::VARCHAR RETURNING lanes.event_seq, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $3::BIGINT AS at_ms;

-- (int8, int8, int8, int8, int4, int8, int8, varchar, int8, varchar, int8, varchar) -> ()
UPDATE lanes SET input_seq=$1::BIGINT, run_seq=$2::BIGINT, event_seq=$3::BIGINT, message_seq=$4::BIGINT, transcript=$5::INTEGER, transcript_from=$6::BIGINT, window_from=$7::BIGINT, active_run=$8::VARCHAR, ready_ms=$9::BIGINT, gate=$10::VARCHAR, wants_ms=$11::BIGINT WHERE lanes.session_id = $12::VARCHAR;

-- (int8, varchar, varchar, int8) -> ()
UPDATE leases SET expires_ms=$1::BIGINT WHERE leases.name = $2::VARCHAR AND leases.holder = $3::VARCHAR AND leases.fence = $4::BIGINT;

-- (int8, int8, text[], varchar) -> (text, int8)
UPDATE leases SET expires_ms=((extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT + $2::BIGINT) WHERE leases.name = ANY ($3::TEXT[]) AND leases.holder = $4::VARCHAR AND leases.expires_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::BIGINT RETURNING leases.name, leases.fence;

-- (varchar, int8, int8, varchar, int8) -> ()
UPDATE leases SET holder=$1::VARCHAR, fence=$2::BIGINT, expires_ms=$3::BIGINT WHERE leases.name = $4::VARCHAR AND leases.fence = $5::BIGINT;

-- (varchar, varchar, varchar, int8, varchar, varchar) -> ()
UPDATE open_calls SET state=$1::VARCHAR, answer=$2::VARCHAR, answered_by=$3::VARCHAR, answered_ms=$4::BIGINT WHERE open_calls.id = $5::VARCHAR AND open_calls.state = $6::VARCHAR;

-- (int8, varchar, varchar, varchar, int8) -> ()
UPDATE outbox SET begun_ms=$1::BIGINT WHERE outbox.id = $2::VARCHAR AND outbox.state = $3::VARCHAR AND outbox.worker = $4::VARCHAR AND outbox.fence = $5::BIGINT;

-- (varchar, int4, varchar, int8, varchar, varchar) -> (text)
UPDATE outbox SET state=$1::VARCHAR, attempt=(outbox.attempt + $2::INTEGER), worker=$3::VARCHAR, fence=$4::BIGINT WHERE outbox.id IN ($6::VARCHAR) AND outbox.state = $5::VARCHAR RETURNING outbox.id;

-- (varchar, varchar, int8, varchar, varchar, varchar, int8) -> ()
UPDATE outbox SET state=$1::VARCHAR, error=$2::VARCHAR, settled_ms=$3::BIGINT WHERE outbox.id = $4::VARCHAR AND outbox.state = $5::VARCHAR AND outbox.worker = $6::VARCHAR AND outbox.fence = $7::BIGINT;

-- (varchar, int8, varchar, int8, int8, varchar, varchar, varchar, varchar, varchar, int8) -> ()
UPDATE outbox SET state=$1::VARCHAR, next_ms=$2::BIGINT, worker=$3::VARCHAR, fence=$4::BIGINT, begun_ms=$5::BIGINT, posted=$6::VARCHAR, error=$7::VARCHAR WHERE outbox.id = $8::VARCHAR AND outbox.state = $9::VARCHAR AND outbox.worker = $10::VARCHAR AND outbox.fence = $11::BIGINT;

-- (varchar, varchar, varchar, int8, varchar, varchar, varchar, int8) -> ()
UPDATE outbox SET state=$1::VARCHAR, posted=$2::VARCHAR, error=$3::VARCHAR, settled_ms=$4::BIGINT WHERE outbox.id = $5::VARCHAR AND outbox.state = $6::VARCHAR AND outbox.worker = $7::VARCHAR AND outbox.fence = $8::BIGINT;

-- (varchar, int8, varchar, varchar, varchar, int8) -> ()
UPDATE outbox SET worker=$1::VARCHAR, fence=$2::BIGINT WHERE outbox.id = $3::VARCHAR AND outbox.state = $4::VARCHAR AND outbox.worker = $5::VARCHAR AND outbox.fence = $6::BIGINT;

-- (varchar, varchar, varchar, int8) -> ()
UPDATE pairings SET state=$1::VARCHAR WHERE pairings.code = $2::VARCHAR AND pairings.state = $3::VARCHAR AND pairings.expires_ms > $4::BIGINT;

-- (varchar, varchar) -> ()
UPDATE runs SET cancel=$1::VARCHAR WHERE runs.id = $2::VARCHAR;

-- (varchar, varchar) -> ()
UPDATE runs SET reply_to=$1::VARCHAR WHERE runs.id = $2::VARCHAR;

-- (varchar, int4, varchar, int8, varchar) -> ()
UPDATE runs SET state=$1::VARCHAR, attempt=$2::INTEGER, worker=$3::VARCHAR, fence=$4::BIGINT WHERE runs.id = $5::VARCHAR;

-- (varchar, varchar, int8, varchar) -> ()
UPDATE runs SET state=$1::VARCHAR, cancel=$2::VARCHAR, ended_ms=$3::BIGINT WHERE runs.id = $4::VARCHAR;

-- (varchar, varchar, int8, varchar) -> ()
UPDATE runs SET state=$1::VARCHAR, error=$2::VARCHAR, ended_ms=$3::BIGINT WHERE runs.id = $4::VARCHAR;

-- (varchar, varchar, int8, int8, int8, float8, varchar, int8, varchar) -> ()
UPDATE runs SET state=$1::VARCHAR, model=$2::VARCHAR, input_tokens=$3::BIGINT, output_tokens=$4::BIGINT, cached_tokens=$5::BIGINT, cost_usd=$6::FLOAT, error=$7::VARCHAR, ended_ms=$8::BIGINT WHERE runs.id = $9::VARCHAR;

-- (varchar, int8, varchar) -> ()
UPDATE runs SET state=$1::VARCHAR, ready_ms=$2::BIGINT WHERE runs.id = $3::VARCHAR;

-- (varchar, int4, varchar, int8, int8, int8, float8, varchar, int8, varchar) -> ()
UPDATE runs SET state=$1::VARCHAR, step=$2::INTEGER, model=$3::VARCHAR, input_tokens=$4::BIGINT, output_tokens=$5::BIGINT, cached_tokens=$6::BIGINT, cost_usd=$7::FLOAT, error=$8::VARCHAR, ended_ms=$9::BIGINT WHERE runs.id = $10::VARCHAR;

-- (varchar, varchar, int8, varchar) -> ()
UPDATE runs SET state=$1::VARCHAR, worker=$2::VARCHAR, fence=$3::BIGINT WHERE runs.id = $4::VARCHAR;

-- (int4, varchar, int8, int8, int8, float8, varchar) -> ()
UPDATE runs SET step=$1::INTEGER, model=$2::VARCHAR, input_tokens=$3::BIGINT, output_tokens=$4::BIGINT, cached_tokens=$5::BIGINT, cost_usd=$6::FLOAT WHERE runs.id = $7::VARCHAR;

-- (int4, varchar, bool, varchar, int8, int8, varchar) -> ()
UPDATE runs SET transcript=$1::INTEGER, state=$2::VARCHAR, collecting=$3::BOOLEAN, worker=$4::VARCHAR, fence=$5::BIGINT, started_ms=$6::BIGINT WHERE runs.id = $7::VARCHAR;

-- (int8, int8, varchar) -> ()
UPDATE sessions SET archived_ms=$1::BIGINT, updated_ms=$2::BIGINT WHERE sessions.id = $3::VARCHAR;

-- (varchar, int8, varchar) -> ()
UPDATE sessions SET grants=$1::VARCHAR, updated_ms=$2::BIGINT WHERE sessions.id = $3::VARCHAR;

-- (varchar, int8, varchar) -> ()
UPDATE sessions SET mode=$1::VARCHAR, updated_ms=$2::BIGINT WHERE sessions.id = $3::VARCHAR;

-- (varchar, varchar, varchar, varchar, varchar, varchar, varchar, int8, varchar) -> ()
UPDATE sessions SET permission_mode=$1::VARCHAR, model=$2::VARCHAR, agent=$3::VARCHAR, grants=$4::VARCHAR, scope=$5::VARCHAR, persona=$6::VARCHAR, persona_digest=$7::VARCHAR, updated_ms=$8::BIGINT WHERE sessions.id = $9::VARCHAR;

-- (varchar, int8, varchar) -> ()
UPDATE sessions SET permission_mode=$1::VARCHAR, updated_ms=$2::BIGINT WHERE sessions.id = $3::VARCHAR;

-- (varchar, varchar, int8, varchar) -> ()
UPDATE sessions SET persona=$1::VARCHAR, persona_digest=$2::VARCHAR, updated_ms=$3::BIGINT WHERE sessions.id = $4::VARCHAR;

-- (varchar, int8, varchar) -> ()
UPDATE sessions SET queue_mode=$1::VARCHAR, updated_ms=$2::BIGINT WHERE sessions.id = $3::VARCHAR;

-- (varchar, int8, varchar) -> ()
UPDATE sessions SET status=$1::VARCHAR, updated_ms=$2::BIGINT WHERE sessions.id = $3::VARCHAR;

-- (varchar, int8, varchar) -> ()
UPDATE sessions SET title=$1::VARCHAR, updated_ms=$2::BIGINT WHERE sessions.id = $3::VARCHAR;

-- (varchar, int8, varchar, varchar) -> ()
UPDATE settings SET value=$1::VARCHAR, updated_ms=$2::BIGINT WHERE settings.name = $3::VARCHAR AND settings.value = $4::VARCHAR;

-- (varchar, varchar, int4, int4) -> ()
UPDATE tool_calls SET state=$1::VARCHAR WHERE tool_calls.run_id = $2::VARCHAR AND tool_calls.step = $3::INTEGER AND tool_calls.place = $4::INTEGER;

-- (varchar, varchar, varchar, int8, varchar, int4, int4) -> ()
UPDATE tool_calls SET state=$1::VARCHAR, decision=$2::VARCHAR, result=$3::VARCHAR, ended_ms=$4::BIGINT WHERE tool_calls.run_id = $5::VARCHAR AND tool_calls.step = $6::INTEGER AND tool_calls.place = $7::INTEGER;

-- (varchar, varchar, int8, varchar, int4, int4) -> ()
UPDATE tool_calls SET state=$1::VARCHAR, decision=$2::VARCHAR, started_ms=$3::BIGINT WHERE tool_calls.run_id = $4::VARCHAR AND tool_calls.step = $5::INTEGER AND tool_calls.place = $6::INTEGER;

-- (varchar, varchar, varchar, int4, int4) -> ()
UPDATE tool_calls SET state=$1::VARCHAR, digest=$2::VARCHAR WHERE tool_calls.run_id = $3::VARCHAR AND tool_calls.step = $4::INTEGER AND tool_calls.place = $5::INTEGER;

-- (varchar, int8, varchar, varchar, varchar, int8, int8, int8, int8, int8, int4, int8, int8, varchar, int8, varchar, int8, varchar) -> ()
WITH saved AS (UPDATE lanes SET input_seq=$7::BIGINT, run_seq=$8::BIGINT, event_seq=$9::BIGINT, message_seq=$10::BIGINT, transcript=$11::INTEGER, transcript_from=$12::BIGINT, window_from=$13::BIGINT, active_run=$14::VARCHAR, ready_ms=$15::BIGINT, gate=$16::VARCHAR, wants_ms=$17::BIGINT WHERE lanes.session_id = $18::VARCHAR) INSERT INTO events (session_id, seq, run_id, kind, data, at_ms, xid) VALUES ($1::VARCHAR, $2::BIGINT, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::BIGINT, CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT));

-- (varchar, int8, varchar, varchar, varchar, int8, int8, int8, int8, int8, int4, int8, int8, varchar, int8, varchar, int8, varchar, varchar, int8, int4, varchar, int4, varchar, varchar, int4, int8) -> ()
WITH saved AS (UPDATE lanes SET input_seq=$7::BIGINT, run_seq=$8::BIGINT, event_seq=$9::BIGINT, message_seq=$10::BIGINT, transcript=$11::INTEGER, transcript_from=$12::BIGINT, window_from=$13::BIGINT, active_run=$14::VARCHAR, ready_ms=$15::BIGINT, gate=$16::VARCHAR, wants_ms=$17::BIGINT WHERE lanes.session_id = $18::VARCHAR), said AS (INSERT INTO messages (session_id, seq, transcript, run_id, step, role, payload, tokens, created_ms) VALUES ($19::VARCHAR, $20::BIGINT, $21::INTEGER, $22::VARCHAR, $23::INTEGER, $24::VARCHAR, $25::VARCHAR, $26::INTEGER, $27::BIGINT)) INSERT INTO events (session_id, seq, run_id, kind, data, at_ms, xid) VALUES ($1::VARCHAR, $2::BIGINT, $3::VARCHAR, $4::VARCHAR, $5::VARCHAR, $6::BIGINT, CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT));
