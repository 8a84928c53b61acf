/** Background knowledge: the static graphs of the server, and a form to load one. */

import { api, listOf } from "../lib/api.js";
import { catalog, refresh, watch } from "../lib/catalog.js";
import { confirm } from "../lib/confirm.js";
import { button, field, h, keyed, setText, toast } from "../lib/dom.js";
import { editor } from "../lib/editor.js";
import { count, plural } from "../lib/format.js";
import { head, scroll, section } from "../lib/parts.js";
import { outcomeText, problemBox } from "../lib/problems.js";

const TYPES = [["text/turtle", "Turtle", "ttl"], ["application/rdf+xml", "RDF/XML", "rdf owl xml"],
  ["application/n-triples", "N-Triples", "nt"], ["application/ld+json", "JSON-LD", "jsonld json"]];
const ENDINGS = new Map(TYPES.flatMap(([type, , endings]) => endings.split(" ").map((ending) => [ending, type])));

async function remove({ iri, usedBy = [] }) {
  const text = usedBy.length ? `It is used by ${usedBy.join(", ")}.` : "Queries can no longer name it.";
  if (!await confirm("Delete this graph?", `${iri}. ${text}`, "Delete")) return;
  try {
    await api.deleteGraph(iri);
  } catch (problem) {
    toast(problem.message, "bad");
  }
  refresh();
}

function row(graph) {
  const size = h("td", { class: "number" });
  const users = h("td");
  const gone = button("Delete", () => remove(graph), { class: "quiet danger small", "aria-label": `Delete ${graph.iri}` });
  const node = h("tr", null, h("th", { scope: "row", class: "iri" }, graph.iri), size, users, h("td", { class: "end" }, gone));
  return { node, update(now) {
    setText(size, count(now.triples));
    setText(users, (now.usedBy ?? []).join(", ") || "–");
  } };
}

class Upload {
  constructor() {
    this.iri = h("input", { type: "url", required: true, placeholder: "http://example.org/tbox", autocomplete: "off" });
    this.type = h("select", null, TYPES.map(([value, label]) => h("option", { value }, label)));
    this.box = editor({ label: "RDF text", submit: () => this.form.requestSubmit() });
    const endings = [...ENDINGS.keys()].map((ending) => `.${ending}`).join();
    this.file = h("input", { type: "file", accept: endings, on: { change: () => this.#read() } });
    this.outcome = h("div");
    this.form = h("form", { class: "stack", on: { submit: (event) => this.#submit(event) } },
      h("div", { class: "row form" }, h("div", { class: "wide" }, field("Graph IRI", this.iri)), field("Format", this.type),
        field("From a file", this.file)),
      this.box.node, h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Load the graph"),
        h("span", { class: "note" }, "A graph of that name is replaced; queries that use it are planned anew.")), this.outcome);
  }

  async #read() {
    const [chosen] = this.file.files;
    if (!chosen) return;
    this.box.setText(await chosen.text());
    this.type.value = ENDINGS.get(chosen.name.split(".").at(-1).toLowerCase()) ?? this.type.value;
  }

  async #submit(event) {
    event.preventDefault();
    try {
      const { body } = await api.putGraph(this.iri.value.trim(), this.box.text, this.type.value);
      this.outcome.replaceChildren();
      this.box.setErrors([]);
      toast(body?.triples === undefined ? "The graph is loaded." : `The graph is loaded: ${plural(body.triples, "triple")}.`);
      refresh();
    } catch (problem) {
      this.box.setErrors(problem.errors);
      this.outcome.replaceChildren(problemBox(problem, outcomeText(problem, "The graph is unchanged."),
        (location) => this.box.goTo(location)));
    }
  }
}

async function showRules(node) {
  let rules = [];
  try {
    rules = listOf((await api.rules()).body, "rules");
  } catch (problem) {
    node.replaceChildren(problemBox(problem));
  }
  if (!rules.length) return;
  const write = h("a", { href: "#/rules" }, "Write a rule set");
  node.replaceChildren(section("Rule sets", write, h("p", { class: "note" }, "Named in a query by USING RULES."),
    h("ul", { class: "plain" }, rules.map(ruleSet))));
}

function ruleSet({ name, description, builtIn, type, clauses, usedBy = [] }) {
  const what = description ?? `${plural(clauses, "rule or fact", "rules and facts")} (${type})`;
  return h("li", null, h("code", null, name), ` ${what}`, builtIn ? [" ", h("span", { class: "badge" }, "built in")] : null,
    usedBy.length ? ` used by ${usedBy.join(", ")}` : null);
}

export function graphs(parent) {
  const body = h("tbody");
  const heads = ["Graph", "Triples", "Used by", ""].map((text) =>
    h("th", { scope: "col", class: text === "Triples" ? "number" : null }, text));
  const list = scroll("Graphs", h("table", { class: "grid" }, h("thead", null, h("tr", null, heads)), body));
  const empty = h("p", { class: "empty" },
    "No graph yet. Load an ontology or any RDF below; queries name it by FROM <iri> or USING GRAPH <iri>.");
  const rules = h("div");
  parent.append(head("Background knowledge"), list, empty, section("Load a graph", null, new Upload().form), rules);
  showRules(rules);
  function update() {
    list.hidden = !catalog.graphs.length;
    empty.hidden = catalog.graphs.length > 0 || !catalog.loaded;
    keyed(body, catalog.graphs, (graph) => graph.iri, row);
  }
  update();
  return { title: "Background knowledge", close: watch(update) };
}
