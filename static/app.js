/** The console: chooses the page by the address after `#`, keeps the side bar and the state of the server up to date. */

import { catalog, lostMs, refresh, start, watch } from "./lib/catalog.js";
import { h, setAttribute, setText } from "./lib/dom.js";
import { clock, plural } from "./lib/format.js";
import { writer } from "./views/editor.js";
import { graphs } from "./views/graphs.js";
import { home } from "./views/home.js";
import { newStream } from "./views/newstream.js";
import { query } from "./views/query.js";
import { rules } from "./views/rules.js";
import { sidebar } from "./views/sidebar.js";
import { sparql } from "./views/sparql.js";
import { stream } from "./views/stream.js";

const PAGES = { "": home, new: writer, sparql, graphs, rules, streams: newStream };
const NAMED = { queries: query, rules, streams: stream };

const TROUBLES = {
  unreachable: ["no answer", "bad"],
  "engine-starting": ["starting", "wait"],
  "engine-restarting": ["restarting", "wait"],
  "shutting-down": ["shutting down", "warn"],
  "rate-limited": ["too many requests", "warn"],
  "engine-overloaded": ["behind", "warn"],
};

const main = document.getElementById("main");
const server = document.getElementById("server");
const menu = document.getElementById("menu");
const side = document.getElementById("sidebar");
const lists = sidebar(side);
let page = null;

function notFound(parent) {
  parent.append(h("h1", null, "No such page"), h("p", null, "Go to the ", h("a", { href: "#/" }, "overview"), "."));
  return { title: "No such page", close: () => {} };
}

/** The parts of the address after `#/`; one that cannot be read is no page. */
function placeOf(hash) {
  try {
    return hash.slice(2).split("/").map(decodeURIComponent);
  } catch {
    return ["?"];
  }
}

/** Show the page of the address; what stands after its name is a place on it, which does not make the page anew. */
function route() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const [kind = "", name, ...place] = placeOf(location.hash);
  for (const dialog of document.querySelectorAll("dialog[open]:not(.why)")) dialog.close();
  if (page?.show && page.key === `${kind}/${name}`) {
    page.show(place);
    return;
  }
  page?.close();
  main.replaceChildren();
  main.scrollTop = 0;
  page = name ? (NAMED[kind] ?? notFound)(main, name, place) : (PAGES[kind] ?? notFound)(main);
  page.key = `${kind}/${name}`;
  document.title = `${page.title} – Thalweg`;
  lists.mark(kind, name);
  for (const link of document.querySelectorAll("nav.top a")) {
    setAttribute(link, "aria-current", link.dataset.page === kind ? "page" : null);
  }
  openMenu(false);
}

function openMenu(open) {
  setAttribute(menu, "aria-expanded", String(open));
  side.classList.toggle("open", open);
}

/** The server in a word, with its tone, and what is to be said about it, if anything: `[word, tone, text]`. */
function serverState({ problem, info, health, loaded }) {
  if (problem) return [...TROUBLES[problem.slug] ?? ["trouble", "bad"], advice(problem)];
  if (!loaded) return ["connecting …", "wait", ""];
  if (health && health.status !== "ready") return notReady(health);
  const version = info?.version ? `Thalweg ${info.version}` : "connected";
  const size = health?.degraded?.length;
  return size ? [`${version}: ${plural(size, "trouble")}`, "warn", ""] : [version, "good", ""];
}

/** An engine that answers, but does not do its work: what holds it up. */
function notReady({ status, reason, progress }) {
  const tone = { starting: "wait", restarting: "wait", stopping: "warn" }[status] ?? "bad";
  const word = status === "running" ? "not ready" : status;
  const cause = reason || progress;
  return [word, tone, `The engine is ${word}${cause ? `: ${cause}` : ""}. Answers come again when it is ready.`];
}

function showServer() {
  const [word, tone, text] = serverState(catalog);
  setText(server, word);
  setAttribute(server, "class", `server ${tone}`);
  const trouble = document.getElementById("trouble") ?? h("p", { id: "trouble", role: "alert" });
  setText(trouble, text);
  setAttribute(trouble, "class", `trouble ${tone}`);
  if (!text) trouble.remove();
  else if (!trouble.isConnected) main.before(trouble);
}

function advice(problem) {
  const from = lostMs() === null ? "" : ` What is shown is from ${clock(lostMs())}.`;
  const goesOn = "This page goes on by itself.";
  if (problem.slug === "engine-starting") return `The engine is starting. ${problem.detail} ${goesOn}${from}`;
  if (problem.slug === "unreachable") return `${problem.detail} If it has stopped, start it again. ${goesOn}${from}`;
  return `The server reports: ${problem.message} ${goesOn}${from}`;
}

menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") openMenu(false);
});
addEventListener("hashchange", route);
watch(() => {
  lists.update();
  const [kind, name] = placeOf(location.hash);
  lists.mark(kind, name);
  showServer();
});
showServer();
start().then(route, route);
export { refresh };
