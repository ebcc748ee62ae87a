// What is done with a whole conversation: renamed, archived, exported, deleted; and its model.

import { get, Problem, send } from "./api.js";
import { make } from "./dom.js";

const $ = (id) => document.getElementById(id);

export class Menu {
  // on: {attempt(work), changed(session), gone()}
  constructor(on) {
    this.on = on;
    this.session = null;
    $("open-menu").addEventListener("click", () => this.show($("menu").hidden));
    document.addEventListener("click", (event) => {
      if (!$("session-menu").contains(event.target)) this.show(false);
    });
    $("session-menu").addEventListener("focusout", (event) => {
      if (event.relatedTarget && !$("session-menu").contains(event.relatedTarget)) this.show(false);
    });
    $("session-menu").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || $("menu").hidden) return;
      this.show(false);
      $("open-menu").focus();
    });
    for (const link of [$("export"), $("export-json")]) link.addEventListener("click", () => this.show(false));
    $("rename")?.addEventListener("click", () => this.rename());
    $("archive")?.addEventListener("click", () => this.revise({ archived: !this.session.archived }));
    $("delete")?.addEventListener("click", () => this.remove());
    $("model").addEventListener("change", () => this.choose($("model").value));
  }

  show(open) {
    $("menu").hidden = !open;
    $("open-menu").setAttribute("aria-expanded", String(open));
  }

  // The conversation that is open; null for one that is not made yet.
  mark(session) {
    this.session = session;
    $("session-menu").hidden = !session;
    if (!session) {
      $("model").value = this.fresh || "";
      return;
    }
    $("export").href = `/v1/sessions/${session.id}/export`;
    $("export-json").href = `/v1/sessions/${session.id}/export?format=json`;
    if ($("archive")) $("archive").textContent = session.archived ? "Take out of the archive" : "Archive";
    $("model").value = session.model || "";
  }

  async models(mayWrite) {
    const found = await get("/v1/models");
    const first = found.items.find((one) => one.default);
    $("model").replaceChildren(...found.items.map((one) =>
      make("option", { value: one.default ? "" : one.name }, short(one.name))));
    $("model").disabled = !mayWrite;
    $("model").parentElement.hidden = found.items.length === 0;
    this.default = first ? first.name : "";
    this.tell();
  }

  // Which model a new conversation will be answered by.
  tell() {
    const name = $("model").value || this.default;
    $("answers").textContent = name ? `${name} answers.` : "";
  }

  async choose(name) {
    if (!this.session) {
      this.fresh = name;
      this.tell();
      return;
    }
    const { id } = this.session;
    const session = await this.on.attempt(() => changeModel(id, name));
    this.mark(session || this.session);
  }

  // The model that was chosen before there was a conversation.
  async begin(id) {
    if (this.fresh) await send("PUT", `/v1/sessions/${id}/route-policy`, { model: this.fresh });
    this.fresh = "";
  }

  async rename() {
    this.show(false);
    $("new-title").value = this.session.title;
    if (await asked($("rename-dialog"), $("open-menu"))) await this.revise({ title: $("new-title").value });
  }

  async revise(change) {
    this.show(false);
    const session = await this.on.attempt(() => send("PATCH", `/v1/sessions/${this.session.id}`, change));
    if (session) this.on.changed(session);
    $("open-menu").focus();
  }

  async remove() {
    this.show(false);
    if (!await asked($("delete-dialog"), $("open-menu"))) return;
    const { id } = this.session;
    if (await this.on.attempt(() => send("DELETE", `/v1/sessions/${id}`))) this.on.gone();
  }
}

function asked(dialog, back) {
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      back.focus();
      done(dialog.returnValue === "yes");
    }, { once: true });
  });
}

// Give a session another model, an empty name the default one. A PUT replaces the whole policy, so
// the generation that a program set is read first and sent along, without what the model refuses.
async function changeModel(id, name) {
  const path = `/v1/sessions/${id}`;
  const generation = { ...(await get(path)).generation };
  for (;;) {
    const policy = { ...(name && { model: name }), ...(given(generation) && { generation }) };
    if (!given(policy)) return send("DELETE", `${path}/route-policy`);
    try {
      return await send("PUT", `${path}/route-policy`, policy);
    } catch (error) {
      const field = refusedOf(error);
      if (!given(generation) || !(field in generation)) throw error;
      delete generation[field];
    }
  }
}

function given(values) {
  return Object.values(values).some((value) => value !== null);
}

// The field of the generation that the gateway refused; empty where something else went wrong.
function refusedOf(error) {
  const [part, field] = error instanceof Problem && error.status === 422 ? error.body.field.split(".") : [];
  return part === "generation" ? field : "";
}

// A model without its provider, where it is long.
function short(name) {
  return name.length > 28 ? name.slice(name.indexOf(":") + 1) : name;
}
