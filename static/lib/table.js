/** Tables of RDF terms: shortened IRIs, typed literals, numbers at the right. */

import { h } from "./dom.js";
import { display, numberOf, typeName } from "./terms.js";

/** One cell; the whole term is its title. */
export function termCell(term, prefixes) {
  const { kind, text, note, title } = display(term, prefixes);
  return h("td", { class: kind, title: title === text ? null : title }, text, note ? h("span", { class: "badge" }, note) : null);
}

/** What the columns hold, from rows of terms: `[{name, type, numeric}]`; the type is empty where it is mixed. */
export function columnTypes(vars, rows, prefixes) {
  return vars.map((name, position) => {
    const terms = rows.slice(0, 100).map((terms) => terms[position]).filter(Boolean);
    const types = new Set(terms.map((term) => typeName(term, prefixes)));
    return { name, type: types.size === 1 ? [...types][0] : types.size ? "mixed" : "", numeric: terms.length > 0 && terms.every((t) => numberOf(t) !== null) };
  });
}

/** The head row of a table of variables. */
export function headRow(types, mark) {
  return h("tr", null, mark ? h("th", { class: "sign", scope: "col" }, h("span", { class: "hidden" }, "Change")) : null,
    types.map(({ name, type, numeric }) => h("th", { scope: "col", class: numeric ? "number" : null },
      name, type ? h("span", { class: "type" }, type) : null)));
}

/** A whole result as a table, at most `limit` rows of it. */
export function resultTable(vars, rows, prefixes, limit) {
  const types = columnTypes(vars, rows, prefixes);
  return h("table", { class: "grid" }, h("thead", null, headRow(types, false)),
    h("tbody", null, rows.slice(0, limit).map((terms) => h("tr", null, terms.map((term) => termCell(term, prefixes))))));
}
