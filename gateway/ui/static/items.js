// One element for each thing that was said or done. Only `html` is markup: the server made it.

import { make } from "./dom.js";
import { copyButton, prose } from "./prose.js";

const FOLD = 700;
// What cannot be seen, or makes text read in another order than it runs; line ends and tabs may stay.
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]/gu;

// act: {resolve(card, behavior, scope, reason), answer(card, text), edit(text), say(text)}
export function build(item, act) {
  const element = make("article", { class: `item kind-${item.kind}`, "data-key": item.key });
  element.title = new Date(item.at_ms).toLocaleString();
  const parts = { user, assistant, notice, agents, file, card, system }[item.kind](item, element, act);
  element.append(...parts);
  if (item.undone) {
    element.classList.add("undone");
    element.append(make("p", { class: "below" }, "Taken back: the agent does not know this"));
  }
  return element;
}

function user(item, element, act) {
  if (/^[/!][a-z]/i.test(item.text) && !item.text.includes("\n")) element.classList.add("command");
  const files = chips(item.attachments);
  const parts = [make("h2", { class: "sr" }, `${item.name || "Someone"} said`)];
  if (item.text) parts.push(make("div", { class: "bubble" }, item.text));
  if (files) parts.push(files);
  if (item.waiting) parts.push(make("p", { class: "below" }, "Waiting for its turn"));
  if (item.text) parts.push(tools(item, act));
  return parts;
}

// What can be done with a message. Of a person's it can be sent again, after a change.
function tools(item, act) {
  const row = make("div", { class: "tools" }, copyButton("Copy", () => item.text));
  if (item.kind === "user") {
    row.append(make("button", { type: "button", class: "copy edit", onclick: () => act.edit(item.text) }, "Edit and send again"));
  }
  return row;
}

function chips(attachments) {
  if (!attachments.length) return null;
  const rows = attachments.map((one) =>
    make("li", {}, `${one.name}${one.size_bytes === null ? "" : `, ${size(one.size_bytes)}`}`));
  return make("ul", { class: "chips", "aria-label": "Files" }, ...rows);
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${Math.round(bytes / 100) / 10} kB`;
  return `${Math.round(bytes / 1e5) / 10} MB`;
}

function assistant(item, element, act) {
  const parts = [make("h2", { class: "sr" }, "Gatehouse said")];
  if (item.html) parts.push(prose(item.html));
  if (item.calls.length) {
    parts.push(make("ul", { class: "steps", "aria-label": "Steps" },
      ...item.calls.map((call) => make("li", {}, step(call)))));
  }
  if (item.text) parts.push(tools(item, act));
  if (item.partial) parts.push(make("p", { class: "below" }, "Stopped here"));
  const trouble = delivery(item.delivery);
  if (trouble) parts.push(trouble);
  return parts;
}

function delivery(state) {
  if (state === "dead") return make("p", { class: "below failed" }, "This did not reach the chat.");
  if (state === "unknown") return make("p", { class: "below failed" }, "It is unknown whether this reached the chat.");
  return null;
}

const WORDS = {
  ok: "done", error: "failed", denied: "denied", unknown: "unknown", cancelled: "stopped",
  proposed: "next", waiting: "waiting", approved: "allowed", started: "running",
};
const WAITS_FOR = {
  person: "waiting for you", agents: "waiting for its agents", parent: "waiting for its parent",
};
// What a person need not look after: somebody else is at work on it.
const AT_WORK = ["agents", "parent"];

function step(call) {
  const state = call.status || call.state;
  const busy = call.state === "started" || AT_WORK.includes(call.waits_for);
  const dot = call.status || (busy ? "running" : call.state);
  const body = make("div", { class: "step-body" }, labelled("Arguments", seen(pretty(call.arguments))));
  if (call.result) {
    const rest = call.result_characters - call.result.length;
    body.append(labelled("Result", rest > 0 ? `${call.result}\n[${rest} more characters]` : call.result));
  }
  if (call.rule) body.append(make("p", { class: "quiet" }, `Rule: ${call.rule}`));
  return make("details", { class: "step", "data-call": call.id },
    make("summary", {},
      make("span", { class: `dot ${dot}`, "aria-hidden": "true" }),
      make("span", { class: "tool" }, seen(call.name)),
      make("span", { class: "brief" }, seen(brief(call.arguments))),
      make("span", { class: "word" }, ended(call) || (!call.status && WAITS_FOR[call.waits_for]) || WORDS[state] || state)),
    body);
}

// How a command ended that gave no good result, in its own first line: [exit code 2, 0.1 s].
function ended(call) {
  const found = call.name === "exec" && call.status === "error" && /^\[(exit code \d+|timed out|killed)/.exec(call.result || "");
  return found ? found[1] : "";
}

// A call's arguments and a question as they really are: "[U+202E]" where a character hides.
function seen(text) {
  return text.replace(UNSEEN, (one) => `[U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

function labelled(title, text) {
  return make("section", {}, make("h3", {}, title), make("pre", { class: "code", tabindex: "0" }, text));
}

function pretty(text) {
  try {
    const found = JSON.parse(text);
    if (found === null || typeof found !== "object" || Array.isArray(found)) return text;
    const entries = Object.entries(found);
    return entries.map(([name, value]) => `${name}: ${outlined(value)}`).join("\n");
  } catch {
    return text;
  }
}

// A value for people: what holds more values as an outline, everything in it.
function outlined(value, depth = 1) {
  if (typeof value === "string") return value;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  if (!entries.length) return list ? "none" : "{}";
  if (list && value.every((one) => one === null || typeof one !== "object")) {
    return value.map((one) => outlined(one)).join(", ");
  }
  const indent = "  ".repeat(depth);
  return entries.map(([name, one]) =>
    `\n${indent}${list ? `${Number(name) + 1}.` : `${name}:`} ${outlined(one, depth + 1)}`).join("");
}

const SWITCHES = new Map([["background", "in the background"], ["network", "with network"]]);

// The arguments of a call in one line.
function brief(text) {
  try {
    const entries = Object.entries(JSON.parse(text));
    const said = entries.filter(([, value]) => typeof value !== "boolean" && value !== null);
    // What is switched on stands apart, so that it does not look like a part of a command.
    const on = entries.filter(([, value]) => value === true).map(([name]) => SWITCHES.get(name) || name.replaceAll("_", " "));
    const words = said.map(([, value]) => named(value)).join("  ").split("\n")[0];
    return on.length ? `${words} (${on.join(", ")})` : words;
  } catch {
    return text;
  }
}

// A value in a word or two: the things of a list by the first words that each has, its name if any.
function named(value) {
  if (value === null || typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.map(named).join(", ");
  const texts = Object.values(value).filter((one) => typeof one === "string" && one);
  return [value.id, value.name, value.label].find((one) => typeof one === "string" && one) || texts[0] || "...";
}

function notice(item, element, act) {
  const failed = item.delivery === "dead" || item.delivery === "unknown";
  element.classList.add("note");
  const parts = [make("h2", { class: "sr" }, "The gateway says"),
    make("div", { class: failed ? "notice failed" : "notice" }, prose(item.html))];
  if (item.buttons.length) parts.push(commands(item.buttons, act));
  return parts;
}

// Commands that the text offers. To press one is to send its words.
function commands(buttons, act) {
  return make("div", { class: "buttons commands", role: "group", "aria-label": "Commands" }, ...buttons.map((one) => {
    const button = make("button", { type: "button", class: "secondary" }, seen(one.label));
    button.addEventListener("click", async () => {
      button.disabled = true;
      await act.say(one.command);
      button.disabled = false;
    });
    return button;
  }));
}

// How the agents that a step started get on. The words are the gateway's, as in every chat.
function agents(item) {
  return [make("section", { class: "card agents", "aria-label": "Agents at work" }, prose(item.html))];
}

// What the agent sent: a name and a link that saves it. Nothing of the file is shown here.
function file(item) {
  const parts = [make("h2", { class: "sr" }, "Gatehouse sent a file")];
  if (item.html) parts.push(prose(item.html));
  const rows = item.files.map((one) => make("li", {},
    make("a", { href: one.url, download: one.name }, seen(one.name)),
    make("span", {}, size(one.size_bytes))));
  parts.push(make("ul", { class: "chips sent", "aria-label": "Files to download" }, ...rows));
  const trouble = delivery(item.delivery);
  if (trouble) parts.push(trouble);
  return parts;
}

// What the agent was told. The first line says what happened; the rest is written for the model.
function system(item) {
  const [first, ...rest] = item.text.split("\n");
  if (!rest.length) return [make("p", { class: "system" }, first)];
  return [make("details", { class: "system" }, make("summary", {}, first),
    make("pre", { class: "code", tabindex: "0" }, rest.join("\n")))];
}

function card(item, element, act) {
  const one = item.card;
  const open = one.state === "open";
  const box = make("section", { class: open ? "card" : "card settled", "aria-label": label(one), tabindex: "-1" });
  box.append(...(one.kind === "approval" ? approval(one, open, act) : question(one, open, act)));
  return [box];
}

function label(one) {
  return one.kind === "approval" ? `Approval for ${one.tool}` : "Question";
}

function approval(one, open, act) {
  const heading = open
    ? make("h2", {}, "May I run ", make("code", {}, seen(one.tool)), "?")
    : make("h2", {}, make("code", {}, seen(one.tool)), ` ${one.outcome || one.state}`);
  const shown = seen(pretty(one.arguments));
  if (!open) {
    const asked = make("details", {}, make("summary", {}, "What was asked"),
      make("pre", { class: "code", tabindex: "0" }, shown));
    return [heading, risk(one), asked].filter((part) => part !== null);
  }
  const parts = [heading, risk(one), make("p", { class: "why" }, one.reason), ...folded(shown, seen(one.arguments))];
  parts.push(decision(one, act));
  return parts.filter((part) => part !== null);
}

// How risky it is, in the gateway's words; the sign says the same to the eye.
function risk(one) {
  if (!one.risk) return null;
  return make("p", { class: `risk ${one.risk.level}` },
    make("span", { class: "sign", "aria-hidden": "true" }, { low: "\u2713", medium: "!", high: "!!" }[one.risk.level]),
    make("span", {}, one.risk.words));
}

// Everything can be read before it is allowed: long arguments behind a fold, and as they were sent.
function folded(shown, raw) {
  const parts = [];
  if (shown.length > FOLD) {
    parts.push(make("pre", { class: "code", tabindex: "0" }, `${shown.slice(0, FOLD)}...`),
      make("details", { class: "more-code" }, make("summary", {}, `Show all ${shown.length} characters`),
        make("pre", { class: "code", tabindex: "0" }, shown)));
  } else {
    parts.push(make("pre", { class: "code", tabindex: "0" }, shown));
  }
  if (shown !== raw) {
    parts.push(make("details", { class: "more-code" }, make("summary", {}, "Exactly as it will run"),
      make("pre", { class: "code", tabindex: "0" }, raw)));
  }
  return parts;
}

function decision(one, act) {
  const buttons = make("div", { class: "buttons" });
  const press = (behavior, scope) => () => act.resolve(one, behavior, scope, "");
  // The bright button is never the dangerous one.
  const looks = (choice) => (one.bright === choice ? "primary" : "secondary");
  if (one.choices.includes("once")) {
    buttons.append(make("button", { type: "button", class: looks("once"), onclick: press("allow", "once") }, "Allow once"));
  }
  if (one.choices.includes("session")) {
    buttons.append(make("button", { type: "button", class: "secondary", onclick: press("allow", "session") },
      "Allow for this session"));
  }
  const reason = make("form", { class: "answer", hidden: true });
  const input = make("input", { id: `why-${one.request_id}`, maxlength: "2000" });
  const refuse = make("button", { type: "button", class: `${looks("deny")} refuse`, "aria-expanded": "false" }, "Deny...");
  const ask = (shown) => {
    reason.hidden = !shown;
    refuse.setAttribute("aria-expanded", String(shown));
    if (!shown) return;
    input.focus();
    reason.scrollIntoView({ block: "nearest" });
  };
  refuse.addEventListener("click", () => ask(reason.hidden));
  reason.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    ask(false);
    refuse.focus();
  });
  reason.append(make("label", { for: input.id }, "Why not? The agent is told (you may leave it empty)."),
    make("div", { class: "row" }, input,
      make("button", { type: "submit", class: "secondary refuse" }, "Deny")));
  reason.addEventListener("submit", (event) => {
    event.preventDefault();
    act.resolve(one, "deny", "once", input.value.trim());
  });
  buttons.append(refuse);
  return make("div", {}, buttons, reason);
}

function question(one, open, act) {
  const heading = make("h2", {}, seen(one.question));
  if (!open) return [heading, make("p", { class: "why" }, one.outcome || one.state)];
  const parts = [heading];
  if (one.options.length) {
    parts.push(make("div", { class: "buttons" }, ...one.options.map((option) =>
      make("button", { type: "button", class: "secondary", onclick: () => act.answer(one, option) }, seen(option)))));
  }
  const input = make("input", { id: `say-${one.request_id}`, maxlength: "20000", required: true });
  const form = make("form", { class: "answer" },
    make("label", { for: input.id }, one.options.length ? "Or in your own words" : "Your answer"),
    make("div", { class: "row" }, input, make("button", { type: "submit", class: "primary" }, "Answer")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) act.answer(one, input.value.trim());
  });
  parts.push(form);
  return parts;
}
