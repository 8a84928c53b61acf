/** The live answers of a query: the chart, the table of evaluations, notices of gaps. */

import { lineChart, strip } from "../lib/chart.js";
import { h, setAttribute, setText } from "../lib/dom.js";
import { clock, count, plural, tail } from "../lib/format.js";
import { columnTypes, headRow, termCell } from "../lib/table.js";
import { columns, lines, MAX_SERIES } from "../lib/series.js";

export const MAX_TABLE_ROWS = 500;
const DRAW_EVERY_MS = 150;
const GAP_REASONS = {
  retention: "the server no longer keeps the answers in between",
  "new-run": "the query was registered or restarted anew",
  "slow-consumer": "this page was too slow for the feed",
  rate: "more answers came than the feed's rate allows",
};

function segmented(label, choices, chosen, choose) {
  const buttons = choices.map(([key, text, title]) => h("button", {
    type: "button", "data-key": key, "aria-pressed": String(key === chosen), title: title ?? null, on: { click: () => pick(key) } }, text));
  function pick(key) {
    for (const one of buttons) setAttribute(one, "aria-pressed", String(one.dataset.key === key));
    choose(key);
  }
  return h("div", { class: "segmented", role: "group", "aria-label": label }, buttons);
}

function select(label, changed) {
  const box = h("select", { "aria-label": label, on: { change: () => changed(box.value) } });
  const node = h("label", { class: "choice" }, h("span", null, label), box);
  return { node, show(names, chosen) {
    const texts = names.map(([value, text]) => `${value}=${text}`).join();
    if (box.dataset.options !== texts) {
      box.dataset.options = texts;
      box.replaceChildren(...names.map(([value, text]) => h("option", { value }, text)));
    }
    box.value = chosen ?? "";
    return box.value;
  } };
}

function windowText(window, several) {
  return `${several ? `${tail(window.stream)} ` : ""}${clock(window.open)} → ${clock(window.close)}`;
}

function evaluationHead(entry, width) {
  const shown = entry.windows.length ? entry.windows.map((w) => windowText(w, entry.windows.length > 1)).join(", ") : `at ${clock(entry.at)}`;
  const size = entry.kind === "boolean" ? String(entry.boolean) : entry.delta
    ? `${count(entry.rows.filter((r) => r.sign === "+").length)} added, ${count(entry.rows.filter((r) => r.sign === "-").length)} removed`
    : plural(entry.rows.length, entry.kind === "graph" ? "triple" : "row");
  return h("tr", { class: "evaluation" }, h("th", { colspan: width, scope: "rowgroup" },
    h("span", { class: "seq" }, entry.seq === null ? "" : `#${entry.seq}`),
    h("span", { class: "window", title: "open and close of the window, UTC" }, shown),
    h("span", { class: entry.kind === "boolean" ? `count truth ${entry.boolean}` : "count" }, size),
    entry.snapshot ? h("span", { class: "badge" }, "snapshot") : null,
    entry.inferred ? h("span", { class: "badge" }, `${count(entry.inferred)} inferred`) : null,
    entry.late ? h("span", { class: "badge" }, `${count(entry.late)} late`) : null,
    entry.truncated ? h("span", { class: "badge bad" }, "truncated by the server") : null,
    entry.inconsistencies.length ? h("span", { class: "badge bad", title: entry.inconsistencies.map(String).join("\n") },
      plural(entry.inconsistencies.length, "inconsistency", "inconsistencies")) : null));
}

function gapBody(gap, width) {
  const lost = gap.dropped ? `${plural(gap.dropped, "answer")} were not shown: ` : "Answers may be missing here: ";
  return h("tbody", { class: "gap" }, h("tr", null, h("td", { colspan: width, class: "notice" }, lost, GAP_REASONS[gap.reason] ?? gap.reason ?? "")));
}

export class Answers {
  constructor(page) {
    this.page = page;
    this.view = page.mode === "full" ? "latest" : "history";
    this.frozen = false;
    this.bodies = new Map();
    this.value = null;
    this.label = null;
    this.#build();
  }

  #build() {
    const { query } = this.page;
    this.chart = lineChart();
    this.strip = strip();
    this.valueBox = select("Value", (name) => this.#draw((this.value = name)));
    this.labelBox = select("One line per", (name) => this.#draw((this.label = name)));
    this.chartNote = h("span", { class: "note" });
    this.drawing = h("div", null, this.chart.node, this.strip.node);
    this.fold = h("button", { type: "button", class: "quiet small", "aria-expanded": "true", on: { click: () => this.#foldChart() } }, "Hide the chart");
    this.chartBox = h("section", { class: "card", "aria-label": "Chart", hidden: true },
      h("div", { class: "row" }, this.valueBox.node, this.labelBox.node, this.chartNote, this.fold), this.drawing);
    this.total = h("p", { class: "note total", role: "status" });
    this.head = h("thead");
    this.table = h("table", { class: "grid answers" }, h("caption", { class: "hidden" }, `Answers of ${query.name}`), this.head);
    this.empty = h("p", { class: "empty" });
    const own = query.output === "istream" || query.output === "dstream";
    const feeds = segmented("What the feed carries", [
      ...(own ? [["", query.output.toUpperCase(), "what the query itself puts out"]] : []),
      ["full", "Full results", "the whole answer at each evaluation"],
      ["delta", "Changes", "rows added and removed since the evaluation before"]], this.page.mode, (key) => this.page.setMode(key));
    const views = segmented("What the table shows", [["latest", "Latest", "the newest evaluation"],
      ["history", "History", "all evaluations that this page holds, newest first"]], this.view, (key) => this.#show(key));
    feeds.hidden = views.hidden = query.form === "ASK";
    const freeze = segmented("Whether the table moves", [["live", "Moving"], ["frozen", "Held", "Hold the table still to read it; the feed goes on"]],
      "live", (key) => this.#freeze(key === "frozen"));
    this.node = h("div", { class: "live" }, h("div", { class: "row tools" }, feeds, views, freeze, this.total), this.chartBox,
      h("div", { class: "scroll table", tabindex: 0, role: "region", "aria-label": "Answers" }, this.table, this.empty));
  }

  #show(view) {
    this.view = view;
    this.bodies.clear();
    this.#draw();
  }

  #foldChart() {
    const open = this.drawing.hidden;
    this.drawing.hidden = !open;
    setAttribute(this.fold, "aria-expanded", String(open));
    setText(this.fold, open ? "Hide the chart" : "Show the chart");
    if (open) this.#draw();
  }

  #freeze(frozen) {
    this.frozen = frozen;
    if (!frozen) this.#draw();
  }

  /** Something came: draw soon, at most a few times a second. */
  changed() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      if (!this.frozen) this.#draw();
    }, DRAW_EVERY_MS);
  }

  close() {
    clearTimeout(this.timer);
  }

  #draw() {
    const { results } = this.page;
    const entries = this.view === "latest" && results.latest && !results.latest.delta && results.latest.kind !== "boolean"
      ? results.list.slice(results.list.indexOf(results.latest)) : results.list;
    this.#drawTable([...entries].reverse());
    this.#drawChart(results.evaluations);
  }

  #drawTable(entries) {
    const { prefixes, results } = this.page;
    const first = entries.find((entry) => !entry.gap);
    const rows = entries.filter((entry) => entry.rows).flatMap((entry) => entry.rows.slice(0, 50).map(({ terms }) => terms)).slice(0, 100);
    const mark = entries.some((entry) => entry.delta);
    const types = columnTypes(first?.vars ?? [], rows, prefixes);
    this.#drawHead(types, mark);
    const width = types.length + (mark ? 1 : 0) || 1;
    let room = MAX_TABLE_ROWS;
    const bodies = [];
    for (const entry of entries) {
      if (room <= 0) break;
      bodies.push(this.#body(entry, room, width, mark));
      room -= Math.max(1, entry.rows?.length ?? 1);
    }
    this.#place(bodies);
    this.#drawTotal(entries, MAX_TABLE_ROWS - Math.max(0, room));
    this.empty.hidden = entries.length > 0;
    setText(this.empty, results.received ? "" : "No answer yet. One appears here when a window closes: push items to the query's streams, or wait for its source.");
  }

  #drawHead(types, mark) {
    const key = JSON.stringify([types, mark]);
    if (key === this.headKey) return;
    this.headKey = key;
    this.bodies.clear();
    this.head.replaceChildren(...(types.length ? [headRow(types, mark)] : []));
  }

  #body(entry, room, width, mark) {
    const before = this.bodies.get(entry);
    if (before && before.room >= Math.min(room, entry.rows?.length ?? 0)) return before;
    const { prefixes } = this.page;
    if (entry.gap) return { entry, room, node: gapBody(entry.gap, width) };
    const rows = entry.rows.slice(0, room).map(({ sign, terms }) => h("tr", { class: sign === "+" ? "added" : sign === "-" ? "removed" : null },
      mark ? h("td", { class: "sign" }, { "+": "+", "-": "−" }[sign] ?? "", h("span", { class: "hidden" }, { "+": "added", "-": "removed" }[sign] ?? "")) : null,
      terms.map((term) => termCell(term, prefixes))));
    const none = entry.kind !== "boolean" && !entry.rows.length
      ? h("tr", null, h("td", { colspan: width, class: "empty" }, "Nothing matched in this window.")) : null;
    return { entry, room: entry.rows.length <= room ? Infinity : room, node: h("tbody", { "data-seq": entry.seq }, evaluationHead(entry, width), none, rows) };
  }

  #place(bodies) {
    this.bodies = new Map(bodies.map((body) => [body.entry, body]));
    const wanted = new Set(bodies.map((body) => body.node));
    for (const node of [...this.table.tBodies]) if (!wanted.has(node)) node.remove();
    let place = this.head.nextSibling;
    for (const { node } of bodies) {
      if (node === place) place = place.nextSibling;
      else this.table.insertBefore(node, place);
    }
  }

  #drawTotal(entries, shown) {
    const { results } = this.page;
    const all = entries.reduce((sum, entry) => sum + (entry.rows?.length ?? 0), 0);
    const truth = this.page.query.form === "ASK";
    const rows = truth ? "" : all > shown ? `Showing the first ${count(shown)} of ${plural(all, "row")}` : plural(all, "row");
    const kept = results.evaluations.length;
    const dropped = results.received > kept ? `, ${count(kept)} kept` : "";
    setText(this.total, `${rows}${rows ? " · " : ""}${plural(results.received, "evaluation")} received${dropped}`);
  }

  #drawChart(evaluations) {
    const truths = evaluations.filter((entry) => entry.kind === "boolean" && entry.at !== null);
    const { numeric, labels } = columns(evaluations.filter((entry) => entry.kind === "rows"));
    this.chartBox.hidden = !truths.length && !numeric.length;
    this.strip.node.hidden = !truths.length;
    this.chart.node.hidden = !numeric.length;
    for (const box of [this.valueBox, this.labelBox]) box.node.hidden = !numeric.length;
    if (truths.length && this.drawing.offsetParent !== null) this.strip.draw(truths.map(({ at, boolean }) => ({ at, value: boolean })));
    if (!numeric.length || this.drawing.offsetParent === null) return;
    const value = this.valueBox.show(numeric.map((name) => [name, name]), numeric.includes(this.value) ? this.value : numeric[0]);
    const usual = labels.includes(this.label) || this.label === "" ? this.label : labels[0] ?? "";
    const label = this.labelBox.show([...labels.map((name) => [name, name]), ["", "nothing (one line)"]], usual);
    const found = lines(evaluations, value, label || null, this.page.prefixes);
    setText(this.chartNote, [found.groups > MAX_SERIES ? `${MAX_SERIES} of ${found.groups} lines shown` : "",
      found.averaged ? "mean where a group has several rows" : ""].filter(Boolean).join(" · "));
    this.chart.draw(found.lines, value);
  }
}
