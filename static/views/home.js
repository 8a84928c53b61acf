/** The first page: what is running, or how to begin. */

import { catalog, watch } from "../lib/catalog.js";
import { h, keyed, setAttribute, setText } from "../lib/dom.js";
import { clock, count, duration, durationText, tail } from "../lib/format.js";
import { queryState } from "../lib/words.js";

const STEPS = [
  ["#/streams", "Add a stream", "A stream is a name to which RDF is pushed: by curl, by a program, or from its page here."],
  ["#/graphs", "Load background knowledge", "Optional: an ontology or any RDF file that queries join with the stream, or reason with."],
  ["#/new", "Register a query", "It is evaluated again and again over windows of the stream; its answers are pushed to this page and to programs."],
];

function guide() {
  return h("section", { class: "guide", "aria-label": "How to begin" },
    h("p", { class: "lead" }, "Nothing is registered yet. Three steps to live answers:"),
    h("ol", null, STEPS.map(([href, title, text]) => h("li", null, h("a", { href }, title), h("p", null, text)))));
}

/** `temps 10 s / 2 s` for a window of a query resource. */
export function windowText(window) {
  const size = window.range ? durationText(window.range) : window.triples ? `${window.triples} triples` : window.items ? `${window.items} items` : "";
  return [tail(window.stream), size, window.step && window.step !== window.range ? `every ${durationText(window.step)}` : ""].filter(Boolean).join(" ");
}

function row(query) {
  const cells = Object.fromEntries(["state", "form", "windows", "last", "lag", "latency", "rows"].map((name) => [name, h("td")]));
  for (const name of ["lag", "latency", "rows"]) cells[name].className = "number";
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  const word = h("span");
  cells.state.append(dot, word);
  const link = h("a", { href: `#/queries/${encodeURIComponent(query.name)}` }, query.name);
  const node = h("tr", null, h("th", { scope: "row" }, link), Object.values(cells));
  return { node, update(now) {
    const { word: state, tone } = queryState(now);
    const progress = now.progress ?? {};
    setAttribute(dot, "class", `dot ${tone}`);
    setText(word, state);
    setText(cells.form, now.form ?? "");
    setText(cells.windows, (now.windows ?? []).map(windowText).join(", "));
    setText(cells.last, clock(progress.watermark));
    setText(cells.lag, duration(progress.watermarkLagMs));
    setText(cells.latency, duration(progress.resultLatencyMs));
    setText(cells.rows, progress.stateRows === undefined || progress.stateRows === null ? "–" : count(progress.stateRows));
  } };
}

function overview() {
  const body = h("tbody");
  const heads = ["Query", "State", "Form", "Windows", "Complete up to", "Lag", "Latency", "Rows in state"];
  const table = h("table", { class: "grid" },
    h("thead", null, h("tr", null, heads.map((text, i) => h("th", { scope: "col", class: i > 4 ? "number" : null }, text)))), body);
  return { node: h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Queries" }, table),
    update: () => keyed(body, catalog.queries, (query) => query.name, row) };
}

export function home(parent) {
  const table = overview();
  const empty = guide();
  const begin = h("a", { class: "button primary", href: "#/new" }, "Register a query");
  parent.append(h("div", { class: "head" }, h("h1", null, "Overview"), h("div", { class: "actions" }, begin)), table.node, empty);
  function update() {
    const some = catalog.queries.length > 0;
    table.node.hidden = !some;
    empty.hidden = some || !catalog.loaded;
    begin.hidden = !some;
    table.update();
  }
  update();
  return { title: "Overview", close: watch(update) };
}
