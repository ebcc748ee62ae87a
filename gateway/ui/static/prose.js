// Rendered text: what the server made of Markdown, with what needs a script put to it.

import { make } from "./dom.js";

const COPIED_MS = 1600;

// The text of a message as one element.
export function prose(html) {
  const element = make("div", { class: "prose" });
  element.innerHTML = html;
  dress(element);
  return element;
}

// A text that grows: its blocks from one on are others now, those before it stay as they are.
export function grow(element, since, blocks) {
  while (element.children.length > since) element.lastChild.remove();
  if (element.lastChild instanceof Text) element.lastChild.remove();
  for (const block of blocks) {
    const template = document.createElement("template");
    template.innerHTML = block;
    dress(template.content);
    if (element.lastChild) element.append("\n");
    element.append(template.content);
  }
}

export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Over plain HTTP there is no clipboard to write to, but what is selected can be copied.
  const field = make("textarea", { class: "sr", readonly: true });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("The browser did not let the page copy. Select the text instead.");
}

// A button that copies what `text` gives, and says so.
export function copyButton(name, text) {
  const button = make("button", { type: "button", class: "copy" }, name);
  button.addEventListener("click", async () => {
    try {
      await copy(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    button.focus();
    setTimeout(() => { button.textContent = name; }, COPIED_MS);
  });
  return button;
}

function dress(root) {
  for (const code of root.querySelectorAll("pre")) {
    const language = code.dataset.language;
    const box = make("div", { class: "code-box" });
    code.replaceWith(box);
    box.append(make("div", { class: "code-head" },
      make("span", { class: "language" }, language || "text"),
      copyButton("Copy", () => code.textContent.replace(/\n$/, ""))), code);
  }
}
