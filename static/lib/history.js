/** The evaluations just before the one that a page begins with, so that its chart has a past: read once from the result log. */

import { address, api, failure } from "./api.js";
import { isoDuration, milliseconds } from "./format.js";
import { evaluation } from "./results.js";

const EVALUATIONS = 120;
const LIMIT = 200;
const PROGRAM_LIMIT = 2000;
const MAX_CHARACTERS = 4e6;
const DEADLINE_MS = 8000;
const ON_CHANGE_MS = 60000;
const RESULTS = new Set(["result", "delta", "graph"]);

/** How far back to read: so many steps of the query's windows; a minute where it has none. */
function spanOf(query) {
  const steps = (query.windows ?? []).map((window) => isoDuration(window.step ?? window.range)).filter(Boolean);
  return query.report === "change" || !steps.length ? ON_CHANGE_MS : EVALUATIONS * Math.min(...steps);
}

/** How far back to read, and where that is too much; for a rule program, whose facts may last, up to an hour. */
function spansOf(query) {
  const whole = spanOf(query);
  return query.form === "PROGRAM" ? [60, 10, 1, 1 / 60, 0].map((minutes) => minutes * ON_CHANGE_MS) : [whole, whole / 60, 0];
}

/** The time of the newest evaluation in ms, or null where there is none: for a feed that does not begin with it. */
export async function newestTime(query, parameters, signal) {
  const { headers } = await api.latestHead(query.name, parameters, signal);
  return milliseconds(/close="([^"]*)"/.exec(headers.get("RSP-Window") ?? "")?.[1]);
}

/** The whole of a body, or null where it is longer than a page should take. */
async function textOf(response) {
  let text = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    text += piece.value;
    if (text.length <= MAX_CHARACTERS) continue;
    await reader.cancel();
    return null;
  }
  return text;
}

/** The evaluations of a span that ends with `last` (ms), oldest first; null where there are more than a page should take. */
async function span(query, parameters, last, spanMs, signal) {
  const [since, until] = [last - spanMs, last].map((ms) => new Date(ms).toISOString());
  const limit = query.form === "PROGRAM" ? PROGRAM_LIMIT : LIMIT;
  const url = address(["queries", query.name, "results"], { ...parameters, since, until, limit });
  const limited = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  const response = await fetch(url, { headers: { Accept: "application/jsonl" }, signal: limited });
  if (!response.ok) throw await failure(response);
  const text = await textOf(response);
  if (text === null) return null;
  const lines = text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  if (lines.some(({ event, data }) => event === "gap" || (event === "bye" && data.reason === "limit"))) return null;
  return lines.filter(({ event }) => RESULTS.has(event)).map(({ event, data, id }) => evaluation(event, data, id));
}

/**
 * The evaluations up to `last` (ms; null for none), oldest first: of a shorter span where there are too many, for a part
 * would leave a hole.
 * @param {object} query  the query resource
 * @param {object} parameters  those of the feed
 */
export async function history(query, parameters, last, signal) {
  if (last === null) return [];
  for (const spanMs of spansOf(query)) {
    const found = await span(query, parameters, last, spanMs, signal);
    if (found) return found;
  }
  return [];
}
