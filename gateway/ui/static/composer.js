// The field to write in: sends on Enter, completes commands, holds files.

import { make } from "./dom.js";
import { size } from "./items.js";

const MOST_BYTES = 5 * 1024 * 1024;

export class Composer {
  // on: {send(items) -> Promise<boolean>, trouble(text)}
  constructor(on) {
    this.on = on;
    this.files = [];
    this.form = document.getElementById("composer");
    this.field = document.getElementById("message");
    this.list = document.getElementById("files");
    this.hints = document.getElementById("hints");
    this.options = [...this.hints.children];
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("input", () => this.changed());
    this.field.addEventListener("blur", () => this.hideHints());
    // The list is looked at and chosen from while the field has the focus.
    this.hints.addEventListener("mousedown", (event) => event.preventDefault());
    this.field.addEventListener("paste", (event) => this.paste(event));
    document.getElementById("file").addEventListener("change", (event) => {
      this.add([...event.target.files]);
      event.target.value = "";
    });
    for (const option of this.options) {
      option.addEventListener("mousedown", () => this.complete(option));
    }
  }

  key(event) {
    if (event.isComposing) return;
    if (!this.hints.hidden && this.hintKey(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
    }
  }

  hintKey(event) {
    const shown = this.options.filter((option) => !option.hidden);
    const at = shown.findIndex((option) => option.ariaSelected === "true");
    if (event.key === "ArrowDown") this.select(shown[(at + 1) % shown.length]);
    else if (event.key === "ArrowUp") this.select(shown[(at - 1 + shown.length) % shown.length]);
    else if (event.key === "Tab" && !event.shiftKey) this.complete(shown[Math.max(at, 0)]);
    else if (event.key === "Tab") {
      this.hideHints();
      return false;
    }
    else if (event.key === "Enter" && !this.exact(shown[Math.max(at, 0)])) this.complete(shown[Math.max(at, 0)]);
    else if (event.key === "Escape") this.hideHints();
    else return false;
    event.preventDefault();
    return true;
  }

  exact(option) {
    return this.field.value.trim() === `/${option.dataset.name}`;
  }

  select(chosen) {
    for (const option of this.options) option.ariaSelected = String(option === chosen);
    if (!chosen) {
      this.field.removeAttribute("aria-activedescendant");
      return;
    }
    this.field.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  hideHints() {
    this.hints.hidden = true;
    this.select(null);
  }

  complete(option) {
    this.field.value = `/${option.dataset.name} `;
    this.changed();
    this.field.focus();
  }

  changed() {
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
    const typed = /^\/([a-z]*)$/i.exec(this.field.value);
    for (const option of this.options) {
      option.hidden = typed === null || !option.dataset.name.startsWith(typed[1].toLowerCase());
    }
    const shown = this.options.filter((option) => !option.hidden);
    this.hints.hidden = shown.length === 0;
    this.select(shown[0]);
  }

  // Puts a text into the field, to be sent as it is or changed before.
  put(text) {
    this.field.value = text;
    this.changed();
    this.field.focus();
    this.field.setSelectionRange(text.length, text.length);
  }

  paste(event) {
    const files = [...event.clipboardData.files];
    if (files.length) {
      event.preventDefault();
      this.add(files);
    }
  }

  add(files) {
    for (const file of files) {
      if (file.size > MOST_BYTES) this.on.trouble(`${file.name} is larger than 5 MB.`);
      else this.files.push(file);
    }
    this.showFiles();
    this.field.focus();
  }

  showFiles() {
    this.list.replaceChildren(...this.files.map((file) => {
      const drop = make("button", { type: "button", "aria-label": `Leave out ${file.name}` }, "×");
      drop.addEventListener("click", () => {
        this.files = this.files.filter((one) => one !== file);
        this.showFiles();
        this.field.focus();
      });
      return make("li", {}, `${file.name}, ${size(file.size)} `, drop);
    }));
    this.list.hidden = this.files.length === 0;
  }

  async submit() {
    const text = this.field.value.trim();
    const files = this.files;
    if ((!text && !files.length) || this.busy) return;
    this.busy = true;
    this.field.value = "";
    this.files = [];
    this.showFiles();
    this.changed();
    const items = await Promise.all(files.map(asset));
    const sent = await this.on.send(text, items);
    this.busy = false;
    if (!sent && !this.field.value) {
      this.field.value = text;
      this.files = files;
      this.showFiles();
      this.changed();
    }
  }
}

async function asset(file) {
  const url = await new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
  const media = /^[\w.+-]+\/[\w.+-]+$/.test(file.type) ? file.type : "application/octet-stream";
  return { type: "inline_asset", name: file.name, media_type: media, data: url.slice(url.indexOf(",") + 1) };
}
