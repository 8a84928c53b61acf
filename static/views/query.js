/** The page of one query: its state in words, its live answers, plan and text, and what can be done with it. */

import { api } from "../lib/api.js";
import { refresh } from "../lib/catalog.js";
import { confirm } from "../lib/confirm.js";
import { button, h, setAttribute, setText, toast } from "../lib/dom.js";
import { Feed } from "../lib/feed.js";
import { clock, count, duration, isoDuration, rate } from "../lib/format.js";
import { prefixesOf } from "../lib/highlight.js";
import { paint } from "../lib/editor.js";
import { problemBox } from "../lib/problems.js";
import { evaluation, Results } from "../lib/results.js";
import { tabs } from "../lib/tabs.js";
import { displayPrefixes } from "../lib/terms.js";
import { pageState, queryState } from "../lib/words.js";
import { answers } from "./answers.js";
import { connect } from "./connect.js";
import { draft } from "./editor.js";
import { windowText } from "./home.js";
import { plan } from "./plan.js";

const GRAPH_FORMS = new Set(["CONSTRUCT", "DESCRIBE"]);
const INFO_EVERY_MS = 5000;

/** An answer is overdue, and the page says idle, after three steps of the slowest window, ten seconds at least. */
function quietMs(query) {
  const steps = (query.windows ?? []).map((window) => isoDuration(window.step ?? window.range) ?? 0);
  return Math.max(10000, 3 * Math.max(0, ...steps));
}

class QueryPage {
  constructor(parent, query) {
    this.query = query;
    this.results = new Results();
    this.prefixes = displayPrefixes(prefixesOf(query.text ?? ""));
    this.mode = query.output === "istream" || query.output === "dstream" ? "" : "full";
    this.watermark = query.progress?.watermark ?? null;
    this.progress = query.progress ?? {};
    this.connection = "connecting";
    this.connectionReason = "";
    this.reason = "";
    this.lastResultMs = null;
    this.#build(parent);
    this.open();
    this.timer = setInterval(() => this.showState(), 1000);
    this.poll = setInterval(() => document.hidden || this.reload(), INFO_EVERY_MS);
  }

  #build(parent) {
    this.pill = h("span", { class: "pill" });
    this.word = h("span", { class: "word" });
    this.why = h("span", { class: "why" });
    this.pill.append(h("span", { class: "dot", "aria-hidden": "true" }), this.word);
    this.actions = h("div", { class: "actions" });
    this.facts = h("dl", { class: "facts" });
    this.trouble = h("div");
    this.answers = answers(this);
    const pages = tabs([
      { key: "answers", label: "Answers", show: () => this.answers.node },
      { key: "plan", label: "Plan", show: () => plan(this.query.name) },
      { key: "text", label: "Text", show: () => this.#text() },
      { key: "use", label: "Use elsewhere", show: () => connect(this) },
    ], { label: "Views of the query", chosen: () => this.answers?.resized() });
    parent.append(h("div", { class: "head" },
      h("div", null, h("h1", null, this.query.name), h("p", { class: "state", role: "status" }, this.pill, this.why)),
      this.actions), this.facts, this.trouble, pages.node);
    this.showState();
  }

  #text() {
    const again = button("Edit as a new query", () => {
      draft.set(this.query.text, "");
      location.hash = "#/new";
    });
    return h("div", null, h("div", { class: "row" }, again), h("pre", { class: "code" }, paint(this.query.text ?? "")));
  }

  /** Begin the feed, anew after a change of mode. */
  open() {
    this.feed?.close();
    this.results.clear();
    const parameters = { mode: this.mode };
    if (GRAPH_FORMS.has(this.query.form)) parameters["graph-format"] = "nquads";
    this.feed = new Feed(this.query.name, parameters, {
      connection: (state, reason) => this.#connected(state, reason),
      event: (name, data, id) => this.#event(name, data, id),
      broken: (error) => toast(`The feed sent something unreadable: ${error.message}`, "bad"),
    });
    this.feed.open();
    this.answers.changed();
  }

  setMode(mode) {
    this.mode = mode;
    this.lastResultMs = null;
    this.open();
  }

  #connected(state, reason) {
    this.connection = state;
    this.connectionReason = reason;
    this.showState();
  }

  #event(name, data, id) {
    if (name === "status") this.#status(data);
    else if (name === "progress") this.#progress(data);
    else if (name === "gap") this.results.gap(data);
    else if (name !== "hello" && name !== "bye") this.#result(name, data, id);
    this.answers.changed();
    this.showState();
  }

  #result(name, data, id) {
    const entry = evaluation(name, data, id);
    this.results.add(entry);
    if (name !== "snapshot" || this.lastResultMs === null) this.lastResultMs = Date.now();
    if (this.query.state === "idle" && name !== "snapshot") this.query.state = "running";
  }

  #progress(data) {
    this.watermark = data.watermark ?? this.watermark;
    this.progress = { ...this.progress, ...data };
  }

  #status(data) {
    this.query = { ...this.query, state: data.state ?? this.query.state };
    this.reason = data.problem?.detail ?? data.reason ?? "";
    this.problem = data.problem ?? null;
    this.reload();
    refresh();
  }

  /** Read the query's own account again; a removed query is left to the feed to report. */
  async reload() {
    try {
      const { body } = await api.query(this.query.name);
      if (body.state !== this.query.state) this.reason = "";
      this.query = body;
      this.progress = { ...this.progress, ...body.progress };
      this.watermark = body.progress?.watermark ?? this.watermark;
      this.showState();
    } catch (problem) {
      if (problem.status === 404 || problem.status === 410) this.feed.close();
      if (problem.status === 404 || problem.status === 410) this.#connected("closed", "the query was removed");
    }
  }

  showState() {
    const state = pageState({ ...this, nowMs: Date.now(), quietMs: quietMs(this.query) });
    setAttribute(this.pill, "class", `pill ${state.tone}`);
    setText(this.word, state.word);
    setText(this.why, state.reason);
    this.#showActions(state.word);
    this.#showTrouble(state);
    this.#showFacts();
  }

  #showFacts() {
    const { query, progress } = this;
    const facts = [
      ["Form", [query.form, (query.output ?? "").toUpperCase()].filter(Boolean).join(" ")],
      ["Windows", (query.windows ?? []).map(windowText).join(", ") || "–"],
      ["Graphs", (query.graphs ?? []).join(", ")], ["Rules", (query.rules ?? []).join(", ")],
      ["Complete up to", clock(this.watermark)], ["Lag", duration(progress.watermarkLagMs)],
      ["Latency", duration(progress.resultLatencyMs)], ["Input", rate(progress.inputRowsPerSecond)],
      ["Late", count(progress.lateItems)],
    ].filter(([, value]) => value !== "");
    const texts = facts.flat().join("\n");
    if (texts === this.factTexts) return;
    this.factTexts = texts;
    this.facts.replaceChildren(...facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
  }

  #showTrouble(state) {
    const key = state.word === "failed" || state.word === "closed" ? `${state.word}${state.reason}` : "";
    if (key === this.troubleKey) return;
    this.troubleKey = key;
    if (!key) this.trouble.replaceChildren();
    else if (state.word === "closed") {
      this.trouble.replaceChildren(h("div", { class: "notice", role: "alert" }, h("p", null, `The feed has ended: ${state.reason}. `,
        "The answers below are the last ones received."), h("p", null, h("a", { href: "#/" }, "Back to the overview"))));
    } else {
      const error = this.problem ?? this.query.lastError;
      const problem = typeof error === "object" && error ? error : { detail: state.reason };
      this.trouble.replaceChildren(problemBox({ title: "The query has stopped with an error", errors: problem.errors ?? [],
        message: problem.detail ?? problem.message ?? "No reason was given.", slug: "query-failed" },
      "Restart it when the cause is gone, or open its text, correct it and register it again."));
    }
  }

  #showActions(word) {
    const failed = word === "failed";
    const paused = this.query.state === "paused";
    const key = word === "closed" ? "closed" : failed ? "failed" : paused ? "paused" : "running";
    if (key === this.actionKey) return;
    this.actionKey = key;
    const all = {
      closed: [], failed: [this.#action("Restart", () => api.restartQuery(this.query.name), "restarting")],
      paused: [this.#action("Resume", () => this.#patch("running", "backlog"), "running", "Go on where it was paused: nothing is left out"),
        this.#action("Resume from now", () => this.#patch("running", "now"), "running", "Skip what arrived while it was paused")],
      running: [this.#action("Pause", () => this.#patch("paused"), "paused")],
    };
    const remove = button("Delete", () => this.#delete(), { class: "danger" });
    this.actions.replaceChildren(...all[key], ...(key === "closed" ? [] : [remove]));
  }

  #action(label, call, state, title) {
    return button(label, () => this.#try(async () => {
      await call();
      this.reason = "";
      this.query = { ...this.query, state };
      this.showState();
      this.actions.querySelector("button")?.focus();
    }), { title: title ?? null });
  }

  #patch(state, resume) {
    return api.patchQuery(this.query.name, resume ? { state, resume } : { state });
  }

  async #delete() {
    const text = `“${this.query.name}” is stopped and removed with the answers that the server keeps of it.`;
    if (!await confirm("Delete this query?", text, "Delete")) return;
    await this.#try(async () => {
      this.feed.close();
      await api.deleteQuery(this.query.name);
      toast(`The query ${this.query.name} was deleted.`);
      location.hash = "#/";
    });
  }

  async #try(action) {
    try {
      await action();
    } catch (problem) {
      toast(problem.message, "bad");
      await this.reload();
    }
    refresh();
  }

  close() {
    clearInterval(this.timer);
    clearInterval(this.poll);
    this.feed.close();
    this.answers.close();
  }
}

/** Show the query `name`. */
export function query(parent, name) {
  let page = null;
  let closed = false;
  parent.append(h("p", { class: "wait" }, `Loading ${name} …`));
  api.query(name).then(({ body }) => {
    if (closed) return;
    parent.replaceChildren();
    page = new QueryPage(parent, body);
  }, (problem) => {
    const advice = problem.status === 404 || problem.status === 410
      ? h("span", null, "Choose another at the left, or ", h("a", { href: "#/new" }, "register a query"), ".") : "Reload the page to try again.";
    if (!closed) parent.replaceChildren(h("h1", null, name), problemBox(problem, advice));
  });
  return { title: name, close: () => {
    closed = true;
    page?.close();
  } };
}

export { queryState };
