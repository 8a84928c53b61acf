/** The example queries and rule programs beside the console: `examples/index.json` names them. */

import { h, toast } from "./dom.js";

const folder = new URL("../examples/", import.meta.url);
let list = null;

async function read(file) {
  const response = await fetch(new URL(file, folder));
  if (!response.ok) throw new Error(`The example ${file} cannot be read (${response.status}).`);
  return response;
}

/** The examples `{file, title, kind}`, read once. */
function examples() {
  list ??= read("index.json").then((response) => response.json());
  list.catch(() => { list = null; });
  return list;
}

function group(label, found) {
  const options = found.map(({ file, title }) => h("option", { value: file }, title));
  return label && found.length ? [h("optgroup", { label }, options)] : options;
}

/**
 * A list to choose an example from; `show(text)` gets the chosen one.
 * @param {Object<string, string>} kinds  which there are to choose from (continuous, program, sparql), each with its heading
 */
export function examplePicker(kinds, show) {
  const picker = h("select", { "aria-label": "Load an example" }, h("option", { value: "" }, "Load an example …"));
  examples().then((all) => picker.append(...Object.entries(kinds).flatMap(([kind, label]) =>
    group(label, all.filter((one) => one.kind === kind)))), () => { picker.disabled = true; });
  picker.addEventListener("change", async () => {
    const file = picker.value;
    picker.value = "";
    try {
      if (file) show(await (await read(file)).text());
    } catch (error) {
      toast(error.message, "bad");
    }
  });
  return picker;
}
