"""``/graphs``: static graphs by the SPARQL 1.1 Graph Store HTTP Protocol. ``/rules``: the rule sets that ``USING RULES`` may name."""

from operator import attrgetter

from flask import Blueprint, Response, request

from engine.records import Triple
from engine.runtime.resources import DEFAULT_GRAPH, RuleSetInfo
from grammar.rule_sets import RULE_SET_TYPES
from server.formats.media import GRAPH_TYPES, JSON, JSONLD, NQUADS, NTRIPLES, RDFXML, TEXT, TRIG, TURTLE, content_type
from server.formats.reading import read_graph
from server.formats.results import graph
from server.problems import Problem
from server.web import best, body, body_type, condition, json_reply, no_content, path, reply, route, site, text_body

blueprint = Blueprint("graphs", __name__)
_OUT = (TURTLE, NTRIPLES, JSONLD, TRIG, NQUADS, RDFXML)


@route(blueprint, "/graphs", "GET", query=("graph", "default"), kind="bulk")
def get() -> Response:
    """One graph (``?graph=<iri>``, ``?default``), or the list of them."""
    if not request.args:
        return json_reply({"graphs": [info.to_json() for info in site().engine.graphs()]})
    return _get(_named())


@route(blueprint, "/graphs", "PUT", "POST", query=("graph", "default"))
def put() -> Response:
    """Replace a graph, or add triples to it; the queries that use it are planned anew."""
    return _write(_named())


@route(blueprint, "/graphs", "DELETE", query=("graph", "default"))
def delete() -> Response:
    """Remove a graph that no query uses."""
    return _delete(_named())


@route(blueprint, "/graphs/<name>", "GET", kind="bulk")
def get_direct(name: str) -> Response:
    """The graph that has this address as its IRI (Graph Store Protocol, section 4.1)."""
    return _get(_direct(name))


@route(blueprint, "/graphs/<name>", "PUT", "POST")
def put_direct(name: str) -> Response:
    return _write(_direct(name))


@route(blueprint, "/graphs/<name>", "DELETE")
def delete_direct(name: str) -> Response:
    return _delete(_direct(name))


def _get(iri: str) -> Response:
    info, triples = site().engine.graph(iri)
    media = best(*_OUT)
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    return reply(graph(text.encode(), media), media, etag=info.etag)


def _write(iri: str) -> Response:
    triples = _uploaded(iri)
    info, created = site().engine.put_graph(iri, triples, replace=request.method == "PUT", check=condition(attrgetter("etag")))
    return json_reply(info.to_json(), 201 if created else 200, etag=info.etag)


def _delete(iri: str) -> Response:
    site().engine.delete_graph(iri, check=condition(attrgetter("etag")))
    return no_content()


def _uploaded(iri: str) -> list[Triple]:
    """The triples of the body, or of all files of a multipart upload (Graph Store Protocol, section 5.5)."""
    limits = site().limits
    if request.mimetype == "multipart/form-data":
        if request.content_length is None or request.content_length > limits.graph_upload:
            raise Problem("body-too-large", f"A graph may have {limits.graph_upload} bytes.",
                          extra={"limit": limits.graph_upload, "actual": request.content_length})
        files = [(file.read(), content_type(file.content_type, GRAPH_TYPES)) for file in request.files.values()]
        found: dict[Triple, None] = {}
        for data, media in files:
            found |= dict.fromkeys(read_graph(data, media, limits, iri))
            if len(found) > limits.graph_triples:
                raise Problem("too-many-triples", f"There are more than {limits.graph_triples} triples in a graph.",
                              extra={"limit": limits.graph_triples})
        return list(found)
    media = body_type(GRAPH_TYPES)
    return read_graph(body(limits.graph_upload), media, limits, iri)


def _named() -> str:
    if ("graph" in request.args) == ("default" in request.args):
        raise Problem("unknown-parameter", "Name one graph: ?graph=<iri>, or ?default.", extra={"parameter": "graph"})
    if "default" in request.args:
        return DEFAULT_GRAPH
    iri = request.args["graph"]
    if iri.startswith("<") and iri.endswith(">"):
        iri = iri[1:-1]
    if ":" not in iri or any(c in iri for c in '<>"{}|^`\\') or any(ord(c) <= 32 for c in iri):
        raise Problem("bad-name", f"{iri[:200]!r} is not an absolute IRI.", extra={"name": iri[:200]})
    return iri


def _direct(name: str) -> str:
    return f"{site().base_url}/graphs/{name}"


@route(blueprint, "/rules", "GET")
def list_rules() -> Response:
    """All rule sets; the built-in ones cannot be changed."""
    return json_reply({"rules": [info.to_json() for info in site().engine.rule_sets()]})


@route(blueprint, "/rules/<name>", "GET")
def get_rules(name: str) -> Response:
    """One rule set; its text where ``Accept`` names the type that it has."""
    info: RuleSetInfo = site().engine.rule_set(name)
    if info.text is None or info.media is None:
        return json_reply(info.to_json(), etag=info.etag)
    media = best(JSON, info.media, TEXT)
    if media == JSON:
        return json_reply({**info.to_json(), "text": info.text}, etag=info.etag)
    return reply(info.text, media, etag=info.etag)


@route(blueprint, "/rules/<name>", "PUT")
def put_rules(name: str) -> Response:
    """Set or replace a rule set; the queries that use it are planned anew."""
    media = body_type(RULE_SET_TYPES)
    text = text_body(site().limits.rule_text)
    info, created = site().engine.put_rules(name, media, text, check=condition(attrgetter("etag")))
    return json_reply(info.to_json(), 201 if created else 200, etag=info.etag, headers={"Location": path("rules", name)})


@route(blueprint, "/rules/<name>", "DELETE")
def delete_rules(name: str) -> Response:
    """Remove a rule set that no query uses."""
    site().engine.delete_rules(name, check=condition(attrgetter("etag")))
    return no_content()
