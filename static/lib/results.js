/** The evaluations that this page holds: the newest few hundred, whatever the feed sends. */

import { milliseconds } from "./format.js";
import { parseJsonLd } from "./jsonld.js";
import { parseQuads } from "./terms.js";

export const KEPT_EVALUATIONS = 300;
export const KEPT_ROWS = 20000;

const TRIPLE = ["subject", "predicate", "object"];
const DATASETS = new Set(["application/n-quads", "application/trig"]);

/** The triples of a graph; in a dataset format those of its named graph, for what stands beside it says when it was made. */
function triples(part) {
  if (!part) return [];
  if (typeof part === "string") return parseQuads(part);
  return typeof part.text === "string" ? parseQuads(part.text, DATASETS.has(part.format)) : parseJsonLd(part);
}

function solutions(part, sign) {
  const vars = part?.head?.vars ?? [];
  return (part?.results?.bindings ?? []).map((binding) => ({ sign, terms: vars.map((name) => binding[name] ?? null) }));
}

const signed = (sign) => (terms) => ({ sign, terms });

function content(name, data) {
  if (data.addedResults || data.removedResults) {
    const vars = data.addedResults?.head?.vars ?? data.removedResults?.head?.vars ?? [];
    const rows = [...solutions(data.addedResults, "+"), ...solutions(data.removedResults, "-")];
    return { kind: "rows", delta: true, vars, rows };
  }
  if (typeof data.boolean === "boolean") return { kind: "boolean", boolean: data.boolean, vars: [], rows: [] };
  if (data.results) return { kind: "rows", vars: data.head?.vars ?? [], rows: solutions(data, "") };
  if (data.added !== undefined || data.removed !== undefined) {
    const rows = [...triples(data.added).map(signed("+")), ...triples(data.removed).map(signed("-"))];
    return { kind: "graph", delta: true, vars: TRIPLE, rows };
  }
  return { kind: "graph", vars: TRIPLE, rows: triples(data).map(signed("")) };
}

/** How many rows have a sign. */
function signCount(rows, sign) {
  return rows.reduce((sum, row) => sum + (row.sign === sign), 0);
}

/**
 * One evaluation from an event of the feed. Times in ms. `size`, `added` and `removed` count all rows that came, `rows` holds
 * as many as a page keeps; `limit` is where the server cut the result; `stream` is that of a rule program.
 */
export function evaluation(name, data, id) {
  const rsp = data.rsp ?? {};
  const windows = [rsp.window ?? []].flat();
  const at = milliseconds(rsp.at) ?? milliseconds(windows[0]?.close) ?? milliseconds(data.generatedAtTime);
  const found = content(name, data);
  return {
    id, seq: rsp.seq ?? null, at, windows, truncated: rsp.truncated ?? false,
    limit: rsp.limit ?? null, stream: rsp.stream ?? null,
    inconsistencies: rsp.inconsistencies ?? [], inconsistent: rsp.inconsistenciesFound ?? rsp.inconsistencies?.length ?? 0,
    snapshot: name === "snapshot", last: data.last ?? true,
    ...found, size: found.rows.length, added: signCount(found.rows, "+"), removed: signCount(found.rows, "-"),
    rows: found.rows.slice(0, KEPT_ROWS),
  };
}

export class Results {
  /** Oldest first; notices of gaps stand between evaluations as `{gap}`. */
  list = [];
  received = 0;

  get evaluations() {
    return this.list.filter((entry) => !entry.gap);
  }

  get rows() {
    return this.list.reduce((sum, entry) => sum + (entry.rows?.length ?? 0), 0);
  }

  get latest() {
    return this.list.findLast((entry) => !entry.gap) ?? null;
  }

  /** Keep an evaluation; the further chunks of one are added to it, and what is there already (after a gap) is not doubled. */
  add(entry) {
    const last = this.latest;
    const same = last && entry.seq !== null && last.seq === entry.seq && last.at === entry.at;
    if (same && !last.last) {
      const rows = [...last.rows, ...entry.rows].slice(0, KEPT_ROWS);
      const [size, added, removed] = ["size", "added", "removed"].map((name) => last[name] + entry[name]);
      this.list[this.list.indexOf(last)] = { ...entry, rows, size, added, removed };
    } else if (same && last.delta === entry.delta) {
      this.list[this.list.indexOf(last)] = entry;
    } else {
      this.received += 1;
      this.list.push(entry);
    }
    this.#forget();
  }

  /** Put the evaluations before the first one in front, as far as there is room. */
  prepend(entries) {
    const first = this.evaluations[0]?.at ?? Infinity;
    let room = KEPT_ROWS - this.rows;
    const fitting = entries.filter(({ at }) => at !== null && at < first).toReversed()
      .slice(0, KEPT_EVALUATIONS - this.list.length).filter(({ rows }) => (room -= rows.length) >= 0);
    this.list.unshift(...fitting.toReversed());
    this.received += fitting.length;
  }

  gap(data) {
    this.list.push({ gap: data });
    this.#forget();
  }

  clear() {
    this.list = [];
    this.received = 0;
  }

  #forget() {
    let rows = this.rows;
    while (this.list.length > 1 && (this.list.length > KEPT_EVALUATIONS || rows > KEPT_ROWS)) {
      rows -= this.list.shift().rows?.length ?? 0;
    }
  }
}
