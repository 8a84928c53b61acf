/** The parts that pages are made of: head, section, figures, scrolling table, command line, a page to be loaded first. */

import { Problem } from "./api.js";
import { copy } from "./clipboard.js";
import { button, h, keyed, setAttribute, setText } from "./dom.js";
import { problemBox } from "./problems.js";

const RETRY_MS = 2000;
const PASSING = new Set([0, 429, 503]);

/** The head of a page: its title, what stands under it, and the actions at the right. */
export function head(title, under, ...actions) {
  return h("div", { class: "head" }, h("div", null, h("h1", null, title), under), h("div", { class: "actions" }, actions));
}

/** A section with a heading of its own; `side` stands at the end of the heading's line. */
export function section(title, side, ...children) {
  const heading = h("h2", null, title);
  return h("section", { "aria-label": title }, side ? h("div", { class: "row between" }, heading, side) : heading, children);
}

/** A table (or code) in a frame that scrolls, also by keyboard. */
export function scroll(label, ...children) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, children);
}

/** A text in a frame that scrolls; `children` are texts or coloured pieces. */
export function code(label, children, kind = "") {
  return h("pre", { class: `code ${kind}`.trim(), tabindex: 0, "aria-label": label }, children);
}

/** One figure, named. */
function fact([name]) {
  const value = h("dd");
  const node = h("div", null, h("dt", null, name), value);
  return { node, update([, text, title]) {
    setText(value, text);
    setAttribute(node, "title", title ?? null);
  } };
}

/** Figures side by side `{node, show([[name, value, title?]])}`; each stays where it is. */
export function facts() {
  const node = h("dl", { class: "facts" });
  return { node, show: (list) => keyed(node, list, ([name]) => name, fact) };
}

/** A line for the shell with a button that copies it. */
export function command(text) {
  const line = h("code", null, text);
  return h("div", { class: "command" }, h("pre", null, line), button("Copy as curl", () => copy(text, line)));
}

/** A choice with its label before it, in one line. */
export function choice(label, control) {
  return h("label", { class: "choice" }, h("span", null, label), control);
}

/**
 * A page about something that the server holds under `name`: loads it, then makes the page; a page may have `close()`, and
 * `show(place)` for what stands after its name in the address.
 * @param {(name: string) => Promise<{body: object}>} load
 * @param {(parent: Node, body: object) => object} make
 * @param {Node} elsewhere  what to do where there is nothing of that name
 * @param {string[]} place  the place on the page to begin with
 */
export function loaded(parent, name, load, make, elsewhere, place = []) {
  let made = null;
  let timer = null;
  let closed = false;

  async function attempt() {
    try {
      const { body } = await load(name);
      if (closed) return;
      parent.replaceChildren();
      made = make(parent, body);
      if (place.length) made.show?.(place);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (!closed) show(problem);
    }
  }

  function show(problem) {
    const passing = PASSING.has(problem.status);
    if (passing) timer = setTimeout(attempt, Math.max(RETRY_MS, 1000 * (problem.retryAfter ?? 0)));
    const advice = passing ? "This page tries again by itself." : elsewhere;
    parent.replaceChildren(h("h1", null, name), problemBox(problem, advice));
  }

  parent.append(h("p", { class: "wait" }, `Loading ${name} …`));
  attempt();
  return { title: name, show(now) {
    place = now;
    made?.show?.(now);
  }, close() {
    closed = true;
    clearTimeout(timer);
    made?.close?.();
  } };
}
