/** How to take the answers elsewhere: a curl line, files by format, and what this page holds. */

import { address, api } from "../lib/api.js";
import { copy, download } from "../lib/clipboard.js";
import { button, h, toast } from "../lib/dom.js";
import { csv, json } from "../lib/export.js";

const TABLES = [["CSV", "text/csv", "csv"], ["TSV", "text/tab-separated-values", "tsv"],
  ["SPARQL JSON", "application/sparql-results+json", "json"], ["SPARQL XML", "application/sparql-results+xml", "xml"]];
const GRAPHS = [["Turtle", "text/turtle", "ttl"], ["TriG", "application/trig", "trig"],
  ["N-Quads", "application/n-quads", "nq"], ["JSON-LD", "application/ld+json", "jsonld"]];

/** A word for the shell. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

function command(title, text) {
  const code = h("code", null, text);
  return h("div", { class: "curl" }, h("h3", null, title),
    h("div", { class: "command" }, h("pre", null, code), button("Copy as curl", () => copy(text, code))));
}

async function save(name, [label, type, ending]) {
  try {
    const { body } = await api.results(name, type);
    download(`${name}.${ending}`, type, body);
  } catch (problem) {
    toast(`${label}: ${problem.message}`, "bad");
  }
}

/** The tab of the page of a query. */
export function connect(page) {
  const { name, form } = page.query;
  const results = address(["queries", name, "results"]);
  const formats = form === "CONSTRUCT" || form === "DESCRIBE" ? GRAPHS : TABLES;
  const [, latestType] = formats[0];
  return h("div", { class: "use" },
    command("Follow the answers live", `curl -N ${quoted(String(results))} -H 'Accept: text/event-stream'`),
    command("Latest complete result", `curl ${quoted(String(results))} -H 'Accept: ${latestType}'`),
    h("section", null, h("h3", null, "Download the latest complete result"),
      h("div", { class: "row" }, formats.map((format) => button(format[0], () => save(name, format), { "data-format": format[2] })))),
    h("section", null, h("h3", null, "Export what this page holds"),
      h("p", { class: "note" }, "Every evaluation kept here, with its number and time; a page holds the newest 300 evaluations at most."),
      h("div", { class: "row" },
        button("Export as CSV", () => download(`${name}-page.csv`, "text/csv", csv(page.results.evaluations))),
        button("Export as JSON", () => download(`${name}-page.json`, "application/json", json(page.results.evaluations))))));
}
