// The chat page. The conversation is always read from the gateway; events say when to read again.

import { announce, wordsOf } from "./announcements.js";
import { Problem, askNoMore, create, get, send } from "./api.js";
import { Composer } from "./composer.js";
import { Feed } from "./feed.js";
import { make } from "./dom.js";
import { build } from "./items.js";
import { Menu } from "./menu.js";
import { grow } from "./prose.js";
import { Sidebar } from "./sidebar.js";

const PAGE = 60;
const NEAR_END = 120;
const MOST_NAMES = 80;
// What a conversation does that nothing else tells of.
const STANDS = { queued: "Waiting to start", waiting_for_children: "Its agents are at work" };
const AT_WORK = ["queued", "running", "waiting_for_children"];
const mayWrite = document.body.dataset.mayWrite === "yes";
const $ = (id) => document.getElementById(id);
const ends = /^run\.(completed|failed|interrupted|cancelled|waiting)$/;

const state = {
  session: null, feed: null, items: new Map(), cursor: null, reading: false, again: false,
  live: { run: null, step: 0 }, epoch: 0, sent: new Set(), decided: new Set(), over: new Set(),
};

const sidebar = new Sidebar({ open: (id) => openSession(id), fresh: () => startFresh() });
const composer = new Composer({ send: say, trouble: toast });
const menu = new Menu({
  attempt: (work) => attempt(work),
  changed: (session) => {
    showSession(session);
    sidebar.load();
  },
  gone: () => {
    startFresh();
    sidebar.load();
  },
});
const act = {
  say: (command) => say(command, []),
  // A message of before becomes the one that is written now.
  edit: (text) => {
    composer.put(text);
  },
  resolve: (card, behavior, scope, reason) => decide(`/v1/runs/${card.run_id}/approvals`, {
    resolutions: [{ request_id: card.request_id, behavior, scope, reason }],
  }, card.request_id),
  answer: (card, text) => decide(`/v1/runs/${card.run_id}/questions`, {
    answers: [{ request_id: card.request_id, text }],
  }, card.request_id),
};

async function openSession(id) {
  const epoch = leave();
  const session = await attempt(() => get(`/v1/sessions/${id}`));
  if (!session || epoch !== state.epoch) return;
  history.replaceState(null, "", `#${id}`);
  showSession(session);
  const page = await attempt(() => readPage(id));
  if (!page || epoch !== state.epoch) return;
  showPage(page, true);
  // Behind the position at which the page was read, so that nothing falls in between.
  state.feed = new Feed(id, page.position, {
    event: onEvent, live: onLive, gap: refresh, state: showConnection,
  });
}

function leave() {
  if (state.feed) state.feed.close();
  state.feed = null;
  state.session = null;
  state.cursor = null;
  state.items.clear();
  state.sent.clear();
  state.over.clear();
  $("log").replaceChildren();
  clearLive();
  $("earlier").hidden = true;
  state.epoch += 1;
  return state.epoch;
}

function startFresh() {
  leave();
  history.replaceState(null, "", location.pathname);
  $("title").textContent = "New conversation";
  document.title = "Gatehouse";
  $("mode").value = "edit";
  allowWriting(mayWrite, "Write a message");
  $("empty").hidden = false;
  $("stop").hidden = true;
  setActivity("");
  showConnection("open");
  sidebar.mark(null);
  menu.mark(null);
  menu.tell();
  if (mayWrite) $("message").focus();
}

function showSession(session) {
  const began = state.session?.id === session.id && state.session.state === "idle" && AT_WORK.includes(session.state);
  if (began) announce("Gatehouse is at work.");
  state.session = session;
  const name = session.title || "New conversation";
  $("title").textContent = name;
  document.title = `${name} - Gatehouse`;
  $("mode").value = session.mode;
  const writable = mayWrite && session.status === "open" && ["web", "api", "terminal"].includes(session.address.channel);
  allowWriting(writable, writable ? "Write a message"
    : session.status === "open" ? "You can only read this conversation here" : "This conversation has ended");
  $("stop").hidden = !mayWrite || session.state === "idle";
  const told = $("activity").hidden ? "" : $("activity").textContent;
  if (session.state !== "running") setActivity(STANDS[session.state] || "");
  else if (!$("live").hidden) setActivity("");
  else if (!told || Object.values(STANDS).includes(told)) setActivity("Working");
  sidebar.mark(session.id);
  menu.mark(session);
}

function allowWriting(allowed, hint) {
  $("message").disabled = $("send").disabled = !allowed;
  $("message").placeholder = hint;
  $("mode").disabled = !mayWrite;
}

function readPage(id, cursor = null) {
  const query = new URLSearchParams({ html: "1", limit: String(PAGE) });
  if (cursor) query.set("cursor", cursor);
  return get(`/v1/sessions/${id}/messages?${query}`);
}

function showPage(page, first = false) {
  const follow = first || nearEnd();
  const known = page.items.some((item) => state.items.has(item.key));
  const shown = new Map([...state.items].map(([key, entry]) => [key, entry.item]));
  if (!first && state.items.size && !known) {
    state.items.clear();
    $("log").replaceChildren();
  }
  if (first || state.items.size === 0) state.cursor = page.pagination.next_cursor || null;
  const fresh = new Set(page.items.map((item) => item.key));
  let before = null;
  for (const item of [...page.items].reverse()) before = place(item, before);
  for (const [key, entry] of state.items) {
    if (entry.newest && !fresh.has(key)) drop(key, entry);
  }
  for (const key of fresh) state.items.get(key).newest = true;
  if (!first && (known || !shown.size)) tell(page.items, shown);
  for (const element of document.querySelectorAll("[data-local]")) element.remove();
  settleLive(page.items);
  $("earlier").hidden = !state.cursor;
  $("empty").hidden = state.items.size > 0;
  if (follow) toEnd();
}

// What is new to who was here: not their own words, and of a card that it was decided.
function tell(items, shown) {
  for (const item of items) {
    const before = shown.get(item.key);
    const decided = before?.card?.state === "open" && item.card.state !== "open";
    const own = item.kind === "user" && state.sent.delete(item.text);
    const silent = item.kind === "assistant" && !item.text;
    if (decided || !(before || own || silent)) announce(wordsOf(state.items.get(item.key).element));
  }
}

// Puts an item in front of `before`; what did not change keeps its element and what is open in it.
function place(item, before) {
  const stamp = stampOf(item);
  const old = state.items.get(item.key);
  let element = old && old.element;
  if (!old || old.stamp !== stamp) {
    element = build(item, act);
    if (old) takeOver(old.element, element);
    state.items.set(item.key, { element, stamp, item, newest: false });
  }
  if (element.parentNode !== $("log") || element.nextSibling !== before) $("log").insertBefore(element, before);
  return element;
}

// What can be seen of an item: a card that is on its way looks as one that arrived, and a person
// may be writing in it.
function stampOf(item) {
  const failed = item.delivery === "dead" || item.delivery === "unknown";
  return JSON.stringify({ ...item, delivery: failed ? item.delivery : null });
}

function takeOver(old, element) {
  const open = new Set([...old.querySelectorAll("details.step[open]")].map((one) => one.dataset.call));
  for (const one of element.querySelectorAll("details.step")) one.open = open.has(one.dataset.call);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const same = focused && sameIn(element, focused, old);
  old.replaceWith(element);
  if (focused) (same || element.querySelector(".card") || $("message")).focus();
}

// The button or fold of `element` that is what `focused` was in `old`.
function sameIn(element, focused, old) {
  const callOf = (one) => one.closest("[data-call]")?.dataset.call;
  const alike = (root) => [...root.querySelectorAll(focused.tagName)].filter((one) =>
    one.className === focused.className && callOf(one) === callOf(focused));
  return alike(element)[alike(old).indexOf(focused)];
}

function drop(key, entry) {
  entry.element.remove();
  state.items.delete(key);
}

async function showEarlier() {
  const { session, cursor, epoch } = state;
  const page = await attempt(() => readPage(session.id, cursor));
  if (!page || epoch !== state.epoch) return;
  const scroller = $("scroller");
  const height = scroller.scrollHeight;
  let before = $("log").firstChild;
  for (const item of [...page.items].reverse()) {
    if (!state.items.has(item.key)) before = place(item, before);
  }
  state.cursor = page.pagination.next_cursor || null;
  $("earlier").hidden = !state.cursor;
  scroller.scrollTop += scroller.scrollHeight - height;
}

// One reading at a time; whatever is signalled meanwhile makes one more.
async function refresh() {
  if (!state.session) return;
  if (state.reading) {
    state.again = true;
    return;
  }
  state.reading = true;
  const { epoch } = state;
  const { id } = state.session;
  try {
    const [session, page] = await Promise.all([get(`/v1/sessions/${id}`), readPage(id)]);
    if (epoch === state.epoch) {
      showSession(session);
      showPage(page);
    }
  } catch (error) {
    if (!(error instanceof Problem) || error.passes) setTimeout(refresh, 2000);
    // Somebody deleted it.
    else if (error.status === 404 && epoch === state.epoch) startFresh();
  } finally {
    state.reading = false;
  }
  if (state.again) {
    state.again = false;
    refresh();
  }
}

function onEvent(kind, event) {
  if (ends.test(kind)) {
    setActivity("");
    state.live.over = event.run_id;
    if (kind !== "run.waiting") state.over.add(event.run_id);
  }
  if (!kind.startsWith("delivery.sent")) refresh();
  if (/^(run|session)\./.test(kind)) sidebar.soon();
}

function onLive(kind, data) {
  if (kind === "message") {
    refresh();
    // Of a subagent, whose own events come to its own page alone.
    if (data.session_id !== state.session?.id) sidebar.soon();
  } else if (kind === "activity") onActivity(data);
  else onProse(data);
}

function onActivity(data) {
  const names = data.detail.length > MOST_NAMES ? `${data.detail.slice(0, MOST_NAMES)}...` : data.detail;
  const words = { thinking: "Thinking", writing: "Writing", tool: `Running ${names}` };
  // A live event may be late: of a run that is over nothing is told any more.
  if (data.state !== "done" && state.over.has(data.run_id)) return;
  if (data.state === "done") {
    setActivity("");
    refresh();
  } else if (data.state !== "output") {
    setActivity(words[data.state] || "Working");
  }
}

// The blocks of the running step's text that changed, from one on.
function onProse(data) {
  const live = state.live;
  if (live.run !== data.run_id || live.step !== data.step) {
    if (data.since > 0) return;
    Object.assign(live, { run: data.run_id, step: data.step, over: null, begun: false });
  }
  if (!live.begun && data.blocks.length) {
    // What was made of a message's files stands in front of the first word, and no event tells it.
    live.begun = true;
    refresh();
  }
  if (isShown(live)) {
    clearLive();
    return;
  }
  const follow = nearEnd();
  grow($("live-text"), data.since, data.blocks);
  $("live").hidden = !$("live-text").children.length;
  if (!$("live").hidden) setActivity("");
  $("empty").hidden = true;
  if (follow) toEnd();
}

function isShown(live) {
  return [...state.items.values()].some(({ item }) => holds(item, live));
}

function holds(item, live) {
  return item.kind === "assistant" && item.run_id === live.run && item.step >= live.step;
}

// The step's text stands in the conversation now, so the streamed one goes.
function settleLive(items) {
  const live = state.live;
  if (items.some((item) => holds(item, live)) || (live.over && live.over === live.run)) clearLive();
}

function clearLive() {
  state.live = { run: null, step: 0 };
  $("live").hidden = true;
  $("live-text").replaceChildren();
}

async function say(text, files) {
  toast("");
  const items = [...(text ? [{ type: "text", text }] : []), ...files];
  const shown = make("article", { class: "item kind-user", "data-local": true }, make("div", { class: "bubble" }, text || "..."));
  $("log").append(shown);
  $("empty").hidden = true;
  toEnd();
  try {
    if (!state.session) {
      const made = await create("/v1/sessions", { channel: "web", mode: $("mode").value });
      await menu.begin(made.id);
      await openSession(made.id);
      $("log").append(shown);
      $("empty").hidden = true;
    }
    state.sent.add(text);
    // Where the clocks of this person are, for "remind me tomorrow at 9".
    const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone || undefined;
    const path = `/v1/sessions/${state.session.id}/runs`;
    try {
      await create(path, { input_items: items, timezone });
    } catch (error) {
      // A browser may name a zone that the gateway does not know.
      if (error.body?.field !== "timezone") throw error;
      await create(path, { input_items: items });
    }
  } catch (error) {
    shown.remove();
    toast(`Not sent: ${error.message}`);
    return false;
  }
  refresh();
  sidebar.soon();
  return true;
}

// A second press is no second decision; after a failure it is another try.
async function decide(path, body, card) {
  if (state.decided.has(card)) return;
  state.decided.add(card);
  if (!await attempt(() => send("POST", path, body))) state.decided.delete(card);
  refresh();
}

async function attempt(work) {
  try {
    const result = await work();
    toast("");
    return result;
  } catch (error) {
    toast(error.message);
    return null;
  }
}

function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = !text;
}

function setActivity(text) {
  const follow = nearEnd();
  $("activity").textContent = text;
  $("activity").hidden = !text;
  if (follow) toEnd();
}

function showConnection(name) {
  const words = { open: "Connected", connecting: "Reconnecting", closed: "Not connected" };
  // Said again by a screen reader whenever it is written, also where it is the same word.
  if ($("connection").dataset.state === name) return;
  $("connection").dataset.state = name;
  $("connection").textContent = words[name];
}

function nearEnd() {
  const scroller = $("scroller");
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
}

function toEnd() {
  $("scroller").scrollTop = $("scroller").scrollHeight;
}

// The conversation that the address names; the skip link uses the hash too.
function hashed() {
  const id = location.hash.slice(1);
  return id.startsWith("ses_") ? id : null;
}

$("earlier").addEventListener("click", showEarlier);
// The session ends while the page still stands: whatever it asks from here on would be refused.
document.querySelector("form.logout")?.addEventListener("submit", () => {
  askNoMore();
  state.feed?.close();
});
$("stop").addEventListener("click", async () => {
  await attempt(() => send("POST", `/v1/sessions/${state.session.id}/interrupt`));
  refresh();
  $("message").focus();
});
$("mode").addEventListener("change", () => {
  if (state.session) {
    attempt(() => send("PUT", `/v1/sessions/${state.session.id}/mode`, { mode: $("mode").value }));
  }
});
window.addEventListener("hashchange", () => {
  const id = hashed();
  if (id && (!state.session || state.session.id !== id)) openSession(id);
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    refresh();
    sidebar.soon();
  }
});

for (const idea of document.querySelectorAll(".ideas button")) {
  idea.addEventListener("click", () => composer.put(idea.textContent));
}
attempt(() => menu.models(mayWrite));
const newest = await sidebar.load();
const wanted = hashed() || newest;
if (wanted) await openSession(wanted);
if (!state.session) startFresh();
if (mayWrite && matchMedia("(min-width: 48.01rem)").matches) $("message").focus();
document.body.dataset.ready = "yes";
