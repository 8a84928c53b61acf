/** The state of a query and of its feed in words. */

import { clock, duration } from "./format.js";

const QUERY_WORDS = {
  starting: ["starting", "the plan is being prepared", "wait"],
  running: ["running", "", "good"],
  idle: ["idle", "no new items on its streams", "quiet"],
  paused: ["paused", "nothing is evaluated until it is resumed", "warn"],
  restarting: ["restarting", "", "wait"],
  failed: ["failed", "", "bad"],
  finished: ["finished", "its streams have ended", "quiet"],
  stopping: ["stopping", "", "wait"],
};

function errorText(error) {
  return typeof error === "string" ? error : error?.detail ?? error?.message ?? error?.title ?? "";
}

/** The state of a query alone: `{word, reason, tone}`. */
export function queryState(query) {
  const [word, reason, tone] = QUERY_WORDS[query?.state] ?? [query?.state ?? "unknown", "", "quiet"];
  return { word, reason: errorText(query?.lastError) && word === "failed" ? errorText(query.lastError) : reason, tone };
}

/**
 * The state of a query page: connecting, live, idle, paused, failed, reconnecting ..., with the reason.
 * @param {{connection: string, connectionReason: string, query: object, reason: string, lastResultMs: number|null,
 *          openedMs: number, watermark: string|null, quietMs: number}} page
 */
export function pageState(page, nowMs = Date.now()) {
  if (page.connection === "closed") return { word: "closed", reason: page.connectionReason, tone: "quiet" };
  if (page.connection === "reconnecting") return { word: "reconnecting", reason: page.connectionReason, tone: "warn" };
  const own = queryState(page.query);
  if (own.word === "failed") return { ...own, reason: "stopped with an error" };
  if (!["running", "idle", "unknown"].includes(own.word)) return { ...own, reason: page.reason || own.reason };
  if (page.connection === "connecting") return { word: "connecting", reason: "waiting for the feed", tone: "wait" };
  const seen = page.watermark ? `events are complete up to ${clock(page.watermark)}` : "no event has been seen yet";
  const silence = nowMs - (page.lastResultMs ?? page.openedMs);
  if (own.word === "idle" || silence > page.quietMs) {
    return { word: "idle", reason: `no new answer for ${duration(silence)}: ${seen}`, tone: "quiet" };
  }
  if (page.lastResultMs === null) return { word: "live", reason: "connected, waiting for the next answer", tone: "good" };
  return { word: "live", reason: "answers arrive as they are evaluated", tone: "good" };
}
