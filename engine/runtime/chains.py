"""May a statement read what it reads? Streams of other queries: only triples, and never, through however many others, its own."""

from __future__ import annotations

from collections.abc import Iterator

from engine.ir.spans import Diagnostic, DiagnosticError
from engine.ir.statement import Statement, StreamSource
from engine.runtime.derived import Queries
from engine.runtime.registered import Registered


def check_sources(statement: Statement, name: str, makes: str | None, queries: Queries[Registered], base_url: str) -> None:
    """Raise DiagnosticError where a window of the query `name`, which makes the stream `makes`, is on no stream of triples or makes
    a cycle. Streams that nobody knows are left to the compiler."""
    found = [*_no_triples(statement, queries, base_url), *_cycles(statement, name, makes, queries)]
    if found:
        raise DiagnosticError(*found)


def producers(statement: Statement, queries: Queries[Registered]) -> list[Registered]:
    """The queries whose streams a statement reads."""
    makers = queries.makers
    return [makers[iri] for iri in dict.fromkeys(source.stream for source in statement.streams) if iri in makers]


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
