/** The live feed of one query over server-sent events: connects, reconnects, resumes, and says what it is doing. */

import { address, refusal } from "./api.js";

const EVENTS = ["hello", "snapshot", "result", "delta", "graph", "progress", "status", "gap", "bye"];
const RESULTS = new Set(["snapshot", "result", "delta", "graph"]);
const GONE = new Set([204, 404, 410]);
const LONGEST_WAIT_MS = 15000;
const REASONS = {
  rotate: "the server renews long connections",
  shutdown: "the server is shutting down",
  limit: "the requested number of results is reached",
  until: "the requested end is reached",
  dropped: "the query was removed",
  "slow-consumer": "this page was too slow for the feed",
  "token-expired": "the access token has expired",
};

/** `connection` is one of connecting, open, reconnecting, closed. */
export class Feed {
  #source = null;
  #timer = null;
  #watchdog = null;
  #attempt = 0;
  #lastId = null;
  #heard = 0;
  #beats = false;
  #reason = "";
  #handlers;

  /**
   * @param {{event: (name: string, data: object, id: string | null) => void, connection: (state: string, reason: string) => void,
   *          broken: (error: Error) => void}} handlers
   */
  constructor(name, parameters, handlers) {
    this.name = name;
    this.parameters = parameters;
    this.#handlers = handlers;
  }

  open() {
    this.#handlers.connection("connecting", "");
    this.#connect();
  }

  close() {
    clearTimeout(this.#timer);
    clearInterval(this.#watchdog);
    this.#source?.close();
    this.#source = null;
  }

  get #address() {
    return address(["queries", this.name, "results"], { ...this.parameters, last_event_id: this.#lastId });
  }

  #connect() {
    this.#source?.close();
    this.#beats = false;
    const source = new EventSource(this.#address);
    this.#source = source;
    source.onerror = () => source === this.#source && this.#lost(source);
    for (const name of EVENTS) source.addEventListener(name, (event) => source === this.#source && this.#receive(name, event));
  }

  #receive(name, event) {
    this.#heard = Date.now();
    if (RESULTS.has(name) && event.lastEventId) this.#lastId = event.lastEventId;
    let data;
    try {
      data = JSON.parse(event.data);
    } catch (error) {
      this.#handlers.broken(error);
      return;
    }
    if (name === "hello") this.#opened(data);
    if (name === "progress") this.#beats = true;
    if (name === "bye") this.#bye(data);
    this.#handlers.event(name, data, event.lastEventId || null);
  }

  #opened(hello) {
    this.#attempt = 0;
    this.#reason = "";
    clearInterval(this.#watchdog);
    const beatMs = 1000 * (hello.heartbeatSeconds ?? 15);
    this.#watchdog = setInterval(() => this.#check(3 * beatMs), beatMs);
    this.#handlers.connection("open", "");
  }

  #bye(bye) {
    this.#reason = bye.problem?.detail ?? REASONS[bye.reason] ?? bye.reason ?? "";
    if (bye.reconnect === false) this.#end(this.#reason);
  }

  #end(reason) {
    this.close();
    this.#handlers.connection("closed", reason);
  }

  #lost(source) {
    const reason = this.#reason || "the connection was lost";
    this.#handlers.connection("reconnecting", reason);
    if (source.readyState === EventSource.CLOSED) this.#refused();
  }

  /** The server answered with something else than a feed: EventSource does not say what, so it is asked for without it. */
  async #refused() {
    const problem = await refusal(this.#address);
    if (!this.#source) return;
    if (GONE.has(problem?.status)) this.#end("the query was removed");
    else {
      if (problem) this.#handlers.connection("reconnecting", problem.message);
      this.#later(problem?.retryAfter);
    }
  }

  /** Try again when the server says so, else after ever longer waits. */
  #later(seconds) {
    const wait = Math.min(LONGEST_WAIT_MS, seconds ? 1000 * seconds : 1000 * 2 ** this.#attempt++);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  /** Once there is progress it is told with each heartbeat: silence after that means a dead connection. */
  #check(silenceMs) {
    if (!this.#beats || this.#source?.readyState !== EventSource.OPEN || Date.now() - this.#heard < silenceMs) return;
    this.#handlers.connection("reconnecting", "nothing was heard from the server for a while");
    this.#connect();
  }
}
