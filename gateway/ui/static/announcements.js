// What a screen reader is told: each new thing of the conversation once, in words. The conversation
// itself is no live region: what is built anew in it would be read again, and again while it grows.

import { make } from "./dom.js";

const KEPT_MS = 15000;
const MOST_CHARACTERS = 1000;
const LEFT_OUT = "button, details, form, .code-head, [aria-hidden=true]";
const APART = "p, li, h2, h3, h4, h5, h6, th, td, pre, blockquote, div";

export function announce(text) {
  if (!text) return;
  const said = make("p", {}, text);
  document.getElementById("spoken").append(said);
  setTimeout(() => said.remove(), KEPT_MS);
}

// What an element of the conversation says, without what is there to be pressed or unfolded.
export function wordsOf(element) {
  const words = read(element).replace(/\s*\n\s*/g, "\n").trim();
  return words.length > MOST_CHARACTERS ? `${words.slice(0, MOST_CHARACTERS)}...` : words;
}

function read(node) {
  if (node instanceof Text) return node.data;
  if (node.matches(LEFT_OUT)) return "";
  const words = [...node.childNodes].map(read).join("");
  return node.matches(APART) ? `\n${words}\n` : words;
}
