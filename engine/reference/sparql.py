"""SELECT, CONSTRUCT, ASK and DESCRIBE over a dataset in plain Python: the oracle of every executor; and what the output operators log."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from engine.functions.context import row_key
from engine.functions.expressions import Context
from engine.ir.patterns import TriplePattern
from engine.ir.statement import Ask, Construct, Describe, Select, SparqlQuery
from engine.ir.terms import RDF, Constant, PatternTerm, Variable
from engine.records import Triple
from engine.reference.algebra import Algebra
from engine.reference.dataset import Dataset, Graph
from engine.reference.solutions import Bag, Row

Form = Literal["SELECT", "CONSTRUCT", "ASK", "DESCRIBE"]


@dataclass(frozen=True, slots=True)
class Result:
    """The answer: `rows` of a SELECT (in order), `boolean` of an ASK, `triples` of a CONSTRUCT or DESCRIBE."""

    form: Form
    variables: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    boolean: bool = False
    triples: frozenset[Triple] = frozenset()

    def bag(self) -> Bag:
        """The answer as a bag of rows whatever its form: triples as ``s p o``, true as one empty row."""
        if self.form == "ASK":
            return [{}] if self.boolean else []
        if self.form == "SELECT":
            return list(self.rows)
        return [{"s": s, "p": p, "o": o} for s, p, o in sorted(self.triples)]


def evaluate(query: SparqlQuery, dataset: Dataset, context: Context) -> Result:
    """Evaluate one query over one dataset (SPARQL 1.1 section 18.6; section 16 for the forms)."""
    algebra = Algebra(dataset, context)
    match query:
        case Select(pattern=pattern, variables=variables):
            return Result("SELECT", tuple(v.name for v in variables), tuple(algebra.solutions(pattern)))
        case Ask(pattern=pattern):
            return Result("ASK", boolean=bool(algebra.solutions(pattern)))
        case Construct(template=template, pattern=pattern):
            return Result("CONSTRUCT", triples=frozenset(instances(template, algebra.solutions(pattern), context)))
        case Describe():
            return Result("DESCRIBE", triples=frozenset(_describe(query, algebra)))


def instances(template: Iterable[TriplePattern], rows: Bag, context: Context) -> Iterable[Triple]:
    """The well-formed instances of a template; its blank nodes derive from query, T, row, occurrence and label."""
    seen: Counter[str] = Counter()
    for row in rows:
        key = row_key(row)
        seen[key] += 1
        for triple in template:
            s, p, o = (_instance(t, row, f"{context.query} {context.at_ms} {seen[key]} {key}") for t in triple.terms)
            if s is not None and p is not None and o is not None and s[0] != '"' and p[0] == "<":
                yield s, p, o


def _instance(term: PatternTerm, row: Row, occurrence: str) -> str | None:
    if isinstance(term, Constant):
        return term.token
    if isinstance(term, Variable) and term.name.startswith("_:"):
        return "_:c" + hashlib.sha256(f"{term.name} {occurrence}".encode()).hexdigest()[:24]
    return row.get(term.name) if isinstance(term, Variable) else None


def _describe(query: Describe, algebra: Algebra) -> Iterable[Triple]:
    """What is known of the resources anywhere in the dataset; those named by IRI whether or not the pattern has a solution."""
    rows = algebra.solutions(query.pattern)
    named = {t.token if isinstance(t, Constant) else row.get(t.name) for t in query.terms for row in rows or [{}]}
    everything = Graph(triple for graph in algebra.dataset.graphs() for triple in graph.triples)
    return concise_bounded_description(everything, {token for token in named if token is not None})


def concise_bounded_description(graph: Graph, resources: set[str]) -> set[Triple]:
    """The triples of `resources` and, recursively, of their blank objects and reifications (W3C submission "CBD", 2005)."""
    waiting, seen = set(resources), set[str]()
    found: set[Triple] = set()
    while waiting:
        subject = waiting.pop()
        seen.add(subject)
        for s, p, o in graph.match(subject, None, None):
            found.add((s, p, o))
            about = {r for r, _, _ in graph.match(None, f"<{RDF}subject>", s)
                     if graph.match(r, f"<{RDF}predicate>", p) and graph.match(r, f"<{RDF}object>", o)}
            waiting |= ({o} if o.startswith("_:") else set()) | about
        waiting -= seen
    return found


def output(operator: str, relation: Result, before: Result | None) -> Result:
    """RSTREAM, ISTREAM or DSTREAM: the relation, or its bag difference with the evaluation before, either way."""
    previous = replace(relation, rows=(), boolean=False, triples=frozenset()) if before is None else before
    if operator == "istream":
        return _difference(relation, previous)
    return _difference(previous, relation) if operator == "dstream" else relation


def _difference(minuend: Result, subtrahend: Result) -> Result:
    if minuend.form == "SELECT":
        return replace(minuend, rows=tuple(_subtract(list(minuend.rows), list(subtrahend.rows))))
    return replace(minuend, boolean=minuend.boolean and not subtrahend.boolean, triples=minuend.triples - subtrahend.triples)


def _subtract(rows: Bag, taken: Bag) -> Bag:
    """The bag difference, order kept."""
    left = Counter(frozenset(row.items()) for row in taken)
    result: Bag = []
    for row in rows:
        key = frozenset(row.items())
        if left[key]:
            left[key] -= 1
        else:
            result.append(row)
    return result
