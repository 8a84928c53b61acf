/** The first page: what is running, or how to begin. */

import { catalog, lostMs, watch } from "../lib/catalog.js";
import { h, keyed, setAttribute, setText } from "../lib/dom.js";
import { clock, count, duration, durationText, latency, rate, tail } from "../lib/format.js";
import { head, scroll, section } from "../lib/parts.js";
import { formText, lagOf, queryState, reachedOf } from "../lib/words.js";

const STEPS = [
  ["#/streams", "Add a stream", "A stream is a name to which RDF is pushed: by curl, by a program, or from its page here."],
  ["#/graphs", "Load background knowledge",
    "Optional: an ontology or other RDF that queries join with the stream, or reason with."],
  ["#/new", "Register a query",
    "It is evaluated again and again over windows of the stream; its answers are pushed to this page and to programs."],
];
const QUERY_HEADS = ["Query", "State", "Form", "Windows", "Complete up to", ">Lag", ">Latency", ">Rows in state"];
const STREAM_HEADS = ["Stream", ">Items", ">Rate", "Complete up to", "Time", ">Late", "Used by"];

function guide() {
  return h("section", { class: "guide", "aria-label": "How to begin" },
    h("p", { class: "lead" }, "No query is registered yet. Three steps to live answers:"),
    h("ol", null, STEPS.map(([href, title, text]) => h("li", null, h("a", { href }, title), h("p", null, text)))));
}

function contentText({ range, triples, items }) {
  if (range) return durationText(range);
  if (triples || items) return triples ? `${triples} triples` : `${items} items`;
  return "";
}

/** `temps 10 s every 2 s` for a window of a query resource. */
export function windowText(window) {
  const step = window.step && window.step !== window.range ? `every ${durationText(window.step)}` : "";
  return [tail(window.stream), contentText(window), step].filter(Boolean).join(" ");
}

/** A table of the catalogue `{node, show(items)}`: `texts(item)` gives the cells after the first, `>` heads numbers. */
function table(label, kind, heads, texts) {
  const number = (place) => heads[place].startsWith(">") ? "number" : null;
  const body = h("tbody");
  const headCells = heads.map((text, place) => h("th", { scope: "col", class: number(place) }, text.replace(">", "")));

  function row(item) {
    const link = h("a", { href: `#/${kind}/${encodeURIComponent(item.name)}` }, item.name);
    const cells = heads.slice(1).map((_, place) => h("td", { class: number(place + 1) }));
    return { node: h("tr", null, h("th", { scope: "row" }, link), cells), update(now) {
      texts(now).forEach((text, place) => setText(cells[place], text));
      if (kind === "queries") setAttribute(cells[0], "class", `with-dot ${queryState(now, lostMs()).tone}`);
    } };
  }

  const node = scroll(label, h("table", { class: "grid" }, h("thead", null, h("tr", null, headCells)), body));
  return { node, show: (items) => keyed(body, items, (item) => item.name, row) };
}

/** Something that the server has set aside, or that has failed. */
function trouble({ kind, name }) {
  const reason = h("td");
  const shown = kind === "query" ? h("a", { href: `#/queries/${encodeURIComponent(name)}` }, name) : name ?? "";
  const node = h("tr", null, h("td", { class: "with-dot warn" }, kind ?? ""), h("th", { scope: "row" }, shown), reason);
  return { node, update: (now) => setText(reason, now.reason ?? "") };
}

function queryTexts(query) {
  const { watermark, watermarkLagMs, resultLatencyMs, stateRows } = query.progress ?? {};
  return [queryState(query, lostMs()).word, formText(query), (query.windows ?? []).map(windowText).join(", "),
    clock(reachedOf(query.state, watermark)),
    duration(lagOf(query.state, lostMs() === null ? watermarkLagMs : null)), latency(resultLatencyMs), count(stateRows)];
}

function streamTexts({ state = {}, time, usedBy = [] }) {
  return [count(state.items), rate(lostMs() === null ? state.itemsPerSecond : null), clock(state.watermark), time ?? "",
    count(state.late), usedBy.join(", ") || "–"];
}

export function home(parent) {
  const queries = table("Queries", "queries", QUERY_HEADS, queryTexts);
  const streams = table("Streams", "streams", STREAM_HEADS, streamTexts);
  const begin = h("a", { class: "button primary", href: "#/new" }, "Register a query");
  const streamPart = section("Streams", null, streams.node);
  const queryPart = section("Queries", null, queries.node);
  const empty = guide();
  const troubles = h("tbody");
  const heads = ["What", "Name", "Why"].map((text) => h("th", { scope: "col" }, text));
  const troubleTable = h("table", { class: "grid" }, h("thead", null, h("tr", null, heads)), troubles);
  const troublePart = section("What does not work", null, scroll("What does not work", troubleTable));
  parent.append(head("Overview", null, begin), troublePart, queryPart, empty, streamPart);
  function update() {
    begin.hidden = queryPart.hidden = !catalog.queries.length;
    empty.hidden = catalog.queries.length > 0 || !catalog.loaded;
    streamPart.hidden = !catalog.streams.length;
    const degraded = catalog.health?.degraded ?? [];
    troublePart.hidden = !degraded.length;
    keyed(troubles, degraded, ({ kind, name, reason }) => `${kind} ${name} ${reason}`, trouble);
    queries.show(catalog.queries);
    streams.show(catalog.streams);
  }
  update();
  return { title: "Overview", close: watch(update) };
}
