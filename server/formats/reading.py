"""Bodies of pushes and graph uploads: text of any format in, items or triples out.

Formats of one thing per line are JSON lines, timed N-Triples (``ms<TAB>triple``), and N-Quads and N-Triples with bad lines left out.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from pyoxigraph import RdfFormat, parse

from engine.records import Triple
from engine.timeline import is_moment
from server.formats.bodies import JSON_STRINGS, check_languages, check_lines, check_nesting, prepared
from server.formats.items import (STAMPS, Quad, Reader, Reading, TooManyTriples, capped, from_parser, located, own_blank_nodes,
                                  syntax_problem, tokens)
from server.formats.media import JSONL, JSONLD, NQUADS, NTRIPLES, RDFXML, RDF_FORMATS, TIMED, TURTLE
from server.limits import Limits
from server.problems import Problem

Value = TypeVar("Value")


def each_line(body: bytes, reading: Reading, read: Callable[[int, bytes], Value]) -> Iterator[tuple[int, Value]]:
    """What `read` makes of the number and text of each line that is not blank. One of which it makes nothing is left out with its error, or
    the push is refused."""
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found = read(number, line)
        except SyntaxError as error:
            reading.reject(located(from_parser(error, body, line_offset=number - 1), None, number))
        except Problem as problem:
            reading.reject(located(problem, None, number))
        else:
            yield number, found


def read_json_line(line: bytes, limits: Limits) -> list[Quad]:
    if len(line) > limits.item_bytes:
        raise Problem("item-too-large", f"An item may have {limits.item_bytes} bytes.",
                      extra={"limit": limits.item_bytes, "actual": len(line)})
    check_nesting(line, JSON_STRINGS, limits.nesting)
    check_languages(line)
    return list(tokens(parse(line, RdfFormat.JSON_LD), _cap(line, limits.literal)))


def _timed_triples(body: bytes, reading: Reading) -> Iterator[tuple[int, int, Triple]]:
    """(number, ms, triple) of each line. The triples are parsed together, which is several times as fast as line by line."""
    try:
        numbers: list[int] = []
        times: list[int] = []
        texts: list[bytes] = []
        if has_odd_line_ends(body):
            raise ValueError("a line may hold several triples")
        for number, line in enumerate(body.split(b"\n"), 1):
            before, tab, text = line.partition(b"\t")
            if tab:
                times.append(int(before))
                numbers.append(number)
            elif line.strip():
                raise ValueError("no tab")
            texts.append(text)
        triples = [triple for _, triple in tokens(parse(b"\n".join(texts), RdfFormat.N_TRIPLES), _cap(body, reading.reader.limits.literal))]
        if len(triples) != len(times) or (times and not (is_moment(min(times)) and is_moment(max(times)))):
            raise ValueError("not one triple per line")
    except (SyntaxError, ValueError, Problem):
        # Slower, and with the place of each error.
        found = each_line(body, reading, lambda number, line: _timed_line(body, number, line, reading.reader.limits.literal))
        return ((number, *timed) for number, timed in found)
    return zip(numbers, times, triples)


def has_odd_line_ends(body: bytes) -> bool:
    """Whether there is a CR without LF: the parser of triples takes it for the end of a line, a body of lines does not."""
    return b"\r" in body and body.count(b"\r") != body.count(b"\r\n")


def _timed_line(body: bytes, number: int, line: bytes, literal: int) -> tuple[int, Triple]:
    before, tab, text = line.partition(b"\t")
    try:
        ms = int(before)
        if not tab:
            raise ValueError
    except ValueError:
        raise syntax_problem("Expected a time in ms, a tab and a triple.", body, number, 1, number, len(before) + 1) from None
    if not is_moment(ms):
        raise syntax_problem("The time is not within the years 1 to 9999.", body, number, 1, number, len(before) + 1)
    try:
        triples = [triple for _, triple in tokens(parse(text, RdfFormat.N_TRIPLES), _cap(text, literal))]
    except SyntaxError as error:
        raise from_parser(error, body, line_offset=number - 1, column_offset=len(before) + 1) from error
    if len(triples) != 1:
        raise syntax_problem(f"Expected one triple after the time, not {len(triples)}.", body, number, len(before) + 2)
    return ms, triples[0]


def _cap(text: bytes, literal: int) -> int | None:
    return literal if len(text) > literal else None


def read_items(body: bytes, media: str, reader: Reader, base: str | None = None) -> Reading:
    """The stream items of a push (docs/http-api.md, "Stream items"). `base` resolves relative IRIs. Raises Problem, with the line where the
    format has lines, unless `reader.skip` allows to leave the item out."""
    reading, limits = Reading(reader, media == NQUADS), reader.limits
    check_lines(body, media, limits.push_triples)
    body = prepared(body, media, limits.nesting)
    if media == JSONL:
        for number, quads in each_line(body, reading, lambda _, line: read_json_line(line, limits)):
            reading.add_dataset(quads, line=number, measured=True)
    elif media == TIMED:
        # Each line is an item, whatever body it comes in; blank nodes are shared by the lines of one ms.
        reading.add_lines(_timed_triples(body, reading), len(body) <= limits.item_bytes)
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
        reading.add_dataset(_quads(body, media, reading, base), measured=len(body) <= limits.item_bytes)
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
        lines = each_line(body, reading, lambda _, line: list(tokens(parse(line, format_), _cap(line, limits.literal))))
        return [quad for _, found in lines for quad in found]


def _parsed(body: bytes, format_: RdfFormat, literal: int, base: str | None) -> Iterator[Quad]:
    if format_ == RdfFormat.JSON_LD:
        check_languages(body)
    try:
        yield from tokens(parse(body, format_, base_iri=base), _cap(body, literal))
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
