/** The table of evaluations of a query: each a group of rows under its number, window and size; newest first, capped. */

import { arrange, h, keepingPlace, setAttribute, setText } from "../lib/dom.js";
import { clock, count, plural, tail } from "../lib/format.js";
import { scroll } from "../lib/parts.js";
import { columnTypes, fillCell, headRow, rowKey } from "../lib/table.js";
import { emptyText, sizeText } from "../lib/words.js";

export const MAX_ROWS = 500;

const GAP_REASONS = {
  retention: "the server no longer keeps the answers in between",
  "new-run": "the query was registered or restarted anew",
  "slow-consumer": "this page was too slow for the feed",
  rate: "more answers came than the feed's rate allows",
};
const SIGNS = { "+": ["+", "added"], "-": ["−", "removed"], "": ["", ""] };

function windowText(window, several) {
  const name = several ? `${tail(window.stream)} ` : "";
  return `${name}${clock(window.open)} → ${clock(window.close, new Date(window.open))}`;
}

function windowsText({ windows, at }) {
  return windows.length ? windows.map((window) => windowText(window, windows.length > 1)).join(", ") : `at ${clock(at)}`;
}

/** What is inconsistent, and whether the server has listed all of it. */
function inconsistencyList({ inconsistencies, inconsistent }) {
  const head = inconsistent > inconsistencies.length ? [`The first ${count(inconsistencies.length)}:`] : [];
  return [...head, ...inconsistencies.map((one) => typeof one === "string" ? one : JSON.stringify(one))].join("\n");
}

function badges(entry) {
  const { snapshot, truncated, limit, inconsistent } = entry;
  return [
    snapshot && ["snapshot", "", "The answer that was there when this page connected"],
    truncated && [`truncated by the server${limit ? ` at ${plural(limit, "row")}` : ""}`, "bad"],
    inconsistent && [plural(inconsistent, "inconsistency", "inconsistencies"), "bad", inconsistencyList(entry)],
  ].filter(Boolean);
}

/** The button that asks why a row is there, in `place`: call the function given with what it does now, or null for no button. */
function whyButton(place) {
  let asked = null;
  const node = h("button", { type: "button", class: "quiet small", title: "Show what this row follows from",
    on: { click: () => asked() } }, "Why?");
  return (ask) => {
    asked = ask;
    if (!ask) node.remove();
    else if (!node.isConnected) place.append(node);
  };
}

/** The line above the rows of an evaluation `{node, update(entry, width, changes, ask)}`. */
function groupHead() {
  const seq = h("span", { class: "seq" });
  const window = h("span", { class: "window", title: "open and close of the window, UTC" });
  const size = h("span");
  const notes = h("span");
  const cell = h("th", { scope: "rowgroup" }, seq, window, size, notes);
  const showWhy = whyButton(cell);
  let noted = "";
  return { node: h("tr", { class: "evaluation" }, cell), update(entry, width, changes, ask) {
    setAttribute(cell, "colspan", width);
    setText(seq, entry.seq === null ? "" : `#${entry.seq}`);
    setText(window, windowsText(entry));
    setAttribute(size, "class", entry.kind === "boolean" ? `count truth ${entry.boolean}` : "count");
    setText(size, sizeText(entry, changes));
    const wanted = badges(entry);
    if (JSON.stringify(wanted) !== noted) {
      noted = JSON.stringify(wanted);
      notes.replaceChildren(...wanted.map(([text, kind = "", title = null]) =>
        h("span", { class: `badge ${kind}`.trim(), title }, text)));
    }
    showWhy(ask);
  } };
}

/** A row of an evaluation `{node, update(row, ask)}`: the same node shows what the next evaluation says of the same thing. */
function line(width, mark, prefixes) {
  const sign = h("span");
  const word = h("span", { class: "hidden" });
  const cells = Array.from({ length: width - (mark ? 2 : 1) }, () => h("td"));
  const why = h("th", { class: "why" });
  const showWhy = whyButton(why);
  const node = h("tr", null, mark ? h("td", { class: "sign" }, sign, word) : null, cells, why);
  return { node, update(row, ask) {
    const [symbol, change] = SIGNS[row.sign];
    setAttribute(node, "class", change || null);
    setText(sign, symbol);
    setText(word, change);
    cells.forEach((cell, place) => fillCell(cell, row.terms[place] ?? null, prefixes));
    showWhy(ask);
  } };
}

function gapGroup({ dropped, reason }) {
  const lost = dropped ? `${plural(dropped, "answer was", "answers were")} not shown: ` : "Answers may be missing here: ";
  const cell = h("td", { class: "notice" }, lost, GAP_REASONS[reason] ?? reason ?? "");
  const node = h("tbody", { class: "gap" }, h("tr", null, cell));
  return { node, update: (entry, room, width) => setAttribute(cell, "colspan", width) };
}

/** An evaluation and at most `room` of its rows `{node, update(entry, room, width, mark)}`; `table` knows prefixes and words. */
function group(table) {
  let shown = {};
  let lines = new Map();
  const head = groupHead();
  const cell = h("td", { class: "empty" });
  const empty = h("tr", null, cell);
  const node = h("tbody");

  function rows(entry, room, width, mark) {
    const seen = new Map();
    const before = lines;
    lines = new Map();
    for (const [number, row] of entry.rows.slice(0, room).entries()) {
      const thing = `${width} ${mark} ${row.sign} ${rowKey(row.terms)}`;
      seen.set(thing, (seen.get(thing) ?? 0) + 1);
      const key = `${thing} ${seen.get(thing)}`;
      const one = before.get(key) ?? line(width, mark, table.prefixes);
      one.update(row, table.why(entry, number));
      lines.set(key, one);
    }
    for (const [key, one] of before) if (!lines.has(key)) one.node.remove();
    return [...lines.values()].map((one) => one.node);
  }

  return { node, update(entry, room, width, mark) {
    const most = Math.min(room, entry.rows?.length ?? 0);
    if (shown.entry === entry && shown.most === most && shown.width === width && shown.mark === mark) return;
    shown = { entry, most, width, mark };
    setAttribute(node, "data-seq", entry.seq);
    head.update(entry, width, table.changes(entry), entry.boolean === true ? table.why(entry, 0) : null);
    setAttribute(cell, "colspan", width);
    setText(cell, emptyText(entry, table.changes(entry)));
    const nothing = entry.kind !== "boolean" && !entry.size;
    if (!nothing) empty.remove();
    arrange(node, [head.node, ...(nothing ? [empty] : []), ...rows(entry, room, width, mark)]);
  } };
}

export class Evaluations {
  #groups = new Map();
  #shape = "";
  #headKey = "";

  /**
   * @param {{why: (entry: object, number: number) => (() => void) | null, changes: (entry: object) => string | null}} asked
   *   `why` gives what asks why a row is there; `changes` what an evaluation of changes tells of (`lib/words.js`)
   */
  constructor(name, prefixes, { why, changes }) {
    this.prefixes = prefixes;
    this.why = why;
    this.changes = changes;
    this.head = h("thead");
    this.table = h("table", { class: "grid answers" }, h("caption", { class: "hidden" }, `Answers of ${name}`), this.head);
    this.empty = h("p", { class: "empty" });
    this.node = scroll("Answers", this.table, this.empty);
    this.node.classList.add("table");
  }

  /**
   * Show the entries (evaluations and gaps), newest first; gives the number of rows shown. Groups that stay are kept, and where
   * only the `newest` is shown its rows take the place of those before.
   */
  show(entries, newest = false) {
    return keepingPlace(() => this.#show(entries, newest));
  }

  #show(entries, newest) {
    const stay = this.#holdPlace();
    const mark = entries.some((entry) => entry.delta);
    const types = this.#types(entries);
    this.#showHead(types, mark);
    const width = types.length + (mark ? 2 : 1);
    let room = MAX_ROWS;
    const groups = new Map();
    for (const entry of entries) {
      if (room <= 0) break;
      const key = entry.gap ? entry : newest ? "newest" : `${entry.seq} ${entry.at} ${entry.id} ${entry.delta}`;
      const one = this.#groups.get(key) ?? (entry.gap ? gapGroup(entry.gap) : group(this));
      one.update(entry, room, width, mark);
      groups.set(key, one);
      room -= Math.max(1, entry.rows?.length ?? 1);
    }
    this.#place(groups);
    this.empty.hidden = entries.length > 0;
    stay();
    return MAX_ROWS - Math.max(0, room);
  }

  /** Who has scrolled down goes on seeing the same rows, whatever comes above them. */
  #holdPlace() {
    if (!this.node.scrollTop) return () => {};
    const top = this.head.getBoundingClientRect().bottom;
    const first = [...this.table.rows].find((row) => row.parentNode !== this.head && row.getBoundingClientRect().bottom > top);
    const before = first?.getBoundingClientRect().top;
    return () => {
      if (first?.isConnected) this.node.scrollTop += first.getBoundingClientRect().top - before;
    };
  }

  #types(entries) {
    const answers = entries.filter((entry) => !entry.gap);
    const sample = answers.flatMap((entry) => entry.rows.slice(0, 50).map(({ terms }) => terms));
    return columnTypes(answers[0]?.vars ?? [], sample, this.prefixes);
  }

  #showHead(types, mark) {
    const shape = JSON.stringify([types.map(({ name }) => name), mark]);
    if (shape !== this.#shape) this.#groups.clear();
    this.#shape = shape;
    const key = JSON.stringify([types, mark]);
    if (key === this.#headKey) return;
    this.#headKey = key;
    this.head.replaceChildren(...(types.length ? [headRow(types, mark, true)] : []));
  }

  #place(groups) {
    this.#groups = groups;
    const wanted = new Set([...groups.values()].map(({ node }) => node));
    for (const node of [...this.table.tBodies]) if (!wanted.has(node)) node.remove();
    arrange(this.table, wanted, this.head.nextSibling);
  }
}
