/** The example queries beside the console: `examples/index.json` names them. */

const folder = new URL("../examples/", import.meta.url);
let list = null;

async function load() {
  const response = await fetch(new URL("index.json", folder));
  if (!response.ok) throw new Error(`examples: ${response.status}`);
  return (await response.json()).map((example) => ({ ...example, text: () => text(example.file) }));
}

async function text(file) {
  const response = await fetch(new URL(file, folder));
  if (!response.ok) throw new Error(`${file}: ${response.status}`);
  return response.text();
}

/** The examples `{file, title, kind, text()}`, read once. */
export function examples() {
  list ??= load();
  list.catch(() => { list = null; });
  return list;
}
