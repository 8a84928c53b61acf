/** The page on which a query or a rule program is written, checked while typing, and registered. */

import { api } from "../lib/api.js";
import { catalog, refresh, watch } from "../lib/catalog.js";
import { button, h, keyed, setAttribute, setText, toast } from "../lib/dom.js";
import { editor } from "../lib/editor.js";
import { examplePicker } from "../lib/examples.js";
import { plural } from "../lib/format.js";
import { nameOf } from "../lib/highlight.js";
import { LANGUAGES } from "../lib/languages.js";
import { choice, code, head } from "../lib/parts.js";
import { errorList, errorsOf, problemBox } from "../lib/problems.js";
import { languageChoice } from "./languages.js";

const CHECK_AFTER_MS = 350;
const EXAMPLES = { continuous: "Queries", program: "Rule programs" };
const START = `REGISTER QUERY my_query AS
SELECT ?s (COUNT(*) AS ?triples)
FROM STREAM <STREAM> [RANGE 10s STEP 2s]
WHERE { ?s ?p ?o }
GROUP BY ?s
`;

/** What is being written survives a look at another page. */
export const draft = {
  text: null,
  name: "",
  /** The language chosen by hand; empty where it follows the text. */
  language: "",
  set(text, name, language = "") {
    Object.assign(this, { text, name, language });
  },
};

function startText() {
  return START.replace("STREAM>", `${catalog.streams[0]?.iri ?? "http://example.org/stream"}>`);
}

/** What the server warned of when it registered a query, by name, until the query's page has told it. */
export const warned = new Map();

class Writer {
  constructor(parent) {
    this.language = languageChoice(draft.language, Object.keys(LANGUAGES), (chosen) => this.#speak(chosen));
    this.box = editor({ label: "Query text", value: draft.text ?? startText(), size: "tall", changed: () => this.changed(),
      submit: () => this.register(), language: (text) => this.language.of(text) });
    this.name = h("input", { type: "text", value: draft.name, maxlength: 64, spellcheck: "false", autocomplete: "off",
      on: { input: () => { draft.name = this.name.value.trim(); } } });
    this.verdict = h("p", { class: "verdict", role: "status" });
    this.errors = h("div", { class: "messages" });
    this.outcome = h("div");
    this.details = h("details", { class: "plan-preview", hidden: true }, h("summary", null, "Plan and estimate"));
    this.streams = h("ul", { class: "chips" });
    this.streamPart = h("section", { "aria-label": "Streams" }, h("h2", null, "Streams"),
      h("p", { class: "note" }, "Choose one to insert its address at the caret."), this.streams);
    this.#build(parent);
    this.#showStreams();
    this.changed();
  }

  #build(parent) {
    const go = button("Register", () => this.register(), { class: "primary" });
    parent.append(
      head("New query", null, examplePicker(EXAMPLES, (text) => this.#load(text))),
      this.box.node,
      h("div", { class: "row" }, choice("Language", this.language.node), choice("Name", this.name), go,
        h("span", { class: "note" }, "Ctrl-Enter registers"), this.verdict),
      this.outcome, this.errors, this.details,
      this.streamPart);
  }

  #showStreams() {
    this.streamPart.hidden = !catalog.streams.length;
    keyed(this.streams, catalog.streams, (stream) => stream.name, ({ name, iri }) => {
      const insert = () => this.box.insert(`<${iri}>`);
      return { node: h("li", null, h("button", { type: "button", class: "chip", title: iri, on: { click: insert } }, name)) };
    });
  }

  update() {
    this.#showStreams();
  }

  /** The language has been chosen by hand, or (empty) is to follow the text again. */
  #speak(chosen) {
    draft.language = chosen;
    this.box.setErrors([]);
    this.changed();
  }

  /** The name that the text itself gives, if any: rule programs give none. */
  get #ownName() {
    return this.language.of(this.box.text) === "sparql" ? nameOf(this.box.text) : "";
  }

  get #type() {
    return LANGUAGES[this.language.of(this.box.text)].type;
  }

  #load(text) {
    this.language.choose("");
    draft.language = "";
    this.box.setText(text);
    this.name.value = draft.name = "";
    this.box.area.focus();
    this.changed();
  }

  /** The text has changed: remember it, and check it when the typing pauses. */
  changed() {
    draft.text = this.box.text;
    this.language.show(this.box.text);
    setAttribute(this.name, "placeholder", this.#ownName || "chosen by the server");
    clearTimeout(this.timer);
    this.check?.abort();
    if (!this.box.text.trim()) {
      this.#say("", "Write a query, or load an example.");
      this.#showErrors([]);
      return;
    }
    this.timer = setTimeout(() => this.#explain(), CHECK_AFTER_MS);
  }

  async #explain() {
    this.check = new AbortController();
    this.#say("", "Checking …");
    try {
      const { body } = await api.explain(this.box.text, this.#type, this.check.signal);
      const { errors = [], warnings = [] } = body;
      this.#showErrors(errors, warnings);
      if (errors.length || body.valid === false) this.#say("bad", this.#countText(errors));
      else if (warnings.length) this.#say("warn", `This text is valid, with ${plural(warnings.length, "warning")}.`);
      else this.#say("good", "This text is valid.");
      this.#showPlan(body);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.details.hidden = true;
      const foreign = problem.status === 0 || problem.status >= 500 || problem.status === 429;
      this.#showErrors(foreign ? [] : errorsOf(problem));
      this.#say(foreign ? "warn" : "bad", foreign ? `Not checked: ${problem.message}` : this.#countText(errorsOf(problem)));
    }
  }

  #countText(errors) {
    return errors.length > 1 ? `${errors.length} errors` : "1 error";
  }

  #say(tone, text) {
    setAttribute(this.verdict, "class", `verdict ${tone}`);
    setText(this.verdict, text);
  }

  #showErrors(errors, warnings = []) {
    this.box.setErrors(errors, warnings);
    const some = errors.length + warnings.length > 0;
    this.errors.replaceChildren(...(some ? [errorList(errors, (location) => this.box.goTo(location), warnings)] : []));
  }

  #showPlan({ plan, estimate }) {
    const texts = [["Estimate", estimate], ["Plan", plan]].filter(([, value]) => value);
    this.details.hidden = !texts.length;
    const nodes = texts.map(([title, value]) => [h("h3", null, title),
      code(title, typeof value === "string" ? value : JSON.stringify(value, null, 2))]);
    this.details.replaceChildren(this.details.querySelector("summary"), ...nodes.flat());
  }

  async register(replace = false) {
    const name = this.name.value.trim();
    this.outcome.replaceChildren();
    try {
      const { body } = replace || name
        ? await api.registerAs(name || this.#ownName, this.box.text, this.#type, replace)
        : await api.register(this.box.text, this.#type);
      draft.set(null, "");
      toast(`The query ${body.name} is registered.`);
      warned.set(body.name, body.warnings ?? []);
      refresh();
      location.hash = `#/queries/${encodeURIComponent(body.name)}`;
    } catch (problem) {
      this.#refused(problem);
    }
  }

  #refused(problem) {
    if (problem.errors.length) {
      this.#showErrors(problem.errors);
      this.#say("bad", "Not registered: correct the text first.");
      return;
    }
    const advice = { "name-exists": "Choose another name, or replace the query: it starts anew and its feed says so.",
      "unknown-stream": h("span", null, h("a", { href: "#/streams" }, "Add the stream"), ", or choose one of those below."),
      unreachable: "Your text is kept; try again when the server is back." }[problem.slug];
    this.outcome.replaceChildren(problemBox(problem, advice, (location) => this.box.goTo(location)));
    if (problem.slug !== "name-exists") return;
    this.outcome.append(h("div", { class: "row" }, button("Replace it", () => this.register(true), { class: "danger" })));
  }
}

export function writer(parent) {
  const page = new Writer(parent);
  page.box.area.focus();
  const end = watch(() => page.update());
  return { title: "New query", close: () => {
    end();
    clearTimeout(page.timer);
    page.check?.abort();
  } };
}
