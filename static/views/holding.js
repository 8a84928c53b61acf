/** The facts of a rule program as one list: from when and until when each holds, and which hold now. */

import { button, h, keyed, setAttribute, setText } from "../lib/dom.js";
import { clock, count, duration, plural } from "../lib/format.js";
import { scroll } from "../lib/parts.js";
import { termSpan } from "../lib/table.js";

const MAX_FACTS = 500;
const HEADS = ["Fact", "From", "Until", "Lasts", "State"];
const STATES = { holds: "holds", ahead: "to come", ended: "ended" };

/** `ex:s1 ex:at ex:harbour` or `near(ex:s1, 3)`: a triple, an atom. */
function factNodes({ triple, atom, terms }, prefixes) {
  if (triple) return triple.flatMap((term, place) => [place ? " " : null, termSpan(term, prefixes, place === 1)]);
  const within = terms.flatMap((term, place) => [place ? ", " : null, termSpan(term, prefixes)]);
  return [termSpan(atom, prefixes, true), terms.length ? ["(", within, ")"] : null];
}

function row(fact, prefixes, ask) {
  const until = h("td", { class: "time" });
  const lasts = h("td", { class: "number" });
  const state = h("td");
  let report = null;
  const why = button("Why", () => ask(report.result.id, report.row), { class: "quiet small" });
  const node = h("tr", null, h("td", { class: "fact" }, factNodes(fact, prefixes)),
    h("td", { class: "time" }, clock(fact.from)), until, lasts, state,
    h("th", { class: "why" }, why));
  return { node, update(now) {
    setAttribute(node, "class", now.standing);
    report = now.report;
    why.hidden = !report?.result.id;
    setText(until, now.until === null ? "goes on" : clock(now.until));
    setText(lasts, now.until === null ? "–" : duration(now.until - now.from));
    setText(state, STATES[now.standing]);
    setAttribute(state, "class", `with-dot ${now.standing === "holds" ? "good" : "quiet"}`);
  } };
}

export class HoldingTable {
  /** `ask(id, row)` asks why a row is in a result. */
  constructor(name, prefixes, ask) {
    this.prefixes = prefixes;
    this.ask = ask;
    this.body = h("tbody");
    this.empty = h("p", { class: "empty" });
    const heads = HEADS.map((text) => h("th", { scope: "col", class: text === "Lasts" ? "number" : null }, text));
    heads.push(h("th", { class: "why", scope: "col" }, h("span", { class: "hidden" }, "Why")));
    this.table = h("table", { class: "grid facts-list" }, h("caption", { class: "hidden" }, `Facts of ${name}`),
      h("thead", null, h("tr", null, heads)), this.body);
    this.node = scroll("Facts", this.table, this.empty);
    this.node.classList.add("table");
  }

  /** Show what is there as of a time (ms; null where none is known); gives how that reads in a line. */
  show(holding, atMs) {
    const facts = holding.at(atMs ?? -Infinity);
    keyed(this.body, facts.slice(0, MAX_FACTS), ({ key }) => key, (fact) => row(fact, this.prefixes, this.ask));
    this.table.hidden = !facts.length;
    this.empty.hidden = facts.length > 0;
    if (!facts.length) return "";
    const holds = facts.filter(({ standing }) => standing === "holds").length;
    const shown = facts.length > MAX_FACTS ? `, the first ${count(MAX_FACTS)} are shown` : "";
    const since = holding.sinceMs === null ? "" : ` · reported since ${clock(holding.sinceMs)}`;
    const hole = holding.hasHole ? " · some reports were missed" : "";
    const verb = holds === 1 ? "holds" : "hold";
    return `${count(holds)} of ${plural(facts.length, "fact")} ${verb} at ${clock(atMs)}${since}${hole}${shown}`;
  }
}
