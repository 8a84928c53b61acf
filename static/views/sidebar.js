/** The lists of streams and queries at the left. */

import { catalog, lostMs } from "../lib/catalog.js";
import { h, keyed, setAttribute, setText } from "../lib/dom.js";
import { count, plural, rate, shortClock } from "../lib/format.js";
import { formText, queryState } from "../lib/words.js";

function entry(kind, name) {
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  const side = h("span", { class: "side" });
  const under = h("span", { class: "under" });
  const link = h("a", { href: `#/${kind}/${encodeURIComponent(name)}`, "data-name": name },
    dot, h("span", { class: "name" }, name), side, under);
  return { node: h("li", null, link), link, dot, side, under };
}

function streamEntry(stream) {
  const made = entry("streams", stream.name);
  return { node: made.node, update: (now) => {
    const state = now.state ?? {};
    const perSecond = lostMs() === null ? state.itemsPerSecond : null;
    setAttribute(made.dot, "class", `dot ${perSecond > 0 ? "good" : "quiet"}`);
    setText(made.side, rate(perSecond));
    const upTo = state.watermark ? ` · up to ${shortClock(state.watermark)}` : "";
    setText(made.under, plural(state.items ?? null, "item") + upTo);
    setAttribute(made.link, "title", now.iri ?? now.name);
  } };
}

function queryEntry(query) {
  const made = entry("queries", query.name);
  return { node: made.node, update: (now) => {
    const { word, reason, tone } = queryState(now, lostMs());
    setAttribute(made.dot, "class", `dot ${tone}`);
    setText(made.side, word);
    const last = now.progress?.lastEventId;
    const output = now.form === "PROGRAM" ? "" : (now.output ?? "").toUpperCase();
    setText(made.under, [formText(now), output, last && last !== "none" ? `last ${last}` : "no answer yet"]
      .filter(Boolean).join(" · "));
    setAttribute(made.link, "title", reason || null);
  } };
}

function section(title, page, label, emptyText) {
  const list = h("ul", { class: "entries" });
  const empty = h("p", { class: "empty", hidden: true }, emptyText);
  const size = h("span", { class: "size" });
  const node = h("section", { "aria-label": title },
    h("h2", null, title, size, h("a", { class: "add", href: page, "aria-label": label, title: label }, "+")), list, empty);
  return { node, show(items, create, total = items.length) {
    keyed(list, [...items].sort((a, b) => (a.name < b.name ? -1 : 1)), (item) => item.name, create);
    setText(size, total > items.length ? `${count(items.length)} of ${count(total)}` : items.length ? count(total) : "");
    empty.hidden = items.length > 0 || !catalog.loaded;
  } };
}

/** Fill the side bar: `{update(), mark(kind, name)}`. */
export function sidebar(parent) {
  const streams = section("Streams", "#/streams", "Add a stream", "No stream yet. Add one, then push RDF to it.");
  const queries = section("Queries", "#/new", "Register a query", "No query yet. Register one to see its answers live.");
  parent.append(streams.node, queries.node);
  return {
    update() {
      streams.show(catalog.streams, streamEntry);
      queries.show(catalog.queries, queryEntry, catalog.totalQueries);
    },
    mark(kind, name) {
      const current = name === undefined ? "" : `#/${kind}/${encodeURIComponent(name)}`;
      for (const link of parent.querySelectorAll("a[data-name]")) {
        setAttribute(link, "aria-current", link.getAttribute("href") === current ? "page" : null);
      }
    },
  };
}
