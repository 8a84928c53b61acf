/** The page of one stream: what it is, a form to push to it, its last items. */

import { address, api } from "../lib/api.js";
import { catalog, refresh, watch } from "../lib/catalog.js";
import { copy } from "../lib/clipboard.js";
import { confirm } from "../lib/confirm.js";
import { button, h, setText, toast } from "../lib/dom.js";
import { editor, paint } from "../lib/editor.js";
import { clock, count, durationText, plural, rate } from "../lib/format.js";
import { problemBox } from "../lib/problems.js";

const TAIL_ITEMS = 20;
const FORMATS = [["application/trig", "TriG"], ["text/turtle", "Turtle"], ["application/n-quads", "N-Quads"],
  ["application/n-triples", "N-Triples"], ["application/ld+json", "JSON-LD"]];

function sample(stream) {
  const now = new Date().toISOString();
  const predicate = stream.timestampPredicate ?? "http://www.w3.org/ns/prov#generatedAtTime";
  const stamp = stream.time === "event" ? `_:item <${predicate}> "${now}"^^xsd:dateTime .\n` : "";
  return `PREFIX ex: <http://example.org/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>

${stamp}_:item {
  ex:sensor1 ex:temperature 21.5 .
}
`;
}

class StreamPage {
  constructor(parent, stream) {
    this.stream = stream;
    this.facts = h("dl", { class: "facts" });
    this.receipt = h("div", { role: "status" });
    this.tail = h("div");
    this.dead = h("div");
    this.format = h("select", null, FORMATS.map(([type, label]) => h("option", { value: type }, label)));
    this.box = editor({ label: "Items to push", value: sample(stream), submit: () => this.push() });
    this.#build(parent);
    this.update(stream);
    this.showTail();
  }

  #build(parent) {
    const { stream } = this;
    const curl = `curl -X POST ${address(["streams", stream.name])} -H 'Content-Type: application/trig' -T item.trig`;
    const code = h("code", null, curl);
    const remove = button("Delete", () => this.#delete(), { class: "danger" });
    parent.append(
      h("div", { class: "head" }, h("div", null, h("h1", null, stream.name), h("p", { class: "iri" }, stream.iri)), h("div", { class: "actions" }, remove)),
      this.facts,
      h("section", { "aria-label": "Push" }, h("h2", null, "Push items"), this.box.node,
        h("div", { class: "row" }, h("label", { class: "choice" }, h("span", null, "Format"), this.format),
          button("Push", () => this.push(), { class: "primary" }),
          button("New sample", () => this.box.setText(sample(this.stream)), { class: "quiet" }),
          h("span", { class: "note" }, stream.time === "event" ? "Ctrl-Enter pushes. Each item carries its time stamp." : "Ctrl-Enter pushes. The server stamps items as they arrive.")),
        this.receipt),
      h("section", { "aria-label": "From elsewhere" }, h("h2", null, "From elsewhere"),
        h("div", { class: "command" }, h("pre", null, code), button("Copy as curl", () => copy(curl, code)))),
      h("section", { "aria-label": "Last items" }, h("div", { class: "row between" }, h("h2", null, "Last items"),
        button("Reload", () => this.showTail(), { class: "quiet" })), this.tail), this.dead);
  }

  update(stream) {
    this.stream = stream;
    const state = stream.state ?? {};
    const facts = [["Items", count(state.items)], ["Rate", rate(state.itemsPerSecond ?? 0)], ["Complete up to", clock(state.watermark)],
      ["Time", stream.time === "event" ? "of the item" : "of arrival"], ["Lateness", durationText(stream.lateness)], ["Idle after", durationText(stream.idle)],
      ["Retention", durationText(stream.retention)], ["Late", count(state.late)], ["Dead letters", count(state.deadLetters)]];
    if (this.facts.children.length) facts.forEach(([, value], i) => setText(this.facts.children[i].lastChild, value));
    else this.facts.append(...facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
    if ((state.deadLetters ?? 0) !== (this.deadShown ?? 0)) this.#showDead(state.deadLetters);
  }

  async push() {
    const type = this.format.value;
    try {
      const { body } = await api.push(this.stream.name, this.box.text, type);
      this.box.setErrors([]);
      const parts = [plural(body.accepted, "item") + " accepted", body.late ? `${count(body.late)} late` : "",
        body.duplicate ? `${count(body.duplicate)} duplicate` : "", body.rejected ? `${count(body.rejected)} rejected` : "",
        body.watermark ? `complete up to ${clock(body.watermark)}` : ""];
      this.receipt.replaceChildren(h("p", { class: `verdict ${body.late || body.rejected ? "warn" : "good"}` }, parts.filter(Boolean).join(" · ")));
      refresh();
      this.showTail();
    } catch (problem) {
      this.box.setErrors(problem.errors);
      this.receipt.replaceChildren(problemBox(problem, "Nothing of this push was taken.", (location) => this.box.goTo(location)));
    }
  }

  async showTail() {
    try {
      const { body } = await api.items(this.stream.name, TAIL_ITEMS);
      const text = typeof body === "string" ? body : JSON.stringify(body, null, 2);
      this.tail.replaceChildren(text.trim() ? h("pre", { class: "code tail", tabindex: 0, "aria-label": "Last items" }, paint(text))
        : h("p", { class: "empty" }, "No item yet: push one above."));
    } catch (problem) {
      this.tail.replaceChildren(h("p", { class: "empty" }, `The last items cannot be shown: ${problem.message}`));
    }
  }

  async #showDead(size) {
    this.deadShown = size ?? 0;
    try {
      const { body } = await api.deadLetters(this.stream.name);
      const text = typeof body === "string" ? body : JSON.stringify(body, null, 2);
      this.dead.replaceChildren(h("h2", null, "Dead letters"), h("p", { class: "note" }, "Items that were refused or came too late, with the reason."),
        h("pre", { class: "code tail", tabindex: 0, "aria-label": "Dead letters" }, text));
    } catch (problem) {
      this.dead.replaceChildren(problemBox(problem));
    }
  }

  async #delete() {
    const users = this.stream.usedBy ?? [];
    const text = users.length ? `It is used by ${users.join(", ")}: delete these queries first.` : "Its stored items are removed too.";
    if (!await confirm(`Delete the stream ${this.stream.name}?`, text, "Delete")) return;
    try {
      await api.deleteStream(this.stream.name);
      toast(`The stream ${this.stream.name} was deleted.`);
      refresh();
      location.hash = "#/";
    } catch (problem) {
      toast(problem.message, "bad");
    }
  }
}

/** Show the stream `name`. */
export function stream(parent, name) {
  let page = null;
  let closed = false;
  parent.append(h("p", { class: "wait" }, `Loading ${name} …`));
  api.stream(name).then(({ body }) => {
    if (closed) return;
    parent.replaceChildren();
    page = new StreamPage(parent, body);
  }, (problem) => {
    const advice = h("span", null, "Choose another at the left, or ", h("a", { href: "#/streams" }, "add a stream"), ".");
    if (!closed) parent.replaceChildren(h("h1", null, name), problemBox(problem, advice));
  });
  const end = watch(() => {
    const now = catalog.streams.find((one) => one.name === name);
    if (now) page?.update({ ...page.stream, ...now });
  });
  return { title: name, close: () => {
    closed = true;
    end();
  } };
}
