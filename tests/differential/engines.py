"""One case on each evaluator: the reference evaluator and pyoxigraph."""

from __future__ import annotations

import pyoxigraph as ox

from engine.functions.expressions import Context
from engine.ir.spans import DiagnosticError
from engine.records import Triple
from engine.reference import sparql
from engine.reference.dataset import Dataset, Graph
from engine.reference.sparql import Result
from grammar import parse
from tests.conformance.results import Expected, difference
from tests.conformance.sparql import sort_keys
from tests.differential.generator import PREFIXES, Case

Answer = Result | Expected | str
"""What an evaluator says: an answer, or why it refuses the query."""


def triples(lines: tuple[str, ...], mark: str) -> list[Triple]:
    """The set of triples that lines of Turtle say, in order; `mark` tells the blank nodes of one graph from those of another."""
    text = PREFIXES + "\n".join(lines)
    return list(dict.fromkeys((_own(str(q.subject), mark), str(q.predicate), _own(str(q.object), mark))
                              for q in ox.parse(text.encode(), ox.RdfFormat.TURTLE)))


def _own(token: str, mark: str) -> str:
    return f"_:{mark}{token[2:]}" if token.startswith("_:") else token


def ours(case: Case) -> Answer:
    """The reference evaluator."""
    try:
        statement = parse(case.query)
    except DiagnosticError as error:
        return str(error)
    named = {f"<{iri}>": Graph(triples(lines, f"g{n}")) for n, (iri, lines) in enumerate(case.named.items())}
    return sparql.evaluate(statement.query, Dataset(Graph(triples(case.default, "d")), named), Context(0, "query"))


def oxigraph(case: Case) -> Answer:
    """pyoxigraph on the same dataset."""
    store = ox.Store()
    for n, (graph, lines) in enumerate(((None, case.default), *case.named.items())):
        name = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
        if graph is not None:
            store.add_graph(name)
        for quad in ox.parse((PREFIXES + "\n".join(lines)).encode(), ox.RdfFormat.TURTLE):
            store.add(ox.Quad(_node(quad.subject, n), quad.predicate, _node(quad.object, n), name))
    try:
        found = store.query(case.query)
    except SyntaxError as error:
        return str(error)
    if isinstance(found, ox.QueryBoolean):
        return Expected([{}] if found else [])
    if isinstance(found, ox.QueryTriples):
        return Expected([dict(t) for t in {(("s", str(t.subject)), ("p", str(t.predicate)), ("o", str(t.object))) for t in found}])
    names = tuple(v.value for v in found.variables)
    return Expected([{name: str(row[name]) for name in names if row[name] is not None} for row in found], names, ordered=True)


def _node(term: object, n: int) -> object:
    return ox.BlankNode(f"g{n}{term.value}") if isinstance(term, ox.BlankNode) else term


def disagreement(case: Case, one: Answer, other: Answer) -> str | None:
    """In what an answer of ours differs from another; None where both agree, or both refuse."""
    if isinstance(one, str) or isinstance(other, str):
        return None if isinstance(one, str) and isinstance(other, str) else f"{one}\n--- but ---\n{other}"
    assert isinstance(one, Result) and isinstance(other, Expected)
    return difference(one, other, sort_keys(parse(case.query)))
