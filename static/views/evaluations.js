/** The table of evaluations of a query: each a group of rows under its number, window and size; newest first, capped. */

import { h } from "../lib/dom.js";
import { clock, count, plural, tail } from "../lib/format.js";
import { scroll } from "../lib/parts.js";
import { columnTypes, headRow, termCell } from "../lib/table.js";

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

function sizeText({ kind, boolean, delta, rows, size }) {
  if (kind === "boolean") return String(boolean);
  const signed = (sign) => count(rows.filter((row) => row.sign === sign).length);
  return delta ? `${signed("+")} added, ${signed("-")} removed` : plural(size, kind === "graph" ? "triple" : "row");
}

function badges({ snapshot, late, truncated, inconsistencies }) {
  const badge = (text, kind = "", title = null) => h("span", { class: `badge ${kind}`.trim(), title }, text);
  return [
    snapshot && badge("snapshot"),
    late && badge(`${count(late)} late`),
    truncated && badge("truncated by the server", "bad"),
    inconsistencies.length && badge(plural(inconsistencies.length, "inconsistency", "inconsistencies"), "bad",
      inconsistencies.map((one) => typeof one === "string" ? one : JSON.stringify(one)).join("\n")),
  ].filter(Boolean);
}

/** The button that asks why a row is there; nothing where it cannot be asked. */
function whyButton(ask, number) {
  return ask?.(number) ? h("button", { type: "button", class: "quiet small", title: "Show what this row follows from",
    on: { click: ask(number) } }, "Why?") : null;
}

function groupHead(entry, width, ask) {
  return h("tr", { class: "evaluation" }, h("th", { colspan: width, scope: "rowgroup" },
    h("span", { class: "seq" }, entry.seq === null ? "" : `#${entry.seq}`),
    h("span", { class: "window", title: "open and close of the window, UTC" }, windowsText(entry)),
    h("span", { class: entry.kind === "boolean" ? `count truth ${entry.boolean}` : "count" }, sizeText(entry)),
    badges(entry), entry.boolean === true ? whyButton(ask, 0) : null));
}

function gapGroup({ dropped, reason }, width) {
  const lost = dropped ? `${plural(dropped, "answer was", "answers were")} not shown: ` : "Answers may be missing here: ";
  return h("tbody", { class: "gap" },
    h("tr", null, h("td", { colspan: width, class: "notice" }, lost, GAP_REASONS[reason] ?? reason ?? "")));
}

function row({ sign, terms }, mark, prefixes, why) {
  const [symbol, word] = SIGNS[sign];
  const cell = mark ? h("td", { class: "sign" }, symbol, h("span", { class: "hidden" }, word)) : null;
  return h("tr", { class: word || null }, cell, terms.map((term) => termCell(term, prefixes)), h("th", { class: "why" }, why));
}

function group(entry, room, width, mark, prefixes, ask) {
  if (entry.gap) return { room: Infinity, node: gapGroup(entry.gap, width) };
  const empty = entry.kind !== "boolean" && !entry.rows.length
    ? h("tr", null, h("td", { colspan: width, class: "empty" }, "Nothing matched in this window.")) : null;
  const rows = entry.rows.slice(0, room).map((one, number) => row(one, mark, prefixes, whyButton(ask, number)));
  const node = h("tbody", { "data-seq": entry.seq }, groupHead(entry, width, ask), empty, rows);
  return { room: entry.rows.length <= room ? Infinity : room, node };
}

export class Evaluations {
  #groups = new Map();
  #headKey = "";

  /** `why(entry, number)` gives what asks why a row of an evaluation is there, or null. */
  constructor(name, prefixes, why) {
    this.prefixes = prefixes;
    this.why = why;
    this.head = h("thead");
    this.table = h("table", { class: "grid answers" }, h("caption", { class: "hidden" }, `Answers of ${name}`), this.head);
    this.empty = h("p", { class: "empty" });
    this.node = scroll("Answers", this.table, this.empty);
    this.node.classList.add("table");
  }

  /** Show the entries (evaluations and gaps), newest first; gives the number of rows shown. Groups that stay are kept. */
  show(entries) {
    const mark = entries.some((entry) => entry.delta);
    const types = this.#types(entries);
    this.#showHead(types, mark);
    const width = types.length + (mark ? 2 : 1);
    let room = MAX_ROWS;
    const groups = new Map();
    for (const entry of entries) {
      if (room <= 0) break;
      const before = this.#groups.get(entry);
      groups.set(entry, before && before.room >= room ? before : this.#group(entry, room, width, mark));
      room -= Math.max(1, entry.rows?.length ?? 1);
    }
    this.#place(groups);
    this.empty.hidden = entries.length > 0;
    return MAX_ROWS - Math.max(0, room);
  }

  #group(entry, room, width, mark) {
    return group(entry, room, width, mark, this.prefixes, (number) => this.why(entry, number));
  }

  #types(entries) {
    const answers = entries.filter((entry) => !entry.gap);
    const sample = answers.flatMap((entry) => entry.rows.slice(0, 50).map(({ terms }) => terms));
    return columnTypes(answers[0]?.vars ?? [], sample, this.prefixes);
  }

  #showHead(types, mark) {
    const key = JSON.stringify([types, mark]);
    if (key === this.#headKey) return;
    this.#headKey = key;
    this.#groups.clear();
    this.head.replaceChildren(...(types.length ? [headRow(types, mark, true)] : []));
  }

  #place(groups) {
    this.#groups = groups;
    const wanted = new Set([...groups.values()].map(({ node }) => node));
    for (const node of [...this.table.tBodies]) if (!wanted.has(node)) node.remove();
    let place = this.head.nextSibling;
    for (const node of wanted) {
      if (node === place) place = place.nextSibling;
      else this.table.insertBefore(node, place);
    }
  }
}
