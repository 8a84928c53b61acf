/** Copy and download, made in the page. */

import { toast } from "./dom.js";

/** Copy a text; where the browser forbids it, select it in `node` for Ctrl-C. */
export async function copy(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    getSelection().selectAllChildren(node);
    toast("Selected: press Ctrl-C to copy.");
  }
}

/** Offer `text` as a file. */
export function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
