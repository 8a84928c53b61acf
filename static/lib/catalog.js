/** What the server holds (streams, queries, graphs), asked for every two seconds while the page is looked at. */

import { api, listOf } from "./api.js";
import { thisSecond } from "./now.js";

const EVERY_MS = 2000;
const listeners = new Set();
let timer = null;
let running = null;

/**
 * `totalQueries` counts all, of which `queries` has the first thousand; `health` is the server's account of itself; `problem` is
 * why the last look failed, and `asOfMs` when the last one succeeded: what stands here is from then.
 */
export const catalog = { streams: [], queries: [], graphs: [], totalQueries: 0, info: null, health: null, loaded: false,
  problem: null, asOfMs: null };

/** Call `listener()` after each refresh; gives the function that ends it. */
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

async function load() {
  try {
    const wanted = [api.streams(), api.queries(), api.graphs(), api.readiness()];
    const [streams, queries, graphs, health] = await Promise.all(wanted);
    catalog.health = health;
    catalog.streams = listOf(streams.body, "streams");
    catalog.queries = listOf(queries.body, "queries");
    catalog.totalQueries = queries.body.total ?? catalog.queries.length;
    catalog.graphs = listOf(graphs.body, "graphs");
    if (catalog.problem) catalog.info = null;
    catalog.info ??= (await api.info()).body;
    catalog.loaded = true;
    catalog.problem = null;
    catalog.asOfMs = thisSecond();
  } catch (problem) {
    catalog.problem = problem;
  }
  for (const listener of listeners) listener();
}

/** When the server last told of the states of what it holds, where it does not now; null while it does. */
export function lostMs() {
  return catalog.problem && catalog.loaded ? catalog.asOfMs : null;
}

/** Ask now. Requests do not overlap. */
export function refresh() {
  clearTimeout(timer);
  running ??= load().finally(() => {
    running = null;
    if (!document.hidden) timer = setTimeout(refresh, EVERY_MS);
  });
  return running;
}

/** Begin; a hidden page asks nothing. */
export function start() {
  document.addEventListener("visibilitychange", () => document.hidden ? clearTimeout(timer) : refresh());
  return refresh();
}
