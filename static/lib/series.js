/** Lines for the chart out of evaluations: one per group of a label column, values of a numeric column over time. */

import { isoDuration } from "./format.js";
import { display, isTime, numberOf } from "./terms.js";

export const MAX_SERIES = 8;

function profile(evaluations) {
  const columns = new Map();
  for (const { vars, rows } of evaluations.slice(-60)) {
    for (const [position, name] of vars.entries()) {
      const column = columns.get(name) ?? { name, numbers: 0, others: 0, times: 0 };
      for (const { terms } of rows.slice(0, 200)) {
        const term = terms[position];
        if (!term) continue;
        if (numberOf(term) !== null) column.numbers += 1;
        else if (isTime(term)) column.times += 1;
        else column.others += 1;
      }
      columns.set(name, column);
    }
  }
  return [...columns.values()];
}

/** The columns that can be drawn and those that can name the lines: `{numeric: [name], labels: [name]}`. */
export function columns(evaluations) {
  const found = profile(evaluations);
  return {
    numeric: found.filter((column) => column.numbers && !column.others && !column.times).map((column) => column.name),
    labels: found.filter((column) => column.others && !column.times).map((column) => column.name),
  };
}

function addPoint(lines, key, at, turn, number) {
  const line = lines.get(key) ?? new Map();
  const point = line.get(at) ?? { sum: 0, size: 0, turn };
  point.sum += number;
  point.size += 1;
  line.set(at, point);
  lines.set(key, line);
}

/** The usual time between two evaluations in ms: half of them come as often, or oftener. */
function usualStep(entries) {
  const times = entries.filter((entry) => !entry.gap && entry.at !== null).map(({ at }) => at);
  const steps = times.slice(1).map((at, place) => at - times[place]).filter((step) => step > 0).sort((a, b) => a - b);
  return steps[steps.length >> 1] ?? 0;
}

/**
 * The longest time in ms over which one evaluation leads to the next; what is longer apart has a gap between. Null where answers
 * come on change: each holds until the next one.
 */
export function longestStep(entries, query) {
  if (query.report && query.report !== "close") return null;
  const steps = (query.windows ?? []).map((window) => isoDuration(window.step)).filter(Boolean);
  const known = steps.length > 0 && !/\bCOMPUTED?\s+EVERY\b/i.test(query.text ?? "");
  return 1.5 * (known ? Math.min(...steps) : usualStep(entries));
}

/** The points of a line; `gap` marks one that the one before does not lead to: an evaluation between them says nothing of it. */
function joined(points, longestMs) {
  const sorted = [...points].sort(([a], [b]) => a - b);
  return sorted.map(([at, { sum, size, turn }], place) => {
    const [before, last] = sorted[place - 1] ?? [];
    const gap = last && (turn !== last.turn + 1 || (longestMs !== null && at - before > longestMs));
    return { at, value: sum / size, ...(gap ? { gap } : {}) };
  });
}

/**
 * Lines of `value` by `label` (or one line where null): `{lines: [{name, points: [{at, value, gap?}]}], groups, averaged}`.
 * Several rows of one group at one time give their mean; `averaged` says that it happened.
 * @param {object[]} entries  evaluations and gaps, oldest first
 * @param {{longestMs: number | null, sign: string}} options  see `longestStep`; the sign of the rows that count
 */
export function lines(entries, value, label, prefixes, { longestMs = null, sign = "" } = {}) {
  const found = new Map();
  let turn = 0;
  for (const { gap, at, vars, rows } of entries) {
    turn += 1;
    if (gap || at === null) continue;
    const [x, y] = [vars.indexOf(value), vars.indexOf(label)];
    for (const { sign: own, terms } of x < 0 ? [] : rows) {
      const number = numberOf(terms[x]);
      if (own !== sign || number === null || !Number.isFinite(number)) continue;
      addPoint(found, y < 0 ? value : display(terms[y], prefixes).text, at, turn, number);
    }
  }
  const all = [...found].map(([name, points]) => ({ name, points: joined(points, longestMs) }));
  const averaged = [...found.values()].some((points) => [...points.values()].some(({ size }) => size > 1));
  all.sort((a, b) => b.points.length - a.points.length || (a.name < b.name ? -1 : 1));
  const chosen = all.slice(0, MAX_SERIES).sort((a, b) => (a.name < b.name ? -1 : 1));
  return { lines: chosen, groups: all.length, averaged };
}
