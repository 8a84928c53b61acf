/** A text area with line numbers, light colours, errors and warnings underlined at their place: a coloured copy lies under it. */

import { h } from "./dom.js";
import { tokens } from "./highlight.js";

/** Offset in `text` of a place; lines and columns count from 1, columns in characters (not UTF-16 units). */
export function offset(text, line, column) {
  let start = 0;
  for (let number = 1; number < line; number += 1) {
    const end = text.indexOf("\n", start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  let end = text.indexOf("\n", start);
  if (end < 0) end = text.length;
  for (const character of text.slice(start, end)) {
    if (column-- <= 1) break;
    start += character.length;
  }
  return start;
}

/** The stretch `[start, end)` of an error's location; at least one character, to be seen. */
export function stretch(text, location) {
  const start = offset(text, location.line, location.column ?? 1);
  const end = location.endColumn ? offset(text, location.endLine ?? location.line, location.endColumn) : start + 1;
  if (end > start && start < text.length) return [start, end];
  return start < text.length && text[start] !== "\n" ? [start, start + 1] : [Math.max(0, start - 1), start];
}

/** The coloured copy of a text as nodes; `marks` are stretches `[start, end, class]` to underline, the first where two meet. */
export function paint(text, marks = [], language = "sparql") {
  const cuts = [...marks.flatMap(([start, end]) => [start, end]), Infinity].sort((a, b) => a - b);
  const nodes = [];
  for (const { type, text: word, start } of tokens(text, language)) {
    for (let from = start, cut = 0; from < start + word.length;) {
      while (cuts[cut] <= from) cut += 1;
      const to = Math.min(start + word.length, cuts[cut]);
      const mark = marks.find(([a, b]) => a <= from && from < b);
      const piece = text.slice(from, to);
      const plain = !mark && (type === "space" || type === "word");
      nodes.push(plain ? piece : h("span", { class: mark ? `t-${type} ${mark[2]}` : `t-${type}` }, piece));
      from = to;
    }
  }
  return nodes;
}

function insert(area, text) {
  area.focus();
  if (!document.execCommand("insertText", false, text)) area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
}

function indent(event, area) {
  const before = area.value.slice(0, area.selectionStart);
  const space = /(?:^|\n)([ \t]*)[^\n]*$/.exec(before)[1] + (/[{[(]\s*$/.test(before) ? "  " : "");
  event.preventDefault();
  insert(area, `\n${space}`);
}

/**
 * An editor `{node, area, text, setText, setErrors, draw, goTo, insert}`.
 * @param {{label: string, value?: string, size?: "tall" | "short", changed?: (text: string) => void,
 *          submit?: () => void, language?: (text: string) => string}} options  `language` tells how a text is coloured; where it
 *          comes to tell otherwise of the same text, call `draw`
 */
export function editor({ label, value = "", size = "short", changed = () => {}, submit = () => {}, language = () => "sparql" }) {
  const area = h("textarea", {
    "aria-label": label, spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off",
  });
  const copy = h("pre", { class: "copy", "aria-hidden": "true" });
  const gutter = h("div", { class: "gutter", "aria-hidden": "true" });
  let errors = [];
  let warnings = [];

  function draw() {
    const text = area.value;
    const marked = (list, kind) => list.filter(({ location }) => location?.line).map(({ location }) => [location, kind]);
    const places = [...marked(errors, "wrong"), ...marked(warnings, "doubtful")];
    const marks = places.map(([location, kind]) => [...stretch(text, location), kind]);
    copy.replaceChildren(...paint(text, marks, language(text)), "\n");
    const lineKinds = new Map(places.toReversed().map(([location, kind]) => [location.line, kind]));
    const lines = text.split("\n").length;
    gutter.replaceChildren(...Array.from({ length: lines }, (_, i) =>
      h("span", { class: lineKinds.get(i + 1) ?? null }, String(i + 1))));
    area.setAttribute("aria-invalid", String(errors.length > 0));
  }

  area.addEventListener("input", () => {
    errors = warnings = [];
    draw();
    changed(area.value);
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      submit();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      indent(event, area);
    }
  });
  area.value = value;
  draw();
  return {
    node: h("div", { class: `editor ${size}` }, gutter, h("div", { class: "sheet" }, copy, area)),
    area,
    get text() { return area.value; },
    setText(text) {
      area.value = text;
      errors = warnings = [];
      draw();
    },
    setErrors(found, doubts = []) {
      errors = found;
      warnings = doubts;
      draw();
    },
    draw,
    goTo(location) {
      const [start, end] = stretch(area.value, location);
      area.focus();
      area.setSelectionRange(start, end);
    },
    insert: (text) => insert(area, text),
  };
}
