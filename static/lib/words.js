/** The state of a query and of its feed, and what an evaluation holds, in words. */

import { clock, count, duration, plural, tail } from "./format.js";
import { LANGUAGES } from "./languages.js";
import { now } from "./now.js";

const QUERY_WORDS = {
  starting: ["starting", "registered; its first evaluation is being prepared", "wait"],
  running: ["running", "", "good"],
  idle: ["idle", "no new items on its streams", "quiet"],
  paused: ["paused", "nothing is evaluated until it is resumed", "warn"],
  restarting: ["restarting", "it goes on from the log when the engine is back", "wait"],
  failed: ["failed", "", "bad"],
  finished: ["finished", "its streams have ended", "quiet"],
  stopping: ["stopping", "", "wait"],
};

/** What a query is: `SELECT`, with how it puts its answers out where that is asked for, or `LARS program`. */
export function formText({ form, output, dialect }, withOutput = false) {
  if (form === "PROGRAM") return `${LANGUAGES[dialect]?.name ?? "rule"} program`;
  return [form, withOutput ? (output ?? "").toUpperCase() : ""].filter(Boolean).join(" ");
}

function errorText(error) {
  return typeof error === "string" ? error : error?.detail ?? error?.message ?? error?.title ?? "";
}

/**
 * The state of a query alone: `{word, reason, tone}`.
 * @param {number | null} lostMs  when the server last told of it, where it does not answer now
 */
export function queryState(query, lostMs = null) {
  if (lostMs !== null) {
    const last = `${QUERY_WORDS[query?.state]?.[0] ?? query?.state ?? "unknown"} at ${clock(lostMs)}`;
    return { word: "unknown", reason: `it was ${last}, when the server last answered`, tone: "quiet" };
  }
  const [word, reason, tone] = QUERY_WORDS[query?.state] ?? [query?.state ?? "unknown", "", "quiet"];
  return { word, reason: errorText(query?.lastError) && word === "failed" ? errorText(query.lastError) : reason, tone };
}

/** How far a query is behind, in ms; null where its streams are silent, or it is not evaluated any more. */
export function lagOf(state, lagMs) {
  return ["idle", "failed", "finished"].includes(state) ? null : lagMs;
}

/** How far a query has been evaluated; a failed one has not been since, whatever its streams bring. */
export function reachedOf(state, watermark) {
  return state === "failed" ? null : watermark;
}

/** What the next evaluation waits for, where the server tells of it; the empty text where it waits for nothing. */
export function waitsText(waits) {
  if (!waits?.for?.length) return "";
  const items = waits.for.map(({ stream, stamped }) => `an item stamped ${clock(stamped)} or later on ${tail(stream)}`);
  return `the answer at ${clock(waits.at)} waits for ${items.join(", and ")}, or a push with ?watermark=${waits.at}`;
}

/** How long no answer has come: since the last one, else since the page was opened. */
function silenceText({ lastResultMs, openedMs }, nowMs) {
  return lastResultMs === null ? `no answer in the ${duration(nowMs - openedMs)} since this page was opened`
    : `no new answer for ${duration(nowMs - lastResultMs)}`;
}

/**
 * The state of a query page: connecting, live, idle, paused, failed, reconnecting ..., with the reason.
 * @param {{connection: string, connectionReason: string, lostMs: number|null, query: object, reason: string,
 *          lastResultMs: number|null, openedMs: number, watermark: string|null, waits: object|null, heard: boolean,
 *          quietMs: number}} page
 */
export function pageState(page, nowMs = now()) {
  if (page.connection === "closed") return { word: "closed", reason: page.connectionReason, tone: "quiet" };
  if (page.connection === "reconnecting") {
    const since = page.lostMs === null ? "" : `; what is shown is from ${clock(page.lostMs)}`;
    return { word: "reconnecting", reason: page.connectionReason.replace(/\.$/, "") + since, tone: "warn" };
  }
  const own = queryState(page.query);
  if (own.word === "failed") return { ...own, reason: "stopped with an error" };
  if (!["running", "idle", "unknown"].includes(own.word)) return { ...own, reason: page.reason || own.reason };
  if (page.connection === "connecting") return { word: "connecting", reason: "waiting for the feed", tone: "wait" };
  const waits = waitsText(page.waits);
  const seen = waits || (page.watermark ? `events are complete up to ${clock(page.watermark)}` : "no event has been seen yet");
  const silence = nowMs - (page.lastResultMs ?? page.openedMs);
  if (own.word === "idle" || silence > page.quietMs) {
    return { word: waits ? "waiting" : "idle", reason: `${silenceText(page, nowMs)}: ${seen}`, tone: waits ? "wait" : "quiet" };
  }
  if (!page.heard) return { word: "live", reason: waits || "connected, waiting for the next answer", tone: "good" };
  return { word: "live", reason: "answers arrive as they are evaluated", tone: "good" };
}

const NOTHING = { new: "Nothing new.", gone: "Nothing gone.", begun: "Nothing begins to hold.",
  ceased: "Nothing ceases to hold.", held: "Nothing holds." };

/**
 * How much an evaluation holds.
 * @param {string | null} changes  what one of changes tells of: new, gone (ISTREAM, DSTREAM), begun, ceased (a rule program);
 *   null where it tells of what was added and removed; held where it is all that a rule program holds
 */
export function sizeText({ kind, boolean, delta, size, added, removed, truncated }, changes) {
  if (kind === "boolean") return String(boolean);
  if (delta) return changes ? `${count(size)} ${changes}` : `${count(added)} added, ${count(removed)} removed`;
  return `${truncated ? "first " : ""}${plural(size, kind === "graph" ? "triple" : "row")}`;
}

/** What stands where an evaluation has no rows. */
export function emptyText({ kind, delta, windows }, changes) {
  if (delta || changes === "held") return NOTHING[changes] ?? "Nothing has changed.";
  return `${kind === "graph" ? "No triple was made" : "Nothing matched"}${windows.length ? " in this window" : ""}.`;
}
