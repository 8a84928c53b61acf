/** Ask before something is lost. */

import { h } from "./dom.js";

/** Resolves to whether the person agreed; Escape and Cancel do not. */
export function confirm(title, text, agree) {
  return new Promise((resolve) => {
    const close = h("button", { value: "cancel" }, "Cancel");
    const dialog = h("dialog", { "aria-labelledby": "confirm-title" },
      h("form", { method: "dialog" }, h("h2", { id: "confirm-title" }, title), h("p", null, text),
        h("div", { class: "row end" }, close, h("button", { value: "agree", class: "danger solid" }, agree))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "agree");
    });
    document.body.append(dialog);
    dialog.showModal();
    close.focus();
  });
}
