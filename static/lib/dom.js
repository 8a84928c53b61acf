/** Elements without markup: what comes from outside goes in as text, never as HTML. */

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (/^(style|srcdoc|on.*)$/i.test(name)) {
      throw new Error(`attribute ${name} is not for this console: use a class or a listener`);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element; `on: {click: f}` adds listeners; children are nodes or texts. */
export function h(name, attributes, ...children) {
  return build(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function s(name, attributes, ...children) {
  return build(document.createElementNS(SVG, name), attributes, children);
}

/** Set the text of a node only where it changes, so that readers and selections are left alone. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

/** Set or, with null, remove an attribute, only where it changes. */
export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  return node;
}

/** Change the page; the focus and the selection stay with their nodes, which moving them would lose. */
export function keepingPlace(change) {
  const active = document.activeElement;
  const selection = getSelection();
  const { anchorNode, anchorOffset, focusNode, focusOffset, isCollapsed } = selection;
  const result = change();
  if (active !== document.activeElement && active?.isConnected) active.focus({ preventScroll: true });
  const there = (node, place) => node?.isConnected && place <= (node.length ?? node.childNodes.length);
  if (!isCollapsed && there(anchorNode, anchorOffset) && there(focusNode, focusOffset)
    && (selection.anchorNode !== anchorNode || selection.focusNode !== focusNode)) {
    selection.setBaseAndExtent(anchorNode, anchorOffset, focusNode, focusOffset);
  }
  return result;
}

/** Bring children of `parent` into the order of `nodes`, from `place` on. */
export function arrange(parent, nodes, place = parent.firstChild) {
  for (const node of nodes) {
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
}

const KEYED = new WeakMap();

/** Keep one child of `parent` per item, by key, in order: `create(item)` gives `{node, update(item)}`. Focus survives. */
export function keyed(parent, items, keyOf, create) {
  const before = KEYED.get(parent) ?? new Map();
  const after = new Map();
  for (const item of items) {
    const entry = before.get(keyOf(item)) ?? create(item);
    entry.update?.(item);
    after.set(keyOf(item), entry);
  }
  for (const [key, entry] of before) if (!after.has(key)) entry.node.remove();
  keepingPlace(() => arrange(parent, [...after.values()].map(({ node }) => node)));
  KEYED.set(parent, after);
}

/** A button; `action` may be async, the button is disabled meanwhile. */
export function button(label, action, attributes = {}) {
  const node = h("button", { type: "button", ...attributes }, label);
  node.addEventListener("click", async (event) => {
    node.disabled = true;
    try {
      await action(event);
    } finally {
      node.disabled = false;
    }
  });
  return node;
}

let serial = 0;

/** A label with its control; the control gets an id of its own. */
export function field(label, control, note) {
  control.id ||= `field-${++serial}`;
  const hint = note ? h("span", { class: "note", id: `${control.id}-note` }, note) : null;
  if (hint) control.setAttribute("aria-describedby", hint.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, hint);
}

/** A short message at the edge of the page, read out by screen readers, gone after a while. */
export function toast(message, tone = "good") {
  const node = h("p", { class: `toast ${tone}` }, message);
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), tone === "bad" ? 9000 : 4500);
}
