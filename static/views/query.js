/** The page of one query: the state of its feed, and its live answers, plan, text and ways out. */

import { api } from "../lib/api.js";
import { refresh } from "../lib/catalog.js";
import { h, toast } from "../lib/dom.js";
import { Feed } from "../lib/feed.js";
import { isoDuration, milliseconds } from "../lib/format.js";
import { prefixesOf } from "../lib/highlight.js";
import { history, newestTime } from "../lib/history.js";
import { Holding } from "../lib/holding.js";
import { languageOf } from "../lib/languages.js";
import { now, thisSecond } from "../lib/now.js";
import { loaded } from "../lib/parts.js";
import { errorList } from "../lib/problems.js";
import { evaluation, Results } from "../lib/results.js";
import { tabs } from "../lib/tabs.js";
import { displayPrefixes } from "../lib/terms.js";
import { Answers } from "./answers.js";
import { connect } from "./connect.js";
import { warned } from "./editor.js";
import { plan } from "./plan.js";
import { Status } from "./status.js";
import { text } from "./text.js";
import { showWhy } from "./why.js";

const GRAPH_FORMS = new Set(["CONSTRUCT", "DESCRIBE"]);
const OWN_DIALECTS = new Set(["lars", "datalogmtl"]);
const RELOAD_EVERY_MS = 5000;

const gone = (problem) => problem.status === 404 || problem.status === 410;

class QueryPage {
  results = new Results();
  /** The facts that a rule program has reported. */
  holding = new Holding();
  connection = "connecting";
  connectionReason = "";
  /** Why the query is in its state, where a status event said so, with the problem that goes with it. */
  reason = "";
  problem = null;
  /** When the last answer came to this page, when the page was opened, when the connection was lost (the server's clock, ms). */
  arrivedMs = null;
  openedMs = now();
  lostMs = null;

  constructor(parent, query) {
    this.query = query;
    this.language = OWN_DIALECTS.has(query.dialect) ? query.dialect : languageOf(query.text ?? "");
    this.prefixes = displayPrefixes(prefixesOf(query.text ?? "", this.language));
    this.program = query.form === "PROGRAM";
    this.mode = this.program ? "pn" : query.output === "istream" || query.output === "dstream" ? "" : "full";
    this.progress = query.progress ?? {};
    this.status = new Status(this);
    this.answers = new Answers(this);
    const pages = tabs([
      { key: "answers", label: "Answers", show: () => this.answers.node },
      { key: "plan", label: "Plan", show: () => plan(query.name) },
      { key: "text", label: "Text", show: () => text(this) },
      { key: "use", label: "Use elsewhere", show: () => connect(this) },
    ], { label: "Views of the query", chosen: () => this.answers.changed() });
    parent.append(...this.status.nodes, ...this.#warnings(), pages.node);
    this.open();
    this.timers = [setInterval(() => this.status.show(), 1000),
      setInterval(() => document.hidden || this.reload(), RELOAD_EVERY_MS)];
  }

  get watermark() {
    return this.progress.watermark ?? null;
  }

  /** The time in ms that a rule program has reached: up to which it is evaluated, or for which it has answered. */
  get reachedMs() {
    const times = [milliseconds(this.watermark), this.results.latest?.at ?? null].filter((time) => time !== null);
    return times.length ? Math.max(...times) : null;
  }

  /** Whether an answer has come while this page was open. */
  get heard() {
    return this.arrivedMs !== null;
  }

  /** When the last answer came: to this page, else as the server tells of an earlier one; null where neither is known. */
  get lastResultMs() {
    return this.arrivedMs ?? milliseconds(this.progress.lastResultAt);
  }

  get waits() {
    return this.progress.waits ?? null;
  }

  /** An answer is overdue, and the page says idle, after three steps of the slowest window, ten seconds at least. */
  get quietMs() {
    const steps = (this.query.windows ?? []).map((window) => isoDuration(window.step ?? window.range) ?? 0);
    return Math.max(10000, 3 * Math.max(0, ...steps));
  }

  /** What the server warned of when the query was registered from this page, told once. */
  #warnings() {
    const found = warned.get(this.query.name) ?? [];
    warned.delete(this.query.name);
    return found.length ? [h("div", { class: "messages", role: "status" }, errorList([], null, found))] : [];
  }

  /** Begin the feed, anew after a change of mode. */
  open() {
    this.feed?.close();
    this.past?.abort();
    this.past = null;
    this.results.clear();
    this.parameters = this.program && this.mode !== "full" ? { stream: this.mode } : { mode: this.mode };
    if (GRAPH_FORMS.has(this.query.form)) this.parameters["graph-format"] = "nquads";
    this.feed = new Feed(this.query.name, this.parameters, {
      connection: (state, reason) => this.#connected(state, reason),
      event: (name, data, id) => this.#event(name, data, id),
      broken: (error) => toast(`The feed sent something unreadable: ${error.message}`, "bad"),
    });
    this.feed.open();
    this.answers.changed();
  }

  setMode(mode) {
    this.mode = mode;
    if (this.program) this.arrivedMs = null;
    this.open();
  }

  #connected(state, reason) {
    if (state === "open") this.lostMs = null;
    else if (this.connection === "open" && state !== "connecting") this.lostMs = thisSecond();
    this.connection = state;
    this.connectionReason = reason;
    this.answers.changed();
    this.status.show();
  }

  #event(name, data, id) {
    if (name === "status") this.#stateChanged(data);
    else if (name === "progress") this.progress = { ...this.progress, ...data };
    else if (name === "gap" && data.reason === "status") this.reload();
    else if (name === "gap") this.#gap(data);
    else if (name === "hello") this.#begun(data);
    else if (name !== "bye") this.#result(name, data, id);
    this.answers.changed();
    this.status.show();
  }

  /** A feed begins with a snapshot, but one of what begins and ceases: what was logged stands for it. */
  #begun({ state, newestId }) {
    this.query.state = state ?? this.query.state;
    if (!this.program || this.mode === "full" || !newestId) return;
    const told = milliseconds(this.watermark);      // of what lies before it
    this.#readPast(async (signal) => await newestTime(this.query, this.parameters, signal) ?? (told === null ? null : told - 1));
  }

  #gap(data) {
    this.results.gap(data);
    this.holding.gap(data);
  }

  #result(name, data, id) {
    const entry = evaluation(name, data, id);
    this.results.add(entry);
    if (entry.stream) this.holding.add(entry);
    if (name === "snapshot") {
      if (this.mode !== "delta" && entry.at !== null) this.#readPast(() => entry.at - 1);
      return;
    }
    this.arrivedMs = now();
    if (this.query.state === "idle") this.query.state = "running";
  }

  /** Fill in what came up to a time in ms, once; without it the page is merely shorter. Changes have no such past. */
  async #readPast(last) {
    if (this.past) return;
    const past = this.past = new AbortController();
    try {
      const entries = await history(this.query, this.parameters, await last(past.signal), past.signal);
      if (past.signal.aborted) return;
      this.results.prepend(entries);
      entries.filter(({ stream }) => stream).forEach((entry) => this.holding.add(entry));
      this.answers.changed();
    } catch (error) {
      if (!past.signal.aborted) toast(`The answers of before could not be read: ${error.message}`, "bad");
    }
  }

  #stateChanged(data) {
    this.query = { ...this.query, state: data.state ?? this.query.state };
    this.reason = data.problem?.detail ?? data.reason ?? "";
    this.problem = data.problem ?? null;
    this.reload();
    refresh();
  }

  /** The state that an action of this page has asked for, shown before the server tells it. */
  changeState(state) {
    this.reason = "";
    this.query = { ...this.query, state };
    this.status.show();
  }

  /** Read the query's own account again. */
  async reload() {
    try {
      const { body } = await api.query(this.query.name);
      if (body.state !== this.query.state) this.reason = "";
      if (body.state !== "failed") this.problem = null;
      this.query = body;
      this.progress = { ...this.progress, ...body.progress };
      this.status.show();
    } catch (problem) {
      if (!gone(problem)) return;
      this.feed.close();
      this.#connected("closed", "the query was removed");
    }
  }

  /** Ask why a row is there: a place of its own, so that Back leads from it, and Forward to it again. */
  askWhy(id, row, mode) {
    this.asked = true;
    location.hash = [`#/queries/${encodeURIComponent(this.query.name)}`, "why", id, row, ...(mode ? [mode] : [])].join("/");
  }

  /** Show a place on this page: none, or why a row is there. */
  show([what, id, row, mode = null]) {
    this.proof?.close();
    this.proof = null;
    if (what !== "why") return;
    const base = `#/queries/${encodeURIComponent(this.query.name)}`;
    const leave = this.asked ? () => window.history.back() : () => location.replace(base);
    this.proof = showWhy(this.query.name, id, { row, mode }, this.prefixes, leave);
  }

  close() {
    this.proof?.close();
    this.timers.forEach(clearInterval);
    this.past?.abort();
    this.feed.close();
    this.answers.close();
  }
}

/** Show the query `name`. */
export function query(parent, name, place) {
  const elsewhere = h("span", null, "Choose another from the list, or ", h("a", { href: "#/new" }, "register a query"), ".");
  return loaded(parent, name, api.query, (node, body) => new QueryPage(node, body), elsewhere, place);
}
