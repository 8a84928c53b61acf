/** One-shot SPARQL over static graphs and what the windows hold now. */

import { api } from "../lib/api.js";
import { catalog } from "../lib/catalog.js";
import { button, h, setText } from "../lib/dom.js";
import { editor, paint } from "../lib/editor.js";
import { examplePicker } from "../lib/examples.js";
import { duration, plural } from "../lib/format.js";
import { prefixesOf } from "../lib/highlight.js";
import { code, head, scroll } from "../lib/parts.js";
import { problemBox } from "../lib/problems.js";
import { resultTable } from "../lib/table.js";
import { displayPrefixes } from "../lib/terms.js";

const MAX_ROWS = 1000;
const MAX_COLOURED = 200000;
const ACCEPT = "application/sparql-results+json, application/trig;q=0.8, text/turtle;q=0.7, application/n-triples;q=0.5";
const START = `SELECT ?graph (COUNT(*) AS ?triples)
WHERE { GRAPH ?graph { ?s ?p ?o } }
GROUP BY ?graph
`;
let kept = START;

function nothing() {
  return h("p", { class: "empty" }, catalog.graphs.length ? "Nothing matched."
    : "Nothing matched: there is no static graph yet.");
}

class OneShot {
  constructor(parent) {
    this.box = editor({ label: "SPARQL query", value: kept, submit: () => this.run(), changed: (text) => { kept = text; } });
    this.status = h("p", { class: "verdict", role: "status" });
    this.output = h("div");
    const about = "Asked once, of the static graphs and of what the windows hold now. Nothing is registered.";
    parent.append(head("SPARQL", h("p", { class: "note" }, about), examplePicker({ sparql: "" }, (text) => this.#load(text))),
      this.box.node, h("div", { class: "row" }, button("Run", () => this.run(), { class: "primary" }),
        h("span", { class: "note" }, "Ctrl-Enter runs"), this.status), this.output);
  }

  #load(text) {
    kept = text;
    this.box.setText(text);
    this.box.area.focus();
  }

  async run() {
    this.running?.abort();
    this.running = new AbortController();
    const begun = performance.now();
    setText(this.status, "Running …");
    try {
      const { body } = await api.sparql(this.box.text, ACCEPT, this.running.signal);
      this.box.setErrors([]);
      this.#show(body, duration(performance.now() - begun));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      setText(this.status, "");
      this.box.setErrors(problem.errors);
      this.output.replaceChildren(problemBox(problem, null, (location) => this.box.goTo(location)));
    }
  }

  #show(body, took) {
    setText(this.status, took);
    if (typeof body === "string") this.#showText(body);
    else if (typeof body.boolean === "boolean") {
      this.output.replaceChildren(h("p", { class: `answer truth ${body.boolean}` }, String(body.boolean)));
    } else this.#showRows(body, took);
  }

  #showText(text) {
    this.output.replaceChildren(text.trim() ? code("Result", text.length > MAX_COLOURED ? text : paint(text))
      : h("p", { class: "empty" }, "The graph is empty: no triple was made."));
  }

  #showRows(body, took) {
    const vars = body.head?.vars ?? [];
    const rows = (body.results?.bindings ?? []).map((binding) => vars.map((name) => binding[name] ?? null));
    const shown = rows.length > MAX_ROWS ? `, the first ${MAX_ROWS} are shown` : "";
    setText(this.status, `${plural(rows.length, "row")}${shown} · ${took}`);
    const prefixes = displayPrefixes(prefixesOf(this.box.text));
    this.output.replaceChildren(rows.length ? scroll("Result", resultTable(vars, rows, prefixes, MAX_ROWS)) : nothing());
  }
}

export function sparql(parent) {
  const page = new OneShot(parent);
  page.box.area.focus();
  return { title: "SPARQL", close: () => page.running?.abort() };
}
