/** The page on which a query or a rule program is written, checked while typing, and registered. */

import { api } from "../lib/api.js";
import { catalog, refresh, watch } from "../lib/catalog.js";
import { button, h, keyed, setAttribute, toast } from "../lib/dom.js";
import { editor } from "../lib/editor.js";
import { examplePicker } from "../lib/examples.js";
import { nameOf } from "../lib/highlight.js";
import { LANGUAGES } from "../lib/languages.js";
import { choice, code, head } from "../lib/parts.js";
import { problemBox } from "../lib/problems.js";
import { Checking } from "./checking.js";
import { languageChoice } from "./languages.js";

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
    const ask = (signal) => api.explain(this.box.text, this.#type, signal);
    this.check = new Checking(this.box, "Write a query, or load an example.", ask, (body) => this.#showPlan(body));
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
        h("span", { class: "note" }, "Ctrl-Enter registers"), this.check.verdict),
      this.outcome, this.check.errors, this.details,
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
    this.check.changed();
  }

  #showPlan(body) {
    const texts = [["Estimate", body?.estimate], ["Plan", body?.plan]].filter(([, value]) => value);
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
      this.check.show(problem.errors);
      this.check.say("bad", "Not registered: correct the text first.");
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
    page.check.stop();
  } };
}
