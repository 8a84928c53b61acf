"""Standard SPARQL clients against a running server, untouched: SPARQLWrapper, rdflib's SPARQLStore, and what curl, Jena and YASGUI send."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import warnings
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import SPARQLWrapper as wrapper
from rdflib import Dataset, Graph, Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

from server.limits import Limits
from tests.server.conftest import QUICK, Live
from tests.unit.runtime.test_engine import Running

DEFAULT, G, H = "urn:x-thalweg:default", "http://ex.org/g", "http://ex.org/h"
A, P = URIRef("http://ex.org/a"), URIRef("http://ex.org/p")
SELECT = "SELECT ?s ?o WHERE { ?s <http://ex.org/p> ?o } ORDER BY ?o"
CONSTRUCT = "CONSTRUCT { ?s <http://ex.org/q> ?o } WHERE { ?s <http://ex.org/p> ?o }"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path) as found:
        for iri, value in ((DEFAULT, "default"), (G, "in g"), (H, "in h")):
            found.engine.put_graph(iri, [(A.n3(), P.n3(), f'"{value}"')])
        yield found


@pytest.fixture
def endpoint(running: Running, serve: Callable[..., Live]) -> str:
    """The address of ``/sparql``, over three graphs."""
    return serve(QUICK, running.engine).base + "/sparql"


def asked(endpoint: str, query: str, form: str | None = None, method: str = wrapper.GET, **more: Any) -> Any:
    """What SPARQLWrapper makes of an answer."""
    client = wrapper.SPARQLWrapper(endpoint)
    client.setQuery(query)
    client.setMethod(method)
    if form is not None:
        client.setReturnFormat(form)
    for parameter, value in more.items():
        client.addParameter(parameter.replace("_", "-"), value)
    return client.query()


@pytest.mark.parametrize("method", [wrapper.GET, wrapper.POST])
def test_sparqlwrapper_gets_tables_in_each_format(endpoint: str, method: str) -> None:
    found = asked(endpoint, SELECT, wrapper.JSON, method).convert()
    assert [row["o"]["value"] for row in found["results"]["bindings"]] == ["default"]
    assert "default" in asked(endpoint, SELECT, wrapper.XML, method).convert().toxml()
    assert asked(endpoint, SELECT, None, method).convert().toxml().startswith("<?xml")
    assert asked(endpoint, SELECT, wrapper.CSV, method).convert() == b"s,o\r\nhttp://ex.org/a,default\r\n"
    assert asked(endpoint, SELECT, wrapper.TSV, method).convert().startswith(b"?s\t?o\n<http://ex.org/a>")
    assert asked(endpoint, "ASK { ?s ?p ?o }", wrapper.JSON, method).convert()["boolean"] is True


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")     # SPARQLWrapper's own use of rdflib
@pytest.mark.parametrize("method", [wrapper.GET, wrapper.POST])
@pytest.mark.parametrize("query", [CONSTRUCT, "DESCRIBE <http://ex.org/a>"])
def test_sparqlwrapper_gets_graphs_in_each_format(endpoint: str, method: str, query: str) -> None:
    """Without a return format it asks for RDF/XML."""
    expected = {(A, URIRef("http://ex.org/q"), Literal("default"))}
    if query != CONSTRUCT:      # of what all graphs say
        expected = {(A, P, Literal(value)) for value in ("default", "in g", "in h")}
    for form in (None, wrapper.XML, wrapper.RDFXML, wrapper.JSONLD):
        assert set(asked(endpoint, query, form, method).convert()) == expected, form
    for form in (wrapper.TURTLE, wrapper.N3):
        graph = Graph().parse(data=asked(endpoint, query, form, method).convert().decode(), format="turtle")
        assert set(graph) == expected, form


def test_sparqlwrapper_asks_for_a_format_by_parameter_where_accept_takes_anything(endpoint: str) -> None:
    """It sends ``*/*`` where the format does not suit what it takes the query for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert b"http://ex.org/q" in asked(endpoint, CONSTRUCT, wrapper.CSV).response.read()
        assert asked(endpoint, CONSTRUCT, wrapper.JSON).response.headers["Content-Type"] == "application/ld+json"
        assert asked(endpoint, SELECT, wrapper.TURTLE).response.headers["Content-Type"] == "application/sparql-results+json"


def test_sparqlwrapper_names_graphs(endpoint: str) -> None:
    client = wrapper.SPARQLWrapper(endpoint, defaultGraph=G)
    client.setReturnFormat(wrapper.JSON)
    client.setQuery(SELECT)
    assert [row["o"]["value"] for row in client.query().convert()["results"]["bindings"]] == ["in g"]
    found = asked(endpoint, "SELECT ?g ?o { GRAPH ?g { ?s ?p ?o } }", wrapper.JSON, named_graph_uri=H).convert()
    assert [(row["g"]["value"], row["o"]["value"]) for row in found["results"]["bindings"]] == [(H, "in h")]


def test_sparqlwrapper_is_told_that_there_is_no_update(endpoint: str) -> None:
    for method in (wrapper.POSTDIRECTLY, wrapper.URLENCODED):
        client = wrapper.SPARQLWrapper(endpoint)
        client.setQuery("INSERT DATA { <http://ex.org/a> <http://ex.org/p> 1 }")
        client.setMethod(wrapper.POST)
        client.setRequestMethod(method)
        with pytest.raises(urllib.error.HTTPError) as caught:
            client.query()
        assert caught.value.code == 501
        assert json.loads(caught.value.read())["type"].endswith("/problems/update-not-supported")


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
@pytest.mark.parametrize("returned", ["xml", "json", "csv"])
def test_rdflib_reads_a_graph_by_its_identifier(endpoint: str, method: str, returned: str) -> None:
    def graph(iri: str | None = None) -> Graph:
        store = SPARQLStore(endpoint, method=method, returnFormat=returned)
        return Graph(store) if iri is None else Graph(store, identifier=URIRef(iri))
    assert [str(row["o"]) for row in graph(G).query(SELECT)] == ["in g"]
    assert set(graph(H).triples((A, None, None))) == {(A, P, Literal("in h"))}
    assert [str(row["o"]) for row in graph().query(SELECT)] == ["default"]
    assert len(graph(G)) == 1
    assert returned == "csv" or (A, P, Literal("in g")) in graph(G)     # there is no ASK in CSV


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
def test_rdflib_constructs_describes_and_asks(endpoint: str, method: str) -> None:
    graph = Graph(SPARQLStore(endpoint, method=method), identifier=URIRef(G))
    assert set(graph.query(CONSTRUCT)) == {(A, URIRef("http://ex.org/q"), Literal("in g"))}
    assert set(graph.query("DESCRIBE <http://ex.org/a>")) == {(A, P, Literal("in g"))}
    assert graph.query("ASK { ?s ?p 'in g' }").askAnswer is True


def test_rdflib_reads_a_data_set(endpoint: str) -> None:
    found = Dataset(SPARQLStore(endpoint)).query("SELECT ?g ?o { GRAPH ?g { ?s ?p ?o } }")
    assert {(str(row["g"]), str(row["o"])) for row in found} == {(G, "in g"), (H, "in h")}


def test_rdflib_is_told_that_there_is_no_update(endpoint: str) -> None:
    store = SPARQLUpdateStore(endpoint, endpoint)
    with pytest.raises(urllib.error.HTTPError, match="501"):
        store.update("INSERT DATA { <http://ex.org/a> <http://ex.org/p> 1 }")


JENA = ("application/sparql-results+json, application/sparql-results+xml;q=0.9, text/tab-separated-values;q=0.7, text/csv;q=0.5, "
        "application/json;q=0.2, application/xml;q=0.2, */*;q=0.1")


@pytest.mark.parametrize(("query", "accept", "form", "media"), [
    (SELECT, None, None, "application/sparql-results+json"), (SELECT, "*/*", None, "application/sparql-results+json"),
    (SELECT, "application/sparql-results+xml, */*;q=0.1", None, "application/sparql-results+xml"),
    (SELECT, JENA, None, "application/sparql-results+json"), (SELECT, "application/xml", None, "application/xml"),
    (SELECT, "text/csv;q=0.2, text/tab-separated-values;q=0.8", None, "text/tab-separated-values; charset=utf-8"),
    (SELECT, "application/sparql-results+json;q=0, */*;q=0.1", None, "application/sparql-results+xml"),
    (SELECT, "application/sparql-results+json,*/*;q=0.9", None, "application/sparql-results+json"),
    (SELECT, "*/*", "csv", "text/csv; charset=utf-8"), (SELECT, None, "xml", "application/sparql-results+xml"),
    (SELECT, "*/*", "text/tab-separated-values", "text/tab-separated-values; charset=utf-8"),
    (SELECT, "text/csv", "xml", "text/csv; charset=utf-8"), (SELECT, "*/*", "no such", "application/sparql-results+json"),
    (SELECT, "text/html", "json", "application/sparql-results+json"),
    (CONSTRUCT, None, None, "text/turtle; charset=utf-8"), (CONSTRUCT, "text/turtle,*/*;q=0.9", None, "text/turtle; charset=utf-8"),
    (CONSTRUCT, "application/rdf+xml", None, "application/rdf+xml"), (CONSTRUCT, "application/xml", None, "application/xml"),
    (CONSTRUCT, "*/*", "json", "application/ld+json"), (CONSTRUCT, "*/*", "rdf+xml", "application/rdf+xml")])
def test_types_are_negotiated(endpoint: str, query: str, accept: str | None, form: str | None, media: str) -> None:
    given = {"query": query, **({"format": form} if form else {})}
    for method, sent in (("GET", {"params": given}), ("POST", {"data": given})):
        answer = requests.request(method, endpoint, headers={"Accept": accept}, timeout=30, **sent)     # type: ignore[arg-type]
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, media), answer.text
        if media.endswith("xml"):
            xml.fromstring(answer.content)


def test_application_xml_is_the_body_of_sparql_results_xml(endpoint: str) -> None:
    bodies = [requests.get(endpoint, params={"query": SELECT}, headers={"Accept": media}, timeout=30).content
              for media in ("application/xml", "application/sparql-results+xml")]
    assert bodies[0] == bodies[1] and b"sparql-results#" in bodies[0]


def test_unknown_parameters_are_for_other_servers(endpoint: str) -> None:
    found = requests.get(endpoint, params={"query": "ASK {}", "timeout": "30000", "debug": "on", "default-graph-uri": ""}, timeout=30)
    assert found.json() == {"head": {}, "boolean": True}
    assert requests.post(endpoint, data={"query": "ASK {}", "infer": "true"}, timeout=30).json()["boolean"] is True


def test_a_graph_that_is_not_there_is_named(endpoint: str) -> None:
    found = requests.get(endpoint, params={"query": SELECT, "default-graph-uri": "http://ex.org/none"}, timeout=30)
    assert found.status_code == 422 and "http://ex.org/none" in found.json()["detail"]
    many = requests.post(endpoint, data=[("query", SELECT)] + [("default-graph-uri", f"http://ex.org/{n}") for n in range(201)], timeout=30)
    assert (many.status_code, many.json()["limit"]) == (400, 200)


def test_the_graphs_of_the_request_stand_in_place_of_those_of_the_text(endpoint: str) -> None:
    query = SELECT.replace("WHERE", f"FROM <{H}> WHERE")
    found = [requests.get(endpoint, params={"query": query, **more}, timeout=30).json()["results"]["bindings"][0]["o"]["value"]
             for more in ({}, {"default-graph-uri": G})]
    assert found == ["in h", "in g"]


def test_what_xml_cannot_hold_is_refused(running: Running, serve: Callable[..., Live]) -> None:
    """Rather than sent as a document that no parser reads."""
    a = "<http://ex.org/a>"
    running.engine.put_graph(DEFAULT, [(a, "<http://ex.org/1>", '"x"'), (a, "<http://ex.org/c>", '"\\u0001"')])
    endpoint = serve(Limits(heartbeat_seconds=30.0, shutdown_seconds=1.0), running.engine).base + "/sparql"
    for query, accept in (("CONSTRUCT { ?s <http://ex.org/1> 'x' } { ?s ?p ?o }", "application/rdf+xml"),
                          ("SELECT * { ?s <http://ex.org/c> ?o }", "application/sparql-results+xml"),
                          ("CONSTRUCT WHERE { ?s <http://ex.org/c> ?o }", "application/xml")):
        answer = requests.get(endpoint, params={"query": query}, headers={"Accept": accept}, timeout=30)
        assert answer.status_code == 406 and "cannot hold" in answer.json()["detail"], answer.text
        assert requests.get(endpoint, params={"query": query}, timeout=30).status_code == 200
