/** How to take the answers elsewhere: a curl line, files by format, and what this page holds. */

import { address, api } from "../lib/api.js";
import { download } from "../lib/clipboard.js";
import { button, h, toast } from "../lib/dom.js";
import { csv, json } from "../lib/export.js";
import { count } from "../lib/format.js";
import { command } from "../lib/parts.js";
import { KEPT_EVALUATIONS, KEPT_ROWS } from "../lib/results.js";

const TABLES = [["CSV", "text/csv", "csv"], ["TSV", "text/tab-separated-values", "tsv"],
  ["SPARQL JSON", "application/sparql-results+json", "json"], ["SPARQL XML", "application/sparql-results+xml", "xml"]];
const GRAPHS = [["Turtle", "text/turtle", "ttl"], ["TriG", "application/trig", "trig"],
  ["N-Quads", "application/n-quads", "nq"], ["JSON-LD", "application/ld+json", "jsonld"]];

/** A word for the shell. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

async function save(page, [label, type, ending]) {
  try {
    const { name } = page.query;
    const { body } = await api.results(name, page.program ? page.parameters : {}, type);
    download(`${name}.${ending}`, type, body);
  } catch (problem) {
    toast(`${label}: ${problem.message}`, "bad");
  }
}

/** The tab of the page of a query. */
export function connect(page) {
  const { name, form } = page.query;
  const results = quoted(String(address(["queries", name, "results"])));
  const feed = quoted(String(address(["queries", name, "results"], page.program ? { stream: "pn" } : {})));
  const formats = form === "CONSTRUCT" || form === "DESCRIBE" ? GRAPHS : TABLES;
  const held = (ending, type, write) => button(`Export as ${ending.toUpperCase()}`,
    () => download(`${name}-page.${ending}`, type, write(page.results.evaluations)));
  return h("div", { class: "use" },
    h("section", null, h("h3", null, "Follow the answers live"), command(`curl -N ${feed} -H 'Accept: text/event-stream'`)),
    h("section", null, h("h3", null, "Latest complete result"), command(`curl ${results} -H 'Accept: ${formats[0][1]}'`)),
    h("section", null, h("h3", null, "Download the latest complete result"),
      h("div", { class: "row" }, formats.map((format) => button(format[0], () => save(page, format))))),
    h("section", null, h("h3", null, "Export what this page holds"),
      h("p", { class: "note" }, `Every evaluation kept here, with its number and time: the newest ${KEPT_EVALUATIONS}, `
        + `and ${count(KEPT_ROWS)} rows at most.`),
      h("div", { class: "row" }, held("csv", "text/csv", csv), held("json", "application/json", json))));
}
