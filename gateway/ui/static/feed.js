// The event stream of one conversation: reconnects, goes on behind the last event it saw.

const DURABLE = [
  "session.created", "session.changed", "input.accepted", "input.taken",
  "input.revised", "input.withdrawn",
  "run.queued", "run.started", "run.resumed", "run.waiting",
  "run.completed", "run.failed", "run.interrupted", "run.cancelled", "run.undone",
  "step.model", "step.tools", "approval.requested", "approval.decided",
  "question.asked", "question.answered",
  "delivery.sent", "delivery.dead", "delivery.unknown",
];
const LIVE = ["prose", "activity", "message"];
const SLOWEST_MS = 15000;

export class Feed {
  // on: {event(kind, data), live(kind, data), gap(), state(name)}
  constructor(sessionId, position, on) {
    this.sessionId = sessionId;
    this.last = String(position);
    this.on = on;
    this.wait = 500;
    this.closed = false;
    this.connect();
  }

  connect() {
    const query = new URLSearchParams({ session_id: this.sessionId, last_event_id: this.last, html: "1" });
    const source = new EventSource(`/v1/events?${query}`);
    this.source = source;
    source.onopen = () => {
      this.wait = 500;
      this.on.state("open");
    };
    source.onerror = () => this.broken(source);
    const note = (event) => {
      if (event.lastEventId) this.last = event.lastEventId;
    };
    for (const kind of DURABLE) {
      source.addEventListener(kind, (event) => {
        note(event);
        this.on.event(kind, JSON.parse(event.data));
      });
    }
    for (const kind of LIVE) {
      source.addEventListener(kind, (event) => this.on.live(kind, JSON.parse(event.data)));
    }
    source.addEventListener("gap", (event) => {
      note(event);
      this.on.gap();
    });
  }

  // The browser comes back by itself after a cut, but not after an answer that was no stream.
  broken(source) {
    if (this.closed) return;
    this.on.state("connecting");
    if (source.readyState !== EventSource.CLOSED) return;
    this.timer = setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(this.wait * 2, SLOWEST_MS);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source.close();
  }
}
