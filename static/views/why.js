/** Why a row is in a result: its proofs as trees, in a dialog. */

import { api, Problem } from "../lib/api.js";
import { button, h } from "../lib/dom.js";
import { clock, plural } from "../lib/format.js";
import { problemBox } from "../lib/problems.js";
import { termSpan } from "../lib/table.js";

const MORE = 5;
const PLACES = ["subject", "predicate", "object"];

function fact({ triple, atom }, prefixes) {
  const terms = triple ? PLACES.map((place) => triple[place]) : atom.terms;
  return h("span", { class: "fact" }, atom ? atom.predicate : null,
    terms.map((term, place) => [place || atom ? " " : null, termSpan(term, prefixes)]));
}

const time = (at) => typeof at === "number" ? String(at) : clock(at);

/** `during [05:04:00, 05:04:04)`: when a node of rules with time is a proof; null where it says nothing of time. */
function when(interval, word = "during") {
  if (!interval) return null;
  const { from, to, fromIncluded, toIncluded } = interval;
  if (from === null && to === null) return h("span", { class: "source" }, "always");
  if (from === to) return h("span", { class: "source" }, `at ${time(from)}`);
  const begin = from === null ? "(since ever" : `${fromIncluded ? "[" : "("}${time(from)}`;
  const end = to === null ? "for ever)" : `${time(to)}${toIncluded ? "]" : ")"}`;
  return h("span", { class: "source" }, `${word} ${begin}, ${end}`);
}

function ruleText({ set, name, number, line }) {
  return [name ?? `rule ${number}`, line ? `${set}, line ${line}` : set].filter(Boolean).join(" · ");
}

function sourceText(source) {
  if (source.graph) return `graph ${source.graph}`;
  if (source.file) return `file ${source.file}`;
  if (source.rules) return `rules ${source.rules}${source.line ? `, line ${source.line}` : ""}`;
  const made = source.query ? `, made by the query ${source.query}` : "";
  return `stream ${source.stream} at ${source.at.map((at) => clock(at)).join(", ")}${made}`;
}

function bindings(row, prefixes) {
  return Object.entries(row).map(([name, term]) => h("span", { class: "binding" }, `?${name} = `, termSpan(term, prefixes)));
}

const list = (nodes, prefixes) => h("ul", { class: "tree" }, nodes.map((node) => h("li", null, tree(node, prefixes))));

function branch(summary, nodes, prefixes) {
  return h("details", { open: true }, h("summary", null, summary), list(nodes, prefixes));
}

/** A node of a proof (docs/why.md) with all below it. */
function tree(node, prefixes) {
  switch (node.kind) {
    case "derived":
      return branch([fact(node, prefixes), h("span", { class: "badge" }, ruleText(node.rule)), when(node.during)],
        node.premises, prefixes);
    case "asserted":
      return [fact(node, prefixes), when(node.during),
        node.sources.map((source) => h("span", { class: "source" }, sourceText(source)))];
    case "group":
      return branch([node.text, h("span", { class: "badge" }, `over ${plural(node.count, "solution")}`)], node.members, prefixes);
    case "match":
      return branch(["a solution: ", bindings(node.bindings, prefixes)], node.premises, prefixes);
    case "operator":
      return branch([h("code", null, node.text), when(node.during ?? node.over, node.during ? "during" : "over")],
        node.premises, prefixes);
    case "absent":
      return [h("span", { class: "absent" }, "nothing matches ", h("code", null, node.text)), when(node.during)];
  }
  const text = h("code", null, node.text ?? node.kind);
  return node.premises ? branch(text, node.premises, prefixes) : text;
}

function proofs({ proofs: found }, prefixes) {
  return found.map((proof, number) => h("section", { "aria-label": `Proof ${number + 1}` },
    found.length > 1 ? h("h3", null, `Proof ${number + 1}`) : null, list(proof.premises, prefixes)));
}

/**
 * Ask why a row is in a result, and show the answer; gives `{close()}`.
 * @param {string} query
 * @param {string} id  of the result
 * @param {{row: number, mode?: string}} parameters
 * @param {() => void} leave  called when the person closes the dialog
 */
export function showWhy(query, id, parameters, prefixes, leave) {
  let closed = false;
  const close = button("Close", () => dialog.close());
  const content = h("div", { class: "proofs" }, h("p", { class: "wait" }, "Looking for a proof …"));
  const actions = h("div", { class: "row end" }, close);
  const dialog = h("dialog", { class: "why", "aria-labelledby": "why-title" },
    h("h2", { id: "why-title" }, "Why this row"), content, actions);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (!closed) leave();
    closed = true;
  });
  document.body.append(dialog);
  dialog.showModal();

  async function ask(max) {
    try {
      const { body } = await api.why(query, id, { ...parameters, max });
      content.replaceChildren(h("p", { class: "bindings" }, bindings(body.answer, prefixes)), ...proofs(body, prefixes));
      const more = body.more && max === 1 ? [button("Other proofs", () => ask(MORE), { class: "quiet" })] : [];
      actions.replaceChildren(...more, close);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      content.replaceChildren(problemBox(problem));
    }
  }

  ask(1);
  return { close() {
    closed = true;
    dialog.close();
  } };
}
