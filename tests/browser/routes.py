"""The documented routes (docs/http-api.md, section 1) as the stand-in answers them: plain, canned, without an engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.browser import canned
from tests.browser.wire import Refused, Reply, Request

if TYPE_CHECKING:
    from tests.browser.standin import Standin


def member(table: dict[str, Any], name: str, slug: str) -> Any:
    if name not in table:
        raise Refused(404, slug, f"There is nothing called “{name}” here.")
    return table[name]


def default_explain(text: str) -> Reply:
    """Valid, but for a stream without its window: enough to see errors come and go while typing."""
    missing = re.search(r"FROM\s+STREAM\s+<[^>]*>[ \t]*(?!\s*\[)(\w+)", text)
    if missing:
        hint = "FROM STREAM <iri> [RANGE 10s STEP 2s]"
        problem = canned.syntax_problem(text, missing[1], "Expected '[' after the stream IRI.", hint)
        return Reply(400, problem, "application/problem+json")
    plan = "Aggregate group=(?station)\n  Star ?observation [3 patterns]\n    Scan weather"
    return Reply(200, {"valid": True, "errors": [], "plan": plan, "estimate": {"stateRows": 950}})


def put_stream(server: Standin, request: Request, name: str) -> Reply:
    given = json.loads(request.body or "{}")
    status = 200 if name in server.streams else 201
    server.streams[name] = canned.stream(name, given.pop("iri", f"{server.base}streams/{name}"), **given)
    return Reply(status, server.streams[name])


def push(server: Standin, request: Request, name: str) -> Reply:
    """Accept a push; each `subject ex:temperature number` in it is answered at once to each query of the stream."""
    stream = member(server.streams, name, "no-such-stream")
    if "broken" in request.body:
        raise Refused(400, "rdf-syntax", "The RDF is not valid.", errors=[
            {"detail": "Expected '.' after the triple.", "location": {"line": 1, "column": 3, "endLine": 1, "endColumn": 9}}])
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
    written = "PROGRAM" if request.headers["Content-Type"] != "application/sparql-query" else form[1] if form else "SELECT"
    server.queries[name] = canned.query(name, request.body, written,
                                        streams=re.findall(r"STREAM\s+<([^>]*)>", request.body))
    warnings = checked.body.get("warnings", []) if isinstance(checked.body, dict) else []
    return Reply(201, {**server.queries[name], "warnings": warnings}, headers={"Location": f"/queries/{name}"})


def patch(server: Standin, request: Request, name: str) -> Reply:
    query = member(server.queries, name, "no-such-query")
    previous, query["state"] = query["state"], json.loads(request.body)["state"]
    server.emit(name, "status", {"state": query["state"], "previous": previous, "reason": "asked for"})
    return Reply(200, query)


def restart(server: Standin, request: Request, name: str) -> Reply:
    member(server.queries, name, "no-such-query").update(state="running", lastError=None)
    server.emit(name, "status", {"state": "running", "previous": "failed", "reason": "restarted"})
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
    if "application/jsonl" in request.headers.get("Accept", ""):
        return server.answers.get("past") or Reply(200, past(events, request.parameters), "application/jsonl")
    if "text/csv" in request.headers.get("Accept", ""):
        window = events[-1][1]["rsp"]["window"][0] if events else None
        headers = {"RSP-Window": 'open="{open}", close="{close}"'.format(**window)} if window else {}
        return Reply(200, "sensor,temperature\r\nhttp://example.org/s1,20.5\r\n", "text/csv; charset=utf-8", headers)
    latest = events[-1][1] if events else {"head": {"vars": []}, "results": {"bindings": []}}
    return Reply(200, {k: v for k, v in latest.items() if k != "rsp"}, "application/sparql-results+json")


def past(events: list[tuple[str, dict[str, Any], str | None]], parameters: dict[str, str]) -> str:
    """The feed from `since` to `until` as lines of JSON, and its end."""
    since, until = (datetime.fromisoformat(parameters[name].replace("Z", "+00:00")) for name in ("since", "until"))
    inside = [(event, data, event_id) for event, data, event_id in events
              if since <= datetime.fromisoformat(data["rsp"]["at"].replace("Z", "+00:00")) <= until]
    most = int(parameters["limit"])
    lines = [{"id": event_id, "event": event, "data": data} for event, data, event_id in inside[:most]]
    end = {"event": "bye", "data": {"reason": "limit" if len(inside) > most else "until", "reconnect": False}}
    return "".join(json.dumps(line) + "\n" for line in [{"event": "hello", "data": {}}, *lines, end])


def plan(server: Standin, request: Request, name: str) -> Reply:
    level = request.parameters.get("level", "logical")
    return server.answers.get(f"plan {level}") or Reply(200, f"the {level} form of {name}", "text/plain; charset=utf-8")


def one_shot(server: Standin, request: Request) -> Reply:
    bindings = [{"graph": canned.iri(iri), "triples": canned.literal(graph["triples"], "integer")}
                for iri, graph in server.graphs.items()]
    body = {"head": {"vars": ["graph", "triples"]}, "results": {"bindings": bindings}}
    return server.answers.get("sparql") or Reply(200, body, "application/sparql-results+json")


def put_graph(server: Standin, request: Request) -> Reply:
    iri = request.parameters["graph"]
    status = 200 if iri in server.graphs else 201
    server.graphs[iri] = {"iri": iri, "triples": request.body.count(" ."), "etag": "v1", "usedBy": []}
    return Reply(status, server.graphs[iri])


def delete_graph(server: Standin, request: Request) -> Reply:
    server.graphs.pop(request.parameters["graph"])
    return Reply(204)


def put_rules(server: Standin, request: Request, name: str) -> Reply:
    if "broken" in request.body:
        problem = canned.syntax_problem(request.body, "broken", "Expected an atom.", "p(X)")
        return Reply(400, problem, "application/problem+json")
    status = 200 if name in server.rules else 201
    server.rules[name] = {"name": name, "builtIn": False, "description": None, "type": request.headers["Content-Type"], "clauses": 2,
                          "etag": "8", "usedBy": [], "text": request.body}
    return Reply(status, server.rules[name])


def delete_rules(server: Standin, request: Request, name: str) -> Reply:
    member(server.rules, name, "no-such-rules")
    del server.rules[name]
    return Reply(204)


NAME = "([^/]+)"
RULES = [{"name": "rdfs", "builtIn": True, "description": "The RDFS entailment rules.", "type": None, "clauses": None,
          "etag": "built-in", "usedBy": []},
         {"name": "alarms", "builtIn": False, "description": None, "type": "text/x-rif-ps", "clauses": 3, "etag": "7", "usedBy": ["hot"],
          "text": "Document(Group(<http://e.x/p>(1)))"}]
ROUTES: list[tuple[str, str, Callable[..., Reply]]] = [
    ("GET", "/info", lambda s, r: Reply(200, {"version": "0.1.0", "features": [], "limits": {}})),
    ("GET", "/health/ready", lambda s, r: s.readiness),
    ("GET", "/streams", lambda s, r: Reply(200, {"streams": list(s.streams.values())})),
    ("GET", f"/streams/{NAME}", lambda s, r, n: Reply(200, member(s.streams, n, "no-such-stream"))),
    ("PUT", f"/streams/{NAME}", put_stream),
    ("POST", f"/streams/{NAME}", push),
    ("DELETE", f"/streams/{NAME}", delete_stream),
    ("GET", f"/streams/{NAME}/items", lambda s, r, n: Reply(200, s.items.get(n, ""), "application/trig")),
    ("GET", f"/streams/{NAME}/dead-letters", lambda s, r, n: s.answers.get("dead") or Reply(200, {"deadLetters": []})),
    ("GET", "/queries", lambda s, r: s.answers.get("queries") or Reply(200, {"queries": list(s.queries.values())})),
    ("POST", "/queries", register),
    ("GET", f"/queries/{NAME}", lambda s, r, n: Reply(200, member(s.queries, n, "no-such-query"))),
    ("PUT", f"/queries/{NAME}", register),
    ("PATCH", f"/queries/{NAME}", patch),
    ("POST", f"/queries/{NAME}/restart", restart),
    ("DELETE", f"/queries/{NAME}", delete_query),
    ("GET", f"/queries/{NAME}/results", results),
    ("HEAD", f"/queries/{NAME}/results", results),
    ("GET", f"/queries/{NAME}/results/{NAME}/why",
     lambda s, r, n, i: s.answers.get("why") or Reply(200, canned.proof(n, i, r.parameters))),
    ("GET", f"/queries/{NAME}/plan", plan),
    ("POST", "/explain", lambda s, r: s.explain(r.body)),
    ("POST", "/sparql", one_shot),
    ("GET", "/graphs", lambda s, r: Reply(200, {"graphs": list(s.graphs.values())})),
    ("PUT", "/graphs", put_graph),
    ("DELETE", "/graphs", delete_graph),
    ("GET", "/rules", lambda s, r: Reply(200, {"rules": list(s.rules.values())})),
    ("GET", f"/rules/{NAME}", lambda s, r, n: Reply(200, member(s.rules, n, "no-such-rules"))),
    ("PUT", f"/rules/{NAME}", put_rules),
    ("DELETE", f"/rules/{NAME}", delete_rules),
]
