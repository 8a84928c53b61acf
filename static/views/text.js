/** The text of a query or a rule program, and the way to write another from it. */

import { button, h } from "../lib/dom.js";
import { paint } from "../lib/editor.js";
import { languageOf } from "../lib/languages.js";
import { code } from "../lib/parts.js";
import { draft } from "./editor.js";

/** The tab of the page of a query. */
export function text({ query, language }) {
  const written = query.text ?? "";
  const edit = button("Edit as a new query", () => {
    draft.set(written, "", languageOf(written) === language ? "" : language);
    location.hash = "#/new";
  });
  return h("div", { class: "stack" }, code("Text", paint(written, [], language)), h("div", { class: "row" }, edit));
}
