"""Answers as the server writes them (docs/http-api.md, sections 2 and 4), for the stand-in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

XSD = "http://www.w3.org/2001/XMLSchema#"
WEATHER = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
SYSTEM = "http://knoesis.wright.edu/ssw/"
STREAM = "http://example.org/streams/weather"
START_MS = 1_742_447_040_000  # 2025-03-20T05:04:00Z

STATIONS_TEXT = f"""PREFIX om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX weather: <{WEATHER}>
PREFIX ssw: <{SYSTEM}>

REGISTER QUERY stations AS
SELECT ?station (AVG(?celsius) AS ?mean) (COUNT(*) AS ?readings)
FROM STREAM <{STREAM}> [RANGE 10s STEP 2s]
WHERE {{
  ?observation a weather:TemperatureObservation ;   # one per reading
      om-owl:procedure ?station ;
      om-owl:result/om-owl:floatValue ?celsius .
  FILTER (?celsius > -40.0)
}}
GROUP BY ?station
"""


def iso(ms: int) -> str:
    """A time as the server writes it."""
    text = datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z").replace(".000Z", "Z")


def iri(value: str) -> dict[str, str]:
    return {"type": "uri", "value": value}


def literal(value: object, datatype: str | None = None) -> dict[str, str]:
    term = {"type": "literal", "value": str(value)}
    return {**term, "datatype": XSD + datatype} if datatype else term


def rsp(seq: int, close_ms: int, range_ms: int = 10_000, stream: str = STREAM) -> dict[str, Any]:
    """The member `rsp` of a result."""
    window = {"stream": stream, "open": iso(close_ms - range_ms), "close": iso(close_ms)}
    return {"seq": seq, "window": [window], "at": iso(close_ms), "inferred": None, "inconsistencies": [],
            "truncated": False}


def select(seq: int, close_ms: int, variables: Sequence[str],
           rows: Sequence[Sequence[Mapping[str, str] | None]]) -> dict[str, Any]:
    """The data of a `result` event of a SELECT; None is unbound."""
    bindings = [{name: term for name, term in zip(variables, row) if term is not None} for row in rows]
    return {"head": {"vars": list(variables)}, "results": {"bindings": bindings}, "rsp": rsp(seq, close_ms)}


NAMES = ("KBFI", "KPAE", "KRNT", "KSEA", "KTIW")


def stations(seq: int, close_ms: int, names: Sequence[str] = NAMES) -> dict[str, Any]:
    """Mean temperatures that wander as weather does."""
    rows = []
    for place, name in enumerate(names):
        celsius = 12 + 2.2 * place + 3 * math.sin(seq / 7 + place) + 0.8 * math.sin(seq * 1.7 + 3 * place)
        readings = literal(9 + (seq + place) % 3, "integer")
        rows.append([iri(f"{SYSTEM}System_{name}"), literal(f"{celsius:.3f}", "decimal"), readings])
    return select(seq, close_ms, ["station", "mean", "readings"], rows)


def stream(name: str, address: str, **change: Any) -> dict[str, Any]:
    """A stream resource."""
    state = {"items": 0, "late": 0, "deadLetters": 0, "watermark": None, "itemsPerSecond": 0.0}
    return {"name": name, "iri": address, "time": "arrival", "timestampPredicate": "http://www.w3.org/ns/prov#generatedAtTime",
            "lateness": "PT0S", "idle": "PT5S", "maxAhead": "PT1M", "late": "drop", "retention": "PT1H",
            "source": {"type": "http"}, "state": state, "usedBy": [], **change}


def query(name: str, text: str, form: str = "SELECT", **change: Any) -> dict[str, Any]:
    """A query resource."""
    progress = {"lastEventId": "none", "watermark": None, "watermarkLagMs": None, "resultLatencyMs": None,
                "inputRowsPerSecond": 0.0, "stateRows": 0, "lateItems": 0}
    return {"name": name, "iri": f"http://localhost/queries/{name}", "form": form, "dialect": "csparql", "text": text,
            "output": "rstream", "streams": [STREAM], "graphs": [], "rules": [],
            "windows": [{"stream": STREAM, "range": "PT10S", "step": "PT2S", "time": "event"}], "state": "running",
            "since": iso(START_MS), "restarts": 0, "lastError": None, "progress": progress, "subscribers": 1,
            "links": {"results": f"/queries/{name}/results", "plan": f"/queries/{name}/plan", "stats": f"/queries/{name}/stats"},
            **change}


LARS_TEXT = f"""% A sensor is hot for two seconds after a reading above 90.
PREFIX ex: <http://example.org/>
FROM STREAM <{STREAM}>
GRANULARITY 1 sec

ex:Hot(S) <- [2 sec] diamond ex:celsius(S, V), V > 90.
"""


def reported(stream: str, seq: int, at_ms: int, *rows: tuple[str, int, int | None]) -> dict[str, Any]:
    """A result of stream P or N of a rule program: rows of a class of `s` with their times (ms; None: no end), by the sensor's name."""
    kind, hot = iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), iri("http://example.org/Hot")
    terms = [[iri(f"http://example.org/{name}"), kind, hot, literal(iso(begin), "dateTime"),
              None if end is None else literal(iso(end), "dateTime")] for name, begin, end in rows]
    some, none = (select(seq, at_ms, ["s", "p", "o", "from", "until"], part) for part in (terms, []))
    member = {**some.pop("rsp"), "stream": stream}
    del none["rsp"]
    return {"rsp": member, "addedResults": some if stream == "p" else none, "removedResults": some if stream == "n" else none}


def syntax_problem(text: str, needle: str, detail: str, hint: str) -> dict[str, Any]:
    """The problem body for a mistake at the first `needle` of the text."""
    start = text.index(needle)
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    row = text.splitlines()[line - 1]
    location = {"line": line, "column": column, "endLine": line, "endColumn": column + len(needle)}
    error = {"detail": detail, "location": location, "snippet": f"{row}\n{' ' * (column - 1)}{'^' * len(needle)}", "hint": hint}
    return {"type": "http://localhost/problems/query-syntax", "title": "The query text is not valid", "status": 400,
            "detail": detail, "errors": [error]}


def proof(query: str, result: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Why a sensor is one: by its class, and by what it observes where other proofs are asked for."""
    sensor, kind = iri("http://example.org/s" + parameters.get("row", "0")), "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

    def about(predicate: str, object_: str, subject: Mapping[str, str] = sensor) -> dict[str, Any]:
        return {"triple": {"subject": subject, "predicate": iri(predicate), "object": iri(WEATHER + object_)}}

    def tree(rule: dict[str, Any], schema: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
        leaves = [{"kind": "asserted", **schema, "sources": [{"graph": "http://example.org/tbox"}]},
                  {"kind": "asserted", **seen, "sources": [{"stream": STREAM, "at": [iso(START_MS)]}]}]
        step = {"kind": "derived", **about(kind, "Sensor"), "rule": rule, "bindings": {"x": sensor}, "premises": leaves}
        return {"kind": "match", "bindings": {"s": sensor}, "premises": [step, {"kind": "absent", "text": "MINUS { ?x a weather:Broken }"}]}

    sub = about("http://www.w3.org/2000/01/rdf-schema#subClassOf", "Sensor", iri(WEATHER + "Thermometer"))
    domain = about("http://www.w3.org/2000/01/rdf-schema#domain", "Sensor", iri(WEATHER + "observes"))
    found = [tree({"set": "rdfs", "name": "rdfs9"}, sub, about(kind, "Thermometer")),
             tree({"set": "alarms", "name": None, "number": 2, "line": 7}, domain, about(WEATHER + "observes", "Temperature"))]
    most = int(parameters["max"])
    return {"query": query, "result": result, "row": int(parameters["row"]), "at": iso(START_MS), "window": [], "answer": {"s": sensor},
            "proofs": found[:most], "more": most < len(found)}
