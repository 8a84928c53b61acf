/** The example queries beside the console: `examples/index.json` names them. */

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

/** A list to choose an example of a kind (continuous, sparql) from; `show(text)` gets the chosen one. */
export function examplePicker(kind, show) {
  const picker = h("select", { "aria-label": "Load an example" }, h("option", { value: "" }, "Load an example …"));
  examples().then((all) => picker.append(...all.filter((one) => one.kind === kind).map(({ file, title }) =>
    h("option", { value: file }, title))), () => { picker.disabled = true; });
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
