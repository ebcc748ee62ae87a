// Requests to the gateway that serves this page. A repeat carries the key of the first try.

const csrf = document.querySelector('meta[name="csrf-token"]').content;
const TRIES = 4;
const leaving = new AbortController();

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || `The gateway answered ${status}.`);
    this.status = status;
    this.body = body;
  }

  // Whether asking again may be answered: the gateway or its database is away, or too much waits.
  get passes() {
    return this.status === 429 || this.status >= 500;
  }
}

export function freshKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Nothing is asked any more, and what was asked has no answer: the person logs out.
export function askNoMore() {
  leaving.abort();
}

export async function get(path) {
  return ask(path, { headers: { Accept: "application/json" } });
}

export async function send(method, path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  if (csrf) headers["X-CSRF-Token"] = csrf;
  const sent = method === "DELETE" ? undefined : JSON.stringify(body);
  return ask(path, { method, headers, body: sent });
}

// A POST that makes something: tried again after a broken connection, and made once all the same.
export async function create(path, body, key = freshKey()) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  if (csrf) headers["X-CSRF-Token"] = csrf;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
    } catch (error) {
      const final = error instanceof Problem && error.status !== 503;
      if (final || attempt === TRIES) throw error;
      await pause(300 * 2 ** attempt);
    }
  }
}

export function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}

async function ask(path, options) {
  try {
    return await answered(await fetch(path, { ...options, signal: leaving.signal }));
  } catch (error) {
    if (leaving.signal.aborted) return new Promise(() => {});
    throw error;
  }
}

async function answered(response) {
  if (response.status === 401) {
    location.assign("/login");
  }
  const text = await response.text();
  let body = {};
  try {
    body = text ? JSON.parse(text) : {};
  } catch {
    body = { detail: text.slice(0, 200) };
  }
  if (!response.ok) throw new Problem(response.status, body);
  return body;
}
