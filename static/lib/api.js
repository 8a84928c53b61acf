/** The server's HTTP interface. Paths are relative to where the console is served, so a base path needs no setting. */

import { noteDate } from "./now.js";

export const root = new URL("../../", import.meta.url);

/** The address of a resource: `address(["queries", name], {mode: "full"})`. */
export function address(parts, parameters = {}) {
  const url = new URL(parts.map(encodeURIComponent).join("/"), root);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.append(name, value);
  }
  return url;
}

/** What the server answered instead of a success (application/problem+json), or that it did not answer. */
export class Problem extends Error {
  constructor(status, body, headers) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.body = body;
    this.slug = body.slug ?? String(body.type ?? "").replace(/^.*\//, "");
    this.title = body.title ?? "";
    this.detail = body.detail ?? "";
    this.errors = body.errors ?? [];
    this.retryAfter = Number(headers?.get("Retry-After")) || null;
  }
}

/** The Problem of an answer that is no success. */
export async function failure(response) {
  const text = await response.text();
  try {
    return new Problem(response.status, JSON.parse(text), response.headers);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return new Problem(response.status, { title: response.statusText, detail: text.slice(0, 300) }, response.headers);
  }
}

async function read(response, raw) {
  const type = response.headers.get("Content-Type") ?? "";
  const text = await response.text();
  if (raw) return text;
  return /[/+]json\b/.test(type) && text ? JSON.parse(text) : text;
}

/**
 * One request; resolves to `{status, body, headers}`, rejects with a Problem (or AbortError).
 * @param {URL} url
 * @param {{method?: string, body?: string, type?: string, accept?: string, signal?: AbortSignal, raw?: boolean}} options
 *   `raw`: the body is given as text even where it is JSON
 */
export async function request(url, { method = "GET", body, type, accept = "application/json", signal, raw = false } = {}) {
  const headers = { Accept: accept };
  if (type) headers["Content-Type"] = type;
  let response;
  try {
    response = await fetch(url, { method, body, headers, signal, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { slug: "unreachable", title: "No answer", detail: `The server at ${root.host} does not answer.` });
  }
  noteDate(response.headers.get("Date"));
  if (!response.ok) throw await failure(response);
  return { status: response.status, body: await read(response, raw), headers: response.headers };
}

/** Why a feed is refused: the Problem, also where there is nothing to follow any more (204), or null where it is not refused. */
export async function refusal(url) {
  const asked = new AbortController();
  try {
    const response = await fetch(url, { headers: { Accept: "text/event-stream" }, cache: "no-store", signal: asked.signal });
    if (response.status === 204) return new Problem(204, { detail: "There is nothing to follow." });
    return response.ok ? null : await failure(response);
  } catch {
    return new Problem(0, { slug: "unreachable", title: "No answer", detail: `The server at ${root.host} does not answer.` });
  } finally {
    asked.abort();
  }
}

/** The list in the answer of a catalogue route, whether bare or as the member `key`. */
export function listOf(body, key) {
  return Array.isArray(body) ? body : body?.[key] ?? body?.items ?? [];
}

/** How the engine is (docs/http-api.md, "Readiness"): an account of its own also where it is not ready. */
async function readiness() {
  try {
    return (await request(address(["health", "ready"]))).body;
  } catch (problem) {
    if (typeof problem.body?.status === "string") return problem.body;
    throw problem;
  }
}

const SPARQL = "application/sparql-query";
const JSON_TYPE = "application/json";

export const api = {
  readiness,
  info: () => request(address(["info"])),
  streams: () => request(address(["streams"])),
  stream: (name) => request(address(["streams", name])),
  putStream: (name, descriptor) =>
    request(address(["streams", name]), { method: "PUT", type: JSON_TYPE, body: JSON.stringify(descriptor) }),
  deleteStream: (name) => request(address(["streams", name]), { method: "DELETE" }),
  push: (name, text, type) => request(address(["streams", name]), { method: "POST", type, body: text }),
  items: (name, limit) =>
    request(address(["streams", name, "items"], { limit }), { accept: "application/trig" }),
  deadLetters: (name) => request(address(["streams", name, "dead-letters"])),
  queries: () => request(address(["queries"])),
  query: (name) => request(address(["queries", name])),
  register: (text, type) => request(address(["queries"]), { method: "POST", type, body: text }),
  registerAs: (name, text, type, replace) =>
    request(address(["queries", name], replace ? { replace: true } : {}), { method: "PUT", type, body: text }),
  patchQuery: (name, change) =>
    request(address(["queries", name]),
      { method: "PATCH", type: "application/merge-patch+json", body: JSON.stringify(change) }),
  restartQuery: (name) => request(address(["queries", name, "restart"]), { method: "POST" }),
  deleteQuery: (name) => request(address(["queries", name]), { method: "DELETE" }),
  plan: (name, level) => request(address(["queries", name, "plan"], { level }), { accept: "text/plain" }),
  latestHead: (name, parameters, signal) =>
    request(address(["queries", name, "results"], parameters), { method: "HEAD", accept: "text/csv", signal }),
  why: (name, id, parameters) => request(address(["queries", name, "results", id, "why"], parameters)),
  results: (name, parameters, accept) => request(address(["queries", name, "results"], parameters), { accept, raw: true }),
  explain: (text, type, signal, what = {}) => request(address(["explain"], what), { method: "POST", type, body: text, signal }),
  sparql: (text, accept, signal) =>
    request(address(["sparql"]), { method: "POST", type: SPARQL, body: text, accept, signal }),
  graphs: () => request(address(["graphs"])),
  putGraph: (iri, text, type) => request(address(["graphs"], { graph: iri }), { method: "PUT", type, body: text }),
  deleteGraph: (iri) => request(address(["graphs"], { graph: iri }), { method: "DELETE" }),
  rules: () => request(address(["rules"])),
  ruleSet: (name) => request(address(["rules", name])),
  putRules: (name, text, type) => request(address(["rules", name]), { method: "PUT", type, body: text }),
  deleteRules: (name) => request(address(["rules", name]), { method: "DELETE" }),
};
