/** The form that adds a stream. */

import { api } from "../lib/api.js";
import { refresh } from "../lib/catalog.js";
import { field, h, toast } from "../lib/dom.js";
import { head } from "../lib/parts.js";
import { problemBox } from "../lib/problems.js";

function input(attributes) {
  return h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...attributes });
}

export function newStream(parent) {
  const name = input({ name: "name", required: true, pattern: "[A-Za-z][A-Za-z0-9_.\\-]{0,63}", placeholder: "temps" });
  const iri = input({ name: "iri", placeholder: "http://example.org/temps" });
  const time = h("select", { name: "time" }, h("option", { value: "arrival" }, "arrival: the server stamps items"),
    h("option", { value: "event" }, "event: each item carries its time stamp"));
  const lateness = input({ name: "lateness", value: "PT0S" });
  const idle = input({ name: "idle", value: "PT5S" });
  const outcome = h("div");

  async function submit(event) {
    event.preventDefault();
    const descriptor = { time: time.value, lateness: lateness.value.trim(), idle: idle.value.trim() };
    if (iri.value.trim()) descriptor.iri = iri.value.trim();
    try {
      const { body } = await api.putStream(name.value.trim(), descriptor);
      toast(`The stream ${name.value.trim()} is there.`);
      refresh();
      location.hash = `#/streams/${encodeURIComponent(body?.name ?? name.value.trim())}`;
    } catch (problem) {
      outcome.replaceChildren(problemBox(problem, problem.status === 409 ? "Choose another name." : null));
    }
  }

  parent.append(head("Add a stream"),
    h("form", { class: "card form-grid", on: { submit } },
      field("Name", name, "Letters, digits, _ . -; it is part of the stream's address."),
      field("IRI", iri, "What FROM STREAM names; made from the name where it is left empty."),
      field("Time", time, "Which clock windows follow."),
      field("Lateness", lateness, "How far behind the newest item others may still come (event time), as PT2S."),
      field("Idle after", idle, "Silence after which the stream no longer holds other streams back."),
      h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Add the stream"))), outcome);
  name.focus();
  return { title: "Add a stream", close: () => {} };
}
