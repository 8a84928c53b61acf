/** The rule sets that queries name by USING RULES: a list, and an editor for those of RIF, LARS and DatalogMTL. */

import { api, listOf } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { button, field, h, toast } from "../lib/dom.js";
import { editor } from "../lib/editor.js";
import { plural } from "../lib/format.js";
import { LANGUAGES, languageOfType, RULE_LANGUAGES } from "../lib/languages.js";
import { choice, head, scroll, section } from "../lib/parts.js";
import { outcomeText, problemBox } from "../lib/problems.js";
import { Checking } from "./checking.js";
import { languageChoice } from "./languages.js";

const HEADS = ["Rule set", "Language", "What it says", "Used by", ""];
const NAME = "[A-Za-z][A-Za-z0-9_.\\-]{0,63}";
const ENDINGS = ".rifps,.rif,.xml,.lars,.dmtl,.datalogmtl";

const languageName = (type) => LANGUAGES[languageOfType(type)]?.name ?? type ?? "built in";

/** What is being written survives a look at another page. */
const draft = { name: "", text: "", language: "" };

class RulesPage {
  constructor(parent, name) {
    this.name = h("input", { type: "text", required: true, pattern: NAME, placeholder: "alarms", value: draft.name,
      spellcheck: "false", autocomplete: "off", on: { input: () => { draft.name = this.name.value; } } });
    this.language = languageChoice(draft.language, RULE_LANGUAGES, (chosen) => this.#speak(chosen));
    this.box = editor({ label: "Rules", value: draft.text, size: "tall", changed: (text) => this.#changed(text),
      submit: () => this.form.requestSubmit(), language: (text) => this.language.of(text) });
    const ask = (signal) => api.explain(this.box.text, this.#type, signal, { as: "rules" });
    this.check = new Checking(this.box, "Write rules, or take a file.", ask);
    this.file = h("input", { type: "file", accept: ENDINGS, on: { change: () => this.#read() } });
    this.outcome = h("div");
    this.list = h("tbody");
    const heads = HEADS.map((text) => h("th", { scope: "col" }, text));
    const save = h("button", { type: "submit", class: "primary" }, "Save the rule set");
    const note = "A rule set of that name is replaced; queries that use it are planned anew.";
    this.form = h("form", { class: "stack", on: { submit: (event) => this.#submit(event) } },
      h("div", { class: "row form" }, h("div", { class: "wide" }, field("Name", this.name)), field("From a file", this.file)),
      this.box.node,
      h("div", { class: "row" }, choice("Language", this.language.node), save, h("span", { class: "note" }, note),
        this.check.verdict),
      this.outcome, this.check.errors);
    parent.append(head("Rule sets", h("p", { class: "note" }, "Named in a query by USING RULES.")),
      scroll("Rule sets", h("table", { class: "grid" }, h("thead", null, h("tr", null, heads)), this.list)),
      section("Write a rule set", null, this.form));
    this.#changed(this.box.text);
    this.showList();
    if (name) this.#load(name);
  }

  #speak(chosen) {
    draft.language = chosen;
    this.box.setErrors([]);
    this.check.changed();
  }

  get #type() {
    return LANGUAGES[this.language.of(this.box.text)].type;
  }

  #changed(text) {
    draft.text = text;
    this.language.show(text);
    this.check.changed();
  }

  /** Put a text into the editor, with its language where that is known. */
  #set(text, name, language = "") {
    draft.name = this.name.value = name;
    draft.language = language;
    this.language.choose(language);
    this.box.setText(text);
    this.#changed(text);
  }

  async #load(name) {
    try {
      const { body } = await api.ruleSet(name);
      const fixed = h("p", { class: "notice" }, `${name} is built in: it can be named, not changed.`);
      if (body.builtIn) this.outcome.replaceChildren(fixed);
      else this.#set(body.text, name, languageOfType(body.type) ?? "");
    } catch (problem) {
      this.outcome.replaceChildren(problemBox(problem));
    }
  }

  async #read() {
    const [chosen] = this.file.files;
    if (chosen) this.#set(await chosen.text(), this.name.value || chosen.name.replace(/\..*$/, ""));
  }

  async #submit(event) {
    event.preventDefault();
    const name = this.name.value.trim();
    try {
      const { body } = await api.putRules(name, this.box.text, this.#type);
      this.outcome.replaceChildren();
      this.check.show([]);
      toast(`The rule set ${name} is there: ${plural(body.clauses, "rule or fact", "rules and facts")}.`);
      await this.showList();
    } catch (problem) {
      this.check.stop();
      this.check.show([]);
      this.check.say("bad", "Not saved.");
      this.box.setErrors(problem.errors ?? []);
      this.outcome.replaceChildren(problemBox(problem, outcomeText(problem, "The rule set is unchanged."),
        (location) => this.box.goTo(location)));
    }
  }

  async showList() {
    try {
      this.list.replaceChildren(...listOf((await api.rules()).body, "rules").map((one) => this.#row(one)));
    } catch (problem) {
      this.outcome.replaceChildren(problemBox(problem));
    }
  }

  #row({ name, description, builtIn, type, clauses, usedBy = [] }) {
    const gone = () => button("Delete", () => this.#remove(name, usedBy),
      { class: "quiet danger small", "aria-label": `Delete ${name}` });
    const open = h("a", { href: `#/rules/${encodeURIComponent(name)}` }, name);
    return h("tr", null, h("th", { scope: "row" }, builtIn ? name : open), h("td", null, languageName(type)),
      h("td", null, description ?? plural(clauses, "rule or fact", "rules and facts")), h("td", null, usedBy.join(", ") || "–"),
      h("td", { class: "end" }, builtIn ? null : gone()));
  }

  async #remove(name, usedBy) {
    const text = usedBy.length ? `It is used by ${usedBy.join(", ")}.` : "Queries can no longer name it.";
    if (!await confirm("Delete this rule set?", `${name}. ${text}`, "Delete")) return;
    try {
      await api.deleteRules(name);
    } catch (problem) {
      toast(problem.message, "bad");
    }
    await this.showList();
  }
}

/** The page of all rule sets, with that called `name`, if any, in the editor. */
export function rules(parent, name) {
  const page = new RulesPage(parent, name);
  return { title: "Rule sets", close: () => page.check.stop() };
}
