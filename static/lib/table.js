/** Tables of RDF terms: shortened IRIs, typed literals, numbers at the right. */

import { h, setAttribute } from "./dom.js";
import { display, isTime, numberOf, token, typeName } from "./terms.js";

const RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/** Show a term in a cell; the whole term is its title. A selection in the cell stays where its text does. */
export function fillCell(cell, term, prefixes) {
  const { kind, text, note, title } = display(term, prefixes);
  setAttribute(cell, "class", kind);
  setAttribute(cell, "title", title === text ? null : title);
  if (cell.textContent === text + note && cell.children.length === (note ? 1 : 0)) return;
  cell.replaceChildren(text, ...(note ? [h("span", { class: "badge" }, note)] : []));
}

/** One cell. */
export function termCell(term, prefixes) {
  const cell = h("td");
  fillCell(cell, term, prefixes);
  return cell;
}

/** A term within a line of text; `name` says that it names a relation, and is not quoted where it is a text. */
export function termSpan(term, prefixes, name = false) {
  const { kind, text, note, title } = display(term, prefixes);
  const word = term.value === RDF_TYPE ? "a" : kind === "text" && !name ? `"${text}"` : text;
  return h("span", { class: `term ${kind}`, title }, word, note ? h("span", { class: "badge" }, note) : null);
}

/** What a row is about: all but its numbers and times, which change from one evaluation to the next. */
export function rowKey(terms) {
  return terms.map((term) => !term ? "" : numberOf(term) !== null || isTime(term) ? "#" : token(term)).join(" ");
}

function columnType(name, terms, prefixes) {
  const types = [...new Set(terms.map((term) => typeName(term, prefixes)))];
  const numeric = terms.length > 0 && terms.every((term) => numberOf(term) !== null);
  return { name, type: types.length > 1 ? "mixed" : types[0] ?? "", numeric };
}

/** What the columns hold, from the first rows of terms: `[{name, type, numeric}]`. */
export function columnTypes(vars, rows, prefixes) {
  return vars.map((name, position) =>
    columnType(name, rows.slice(0, 100).map((terms) => terms[position]).filter(Boolean), prefixes));
}

/** The head row of a table of variables; `mark` adds the column of signs of a feed of changes, `why` one of buttons. */
export function headRow(types, mark, why = false) {
  return h("tr", null, mark ? h("th", { class: "sign", scope: "col" }, h("span", { class: "hidden" }, "Change")) : null,
    types.map(({ name, type, numeric }) => h("th", { scope: "col", class: numeric ? "number" : null },
      name, type ? h("span", { class: "type" }, type) : null)),
    why ? h("th", { class: "why", scope: "col" }, h("span", { class: "hidden" }, "Why")) : null);
}

/** A whole result as a table, at most `limit` rows of it. */
export function resultTable(vars, rows, prefixes, limit) {
  const types = columnTypes(vars, rows, prefixes);
  return h("table", { class: "grid" }, h("thead", null, headRow(types, false)),
    h("tbody", null, rows.slice(0, limit).map((terms) => h("tr", null, terms.map((term) => termCell(term, prefixes))))));
}
