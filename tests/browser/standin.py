"""A stand-in for the server: the documented routes (docs/http-api.md) with canned answers and scripted feeds, without Spark.

The browser tests run against it; `python -m tests.browser.standin` serves it with a moving weather feed, to look at the console.
"""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.browser import canned

STATIC = Path(__file__).resolve().parents[2] / "static"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml", ".json": "application/json", ".rq": "application/sparql-query; charset=utf-8"}
# Stricter than the server's own policy needs to be: no inline script or style, and no HTML made from text.
POLICY = "default-src 'self'; base-uri 'none'; object-src 'none'; require-trusted-types-for 'script'"


@dataclass
class Request:
    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: str


@dataclass
class Reply:
    status: int = 200
    body: Any = ""
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class Refused(Exception):
    """A problem body to be sent."""

    def __init__(self, status: int, slug: str, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.body = {"type": f"http://localhost/problems/{slug}", "title": slug.replace("-", " ").capitalize(), "status": status,
                     "detail": detail, **members}


@dataclass
class Feed:
    """The scripted feed of one query: what was sent, and who listens."""

    events: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)
    listeners: list[queue.SimpleQueue[bytes | None]] = field(default_factory=list)
    connections: list[dict[str, str]] = field(default_factory=list)
    refuse: int | None = None


def frame(event: str, data: dict[str, Any], event_id: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {event}\ndata: {json.dumps(data)}\n\n".encode()


class Standin:
    """The catalogue, the feeds and the log of requests; a test scripts it directly. Start with `with Standin() as server`."""

    def __init__(self) -> None:
        self.streams: dict[str, dict[str, Any]] = {}
        self.queries: dict[str, dict[str, Any]] = {}
        self.graphs: dict[str, dict[str, Any]] = {}
        self.feeds: dict[str, Feed] = {}
        self.requests: list[Request] = []
        self.items: dict[str, str] = {}
        self.answers: dict[str, Reply] = {}
        self.trouble: Refused | None = None
        self.explain: Callable[[str], Reply] = default_explain
        self.lock = threading.RLock()

    def __enter__(self) -> Standin:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"standin": self}))
        server.daemon_threads = True
        self.server = server
        self.base = f"http://127.0.0.1:{server.server_address[1]}/"
        self.thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.feeds):
            self.cut(name)
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def feed(self, name: str) -> Feed:
        return self.feeds.setdefault(name, Feed())

    def emit(self, name: str, event: str, data: dict[str, Any], event_id: str | None = None) -> None:
        """Send an event to everyone who follows the query, and keep it for those who come later if it has an id."""
        with self.lock:
            if event_id:
                self.feed(name).events.append((event, data, event_id))
            for listener in self.feed(name).listeners:
                listener.put(frame(event, data, event_id))

    def cut(self, name: str) -> None:
        """End the connections of a feed without a word."""
        with self.lock:
            for listener in self.feed(name).listeners:
                listener.put(None)

    def subscribe(self, name: str, last_id: str | None, mode: str) -> queue.SimpleQueue[bytes | None]:
        """A new listener with its first events: hello, then what it missed, or a snapshot."""
        with self.lock:
            feed, listener = self.feed(name), queue.SimpleQueue[bytes | None]()
            ids = [event_id for _, _, event_id in feed.events]
            resumed = last_id in ids
            output = self.queries[name]["output"]
            hello = {"query": name, "form": self.queries[name]["form"], "mode": mode or "full", "output": output, "resumed": resumed,
                     "from": last_id if resumed else None, "heartbeatSeconds": 15}
            listener.put(b"retry: 100\n" + frame("hello", hello))
            missed = feed.events[ids.index(last_id) + 1:] if resumed else []
            if not resumed and feed.events and feed.events[-1][0] == "result":
                listener.put(frame("snapshot", {**feed.events[-1][1], "chunk": 0, "last": True}, feed.events[-1][2]))
            for event in missed:
                listener.put(frame(*event))
            feed.listeners.append(listener)
            return listener

    def unsubscribe(self, name: str, listener: queue.SimpleQueue[bytes | None]) -> None:
        with self.lock:
            self.feed(name).listeners.remove(listener)

    def answer(self, request: Request) -> Reply:
        """The reply to anything but a feed."""
        if request.path == "/" or request.path.startswith("/static/"):
            return static(request.path)
        if self.trouble:
            raise self.trouble
        for method, pattern, handler in ROUTES:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                with self.lock:
                    return handler(self, request, *map(unquote, match.groups()))
        raise Refused(404, "not-found", f"There is nothing at {request.method} {request.path}.")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    standin: Standin

    def log_message(self, *_: object) -> None:
        """Quiet: the tests read `requests` instead."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        parameters = {name: values[-1] for name, values in parse_qs(url.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        request = Request(self.command, url.path, parameters, dict(self.headers), body)
        self.standin.requests.append(request)
        match = re.fullmatch("/queries/([^/]+)/results", url.path)
        try:
            if match and "text/event-stream" in self.headers.get("Accept", ""):
                self.follow(unquote(match[1]), request)
            else:
                self.reply(self.standin.answer(request))
        except Refused as problem:
            self.reply(Reply(problem.status, problem.body, "application/problem+json"))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def reply(self, reply: Reply) -> None:
        data = reply.encoded()
        self.send_response(reply.status)
        for name, value in {"Content-Type": reply.type, "Content-Security-Policy": POLICY, "Cache-Control": "no-store", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if reply.status != 204:
            self.wfile.write(data)

    def follow(self, name: str, request: Request) -> None:
        """The live feed: ends when the script cuts it or the browser has gone."""
        if self.standin.trouble:
            raise self.standin.trouble
        if name not in self.standin.queries:
            self.reply(Reply(204))
            return
        feed = self.standin.feed(name)
        feed.connections.append({**request.parameters, "Last-Event-ID": self.headers.get("Last-Event-ID", "")})
        if feed.refuse:
            raise Refused(feed.refuse, "quota-subscribers", "Too many subscribers follow this query.")
        last_id = self.headers.get("Last-Event-ID") or request.parameters.get("last_event_id")
        listener = self.standin.subscribe(name, last_id, request.parameters.get("mode", ""))
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache, no-transform")
        self.end_headers()
        try:
            while True:
                try:
                    data = listener.get(timeout=1)
                except queue.Empty:
                    data = b": hb\n\n"
                if data is None:
                    return
                self.wfile.write(data)
        finally:
            self.standin.unsubscribe(name, listener)


def static(path: str) -> Reply:
    file = STATIC / ("index.html" if path == "/" else unquote(path.removeprefix("/static/")))
    if STATIC not in file.resolve().parents or not file.is_file():
        raise Refused(404, "not-found", f"There is no file {path}.")
    return Reply(200, file.read_bytes(), TYPES[file.suffix])


def member(table: dict[str, Any], name: str, slug: str) -> Any:
    if name not in table:
        raise Refused(404, slug, f"There is nothing called “{name}” here.")
    return table[name]


def default_explain(text: str) -> Reply:
    """Valid, but for a stream without its window: enough to see errors come and go while typing."""
    missing = re.search(r"FROM\s+STREAM\s+<[^>]*>[ \t]*(?!\s*\[)(\w+)", text)
    if missing:
        return Reply(400, canned.syntax_problem(text, missing[1], "Expected '[' after the stream IRI.", "FROM STREAM <iri> [RANGE 10s STEP 2s]"),
                     "application/problem+json")
    return Reply(200, {"valid": True, "errors": [], "plan": "Aggregate group=(?station)\n  Star ?observation [3 patterns]\n    Scan weather",
                       "estimate": {"stateRows": 950}})


def put_stream(server: Standin, request: Request, name: str) -> Reply:
    given = json.loads(request.body or "{}")
    status = 200 if name in server.streams else 201
    server.streams[name] = canned.stream(name, given.pop("iri", f"{server.base}streams/{name}"), **given)
    return Reply(status, server.streams[name])


def push(server: Standin, request: Request, name: str) -> Reply:
    """Accept a push; `subject ex:temperature number` is answered at once by the mean of each subject, to each query of the stream."""
    stream = member(server.streams, name, "no-such-stream")
    if "broken" in request.body:
        raise Refused(400, "rdf-syntax", "The RDF is not valid.", errors=[
            {"detail": "Expected '.' at the end of the triple.", "location": {"line": 1, "column": 3, "endLine": 1, "endColumn": 9}}])
    stream["state"]["items"] += 1
    server.items[name] = server.items.get(name, "") + request.body
    readings = re.findall(r"\bex:(\w+)\s+ex:temperature\s+([\d.]+)", request.body)
    rows = [[canned.iri(f"http://example.org/{who}"), canned.literal(value, "decimal")] for who, value in readings]
    for query in [q for q in server.queries.values() if stream["iri"] in q["streams"] and q["state"] != "paused"]:
        seq = len(server.feed(query["name"]).events) + 1
        data = canned.select(seq, canned.START_MS + 5000 * seq, ["sensor", "temperature"], rows)
        server.emit(query["name"], "result", data, f"e1-{seq}")
    return Reply(202, {"accepted": 1, "late": 0, "duplicate": 0, "rejected": 0, "firstId": "1", "lastId": "1",
                       "watermark": canned.iso(canned.START_MS), "errors": []})


def register(server: Standin, request: Request, name: str | None = None) -> Reply:
    checked = server.explain(request.body)
    if checked.status != 200:
        return checked
    found = re.search(r"REGISTER\s+(?:QUERY|STREAM)\s+(\w+)", request.body)
    name = name or (found[1] if found else f"query{len(server.queries) + 1}")
    if name in server.queries and "replace" not in request.parameters:
        raise Refused(409, "name-exists", f"There is a query “{name}” already.")
    form = re.search(r"\b(SELECT|CONSTRUCT|ASK|DESCRIBE)\b", request.body)
    server.queries[name] = canned.query(name, request.body, form[1] if form else "SELECT",
                                        streams=re.findall(r"STREAM\s+<([^>]*)>", request.body))
    return Reply(201, server.queries[name], headers={"Location": f"/queries/{name}"})


def patch(server: Standin, request: Request, name: str) -> Reply:
    query = member(server.queries, name, "no-such-query")
    previous, query["state"] = query["state"], json.loads(request.body)["state"]
    server.emit(name, "status", {"state": query["state"], "previous": previous, "reason": "asked for"})
    return Reply(200, query)


def restart(server: Standin, request: Request, name: str) -> Reply:
    member(server.queries, name, "no-such-query").update(state="running", lastError=None)
    return Reply(202, server.queries[name])


def delete_query(server: Standin, request: Request, name: str) -> Reply:
    member(server.queries, name, "no-such-query")
    server.emit(name, "bye", {"reason": "dropped", "reconnect": False})
    del server.queries[name]
    return Reply(204)


def delete_stream(server: Standin, request: Request, name: str) -> Reply:
    users = [q["name"] for q in server.queries.values() if server.streams[name]["iri"] in q["streams"]]
    if users:
        raise Refused(409, "in-use", f"The stream is used by {', '.join(users)}.")
    del server.streams[name]
    return Reply(204)


def results(server: Standin, request: Request, name: str) -> Reply:
    events = server.feed(name).events
    if "text/csv" in request.headers.get("Accept", ""):
        return Reply(200, "sensor,temperature\r\nhttp://example.org/s1,20.5\r\n", "text/csv; charset=utf-8")
    return Reply(200, {k: v for k, v in events[-1][1].items() if k != "rsp"} if events else {"head": {"vars": []}, "results": {"bindings": []}},
                 "application/sparql-results+json")


def plan(server: Standin, request: Request, name: str) -> Reply:
    level = request.parameters.get("level", "logical")
    return server.answers.get(f"plan {level}") or Reply(200, f"the {level} form of {name}", "text/plain; charset=utf-8")


def one_shot(server: Standin, request: Request) -> Reply:
    return server.answers.get("sparql") or Reply(200, {"head": {"vars": ["graph", "triples"]}, "results": {"bindings": [
        {"graph": canned.iri(iri), "triples": canned.literal(graph["triples"], "integer")} for iri, graph in server.graphs.items()]}},
        "application/sparql-results+json")


def put_graph(server: Standin, request: Request) -> Reply:
    iri = request.parameters["graph"]
    status = 200 if iri in server.graphs else 201
    server.graphs[iri] = {"iri": iri, "triples": request.body.count(" ."), "etag": "v1", "usedBy": []}
    return Reply(status, server.graphs[iri])


def delete_graph(server: Standin, request: Request) -> Reply:
    server.graphs.pop(request.parameters["graph"])
    return Reply(204)


NAME = "([^/]+)"
ROUTES: list[tuple[str, str, Callable[..., Reply]]] = [
    ("GET", "/info", lambda s, r: Reply(200, {"version": "0.1.0", "features": [], "limits": {}})),
    ("GET", "/streams", lambda s, r: Reply(200, {"streams": list(s.streams.values())})),
    ("GET", f"/streams/{NAME}", lambda s, r, n: Reply(200, member(s.streams, n, "no-such-stream"))),
    ("PUT", f"/streams/{NAME}", put_stream),
    ("POST", f"/streams/{NAME}", push),
    ("DELETE", f"/streams/{NAME}", delete_stream),
    ("GET", f"/streams/{NAME}/items", lambda s, r, n: Reply(200, s.items.get(n, ""), "application/trig")),
    ("GET", f"/streams/{NAME}/dead-letters", lambda s, r, n: Reply(200, [])),
    ("GET", "/queries", lambda s, r: Reply(200, {"queries": list(s.queries.values())})),
    ("POST", "/queries", register),
    ("GET", f"/queries/{NAME}", lambda s, r, n: Reply(200, member(s.queries, n, "no-such-query"))),
    ("PUT", f"/queries/{NAME}", register),
    ("PATCH", f"/queries/{NAME}", patch),
    ("POST", f"/queries/{NAME}/restart", restart),
    ("DELETE", f"/queries/{NAME}", delete_query),
    ("GET", f"/queries/{NAME}/results", results),
    ("GET", f"/queries/{NAME}/plan", plan),
    ("POST", "/explain", lambda s, r: s.explain(r.body)),
    ("POST", "/sparql", one_shot),
    ("GET", "/graphs", lambda s, r: Reply(200, {"graphs": list(s.graphs.values())})),
    ("PUT", "/graphs", put_graph),
    ("DELETE", "/graphs", delete_graph),
    ("GET", "/rules", lambda s, r: Reply(200, {"rules": [{"name": "rdfs", "builtIn": True, "description": "The RDFS entailment rules."}]})),
]
