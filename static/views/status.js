/** The head of a query's page: name, state in words with the reason, what can be done, the figures, an error in full. */

import { api } from "../lib/api.js";
import { refresh } from "../lib/catalog.js";
import { confirm } from "../lib/confirm.js";
import { button, h, setAttribute, setText, toast } from "../lib/dom.js";
import { clock, count, duration, latency, rate, tail } from "../lib/format.js";
import { facts, head } from "../lib/parts.js";
import { problemBox } from "../lib/problems.js";
import { formText, lagOf, pageState, reachedOf } from "../lib/words.js";
import { windowText } from "./home.js";

function figures({ query, progress, watermark, connection }) {
  const known = connection === "open";
  return [
    ["Form", formText(query, true)],
    ["Windows", (query.windows ?? []).map(windowText).join(", ") || "–"],
    ["Graphs", (query.graphs ?? []).map(tail).join(", "), (query.graphs ?? []).join("\n")],
    ["Rules", (query.rules ?? []).join(", ")],
    ["Complete up to", clock(reachedOf(query.state, watermark)), "UTC: the query has seen every event before this time"],
    ["Lag", duration(lagOf(query.state, known ? progress.watermarkLagMs : null)),
      "How far the evaluations are behind what has arrived; none where nothing is to be evaluated"],
    ["Latency", latency(progress.resultLatencyMs), "Of the last answer: from its evaluation time to the moment it was logged"],
    ["Input", rate(known ? progress.inputRowsPerSecond : null), "Triples per second on the query's streams, over ten seconds"],
    ["Late", count(progress.lateItems), "Items that came too late, of all on the query's streams"],
  ].filter(([, value]) => value !== "");
}

export class Status {
  #keys = {};

  constructor(page) {
    this.page = page;
    this.word = h("span", { class: "word", role: "status" });
    this.pill = h("span", { class: "pill" }, h("span", { class: "dot", "aria-hidden": "true" }), this.word);
    this.why = h("span", { class: "why" });
    this.facts = facts();
    this.trouble = h("div", { class: "trouble-box" });
    const top = head(page.query.name, h("p", { class: "state" }, this.pill, this.why));
    this.actions = top.lastChild;
    this.nodes = [
      top,
      this.facts.node, this.trouble,
    ];
  }

  show() {
    const state = pageState(this.page);
    setAttribute(this.pill, "class", `pill ${state.tone}`);
    setText(this.word, state.word);
    setText(this.why, state.reason);
    setAttribute(this.why, "title", state.reason || null);
    this.facts.show(figures(this.page));
    const trouble = { closed: state.reason, failed: this.#cause() }[state.word];
    this.#whenChanged("trouble", trouble && `${state.word} ${JSON.stringify(trouble)}`, () => this.#showTrouble(state));
    const key = { closed: "closed", failed: "failed" }[state.word] ?? (this.page.query.state === "paused" ? "paused" : "running");
    this.#whenChanged("actions", key, () => this.#showActions(key));
  }

  #whenChanged(part, key, draw) {
    if (this.#keys[part] === key) return;
    this.#keys[part] = key;
    draw();
  }

  #showTrouble({ word, reason }) {
    if (word === "failed") this.trouble.replaceChildren(this.#failure());
    else if (word === "closed") {
      this.trouble.replaceChildren(h("div", { class: "notice", role: "alert" },
        h("p", null, `The feed has ended: ${reason}. The answers below are the last ones received.`),
        h("p", null, h("a", { href: "#/" }, "Back to the overview"))));
    } else this.trouble.replaceChildren();
  }

  /** Why a failed query has stopped: `{message, errors}`, from the feed's problem or the query's own account. */
  #cause() {
    const error = this.page.problem ?? this.page.query.lastError ?? this.page.reason;
    const { detail, message, errors = [] } = typeof error === "object" ? error : { detail: error };
    return { message: detail || message || "No reason was given.", errors };
  }

  #failure() {
    return problemBox({ title: "The query has stopped with an error", slug: "query-failed", ...this.#cause() },
    "Restart it when the cause is gone, or take its text to the editor, correct it and register it again.");
  }

  #showActions(key) {
    const { name } = this.page.query;
    const patch = (state, resume) => api.patchQuery(name, resume ? { state, resume } : { state });
    const all = {
      closed: [],
      failed: [this.#action("Restart", () => api.restartQuery(name), "restarting")],
      paused: [
        this.#action("Resume", () => patch("running", "backlog"), "running", "Go on where it was paused: nothing is left out"),
        this.#action("Resume from now", () => patch("running", "now"), "running", "Skip what arrived while it was paused")],
      running: [this.#action("Pause", () => patch("paused"), "paused")],
    };
    const held = this.actions.contains(document.activeElement);
    const remove = button("Delete", () => this.#delete(), { class: "danger" });
    this.actions.replaceChildren(...all[key], ...(key === "closed" ? [] : [remove]));
    if (held) this.actions.querySelector("button")?.focus();
  }

  #action(label, call, state, title) {
    return button(label, () => this.#attempt(async () => {
      await call();
      this.page.changeState(state);
    }), { title: title ?? null });
  }

  async #delete() {
    const { name } = this.page.query;
    const text = `“${name}” is stopped and removed with the answers that the server keeps of it.`;
    if (!await confirm("Delete this query?", text, "Delete")) return;
    await this.#attempt(async () => {
      await api.deleteQuery(name);
      toast(`The query ${name} was deleted.`);
      location.hash = "#/";
    });
  }

  async #attempt(action) {
    try {
      await action();
    } catch (problem) {
      toast(problem.message, "bad");
      await this.page.reload();
    }
    refresh();
  }
}
