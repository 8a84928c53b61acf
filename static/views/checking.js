/** What is wrong with a text that is being written: asked of the server when the typing pauses, underlined, listed, summed up. */

import { h, setAttribute, setText } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { errorList, errorsOf } from "../lib/problems.js";

const CHECK_AFTER_MS = 350;

const countText = (errors) => (errors.length > 1 ? `${errors.length} errors` : "1 error");

export class Checking {
  #timer = null;
  #asked = null;

  /**
   * @param {object} box  the editor (`lib/editor.js`)
   * @param {string} nothing  what to say of an empty text
   * @param {(signal: AbortSignal) => Promise<{body: object}>} ask  asks `/explain` of the text as it is
   * @param {(body: object | null) => void} found  told what it answered; null where it did not
   */
  constructor(box, nothing, ask, found = () => {}) {
    this.box = box;
    this.nothing = nothing;
    this.ask = ask;
    this.found = found;
    this.verdict = h("p", { class: "verdict", role: "status" });
    this.errors = h("div", { class: "messages" });
  }

  /** The text, or the language that it is in, has changed. */
  changed() {
    this.stop();
    if (!this.box.text.trim()) {
      this.say("", this.nothing);
      this.show([]);
      return;
    }
    this.#timer = setTimeout(() => this.#explain(), CHECK_AFTER_MS);
  }

  /** Ask no more, and forget what was asked. */
  stop() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
  }

  say(tone, text) {
    setAttribute(this.verdict, "class", `verdict ${tone}`);
    setText(this.verdict, text);
  }

  show(errors, warnings = []) {
    this.box.setErrors(errors, warnings);
    const some = errors.length + warnings.length > 0;
    this.errors.replaceChildren(...(some ? [errorList(errors, (location) => this.box.goTo(location), warnings)] : []));
  }

  async #explain() {
    this.#asked = new AbortController();
    this.say("", "Checking …");
    try {
      const { body } = await this.ask(this.#asked.signal);
      const { errors = [], warnings = [] } = body;
      this.show(errors, warnings);
      if (errors.length || body.valid === false) this.say("bad", countText(errors));
      else if (warnings.length) this.say("warn", `This text is valid, with ${plural(warnings.length, "warning")}.`);
      else this.say("good", "This text is valid.");
      this.found(body);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.found(null);
      const foreign = problem.status === 0 || problem.status >= 500 || problem.status === 429;
      this.show(foreign ? [] : errorsOf(problem));
      this.say(foreign ? "warn" : "bad", foreign ? `Not checked: ${problem.message}` : countText(errorsOf(problem)));
    }
  }
}
