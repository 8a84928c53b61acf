"""Bodies of pushes and graph uploads: text of any format in, items or triples out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyoxigraph import RdfFormat, parse

from engine.records import Triple
from server.formats.bodies import check_lines, prepared
from server.formats.items import STAMPS, Quad, Reader, Reading, TooManyTriples, capped, located
from server.formats.languages import check_languages
from server.formats.lines import read_json_lines, read_line_by_line, read_timed
from server.formats.media import JSONL, JSONLD, NQUADS, NTRIPLES, RDF_FORMATS, RDFXML, TIMED, TURTLE
from server.formats.syntax import from_parser, syntax_problem
from server.formats.terms import own_blank_nodes, tokens
from server.limits import Limits
from server.problems import Problem


def read_items(body: bytes, media: str, reader: Reader, base: str | None = None) -> Reading:
    """The stream items of a push (docs/http-api.md, "Stream items"). `base` resolves relative IRIs.

    Raises Problem, with the line where the format has lines, unless `reader.skip` allows to leave the item out.
    """
    reading, limits = Reading(reader, media == NQUADS), reader.limits
    check_lines(body, media, limits.push_triples)
    body = prepared(body, media, reader.limits.nesting)
    if media == JSONL:
        read_json_lines(body, reading)
    elif media == TIMED:
        read_timed(body, reading)
    elif media == JSONLD:
        _read_json(body, reading, base)
    elif media in (TURTLE, NTRIPLES, RDFXML):
        try:
            triples = [triple for _, triple in capped(_quads(body, media, reading, base), limits.item_triples, "an item", STAMPS)]
        except TooManyTriples as problem:
            reading.reject(problem)
            return reading
        if triples:
            reading.add_item(None, triples)
    else:
        measured = len(body) <= reader.limits.item_bytes
        reading.add_dataset(_quads(body, media, reading, base), measured=measured)
    return reading


def read_graph(body: bytes, media: str, limits: Limits, base: str | None = None) -> list[Triple]:
    """The triples of a static graph; graph names in a dataset format are refused."""
    body = prepared(body, media, limits.nesting)
    quads = list(capped(_parsed(body, RDF_FORMATS[media], limits.literal, base), limits.graph_triples, "a graph"))
    named = next((graph for graph, _ in quads if graph is not None), None)
    if named is not None:
        raise Problem("rdf-syntax", f"A graph upload holds one graph, without a name; this one names {named}.")
    return list(dict.fromkeys(own_blank_nodes(None, (triple for _, triple in quads))[1]))


def _quads(body: bytes, media: str, reading: Reading, base: str | None) -> Iterable[Quad]:
    """The quads of a body, as they are asked for; where bad lines are left out, once all is known to be parsed."""
    format_, limits = RDF_FORMATS[media], reading.reader.limits
    quads: Iterable[Quad] = capped(_parsed(body, format_, limits.literal, base), limits.push_triples, "a push")
    if not reading.reader.skip or media not in (NQUADS, NTRIPLES):
        return quads
    try:
        return list(quads)
    except TooManyTriples:
        raise
    except Problem:
        return read_line_by_line(body, format_, reading)


def _parsed(body: bytes, format_: RdfFormat, literal: int, base: str | None) -> Iterator[Quad]:
    if format_ == RdfFormat.JSON_LD:
        check_languages(body)
    try:
        yield from tokens(parse(body, format_, base_iri=base), literal if len(body) > literal else None)
    except SyntaxError as error:
        raise from_parser(error, body) from error
    except (MemoryError, ValueError, OverflowError) as error:
        raise syntax_problem(f"The body cannot be read: {error}.", body) from error


def _read_json(body: bytes, reading: Reading, base: str | None) -> None:
    """A JSON-LD object is one item (or one per named graph), an array holds several."""
    limits = reading.reader.limits
    if not body.lstrip().startswith(b"["):
        whole = capped(_parsed(body, RdfFormat.JSON_LD, limits.literal, base), limits.push_triples, "a push")
        reading.add_dataset(whole, measured=len(body) <= limits.item_bytes)
        return
    for place, line, text in _array_elements(body):
        try:
            quads = list(capped(_parsed(text, RdfFormat.JSON_LD, limits.literal, base), limits.item_triples, "an item", STAMPS))
        except Problem as problem:
            reading.reject(located(replace(problem, errors=()), place, line))
        else:
            reading.add_dataset(quads, place, line, measured=len(text) <= limits.item_bytes)


def _array_elements(body: bytes) -> Iterator[tuple[str, int, bytes]]:
    """(``[0]``, line, text) of each element of a JSON array, as it is written: numbers keep their digits."""
    try:
        text = body.decode()
        json.loads(text)
    except UnicodeDecodeError as error:
        raise syntax_problem("The JSON is not UTF-8.", body, body.count(b"\n", 0, error.start) + 1) from error
    except json.JSONDecodeError as error:
        raise syntax_problem(f"{error.msg}.", body, error.lineno, error.colno) from error
    decoder, space = json.JSONDecoder(), " \t\r\n,"
    at, number = text.index("[") + 1, 0
    line, counted = 1, 0
    while True:
        while text[at] in space:
            at += 1
        if text[at] == "]":
            return
        _, end = decoder.raw_decode(text, at)
        line, counted = line + text.count("\n", counted, at), at
        yield f"[{number}]", line, text[at:end].encode()
        at, number = end, number + 1
