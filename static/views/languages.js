/** The choice of the language of an editor: it follows the text, or is chosen by hand. */

import { h, setText } from "../lib/dom.js";
import { languageOf, LANGUAGES } from "../lib/languages.js";

/**
 * A choice `{node, of(text), show(text), choose(language)}`: `of` tells the language of a text, `show` what follows from a
 * new one, `choose` takes another one, or (empty) follows the text again.
 * @param {string} chosen  the language that was chosen by hand; empty where it follows the text
 * @param {string[]} offered  the first is taken for texts that look like none of these
 * @param {(chosen: string) => void} changed  called when a person has chosen
 */
export function languageChoice(chosen, offered, changed) {
  const auto = h("option", { value: "" });
  const box = h("select", { on: { change: () => changed(box.value) } }, auto,
    offered.map((language) => h("option", { value: language }, LANGUAGES[language].name)));
  box.value = chosen;

  function follows(text) {
    const found = languageOf(text);
    return offered.includes(found) ? found : offered[0];
  }

  return {
    node: box,
    of: (text) => box.value || follows(text),
    show: (text) => setText(auto, `As the text: ${LANGUAGES[follows(text)].name}`),
    choose(language) {
      box.value = language;
    },
  };
}
