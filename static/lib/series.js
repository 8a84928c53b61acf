/** Lines for the chart out of evaluations: one per group of a label column, values of a numeric column over time. */

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

function addPoint(lines, key, at, number) {
  const line = lines.get(key) ?? new Map();
  const point = line.get(at) ?? { sum: 0, size: 0 };
  point.sum += number;
  point.size += 1;
  line.set(at, point);
  lines.set(key, line);
}

/**
 * Lines of `value` by `label` (or one line where null): `{lines: [{name, points: [{at, value}]}], groups, averaged}`.
 * Several rows of one group at one time give their mean; `averaged` says that it happened. Removed rows are left out.
 */
export function lines(evaluations, value, label, prefixes) {
  const found = new Map();
  for (const { at, vars, rows } of evaluations) {
    const [x, y] = [vars.indexOf(value), vars.indexOf(label)];
    if (at === null || x < 0) continue;
    for (const { sign, terms } of rows) {
      const number = numberOf(terms[x]);
      if (sign === "-" || number === null || !Number.isFinite(number)) continue;
      addPoint(found, y < 0 ? value : display(terms[y], prefixes).text, at, number);
    }
  }
  const all = [...found].map(([name, points]) => ({
    name, points: [...points].map(([at, { sum, size }]) => ({ at, value: sum / size })).sort((a, b) => a.at - b.at),
  }));
  const averaged = [...found.values()].some((points) => [...points.values()].some(({ size }) => size > 1));
  all.sort((a, b) => b.points.length - a.points.length || (a.name < b.name ? -1 : 1));
  const chosen = all.slice(0, MAX_SERIES).sort((a, b) => (a.name < b.name ? -1 : 1));
  return { lines: chosen, groups: all.length, averaged };
}
