"""Registered queries: what was said of each, who makes and reads which stream, and results as the facts of a stream
(docs/architecture.md, "Derived streams")."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from engine.facts import FACTS
from engine.functions.typed import typed_columns
from engine.grouping import by_key
from engine.ir.patterns import BGP
from engine.ir.programs import timed_statement
from engine.ir.rules import RuleSet
from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import Select, Statement, StreamSource
from engine.ir.windows import with_rule_windows
from engine.runtime.resources import RESULT_KINDS
from engine.runtime.stores import ParseRules
from engine.runtime.ticks import Timetable, query_watermark
from engine.timeline import MIN


@dataclass(frozen=True, slots=True)
class Definition:
    """What was registered: query number `number` in its generation `generation`; it sees events of positions > `since`. `stream`
    is the IRI of the stream that it registers, if it does. `media` is the type of a text that is a rule program with a time of its own."""

    name: str
    text: str
    number: int
    generation: int
    since: int
    options: Mapping[str, Any] = field(default_factory=dict)
    registered_ms: int | None = None
    restarts: int = 0
    stream: str | None = None
    media: str | None = None

    @property
    def epoch(self) -> str:
        """The id of this generation; results have the ids ``{epoch}-{seq}``."""
        return f"q{self.number}c{self.generation}"

    @property
    def order(self) -> tuple[int, int]:
        """Greater for what was registered later under the same name."""
        return self.number, self.generation

    @classmethod
    def of(cls, name: str, payload: Mapping[str, Any], stream: str | None, old: Definition | None, numbers: int) -> Definition:
        """Of the payload of a registration, in place of `old` or as the next of `numbers` queries; the payload may say which it is."""
        number, generation = (old.number, old.generation + 1) if old is not None else (numbers + 1, 1)
        number, generation = payload.get("number", number), payload.get("generation", generation)
        return cls(name, payload["text"], number, generation, payload["since"], payload.get("options", {}), payload.get("registered"),
                   payload.get("restarts", 0), stream, payload.get("media"))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "text": self.text, "number": self.number, "generation": self.generation, "since": self.since,
                "options": dict(self.options), "registered": self.registered_ms, "restarts": self.restarts, "epoch": self.epoch,
                "stream": self.stream, **({} if self.media is None else {"media": self.media})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Definition:
        return cls.of(value["name"], value, value.get("stream"), None, 0)


def read_statement(text: str, media: str | None, parse: Callable[[str], Statement], parse_rules: ParseRules) -> Statement:
    """The statement of a registered text; `media` is the type of a rule program with a time of its own. Raises DiagnosticError."""
    return parse(text) if media is None else timed_statement(parse_rules(text, media, "program"), text, media)


def kept_statement(text: str, media: str | None, parse: Callable[[str], Statement], parse_rules: ParseRules,
                   rules: Mapping[str, RuleSet]) -> tuple[Statement, Exception | None]:
    """The statement of a text that was accepted once, with the windows of its rules; where it is not understood any more, one that reads
    nothing and shows nothing, and why."""
    try:
        return with_rule_windows(read_statement(text, media, parse, parse_rules), rules), None
    except Exception as error:  # whatever a parser raises is this text's failure
        return Statement(Select(BGP(()), ()), text), error


class Reader:
    """What a query reads and makes."""

    __slots__ = ()
    definition: Definition
    statement: Statement
    timetable: Timetable

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def epoch(self) -> str:
        return self.definition.epoch

    @property
    def streams(self) -> tuple[str, ...]:
        return self.timetable.streams

    @property
    def makes(self) -> str | None:
        """The stream that its results are: only triples can be read."""
        stream = self.definition.stream
        return stream if stream is not None and RESULT_KINDS[self.statement.form] == "graph" else None

    @property
    def graphs(self) -> frozenset[str]:
        return frozenset(source.iri for source in (*self.statement.graphs, *self.statement.reasoning_graphs))

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(source.name for source in self.statement.rules)


@dataclass(frozen=True, slots=True)
class Registered(Reader):
    """A query at the end of the log, registered by the record at `registered`. `wish` is what the last record about it asked for,
    ``running`` or ``paused``; `changed` is the position of that record."""

    definition: Definition
    statement: Statement
    timetable: Timetable
    wish: str
    registered: int
    changed: int


Query = TypeVar("Query", bound=Reader)


class Queries(dict[str, Query]):
    """The registered queries by name. That none reads its own results, directly or through others, was seen to before."""

    @property
    def makers(self) -> dict[str, Query]:
        """The queries whose results are streams, by the IRI of the stream."""
        return {query.makes: query for query in self.values() if query.makes is not None}

    def readers(self, stream: str | None) -> list[Query]:
        """The queries with a window on a stream, if there is one."""
        if stream is None:
            return []
        return [query for query in self.values() if stream in query.streams]

    def using_graph(self, iri: str) -> list[Query]:
        return [query for query in self.values() if iri in query.graphs]

    def using_rules(self, name: str) -> list[Query]:
        return [query for query in self.values() if name in query.rules]

    def dependents(self, query: Query) -> list[Query]:
        return self.below(query.makes)

    def below(self, stream: str | None) -> list[Query]:
        """All that read a stream, directly or through others; each after those that it reads."""
        found: dict[str, Query] = {}

        def visit(stream: str | None) -> None:
            for reader in self.readers(stream):
                if reader.name not in found:
                    visit(reader.makes)
                    found[reader.name] = reader     # after all that read it

        visit(stream)
        return list(reversed(found.values()))

    def levels(self) -> list[list[Query]]:
        """Queries in the order of evaluation: each level reads only streams that are pushed, or made by the levels before it."""
        makers, depths = self.makers, dict[str, int]()
        if not makers:
            return [list(self.values())] if self else []

        def depth(query: Query) -> int:
            if query.name not in depths:
                depths[query.name] = max((depth(makers[iri]) + 1 for iri in query.streams if iri in makers), default=0)
            return depths[query.name]

        levels = by_key((depth(query), query) for query in self.values())
        return [levels[number] for number in sorted(levels)]

    def reaches(self, pushed: Callable[[str], tuple[int, bool]]) -> dict[str, int]:
        """The time up to which each query may be evaluated, by name, given (watermark, idle) of pushed streams.

        A query all of whose streams are idle is evaluated as far as those that read what it makes, for they do not wait for it: what they
        see of it must be there before. Pauses and failures do not count."""
        makers, order = self.makers, [query for level in self.levels() for query in level]
        reach, asleep = dict[str, int](), set[str]()

        def known(iri: str) -> tuple[int, bool]:
            maker = makers.get(iri)
            return pushed(iri) if maker is None else (maker.timetable.evaluated(reach[maker.name]), maker.name in asleep)

        for query in order:
            found = [known(iri) for iri in query.streams]
            reach[query.name] = query_watermark(found)
            if all(idle for _, idle in found):
                asleep.add(query.name)
        waiting = [query for query in order if query.name in asleep]
        before: dict[str, int] = {}
        while before != reach:
            before = dict(reach)
            for query in reversed(waiting):
                reach[query.name] = max(reach[query.name], *(reach[reader.name] for reader in self.readers(query.makes)), MIN)
            for query in waiting:
                reach[query.name] = max(reach[query.name], *(known(iri)[0] for iri in query.streams), MIN)
        return reach

    def pushed(self, query: Query) -> set[str]:
        """The streams that everything a query sees comes from."""
        return {iri for _, streams in self.awaited([(query, 0)]) for iri in streams}

    def awaited(self, evaluations: Iterable[tuple[Query, int]]) -> list[tuple[int, tuple[str, ...]]]:
        """What evaluations, of queries at times, wait for: times that pushed streams must reach, with the streams."""
        makers = self.makers
        if not makers:
            return list(dict.fromkeys((tick, query.streams) for query, tick in evaluations))
        found: dict[tuple[int, tuple[str, ...]], None] = {}
        seen = set[tuple[str, int]]()
        waiting = deque(evaluations)
        while waiting:
            asked, at = waiting.popleft()
            if (asked.name, at) not in seen:
                seen.add((asked.name, at))
                if pushed := tuple(iri for iri in asked.streams if iri not in makers):
                    found[at, pushed] = None
                producers = [makers[iri] for iri in asked.streams if iri in makers]
                waiting += [(producer, producer.timetable.tick_from(at)) for producer in producers]
        return list(found)


class FixedQueries(Queries[Query]):
    """Queries that do not change any more: who makes and reads which stream is found once."""

    def __init__(self, queries: Mapping[str, Query] = MappingProxyType({})) -> None:
        super().__init__(queries)
        self._makers = super().makers
        self._readers: dict[str | None, list[Query]] = by_key((stream, query) for query in self.values() for stream in query.streams)

    @property
    def makers(self) -> dict[str, Query]:
        return self._makers

    def readers(self, stream: str | None) -> list[Query]:
        return self._readers.get(stream, [])


def given_name(statement: Statement) -> str | None:
    """The name that a text gives to its query; of an IRI the last part."""
    return statement.name if statement.name is None else re.split("[/#:]", statement.name.rstrip("/#"))[-1]


def own_iri(statement: Statement, default: str | None = None) -> str | None:
    """The IRI of the stream that a text registers: the one in it, else `default`; None where it registers none."""
    if statement.kind != "stream":
        return None
    return statement.name if statement.name is not None and ":" in statement.name else default


def made_facts(evaluations: Sequence[tuple[int, pa.Table]], position: int) -> pa.Table:
    """Results of CONSTRUCT, each with its time, as facts of a stream: one item each, without a graph name. All have the same position: the
    order of items is that of their times. Blank nodes are those of the results, which differ between evaluations."""
    parts = [table.select(["s", "p", "o"]).cast(pa.schema([(name, pa.string()) for name in "spo"])) for _, table in evaluations]
    triples = pa.concat_tables(parts).combine_chunks()
    times = np.repeat(np.array([at for at, _ in evaluations], np.int64), [part.num_rows for part in parts])
    kind, number, micros = typed_columns(triples["o"])
    columns = {"position": pa.array(np.full(len(times), position, np.int64)), "t": pa.array(times),
               "g": pa.nulls(len(times), pa.string()), "s": triples["s"], "p": triples["p"], "o": triples["o"],
               "kind": kind, "number": number, "micros": micros}
    return pa.table([columns[name] for name in FACTS.names], schema=FACTS)


def check_sources(statement: Statement, name: str, makes: str | None, queries: Queries[Registered], base_url: str) -> None:
    """Raise DiagnosticError where a window of the query `name`, which makes the stream `makes`, is on no stream of triples or makes
    a cycle. Streams that nobody knows are left to the compiler."""
    found = [*_no_triples(statement, queries, base_url), *_cycles(statement, name, makes, queries)]
    if found:
        raise DiagnosticError(*found)


def _no_triples(statement: Statement, queries: Queries[Registered], base_url: str) -> Iterator[Diagnostic]:
    for source in statement.streams:
        for query in queries.values():
            if source.stream == query.definition.stream and query.makes is None:
                rows = f"The stream <{source.stream}> of the query '{query.name}' has rows of {query.statement.form}, no triples."
                yield _refusal(source, rows, f"Let '{query.name}' CONSTRUCT the triples that others are to read.")
            elif source.stream == f"{base_url}/queries/{query.name}" and query.definition.stream is None:
                yield _refusal(source, f"'{query.name}' is a query whose results are no stream.",
                               f"Register it with REGISTER STREAM {query.name} AS CONSTRUCT ...")


def _cycles(statement: Statement, name: str, makes: str | None, queries: Queries[Registered]) -> Iterator[Diagnostic]:
    if makes is None:
        return
    for source in statement.streams:
        way = _way(source.stream, makes, queries.makers, set())
        if way is not None:
            steps = "".join(f" reads the stream of '{step}', which" for step in way)
            yield _refusal(source, f"'{name}'{steps} reads the stream of '{name}': a query cannot read its own results.")


def _way(stream: str, wanted: str, makers: dict[str, Registered], seen: set[str]) -> list[str] | None:
    """The queries through which `stream` is made of the stream `wanted`; None where it is not. `seen` are streams that are not."""
    if stream == wanted:
        return []
    query = makers.get(stream)
    if query is None or stream in seen:
        return None
    for below in query.streams:
        way = _way(below, wanted, makers, seen)
        if way is not None:
            return [query.name, *way]
    seen.add(stream)
    return None


def _refusal(source: StreamSource, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic("unsupported-in-streaming", message, source.span, hint=hint)
