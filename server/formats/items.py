"""Stream items out of what pyoxigraph reads: quads as canonical tokens, syntax errors as problems with their place and the caret line; one
item per graph, its time stamp found and stripped, its size within the caps."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyoxigraph import DefaultGraph
from pyoxigraph import Quad as OxQuad

from engine.ir.spans import Span
from engine.records import Triple
from engine.runtime.resources import Item
from engine.timeline import is_moment
from server.formats.values import GENERATED_AT, stamp_ms
from server.limits import Limits
from server.problems import Problem

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_DIRECTIONS = ("--ltr", "--rtl")
Quad = tuple[str | None, Triple]
# So many triples with the time stamp of an item may stand in it beside its own.
STAMPS = 64


def syntax_problem(detail: str, body: bytes, line: int | None = None, column: int | None = None, end_line: int | None = None,
                   end_column: int | None = None) -> Problem:
    """A 400 `rdf-syntax`; lines and columns count from 1."""
    error: dict[str, Any] = {"detail": detail}
    if line is not None:
        location = {"line": line, "column": column, "endLine": end_line, "endColumn": end_column}
        error["location"] = {name: value for name, value in location.items() if value is not None}
        if column is not None:
            error["snippet"] = snippet(body, line, column, end_column if end_line in (None, line) else None)
    return Problem("rdf-syntax", detail, errors=[error])


def from_parser(error: SyntaxError, body: bytes, *, line_offset: int = 0, column_offset: int = 0) -> Problem:
    """pyoxigraph's error. The offsets are added where the text it saw was cut out of `body`; a column only counts in line 1."""
    told = error.msg or "The text is not valid"
    if "LoadDocumentCallback" in told:
        # The context is named by an IRI; none is bundled, and nothing is fetched.
        detail = "The @context must be written inline; contexts are not fetched."
        return Problem("remote-context-disabled", detail, errors=[{"detail": detail}], extra={"bundled": []})
    detail = (told.partition(": ")[2] if told.startswith("Parser error") else told).rstrip(".") + "."
    if detail == "Unexpected end of file.":     # pyoxigraph's words for a token without an end; in N-Quads it reads to the end of the line
        detail = "What begins here has no end."
    detail = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in detail)
    if error.lineno is None:
        return syntax_problem(detail, body, line_offset + 1 if line_offset else None)
    shift = column_offset if error.lineno == 1 else 0
    end_shift = column_offset if error.end_lineno == 1 else 0
    return syntax_problem(detail, body, error.lineno + line_offset, (error.offset or 1) + shift,
                          (error.end_lineno or error.lineno) + line_offset, (error.end_offset or 1) + end_shift)


def snippet(body: bytes, line: int, column: int, end_column: int | None = None) -> str:
    """Line `line` of `body` with carets under the place; long lines are cut around it."""
    start = 0
    for _ in range(line - 1):
        start = body.find(b"\n", start) + 1
        if start == 0:
            return ""
    stop = body.find(b"\n", start)
    row = body[start:stop if stop >= 0 else len(body)][:1_000_000].decode("utf-8", "replace").rstrip("\r")
    at = min(max(0, column - 1), len(row))
    return _UNSEEN.sub("\ufffd", Span(row, at, at + (end_column or column) - column).snippet())


def tokens(quads: Iterable[OxQuad], literal_cap: int | None = None) -> Iterator[Quad]:
    """(graph token or None, triple) of each quad; RDF 1.2 terms and literals above `literal_cap` bytes are refused. `literal_cap` None
    skips the check (a text shorter than the cap cannot hold such a literal)."""
    default = DefaultGraph()
    for quad in quads:
        subject, predicate, object_ = str(quad.subject), str(quad.predicate), str(quad.object)
        if (" " in object_ and object_[0] != '"') or object_.endswith(_DIRECTIONS):
            raise Problem("rdf-syntax", "RDF 1.2 triple terms and base directions are not supported.",
                          errors=[{"detail": f"not supported: {object_[:200]}"}])
        if literal_cap is not None and len(object_) > literal_cap:
            raise Problem("item-too-large", f"A literal has more than {literal_cap} bytes.",
                          extra={"limit": literal_cap, "actual": len(object_.encode())})
        graph = quad.graph_name
        yield None if graph == default else str(graph), (subject, predicate, object_)


def own_blank_nodes(graph: str | None, triples: Iterable[Triple]) -> tuple[str | None, tuple[Triple, ...]]:
    """Blank nodes named ``_:b0``, ``_:b1``... in the order in which they appear, so that the same text gives the same item."""
    names: dict[str, str] = {}

    def own(token: str) -> str:
        return names.setdefault(token, f"_:b{len(names)}") if token[0] == "_" else token

    renamed = tuple([(own(s), p, own(o)) if s[0] == "_" or o[0] == "_" else (s, p, o) for s, p, o in triples])
    return (own(graph) if graph else None), renamed


@dataclass(frozen=True, slots=True)
class Reader:
    """How the items of one push are read. `predicate` carries the time stamp of an item; `timestamp_ms` (``?timestamp=``) overrides it;
    `event_time` refuses items without one; `skip` (``?on-error=skip``) leaves bad items out instead of refusing the push."""

    predicate: str = GENERATED_AT
    timestamp_ms: int | None = None
    event_time: bool = False
    skip: bool = False
    limits: Limits = field(default_factory=Limits)


class TooManyTriples(Problem):
    """Reading stopped at a cap: what is beyond it was not looked at."""


def capped(quads: Iterable[Quad], limit: int, what: str, spare: int = 0) -> Iterator[Quad]:
    """The quads of `what`, an item, a push or a graph; no more are made than it may have, and `spare` ones."""
    for number, quad in enumerate(quads):
        if number >= limit + spare:
            raise TooManyTriples("too-many-triples", f"There are more than {limit} triples in {what}.", extra={"limit": limit})
        yield quad


@dataclass(slots=True)
class Reading:
    """The items of a push in the order of the text, and the problems of those that were left out. `labelled`: the text gives each blank
    node its label, which is kept, as bulk pushes keep it (columns.py)."""

    reader: Reader
    labelled: bool = False
    items: list[Item] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def reject(self, problem: Problem) -> None:
        """Leave an item out, or refuse the whole push, as the pusher wished."""
        if not self.reader.skip:
            raise problem
        most = self.reader.limits.push_errors
        if len(self.problems) >= most:
            raise Problem("quota-errors", f"More than {most} items cannot be read: nothing was taken.", errors=problem.errors,
                          extra={"limit": most})
        self.problems.append(problem)

    def add_dataset(self, quads: Iterable[tuple[str | None, Triple]], place: str | None = None, line: int | None = None,
                    measured: bool = False) -> None:
        """Add the items of one document: each named graph is one, triples of the default graph about a graph's name belong to it,
        and the rest of the default graph is an item of its own. `measured` says that the caller kept the cap on bytes."""
        graphs: dict[str | None, list[Triple]] = {}
        most = self.reader.limits.item_triples + STAMPS
        for graph, triple in quads:
            triples = graphs.setdefault(graph, [])
            if len(triples) < most or graph is None:
                triples.append(triple)
            elif not self.reader.skip:      # else the item is refused below, by what is kept of it
                raise located(self._too_many(), place or graph, line)
        loose: list[Triple] = []
        about: dict[str, list[Triple]] = {}
        for triple in graphs.pop(None, ()):
            (about.setdefault(triple[0], []) if triple[0] in graphs else loose).append(triple)
        for graph, triples in graphs.items():
            self.add_item(graph, triples, about.get(graph or "", ()), place, line, measured)
        if loose:
            self.add_item(None, loose, (), place, line, measured)

    def add_item(self, graph: str | None, triples: list[Triple], about: Iterable[Triple] = (), place: str | None = None,
                 line: int | None = None, measured: bool = False) -> None:
        """Add one item; `about` are the triples of the default graph about its graph's name."""
        try:
            stamp, kept = self._stamp(graph, triples, list(about))
            self._check_size(kept, measured)
            self.items.append(Item(stamp, graph, tuple(kept)) if self.labelled else Item(stamp, *own_blank_nodes(graph, kept)))
        except Problem as problem:
            self.reject(located(problem, place or graph, line))

    def add_lines(self, lines: Iterable[tuple[int, int, Triple]], measured: bool) -> None:
        """Add items of a triple each: (number of the line, its ms, triple). They share blank nodes with the others of their ms."""
        for number, ms, triple in lines:
            if not measured:
                try:
                    self._check_size([triple], False)
                except Problem as problem:
                    self.reject(located(problem, None, number))
                    continue
            self.items.append(Item(ms if self.reader.timestamp_ms is None else self.reader.timestamp_ms, None, (triple,), ms))

    def _stamp(self, graph: str | None, triples: list[Triple], about: list[Triple]) -> tuple[int | None, list[Triple]]:
        """The time stamp of an item and its triples without the one that carries it."""
        predicate, event_time = f"<{self.reader.predicate}>", self.reader.event_time
        carriers = [t for t in about if t[1] == predicate]
        if not carriers:
            inside = [t for t in triples if t[1] == predicate]
            # Without a graph name the stamp is about something in the item; where the server stamps, that is data like any other.
            carriers = [t for t in inside if t[0] == graph] or (inside if event_time else [])
        if not event_time:
            carriers = [t for t in carriers if stamp_ms(t[2]) is not None]
        stamps = {stamp_ms(t[2]) for t in carriers}
        if carriers or about:
            gone = set(carriers)
            triples = [t for t in (*triples, *about) if t not in gone]
        if self.reader.timestamp_ms is not None:
            return self.reader.timestamp_ms, triples
        if len(stamps) > 1:
            raise Problem("missing-timestamp", f"The item has {len(stamps)} different time stamps (predicate {predicate}).")
        stamp = stamps.pop() if stamps else None
        if stamp is None and carriers:
            raise Problem("missing-timestamp", f"The time stamp {carriers[0][2][:100]} is not an xsd:dateTime.")
        if stamp is not None and not is_moment(stamp):
            raise Problem("missing-timestamp", f"The time stamp {carriers[0][2][:100]} is not within the years 1 to 9999.")
        if stamp is None and event_time:
            raise Problem("missing-timestamp", f"The item has no time stamp (predicate {predicate}).")
        return stamp, triples

    def _too_many(self) -> Problem:
        limit = self.reader.limits.item_triples
        return Problem("too-many-triples", f"An item may have {limit} triples.", extra={"limit": limit})

    def _check_size(self, triples: list[Triple], measured: bool) -> None:
        limits = self.reader.limits
        if len(triples) > limits.item_triples:
            raise self._too_many()
        if not measured:
            size = sum(len(s) + len(p) + len(o) + 5 for s, p, o in triples)
            if size > limits.item_bytes:
                raise Problem("item-too-large", f"An item may have {limits.item_bytes} bytes.",
                              extra={"limit": limits.item_bytes, "actual": size})


def located(problem: Problem, item: str | None, line: int | None) -> Problem:
    """`problem` with the item or line where it is, unless it says so already."""
    error: dict[str, Any] = {"code": problem.slug, "detail": problem.detail, **dict(*problem.errors[:1])}
    if "item" in error or "location" in error or (item is None and line is None):
        return problem
    if item is not None:
        error["item"] = item
    if line is not None:
        error["location"] = {"line": line}
    return Problem(problem.slug, problem.detail, problem.status, [error], problem.extra, problem.headers)
