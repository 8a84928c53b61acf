/** A row of tabs with the keyboard behaviour of the ARIA practices: arrows, Home and End move and choose. */

import { h } from "./dom.js";

let serial = 0;

/**
 * Tabs over panels made on first use.
 * @param {{label: string, key: string, show: () => Node}[]} pages  `show` is called once, when its tab is first chosen
 * @param {{label: string, initial?: string, chosen?: (key: string) => void, small?: boolean}} options
 */
export function tabs(pages, options) {
  const group = `tabs-${++serial}`;
  const list = h("div", { class: options.small ? "tabs small" : "tabs", role: "tablist", "aria-label": options.label });
  const panels = h("div", { class: "panels" });
  const made = new Map();

  function choose(key, focus) {
    for (const [position, page] of pages.entries()) {
      const tab = list.children[position];
      const chosen = page.key === key;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      if (chosen && focus) tab.focus();
      if (chosen && !made.has(key)) made.set(key, panel(page));
      const node = made.get(page.key);
      if (node) node.hidden = !chosen;
    }
    options.chosen?.(key);
  }

  function panel(page) {
    const attributes = { role: "tabpanel", id: `${group}-${page.key}-panel`, "aria-labelledby": `${group}-${page.key}` };
    const node = h("div", attributes, page.show());
    panels.append(node);
    return node;
  }

  function move(event) {
    const position = pages.findIndex((page) => `${group}-${page.key}` === event.target.id);
    const steps = { ArrowRight: position + 1, ArrowLeft: position - 1 + pages.length, Home: 0, End: pages.length - 1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    choose(pages[steps[event.key] % pages.length].key, true);
  }

  for (const page of pages) {
    list.append(h("button", {
      type: "button", role: "tab", id: `${group}-${page.key}`, "data-tab": page.key,
      "aria-controls": `${group}-${page.key}-panel`, on: { click: () => choose(page.key), keydown: move },
    }, page.label));
  }
  choose(options.initial ?? pages[0].key);
  return { node: h("div", { class: "tabbed" }, list, panels), choose };
}
