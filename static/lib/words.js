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
 *          watermark: string|null, nowMs: number, quietMs: number}} page
 */
export function pageState(page) {
  if (page.connection === "closed") return { word: "closed", reason: page.connectionReason, tone: "quiet" };
  if (page.connection === "reconnecting") return { word: "reconnecting", reason: page.connectionReason, tone: "warn" };
  const own = queryState(page.query);
  if (!["running", "idle", "unknown"].includes(own.word)) return { ...own, reason: page.reason || own.reason };
  if (page.connection === "connecting") return { word: "connecting", reason: "waiting for the feed", tone: "wait" };
  const seen = page.watermark ? `events are complete up to ${clock(page.watermark)}` : "no event has been seen yet";
  if (page.lastResultMs === null) return { word: "idle", reason: `waiting for the first answer: ${seen}`, tone: "quiet" };
  const silence = page.nowMs - page.lastResultMs;
  if (own.word === "idle" || silence > page.quietMs) {
    return { word: "idle", reason: `no new answer for ${duration(silence)}: ${seen}`, tone: "quiet" };
  }
  return { word: "live", reason: "answers arrive as they are evaluated", tone: "good" };
}
