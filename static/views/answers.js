/** The live answers of a query: what the feed carries, the chart, the table. */

import { lineChart, strip } from "../lib/chart.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { count, plural } from "../lib/format.js";
import { choice } from "../lib/parts.js";
import { columns, lines, longestStep, MAX_SERIES } from "../lib/series.js";
import { waitsText } from "../lib/words.js";
import { Evaluations } from "./evaluations.js";
import { HoldingTable } from "./holding.js";

const DRAW_EVERY_MS = 150;
const NO_ANSWER = {
  close: "No answer yet. One appears here when a window closes: push items to the query's streams, or wait for its source.",
  change: "No answer yet. One appears here when the answer changes: push items to the query's streams, or wait for its source.",
  fact: "No answer yet. One appears here when a fact begins or ceases to hold.",
  starting: "No answer yet: the query is being started.",
  restarting: "No answer yet: the query is being started again.",
  finished: "No answer was given before the query's streams ended.",
  unconnected: "No answer has come to this page, and it is not connected: there may be one.",
  paused: "No answer yet, and none will come while the query is paused: resume it above.",
  failed: "No answer was given before the query failed.",
};
const FEEDS = [["full", "Full results", "the whole answer at each evaluation"],
  ["delta", "Changes", "rows added and removed since the evaluation before"]];
const PROGRAM_FEEDS = [["p", "Begins", "stream P: facts that begin to hold"],
  ["n", "Ceases", "stream N: facts that cease to hold"], ["pn", "Both", "streams P and N"],
  ["full", "Holds", "all facts that hold, each time one begins or ceases"]];
const PROGRAM_VIEWS = [["facts", "Facts", "from when and until when each fact holds, and which hold now"],
  ["history", "History", "what has begun and ceased, as it was reported, newest first"]];
const VIEWS = [["latest", "Latest", "the newest evaluation"],
  ["history", "History", "all evaluations that this page holds, newest first"]];
const MOTION = [["live", "Moving"], ["held", "Held", "Hold chart and table still to read them; the feed goes on"]];

/** Buttons of which one is chosen `{node, press(key)}`. */
function segmented(label, choices, chosen, choose) {
  const buttons = choices.map(([key, text, title]) => {
    const on = { click: () => {
      press(key);
      choose(key);
    } };
    return h("button", { type: "button", "aria-pressed": String(key === chosen), title: title ?? null, on }, text);
  });
  function press(key) {
    buttons.forEach((one, place) => setAttribute(one, "aria-pressed", String(choices[place][0] === key)));
  }
  return { node: h("div", { class: "segmented", role: "group", "aria-label": label }, buttons), press };
}

/** A choice of columns `{node, show(names, chosen)}`; drawn again only where the names have changed. */
function columnBox(label, changed) {
  const box = h("select", { on: { change: () => changed(box.value) } });
  let shown = "";
  return { node: choice(label, box), show(names, chosen) {
    const key = JSON.stringify(names);
    if (shown !== key) box.replaceChildren(...names.map(([value, text]) => h("option", { value }, text)));
    shown = key;
    box.value = chosen;
    return chosen;
  } };
}

export class Answers {
  #timer = null;

  constructor(page) {
    this.page = page;
    this.view = page.program ? "facts" : page.mode === "full" ? "latest" : "history";
    this.held = false;
    this.value = null;
    this.label = null;
    this.table = new Evaluations(page.query.name, page.prefixes, { why: (entry, number) => this.#why(entry, number),
      changes: (entry) => this.#changes(entry) });
    this.facts = new HoldingTable(page.query.name, page.prefixes, (id, row) => page.askWhy(id, row));
    this.total = h("p", { class: "note total" });
    this.node = h("div", { class: "live" }, this.#tools(), this.#chart(), page.program ? this.facts.node : null,
      this.table.node);
  }

  #tools() {
    const { program, mode, query } = this.page;
    this.feeds = segmented("What the feed carries", this.#feeds(), mode, (key) => this.page.setMode(key));
    const views = segmented("What the table shows", program ? PROGRAM_VIEWS : VIEWS, this.view, (view) => this.#look(view));
    const motion = segmented("Whether chart and table move", MOTION, "live", (key) => this.#set({ held: key === "held" }));
    this.feeds.node.hidden = views.node.hidden = query.form === "ASK";
    const choices = program ? [views, this.feeds, motion] : [this.feeds, views, motion];
    return h("div", { class: "row tools" }, choices.map(({ node }) => node), this.total);
  }

  /** Choose a view; that of facts is made of both streams of a program. */
  #look(view) {
    if (view === "facts" && this.page.mode !== "pn") {
      this.feeds.press("pn");
      this.page.setMode("pn");
    }
    this.#set({ view });
  }

  #feeds() {
    if (this.page.program) return PROGRAM_FEEDS;
    const { output } = this.page.query;
    const own = ["", output?.toUpperCase(), "what the query itself puts out"];
    return output === "istream" || output === "dstream" ? [own, ...FEEDS] : FEEDS;
  }

  /** What asks why a row is there: of a whole answer, one that ISTREAM has added, one that a rule program has reported. */
  #why(entry, number) {
    const { program, query: { output }, mode } = this.page;
    if (program) return entry.id && entry.delta ? () => this.page.askWhy(entry.id, number) : null;
    const added = entry.delta && output === "istream" && mode === "" && entry.rows[number]?.sign === "+";
    if (!entry.id || entry.delta && !added) return null;
    return () => this.page.askWhy(entry.id, number, added ? "delta" : null);
  }

  /** What an evaluation of changes, or of a rule program, tells of (`lib/words.js`). */
  #changes({ delta, stream }) {
    if (!delta) return this.page.program ? "held" : null;
    if (this.page.program) return { p: "begun", n: "ceased" }[stream ?? this.page.mode] ?? null;
    return this.page.mode === "" ? { istream: "new", dstream: "gone" }[this.page.query.output] ?? null : null;
  }

  #chart() {
    this.chart = lineChart();
    this.strip = strip();
    this.valueBox = columnBox("Value", (value) => this.#set({ value }));
    this.labelBox = columnBox("One line per", (label) => this.#set({ label }));
    this.chartNote = h("span", { class: "note" });
    this.drawing = h("div", null, this.chart.node, this.strip.node);
    const fold = { type: "button", class: "quiet small", "aria-expanded": "true", on: { click: () => this.#foldChart() } };
    this.fold = h("button", fold, "Hide the chart");
    this.chartBox = h("section", { class: "card", "aria-label": "Chart", hidden: true },
      h("div", { class: "row" }, this.valueBox.node, this.labelBox.node, this.chartNote, this.fold), this.drawing);
    return this.chartBox;
  }

  #set(change) {
    Object.assign(this, change);
    if (!this.held) this.#draw();
  }

  #foldChart() {
    const open = this.drawing.hidden;
    this.drawing.hidden = !open;
    setAttribute(this.fold, "aria-expanded", String(open));
    setText(this.fold, open ? "Hide the chart" : "Show the chart");
    if (open) this.#draw();
  }

  /** Something came: draw soon, at most a few times a second. */
  changed() {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (!this.held) this.#draw();
    }, DRAW_EVERY_MS);
  }

  close() {
    clearTimeout(this.#timer);
  }

  #draw() {
    const facts = this.view === "facts";
    this.facts.node.hidden = !facts;
    this.table.node.hidden = facts;
    if (this.page.program) this.feeds.node.hidden = facts;
    if (!facts) {
      this.#drawEvaluations();
      return;
    }
    this.chartBox.hidden = true;
    setText(this.total, this.facts.show(this.page.holding, this.page.reachedMs));
    setText(this.facts.empty, this.#noAnswer());
  }

  #drawEvaluations() {
    const { list, latest } = this.page.results;
    const newest = this.view === "latest" && latest && !latest.delta && latest.kind !== "boolean";
    const entries = (newest ? list.slice(list.indexOf(latest)) : list).toReversed();
    this.#showTotal(entries, this.table.show(entries, Boolean(newest)));
    this.#showChart();
  }

  #showTotal(entries, shown) {
    const { received, evaluations } = this.page.results;
    const all = entries.reduce((sum, entry) => sum + (entry.size ?? 0), 0);
    const word = entries.some(({ kind }) => kind === "graph") ? "triple" : "row";
    const rows = all > shown ? `Showing the first ${count(shown)} of ${plural(all, word)} · ` : `${plural(all, word)} · `;
    const kept = received > evaluations.length ? `, ${count(evaluations.length)} kept` : "";
    setText(this.total, `${this.page.query.form === "ASK" ? "" : rows}${plural(received, "evaluation")} received${kept}`);
    setText(this.table.empty, received ? "" : this.#noAnswer());
  }

  /** Why there is no answer yet. */
  #noAnswer() {
    const { connection, program, query } = this.page;
    if (connection === "reconnecting") return NO_ANSWER.unconnected;
    const waits = ["running", "idle"].includes(query.state) && waitsText(this.page.waits);
    if (waits) return `No answer yet: ${waits}.`;
    return NO_ANSWER[query.state] ?? NO_ANSWER[program ? "fact" : query.report] ?? NO_ANSWER.close;
  }

  #showChart() {
    const { list, evaluations } = this.page.results;
    const truths = evaluations.filter((entry) => entry.kind === "boolean" && entry.at !== null);
    const found = columns(evaluations.filter((entry) => entry.kind === "rows"));
    const some = found.numeric.length > 0;
    this.chartBox.hidden = !truths.length && !some;
    this.strip.node.hidden = !truths.length;
    for (const { node } of [this.chart, this.valueBox, this.labelBox]) node.hidden = !some;
    if (this.drawing.offsetParent === null) return;
    const longestMs = longestStep(evaluations, this.page.query);
    if (truths.length) {
      const gaps = new Set(list.filter((_, place) => list[place - 1]?.gap));
      this.strip.draw(truths.map((entry) => ({ at: entry.at, value: entry.boolean, gap: gaps.has(entry) })), longestMs);
    }
    if (some) this.#showLines(list, found, longestMs);
  }

  /** The sign of the rows that the chart shows: what has come, of a feed of what goes what has gone; none of whole answers. */
  #sign() {
    const { mode, program, query } = this.page;
    if (mode === "full") return "";
    return mode === "n" || (mode === "" && !program && query.output === "dstream") ? "-" : "+";
  }

  #showLines(list, { numeric, labels }, longestMs) {
    const value = this.valueBox.show(numeric.map((name) => [name, name]), numeric.includes(this.value) ? this.value : numeric[0]);
    const wanted = this.label === "" || labels.includes(this.label) ? this.label : labels[0] ?? "";
    const label = this.labelBox.show([...labels.map((name) => [name, name]), ["", "nothing (one line)"]], wanted);
    const sign = this.#sign();
    const found = lines(list, value, label || null, this.page.prefixes, { longestMs, sign });
    setText(this.chartNote, [found.groups > MAX_SERIES ? `${MAX_SERIES} of ${found.groups} lines shown` : "",
      found.averaged ? "mean where a group has several rows" : ""].filter(Boolean).join(" · "));
    this.chart.draw(found.lines, value, sign !== "");
  }
}
