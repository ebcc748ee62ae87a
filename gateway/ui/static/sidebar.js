// The list of conversations.

import { get } from "./api.js";
import { make } from "./dom.js";

const EVERY_MS = 20000;
const $ = (id) => document.getElementById(id);
const MOST_AGENTS = 12;
const STATES = {
  running: "Working", queued: "Waiting to start", waiting_for_approval: "Needs your approval",
  waiting_for_user_question: "Has a question", waiting_for_children: "Waiting for its agents",
};
const NEEDS_YOU = ["waiting_for_approval", "waiting_for_user_question"];

export class Sidebar {
  // on: {open(id), fresh()}
  constructor(on) {
    this.on = on;
    this.current = null;
    this.shown = 50;
    this.archive = false;
    $("search").addEventListener("input", () => this.soon());
    $("archive-view").addEventListener("click", () => {
      this.archive = !this.archive;
      $("archive-view").setAttribute("aria-pressed", String(this.archive));
      this.load();
    });
    $("new-session").addEventListener("click", () => {
      this.show(false);
      on.fresh();
    });
    $("open-sidebar").addEventListener("click", () => this.show(true));
    $("close-sidebar").addEventListener("click", () => this.show(false));
    $("scrim").addEventListener("click", () => this.show(false));
    $("more-sessions").addEventListener("click", () => {
      this.shown = Math.min(this.shown + 50, 200);
      this.load();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && $("sidebar").classList.contains("open")) this.show(false);
    });
    setInterval(() => {
      if (!document.hidden) this.load();
    }, EVERY_MS);
  }

  show(open) {
    const was = $("sidebar").classList.contains("open");
    $("sidebar").classList.toggle("open", open);
    $("scrim").hidden = !open;
    document.querySelector(".column").inert = open;
    $("open-sidebar").setAttribute("aria-expanded", String(open));
    if (open) $("close-sidebar").focus();
    else if (was) $("open-sidebar").focus();
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), 250);
  }

  // The id of the newest conversation, or null.
  async load() {
    let page;
    try {
      const query = { subagents: "false", limit: String(this.shown), archived: String(this.archive) };
      const sought = $("search").value.trim();
      if (sought) query.q = sought;
      page = await get(`/v1/sessions?${new URLSearchParams(query)}`);
      $("no-sessions").hidden = page.items.length > 0 || !(sought || this.archive);
      const none = sought ? "No conversation has this in its title." : "Nothing is archived.";
      if ($("no-sessions").textContent !== none) $("no-sessions").textContent = none;
    } catch {
      return null;
    }
    const agents = await this.agents();
    const focused = document.activeElement?.closest?.(".sessions a")?.hash;
    $("sessions").replaceChildren(...page.items.flatMap((session) => [
      this.row(session),
      ...agents.filter((agent) => agent.root_session_id === session.id).map((agent) => this.agent(agent)),
    ]));
    if (focused) $("sessions").querySelector(`a[href="${focused}"]`)?.focus();
    $("more-sessions").hidden = !page.pagination.next_cursor || this.shown >= 200;
    return page.items.length ? page.items[0].id : null;
  }

  // The subagents of the conversation that is open: those at work, and the newest of the others.
  async agents() {
    if (!this.current) return [];
    try {
      const found = await get(`/v1/agents/summaries?session_id=${this.current}&limit=200`);
      const listed = found.items.filter((agent) => !agent.settled_at_ms || agent.retention === "retain");
      const live = listed.filter((agent) => !agent.settled_at_ms);
      const newest = listed.slice(Math.min(listed.length, Math.max(0, listed.length - MOST_AGENTS + live.length)));
      return listed.filter((agent) => !agent.settled_at_ms || newest.includes(agent) || agent.session_id === this.current);
    } catch {
      return [];
    }
  }

  row(session) {
    const state = STATES[session.state];
    const busy = !NEEDS_YOU.includes(session.state);
    return this.link(session.id, session.title || nameOf(session), session.last_activity_at_ms, state, busy);
  }

  agent(agent) {
    const state = agent.settled_at_ms ? "" : agent.standing.replaceAll("_", " ");
    const at = agent.settled_at_ms || agent.created_at_ms;
    const row = this.link(agent.session_id, agent.label || agent.agent_id, at, state, !state.startsWith("waiting for"));
    row.className = "agent";
    return row;
  }

  link(id, name, at, state, busy) {
    const link = make("a", { href: `#${id}`, "aria-current": id === this.current ? "page" : null },
      make("span", { class: "name" }, name),
      make("time", { datetime: new Date(at).toISOString() }, ago(at)));
    if (state) link.append(make("span", { class: busy ? "state busy" : "state" }, state));
    link.addEventListener("click", (event) => {
      event.preventDefault();
      this.show(false);
      this.on.open(id);
    });
    return make("li", {}, link);
  }

  mark(id) {
    // The subagents below are those of the open conversation.
    if (this.current !== id) this.soon();
    this.current = id;
    for (const link of $("sessions").querySelectorAll("a")) {
      if (link.hash === `#${id}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
}

function nameOf(session) {
  return session.address.channel === "web" ? "New conversation" : `${session.address.channel} ${session.address.chat_id}`;
}

function ago(ms) {
  const seconds = Math.max(0, (Date.now() - ms) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return new Date(ms).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}
