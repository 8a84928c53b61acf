"""``/sparql``: one-shot queries over static graphs and window snapshots (SPARQL 1.1 Protocol, query operation)."""

from __future__ import annotations

from urllib.parse import parse_qs

from flask import Blueprint, Response, request
from pyoxigraph import Literal, NamedNode, Triple, serialize

from engine.runtime.output import boolean_json, ntriples, select_json
from engine.runtime.resources import OneShot
from server.formats import results as formats
from server.formats.media import FORM, GRAPH_RESULT_TYPES, JSONLD, NTRIPLES, RDF_FORMATS, SPARQL_QUERY, TABLE_TYPES, TURTLE
from server.problems import Problem
from server.web import best, body_type, reply, route, site, text_body

blueprint = Blueprint("sparql", __name__)
_GRAPH_SETS = ("default-graph-uri", "named-graph-uri")
_SD = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS = "http://www.w3.org/ns/formats/"
_FORMAT_NAMES = ("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV", "Turtle", "N-Triples")


@route(blueprint, "/sparql", "GET", query=("query", "update", *_GRAPH_SETS))
def get() -> Response:
    """Query by GET; without a query, the service description."""
    _refuse_parameters(request.args)
    if "query" not in request.args:
        return _description()
    return _answer(request.args["query"])


@route(blueprint, "/sparql", "POST", "QUERY", query=_GRAPH_SETS)
def post() -> Response:
    """Query by POST, directly or as a form, or by the QUERY method."""
    limit = site().limits.query_text
    media = body_type((SPARQL_QUERY, FORM, "application/sparql-update"))
    _refuse_parameters(request.args)
    if media == "application/sparql-update":
        raise Problem("update-not-supported", "SPARQL Update is not supported: push to /streams, put to /graphs.")
    if media == SPARQL_QUERY:
        return _answer(text_body(limit))
    form = parse_qs(text_body(3 * limit), keep_blank_values=True)
    for name in form:
        if name not in ("query", "update", *_GRAPH_SETS):
            raise Problem("unknown-parameter", f"There is no parameter {name[:100]!r} here.", extra={"parameter": name[:100]})
    _refuse_parameters(form)
    if len(form.get("query", ())) != 1:
        raise Problem("two-queries" if "query" in form else "bad-request", "Expected one query.")
    return _answer(form["query"][0])


def _answer(text: str) -> Response:
    limit = site().limits.query_text
    if len(text.encode("utf-8", "replace")) > limit:
        raise Problem("body-too-large", f"A query text may have {limit} bytes.", extra={"limit": limit, "actual": len(text)})
    found: OneShot = site().engine.sparql(text, site().limits.one_shot_seconds)
    if found.form in ("CONSTRUCT", "DESCRIBE"):
        media = best(*(TURTLE, *(m for m in GRAPH_RESULT_TYPES if m != TURTLE)))
        return reply(formats.graph(ntriples(found.table) if found.table is not None else b"", media), media)
    media = best(*TABLE_TYPES)
    data = boolean_json(bool(found.boolean)) if found.form == "ASK" else select_json(found.table)
    return reply(formats.table(data, media), media)


def _refuse_parameters(parameters: object) -> None:
    """What the protocol has and we have not: updates, and data sets that are named outside of the query."""
    names = set(parameters)  # type: ignore[call-overload]
    if "update" in names:
        raise Problem("update-not-supported", "SPARQL Update is not supported: push to /streams, put to /graphs.")
    if names & set(_GRAPH_SETS):
        raise Problem("unknown-parameter", "Name the graphs in the query, with FROM and FROM NAMED.", extra={"parameter": _GRAPH_SETS[0]})


def _description() -> Response:
    """The SPARQL 1.1 service description."""
    media = best(TURTLE, NTRIPLES, JSONLD)
    service = NamedNode(f"{site().base_url}/sparql")
    triples = [Triple(service, NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), NamedNode(f"{_SD}Service")),
               Triple(service, NamedNode(f"{_SD}endpoint"), service),
               Triple(service, NamedNode(f"{_SD}supportedLanguage"), NamedNode(f"{_SD}SPARQL11Query")),
               Triple(service, NamedNode("http://purl.org/dc/terms/title"), Literal("Thalweg"))]
    triples += [Triple(service, NamedNode(f"{_SD}resultFormat"), NamedNode(_FORMATS + name)) for name in _FORMAT_NAMES]
    return reply(bytes(serialize(triples, format=RDF_FORMATS[media], prefixes={"sd": _SD}) or b""), media)
