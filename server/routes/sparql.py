"""``/sparql``: one-shot queries over static graphs and window snapshots (SPARQL 1.1 Protocol, query operation)."""

from urllib.parse import parse_qs

from flask import Blueprint, Response, request
from pyoxigraph import Literal, NamedNode, Triple, serialize
from werkzeug.datastructures import MultiDict

from engine.ir.statement import GraphSource
from engine.output import payload
from engine.runtime.resources import OneShot
from grammar.head import MAX_SOURCES
from server.formats import results as formats
from server.formats.media import (FORM, GRAPH_RESULT_TYPES, JSONLD, NTRIPLES, RDF_FORMATS, RDFXML, SPARQL_QUERY, SPARQL_UPDATE, TABLE_TYPES,
                                  TURTLE, XML, wished)
from server.problems import Problem
from server.web import best, body_type, reply, route, site, text_body

blueprint = Blueprint("sparql", __name__)
_PARAMETERS = ("query", "update", "default-graph-uri", "named-graph-uri", "format", "output", "results")
_DEFAULT = frozenset(("urn:x-rdflib:default", "urn:x-arq:DefaultGraph"))
_SD = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS = "http://www.w3.org/ns/formats/"
_FORMAT_NAMES = ("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV", "Turtle", "N-Triples", "RDF_XML")
_GRAPHS = (TURTLE, *(media for media in GRAPH_RESULT_TYPES if media != TURTLE), XML)


@route(blueprint, "/sparql", "GET", query=_PARAMETERS, others=True, kind="one-shot")
def get() -> Response:
    """Query by GET; without a query, the service description."""
    given = request.args
    if "query" not in given and "update" not in given:
        return _description()
    return _answer(_query_of(given), given)


@route(blueprint, "/sparql", "POST", "QUERY", query=_PARAMETERS, others=True, kind="one-shot")
def post() -> Response:
    """Query by POST, directly or as a form, or by the QUERY method."""
    limit = site().limits.query_text
    media = body_type((SPARQL_QUERY, FORM, SPARQL_UPDATE))
    if media == SPARQL_UPDATE:
        raise _no_update()
    if media == SPARQL_QUERY:
        if "update" in request.args:
            raise _no_update()
        return _answer(text_body(limit), request.args)
    form = MultiDict((name, value) for name, values in parse_qs(text_body(3 * limit), keep_blank_values=True).items() for value in values)
    return _answer(_query_of(form), form)


def _query_of(given: MultiDict[str, str]) -> str:
    """The one query among the parameters of a request. Those that nobody knows here are for other servers, and passed over."""
    if "update" in given:
        raise _no_update()
    queries = given.getlist("query")
    if len(queries) != 1:
        raise Problem("two-queries" if queries else "bad-request", "Expected one query.", extra={"parameter": "query"})
    return queries[0]


def _no_update() -> Problem:
    return Problem("update-not-supported", "SPARQL Update is not supported: push to /streams, put to /graphs.")


def _answer(text: str, given: MultiDict[str, str]) -> Response:
    """The answer to a query, in the type that Accept, or else ``format`` and the like, ask for."""
    limit = site().limits.query_text
    if len(text.encode("utf-8", "replace")) > limit:
        raise Problem("body-too-large", f"A query text may have {limit} bytes.", extra={"limit": limit, "actual": len(text)})
    names = [name for parameter in ("format", "output", "results") for name in given.getlist(parameter)]
    found: OneShot = site().engine.sparql(text, site().limits.one_shot_seconds, _dataset(given))
    data = payload(found.form, found.table)
    if found.form in ("CONSTRUCT", "DESCRIBE"):
        media = wished(request.headers.get("Accept"), names, _GRAPHS)
        return reply(formats.graph(data, RDFXML if media == XML else media), media)
    media = wished(request.headers.get("Accept"), names, TABLE_TYPES)
    return reply(formats.table(data, media), media)


def _dataset(given: MultiDict[str, str]) -> tuple[GraphSource, ...]:
    """The data set that the request names (SPARQL 1.1 Protocol, section 2.1.4); it stands in place of the query's FROM clauses. Nothing
    where it names none, or by rdflib's or Jena's name the one that the server has anyway."""
    found = tuple(GraphSource(iri, named) for named, parameter in ((False, "default-graph-uri"), (True, "named-graph-uri"))
                  for iri in dict.fromkeys(given.getlist(parameter)) if iri and iri not in _DEFAULT)
    if len(found) > MAX_SOURCES:
        raise Problem("bad-request", f"A query may have {MAX_SOURCES} graphs.", extra={"limit": MAX_SOURCES, "actual": len(found)})
    return found


def _description() -> Response:
    """The SPARQL 1.1 service description."""
    media = best(TURTLE, NTRIPLES, JSONLD, RDFXML)
    service = NamedNode(f"{site().base_url}/sparql")
    triples = [Triple(service, NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), NamedNode(f"{_SD}Service")),
               Triple(service, NamedNode(f"{_SD}endpoint"), service),
               Triple(service, NamedNode(f"{_SD}supportedLanguage"), NamedNode(f"{_SD}SPARQL11Query")),
               Triple(service, NamedNode("http://purl.org/dc/terms/title"), Literal("Thalweg"))]
    triples += [Triple(service, NamedNode(f"{_SD}resultFormat"), NamedNode(_FORMATS + name)) for name in _FORMAT_NAMES]
    return reply(bytes(serialize(triples, format=RDF_FORMATS[media], prefixes={"sd": _SD}) or b""), media)
