/** Background knowledge: the static graphs of the server, and a form to load one. */

import { api, listOf } from "../lib/api.js";
import { catalog, refresh, watch } from "../lib/catalog.js";
import { confirm } from "../lib/confirm.js";
import { button, field, h, keyed, setText, toast } from "../lib/dom.js";
import { editor } from "../lib/editor.js";
import { count, plural } from "../lib/format.js";
import { problemBox } from "../lib/problems.js";

const TYPES = { ttl: "text/turtle", nt: "application/n-triples", rdf: "application/rdf+xml", owl: "application/rdf+xml", xml: "application/rdf+xml",
  jsonld: "application/ld+json", trig: "application/trig", nq: "application/n-quads" };

const iriOf = (graph) => graph.iri ?? graph.graph ?? graph.name ?? "";

async function remove(graph) {
  const users = graph.usedBy ?? graph.users ?? [];
  const text = users.length ? `It is used by ${users.join(", ")}.` : "Queries can no longer name it.";
  if (!await confirm("Delete this graph?", `${iriOf(graph)}. ${text}`, "Delete")) return;
  try {
    await api.deleteGraph(iriOf(graph));
  } catch (problem) {
    toast(problem.message, "bad");
  }
  refresh();
}

function row(graph) {
  const size = h("td", { class: "number" });
  const users = h("td");
  const node = h("tr", null, h("th", { scope: "row", class: "iri" }, iriOf(graph)), size, users, h("td", { class: "end" },
    button("Delete", () => remove(graph), { class: "quiet danger small", "aria-label": `Delete ${iriOf(graph)}` })));
  return { node, update(now) {
    setText(size, count(now.triples ?? now.size));
    setText(users, (now.usedBy ?? now.users ?? []).join(", ") || "–");
  } };
}

function upload(outcome) {
  const iri = h("input", { type: "text", required: true, placeholder: "http://example.org/tbox", autocomplete: "off", spellcheck: "false" });
  const type = h("select", null, [["text/turtle", "Turtle"], ["application/rdf+xml", "RDF/XML"], ["application/n-triples", "N-Triples"],
    ["application/ld+json", "JSON-LD"]].map(([value, label]) => h("option", { value }, label)));
  const box = editor({ label: "RDF text", value: "", submit: () => form.requestSubmit() });
  const file = h("input", { type: "file", accept: Object.keys(TYPES).map((ending) => `.${ending}`).join() });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    box.setText(await chosen.text());
    const guess = TYPES[chosen.name.split(".").at(-1).toLowerCase()];
    if ([...type.options].some((option) => option.value === guess)) type.value = guess;
  });
  async function submit(event) {
    event.preventDefault();
    try {
      const { body } = await api.putGraph(iri.value.trim(), box.text, type.value);
      outcome.replaceChildren();
      const size = body?.triples ?? body?.size;
      toast(size === undefined ? "The graph is loaded." : `The graph is loaded: ${plural(size, "triple")}.`);
      refresh();
    } catch (problem) {
      box.setErrors(problem.errors);
      outcome.replaceChildren(problemBox(problem, "The graph is unchanged.", (location) => box.goTo(location)));
    }
  }
  const form = h("form", { class: "stack", on: { submit } }, h("div", { class: "row form" }, h("div", { class: "wide" }, field("Graph IRI", iri)), field("Format", type), field("From a file", file)),
    box.node, h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Load the graph"),
      h("span", { class: "note" }, "A graph of that name is replaced; queries that use it are planned anew.")));
  return form;
}

function ruleSets(parent) {
  api.rules().then(({ body }) => {
    const items = listOf(body, "rules").map((rule) => h("li", null, h("code", null, rule.name ?? String(rule)),
      rule.description ? ` ${rule.description}` : "", rule.builtIn || rule.builtin ? h("span", { class: "badge" }, "built in") : null));
    parent.replaceChildren(...(items.length ? [h("h2", null, "Rule sets"), h("p", { class: "note" }, "Named in a query by USING RULES."), h("ul", { class: "plain" }, items)] : []));
  }, () => parent.replaceChildren());
}

export function graphs(parent) {
  const body = h("tbody");
  const table = h("table", { class: "grid" }, h("thead", null, h("tr", null, ["Graph", "Triples", "Used by", ""].map((text, i) =>
    h("th", { scope: "col", class: i === 1 ? "number" : null }, text)))), body);
  const scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Graphs" }, table);
  const empty = h("p", { class: "empty" }, "No graph yet. Load an ontology or any RDF below; queries name it by FROM <iri> or USING GRAPH <iri>.");
  const outcome = h("div");
  const rules = h("section");
  parent.append(h("div", { class: "head" }, h("h1", null, "Background knowledge")), scroll, empty,
    h("section", null, h("h2", null, "Load a graph"), upload(outcome), outcome), rules);
  ruleSets(rules);
  function update() {
    scroll.hidden = !catalog.graphs.length;
    empty.hidden = catalog.graphs.length > 0 || !catalog.loaded;
    keyed(body, catalog.graphs, iriOf, row);
  }
  update();
  return { title: "Background knowledge", close: watch(update) };
}
