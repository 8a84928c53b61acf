/** The plan of a query, stage by stage: the words of the compiler, of EXPLAIN and of this page are the same. */

import { api } from "../lib/api.js";
import { button, h } from "../lib/dom.js";
import { code } from "../lib/parts.js";
import { problemBox } from "../lib/problems.js";
import { tabs } from "../lib/tabs.js";

export const STAGES = {
  parsed: "The text as the grammar reads it.",
  validated: "With names resolved and checked against the catalogue.",
  rewritten: "What each pass makes of the rules, and the query with the rules that unfold into it.",
  logical: "The joins in their order, with estimates and the strategy chosen.",
  spark: "What Spark runs.",
};

async function load(name, level, node) {
  try {
    const { body } = await api.plan(name, level);
    node.replaceChildren(code(`Plan, stage ${level}`, typeof body === "string" ? body : JSON.stringify(body, null, 2), "plan"));
  } catch (problem) {
    node.replaceChildren(problemBox(problem));
  }
}

function stage(name, level) {
  const node = h("div", { class: "stage" }, h("p", { class: "wait" }, "Loading …"));
  const again = button("Reload", () => load(name, level, node), { class: "quiet" });
  load(name, level, node);
  return h("div", null, h("div", { class: "row between" }, h("p", { class: "note" }, STAGES[level]), again), node);
}

/** The tab of the page of a query. */
export function plan(name) {
  const pages = Object.keys(STAGES).map((level) => ({ key: level, label: level, show: () => stage(name, level) }));
  return tabs(pages, { label: "Stages of the plan", initial: "logical", small: true }).node;
}
