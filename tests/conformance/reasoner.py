"""Closures under OWL 2 RL by another implementation: the package owlrl, which meets schema and data with general rules.

It has every rule of the W3C's tables. What it makes beside them, and what is left out here:

- triples with a literal as subject, such as ``"a" owl:sameAs "a"``: they are not RDF, and no answer shows them;
- what it says of datatypes that are not among those of OWL 2 RL (OWL 2 Profiles, section 4.2), which dt-type1 speaks of, unless the
  graph speaks of them: rdf:HTML, rdf:langString, xsd:date, xsd:time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import owlrl
import pyoxigraph
import rdflib
from pyoxigraph import RdfFormat

from engine.ir.terms import RDF_TYPE
from engine.records import Triple
from engine.rewrite.owl2rl import DATATYPES
from engine.rewrite.rule_text import iri

_BLANK = "urn:blank:"


def closures(graphs: Sequence[Collection[Triple]], processes: int) -> list[frozenset[Triple]]:
    """The closure of each graph. A graph of 5,000 triples takes ten seconds of a core."""
    if processes < 2:
        return [closure(graph) for graph in graphs]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        return list(pool.map(closure, graphs))


def closure(graph: Collection[Triple]) -> frozenset[Triple]:
    """The closure of one graph; blank nodes keep their labels."""
    closed = rdflib.Graph()
    closed.parse(data="\n".join(f"{_named(s)} {p} {_named(o)} ." for s, p, o in graph), format="nt")
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(closed)
    for s, p, o in [(s, p, o) for s, p, o in closed if isinstance(s, rdflib.Literal)]:
        closed.remove((s, p, o))
    quads = pyoxigraph.parse(closed.serialize(format="nt", encoding="utf-8"), RdfFormat.N_TRIPLES)
    found = {(_back(str(q.subject)), str(q.predicate), _back(str(q.object))) for q in quads}
    mentioned = {token for triple in graph for token in triple}
    more = {s for s, p, o in found if (p, o) == (RDF_TYPE, iri("rdfs:Datatype"))}.difference(DATATYPES, mentioned)
    return frozenset(triple for triple in found if triple[0] not in more)


def _named(token: str) -> str:
    return f"<{_BLANK}{token[2:]}>" if token.startswith("_:") else token


def _back(token: str) -> str:
    return f"_:{token[len(_BLANK) + 1:-1]}" if token.startswith(f"<{_BLANK}") else token
