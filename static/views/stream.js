/** The page of one stream: what it is, a form to push to it or the topic that it is read from, its last items. */

import { address, api, listOf } from "../lib/api.js";
import { catalog, lostMs, refresh, watch } from "../lib/catalog.js";
import { confirm } from "../lib/confirm.js";
import { button, h, toast } from "../lib/dom.js";
import { editor, paint } from "../lib/editor.js";
import { clock, count, durationText, plural, rate } from "../lib/format.js";
import { choice, code, command, facts, head, loaded, scroll, section } from "../lib/parts.js";
import { outcomeText, problemBox } from "../lib/problems.js";
import { FORMATS, sample } from "../lib/samples.js";

const TAIL_ITEMS = 20;

/** A dead letter; `more` characters of its text, or for the reason `omitted` so many more letters, are not kept. */
function letterRow({ reason, time, text, more }) {
  const left = more ? ` … ${count(more)} more` : "";
  return h("tr", null, h("td", null, clock(time)), h("td", null, reason ?? ""), h("td", null, h("code", null, text ?? ""), left));
}

/** A partition of a topic. */
function partitionRow([number, { offset, watermark, silent }]) {
  return h("tr", null, h("td", { class: "number" }, number), h("td", { class: "number" }, count(offset)),
    h("td", null, clock(watermark)), h("td", null, silent ? "silent: it holds the others back no more" : ""));
}

const plain = (body) => typeof body === "string" ? body : JSON.stringify(body, null, 2);

class StreamPage {
  constructor(parent, stream) {
    this.stream = stream;
    this.facts = facts();
    this.receipt = h("div", { role: "status" });
    this.tail = h("div");
    this.topic = h("div");
    this.dead = h("div");
    this.deadShown = 0;
    this.format = h("select", { on: { change: () => this.#showSample(false) } },
      FORMATS.map(([type, label]) => h("option", { value: type }, label)));
    this.box = editor({ label: "Items to push", value: this.sample = this.#sample(), submit: () => this.push() });
    this.#build(parent);
    this.update(stream);
    this.showTail();
    this.close = watch(() => this.update(catalog.streams.find((one) => one.name === stream.name) ?? this.stream));
  }

  #build(parent) {
    const { name, iri, time, source } = this.stream;
    const last = section("Last items", button("Reload", () => this.showTail(), { class: "quiet" }), this.tail);
    if (source?.type === "query") {
      const maker = h("a", { href: `#/queries/${encodeURIComponent(source.query)}` }, source.query);
      parent.append(head(name, h("p", { class: "iri" }, iri)), this.facts.node,
        h("p", null, "The results of the query ", maker, " are its items; nothing can be pushed to it."), last);
      return;
    }
    if (source?.type === "kafka") {
      parent.append(
        head(name, h("p", { class: "iri" }, iri), button("Delete", () => this.#delete(), { class: "danger" })), this.facts.node,
        h("p", null, "The records of the topic ", h("code", null, source.topic), " at ", h("code", null, source.bootstrapServers),
          " are its items; nothing can be pushed to it."), this.topic, last, this.dead);
      return;
    }
    const stamped = time === "event" ? "Each item carries its time stamp." : "The server stamps items as they arrive.";
    parent.append(
      head(name, h("p", { class: "iri" }, iri), button("Delete", () => this.#delete(), { class: "danger" })),
      this.facts.node,
      section("Push items", null, this.box.node,
        h("div", { class: "row" }, choice("Format", this.format), button("Push", () => this.push(), { class: "primary" }),
          button("New sample", () => this.#showSample(true), { class: "quiet" }),
          h("span", { class: "note" }, `Ctrl-Enter pushes. ${stamped}`)),
        this.receipt),
      section("From elsewhere", null,
        command(`curl -X POST ${address(["streams", name])} -H 'Content-Type: application/trig' -T item.trig`)),
      last, this.dead);
  }

  #sample() {
    return sample(this.format.value, this.stream);
  }

  /** A sample in the chosen format; a text that the person has changed stays unless a new sample is `asked` for. */
  #showSample(asked) {
    if (!asked && this.box.text !== this.sample) return;
    this.sample = this.#sample();
    this.box.setText(this.sample);
  }

  update(stream) {
    this.stream = { ...this.stream, ...stream };
    const { state = {}, time, lateness, idle, retention } = this.stream;
    this.facts.show([["Items", count(state.items)], ["Rate", rate(lostMs() === null ? state.itemsPerSecond : null)],
      ["Complete up to", clock(state.watermark), "UTC: the watermark"], ["Time", time === "event" ? "of the item" : "of arrival"],
      ["Lateness", durationText(lateness)], ["Idle after", durationText(idle)], ["Retention", durationText(retention)],
      ["Late", count(state.late)], ["Dead letters", count(state.deadLetters)],
      ...(state.topic ? [["Topic", state.topic], ["Not read yet", count(state.behind)], ["Lost", count(state.lost)]] : [])]);
    if (state.topic) this.#showTopic(state);
    if ((state.deadLetters ?? 0) !== this.deadShown) this.#showDead(state.deadLetters);
  }

  #showTopic({ error, partitions = {} }) {
    const heads = ["Partition", "Goes on at", "Complete up to", ""].map((text) => h("th", { scope: "col" }, text));
    const rows = Object.entries(partitions).map(partitionRow);
    const table = h("table", { class: "grid" }, h("thead", null, h("tr", null, heads)), h("tbody", null, rows));
    this.topic.replaceChildren(
      ...(error ? [h("p", { class: "verdict bad", role: "status" }, `It is not read now: ${error}`)] : []),
      ...(rows.length ? [scroll("Partitions", table)] : []));
  }

  async push() {
    try {
      const { body } = await api.push(this.stream.name, this.box.text, this.format.value);
      this.box.setErrors([]);
      const parts = [`${plural(body.accepted, "item")} accepted`,
        ...["late", "duplicate", "rejected"].map((word) => body[word] ? `${count(body[word])} ${word}` : ""),
        body.watermark ? `complete up to ${clock(body.watermark)}` : ""].filter(Boolean);
      const tone = body.late || body.rejected ? "warn" : "good";
      this.receipt.replaceChildren(h("p", { class: `verdict ${tone}` }, parts.join(" · ")));
      refresh();
      this.showTail();
    } catch (problem) {
      this.box.setErrors(problem.errors);
      const advice = outcomeText(problem, "Nothing of this push was taken.");
      this.receipt.replaceChildren(problemBox(problem, advice, (location) => this.box.goTo(location)));
    }
  }

  async showTail() {
    try {
      const text = plain((await api.items(this.stream.name, TAIL_ITEMS)).body);
      this.tail.replaceChildren(text.trim() ? code("Last items", paint(text), "tail")
        : h("p", { class: "empty" }, this.stream.source?.type === "kafka" ? "No item yet." : "No item yet: push one above."));
    } catch (problem) {
      this.tail.replaceChildren(h("p", { class: "empty" }, `The last items cannot be shown: ${problem.message}`));
    }
  }

  async #showDead(size = 0) {
    this.deadShown = size;
    try {
      const { body } = await api.deadLetters(this.stream.name);
      const letters = listOf(body, "deadLetters");
      const rows = letters.slice(-TAIL_ITEMS).reverse().map(letterRow);
      const total = body.total ?? letters.length;
      const shown = total > rows.length ? `the newest ${count(rows.length)} of ${count(total)}` : `all ${count(total)}`;
      const heads = ["Time", "Reason", "Item"].map((text) => h("th", { scope: "col" }, text));
      this.dead.replaceChildren(section("Dead letters", null,
        h("p", { class: "note" },
          `Items that were refused, or came too late where the stream keeps such: ${shown}.`),
        scroll("Dead letters", h("table", { class: "grid" }, h("thead", null, h("tr", null, heads)), h("tbody", null, rows)))));
    } catch (problem) {
      this.dead.replaceChildren(problemBox(problem));
    }
  }

  async #delete() {
    const { name, usedBy = [] } = this.stream;
    const users = usedBy.join(", ");
    const text = users ? `It is used by ${users}: delete these queries first.` : "Its stored items are removed too.";
    if (!await confirm(`Delete the stream ${name}?`, text, "Delete")) return;
    try {
      await api.deleteStream(name);
      toast(`The stream ${name} was deleted.`);
      refresh();
      location.hash = "#/";
    } catch (problem) {
      toast(problem.message, "bad");
    }
  }
}

/** Show the stream `name`. */
export function stream(parent, name) {
  const elsewhere = h("span", null, "Choose another from the list, or ", h("a", { href: "#/streams" }, "add a stream"), ".");
  return loaded(parent, name, api.stream, (node, body) => new StreamPage(node, body), elsewhere);
}
