"""Which triples are the schema (TBox): statements in the vocabulary of RDFS and OWL about classes and properties, and their lists.

Also what is said in words of one's own that the schema makes words of that vocabulary: a sub-property of rdfs:subClassOf, a
sub-class of owl:TransitiveProperty, a property whose domain is owl:Class.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from engine.grouping import by_key
from engine.ir.strata import reachable
from engine.ir.terms import RDF_TYPE, SAME_AS
from engine.records import Triple
from engine.rewrite.rule_text import iri

SUB_CLASS, SUB_PROPERTY = iri("rdfs:subClassOf"), iri("rdfs:subPropertyOf")
DOMAIN, RANGE = iri("rdfs:domain"), iri("rdfs:range")
SAME, FIRST, REST, NIL = SAME_AS, iri("rdf:first"), iri("rdf:rest"), iri("rdf:nil")
_EQUAL_CLASS, _EQUAL_PROPERTY, _INVERSE = iri("equivalentClass"), iri("equivalentProperty"), iri("inverseOf")

LISTS = frozenset(map(iri, ("intersectionOf", "unionOf", "oneOf", "propertyChainAxiom", "hasKey", "members", "distinctMembers")))
"""Properties whose value is a list."""

PREDICATES = LISTS | {SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE, _EQUAL_CLASS, _EQUAL_PROPERTY, _INVERSE} | frozenset(map(iri, (
    "disjointWith", "propertyDisjointWith", "complementOf", "onProperty", "onClass", "someValuesFrom", "allValuesFrom", "hasValue",
    "maxCardinality", "maxQualifiedCardinality", "sourceIndividual", "assertionProperty", "targetIndividual", "targetValue")))
"""Properties of which every statement is schema; rdf:first and rdf:rest are, in the lists that LISTS lead to."""

CLASSES = frozenset(map(iri, (
    "Class", "rdfs:Class", "rdfs:Datatype", "Restriction", "ObjectProperty", "DatatypeProperty", "AnnotationProperty", "rdf:Property",
    "FunctionalProperty", "InverseFunctionalProperty", "IrreflexiveProperty", "SymmetricProperty", "AsymmetricProperty",
    "TransitiveProperty", "AllDisjointProperties", "AllDisjointClasses", "AllDifferent", "NegativePropertyAssertion", "Ontology")))
"""Classes whose instances are schema."""


def schema_vocabulary(triples: Iterable[Triple]) -> frozenset[Triple]:
    """The statements among `triples` that are schema, with owl:sameAs between what they are about."""
    by_property = by_key((triple[1], triple) for triple in triples)
    properties, classes = _words(by_property, PREDICATES, CLASSES)
    typing = _grown(frozenset((RDF_TYPE,)), by_property, _PROPERTY_STEPS)
    found = {triple for p in properties for triple in by_property.get(p, ())}
    found.update(triple for p in typing for triple in by_property.get(p, ()) if triple[2] in classes)
    wanted = {o for p in _grown(LISTS, by_property, _PROPERTY_STEPS) for _, _, o in by_property.get(p, ())}
    found.update(_list_triples(wanted, by_property))
    nodes = {node for s, _, o in found for node in (s, o)}
    found.update(t for t in by_property.get(SAME, ()) if t[0] in nodes or t[2] in nodes)
    return frozenset(found)


def words(triples: Iterable[Triple], properties: frozenset[str], classes: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Properties and classes with those of which the schema among `triples` says that they mean the same, or make such."""
    return _words(by_key((triple[1], triple) for triple in triples), properties, classes)


def _words(by_property: Mapping[str, list[Triple]], properties: frozenset[str],
           classes: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    classes = _grown(classes, by_property, _CLASS_STEPS)
    making = {s for p in (DOMAIN, RANGE) for s, _, o in by_property.get(p, ()) if o in classes}
    return _grown(properties | making, by_property, _PROPERTY_STEPS), classes


def members_of_lists(triples: Iterable[Triple]) -> dict[str, list[tuple[str, ...]]]:
    """The members of the lists among `triples`, in order, by the node at which a list starts: the object of a property of LISTS,
    or of one that is said to be such. More than one sequence where a node has several rdf:first or rdf:rest."""
    first: dict[str, list[str]] = defaultdict(list)
    rest: dict[str, list[str]] = defaultdict(list)
    heads: dict[str, None] = {}
    for s, p, o in triples:
        if p in (FIRST, REST):
            (first if p == FIRST else rest)[s].append(o)
        else:
            heads[o] = None
    return {head: found for head in heads if head in first and (found := list(_sequences(head, first, rest)))}


def _sequences(head: str, first: Mapping[str, list[str]], rest: Mapping[str, list[str]]) -> Iterator[tuple[str, ...]]:
    """Without recursion: lists may be long. A list that comes back to one of its nodes has no end and is none."""
    waiting: list[tuple[str, list[str], set[str]]] = [(head, [], set())]
    while waiting:
        node, members, seen = waiting.pop()
        while len(rest.get(node, ())) == len(first.get(node, ())) == 1 and node not in seen:
            seen.add(node)
            members.append(first[node][0])
            node = rest[node][0]
        if node == NIL:
            yield tuple(members)
        elif node not in seen:
            waiting += [(after, [*members, member], seen | {node}) for member in first.get(node, ()) for after in rest.get(node, ())]


def _list_triples(nodes: Iterable[str], by_property: Mapping[str, list[Triple]]) -> Iterator[Triple]:
    cells = by_key((triple[0], triple) for triple in (*by_property.get(FIRST, ()), *by_property.get(REST, ())))
    for node in reachable(nodes, lambda node: [o for _, p, o in cells.get(node, ()) if p == REST]):
        yield from cells.get(node, ())


_PROPERTY_STEPS = ((SUB_PROPERTY, False), (_EQUAL_PROPERTY, False), (_EQUAL_PROPERTY, True), (_INVERSE, False), (_INVERSE, True),
                   (SAME, False), (SAME, True))
_CLASS_STEPS = ((SUB_CLASS, False), (_EQUAL_CLASS, False), (_EQUAL_CLASS, True), (SAME, False), (SAME, True))


def _grown(words: frozenset[str], by_property: Mapping[str, list[Triple]], steps: Iterable[tuple[str, bool]]) -> frozenset[str]:
    """The words and what leads to them by a property, or comes from them where the step says so."""
    into = by_key((s, o) if forward else (o, s) for p, forward in steps for s, _, o in by_property.get(p, ()))
    return frozenset(reachable(words, lambda node: into.get(node, ())))
