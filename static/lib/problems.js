/** Errors as people read them: where, what, the line with its caret, and how to write it instead. */

import { h } from "./dom.js";
import { duration } from "./format.js";

/** The errors of a Problem, one at least. */
export function errorsOf(problem) {
  return problem.errors.length ? problem.errors : [{ detail: problem.message }];
}

function entry(error, goTo, kind) {
  const { line, column } = error.location ?? {};
  const place = line ? `Line ${line}, column ${column ?? 1}` : "";
  const jump = { type: "button", class: "link place", on: { click: () => goTo(error.location) } };
  return h("li", { class: kind },
    kind === "warning" ? h("b", null, "Warning: ") : null,
    place && goTo ? h("button", jump, place) : place,
    h("span", { class: "detail" }, error.detail ?? ""),
    error.snippet ? h("pre", { class: "snippet" }, error.snippet) : null,
    error.note ? h("p", { class: "note" }, error.note) : null,
    error.hint ? h("p", { class: "hint" }, h("b", null, "Try: "), h("code", null, error.hint)) : null);
}

/** A list of errors, and of warnings after them; `goTo(location)` moves the caret of an editor. */
export function errorList(errors, goTo, warnings = []) {
  return h("ul", { class: "errors" }, errors.map((error) => entry(error, goTo, null)),
    warnings.map((warning) => entry(warning, goTo, "warning")));
}

/** What became of a change that the server did not confirm: nothing, where it has refused it; else that is not known. */
export function outcomeText(problem, refused) {
  return problem.status ? refused : "Whether the server has taken it is not known: look before you try again.";
}

/** When the server says that one may try again. */
function waitText({ retryAfter }) {
  return retryAfter ? `The server asks to wait ${duration(1000 * retryAfter)} before the next try.` : null;
}

/** A box for a failed action: the title, the server's words, and what to do next. */
export function problemBox(problem, advice, goTo) {
  const title = problem.title && problem.title !== problem.message ? h("p", { class: "title" }, problem.title) : null;
  const places = problem.errors?.length ? errorList(problem.errors, goTo) : h("p", null, problem.message);
  const wait = waitText(problem);
  return h("div", { class: "notice bad", role: "alert" }, title, places, wait ? h("p", null, wait) : null,
    advice ? h("p", null, advice) : null);
}
