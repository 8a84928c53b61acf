"""``USING RULES rdfs``: the RDFS entailment rules, partially evaluated against a static TBox (RDF 1.1 Semantics, section 9.2.1).

The result is closed: sub-class and sub-property hierarchies (cycles too) are walked here, once, so that every triple which a chain of
rdfs2, rdfs3, rdfs7 and rdfs9 derives is derived by one rule from one triple. rdfs5 and rdfs11 concern the TBox alone: their
consequences are facts of the rule set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from engine.ir.expressions import Call
from engine.ir.rules import TRIPLE, Atom, Fact, Formula, Rule, RuleSet, Test
from engine.ir.terms import RDF_TYPE, RDFS, Constant, Term, Variable
from engine.records import Triple
from engine.rewrite.saturate import reachable
from engine.timeline import ALWAYS

SUB_CLASS, SUB_PROPERTY = f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{RDFS}domain>", f"<{RDFS}range>"
X, Y = Variable("x"), Variable("y")

Edges = Mapping[str, set[str]]


def compile_rdfs(tbox: Iterable[Triple]) -> RuleSet:
    """The closed rules of a TBox, each with the RDFS rules it came through as `origin`."""
    edges: dict[str, dict[str, set[str]]] = {p: defaultdict(set) for p in (SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE)}
    for s, p, o in tbox:
        if p in edges and not o.startswith('"'):
            edges[p][s].add(o)
    above_class, above_property = reachable(edges[SUB_CLASS]), reachable(edges[SUB_PROPERTY])
    found: dict[tuple[object, object], Rule] = {}
    for rule in _rules(edges, above_class, above_property):
        found.setdefault((rule.head, rule.body), rule)
    rules = tuple(sorted((r for r in found.values() if (r.head,) != r.body), key=_sort_key))
    facts = tuple(Fact(_atom(Constant(s), Constant(p), Constant(o)), ALWAYS)
                  for p, above in ((SUB_CLASS, above_class), (SUB_PROPERTY, above_property))
                  for s in sorted(above) for o in sorted(above[s]))
    return RuleSet("rdfs", rules, facts)


def apply(rules: RuleSet, triples: Iterable[Triple]) -> frozenset[Triple]:
    """The closure of a static graph: the rules are closed, so one pass is enough."""
    derived = set(triples)
    by_predicate: dict[str, list[tuple[Rule, Atom]]] = defaultdict(list)
    for rule in rules.rules:
        body = rule.body[0]
        assert isinstance(body, Atom) and isinstance(body.terms[1], Constant)
        by_predicate[body.terms[1].token].append((rule, body))
    for triple in list(derived):
        for rule, body in by_predicate.get(triple[1], ()):
            assert isinstance(rule.head, Atom)
            bindings = _match(body.terms, triple)
            if bindings is not None and (len(rule.body) == 1 or not bindings[Y].startswith('"')):
                s, p, o = (bindings[t] if isinstance(t, Variable) else t.token for t in rule.head.terms)
                derived.add((s, p, o))
    tokens = [tuple(t.token for t in f.atom.terms if isinstance(t, Constant)) for f in rules.facts]
    return frozenset(derived) | frozenset((t[0], t[1], t[2]) for t in tokens)


def _rules(edges: Mapping[str, Edges], above_class: Edges, above_property: Edges) -> Iterator[Rule]:
    for sub, supers in above_class.items():
        for sup in supers:
            yield _rule((X, Constant(RDF_TYPE), Constant(sup)), (X, Constant(RDF_TYPE), Constant(sub)), "rdfs9")
    for sub, supers in above_property.items():
        for sup in supers:
            yield _rule((X, Constant(sup), Y), (X, Constant(sub), Y), "rdfs7")
            if sup == RDF_TYPE:
                for low, highs in above_class.items():
                    for high in highs:
                        yield _rule((X, Constant(RDF_TYPE), Constant(high)), (X, Constant(sub), Constant(low)), "rdfs7", "rdfs9")
    below_property = _inverse(above_property)
    for predicate, subject, name in ((DOMAIN, X, "rdfs2"), (RANGE, Y, "rdfs3")):
        for property_, classes in edges[predicate].items():
            for sub in {property_, *below_property.get(property_, ())}:
                for sup in classes.union(*(above_class.get(c, set()) for c in classes)):
                    origin = ("rdfs7",) * (sub != property_) + (name,) + ("rdfs9",) * (sup not in classes)
                    guard = (Test(Call("!", (Call("ISLITERAL", (Y,)),))),) if subject is Y else ()
                    yield _rule((subject, Constant(RDF_TYPE), Constant(sup)), (X, Constant(sub), Y), *origin, guard=guard)


def _rule(head: tuple[Term, Term, Term], body: tuple[Term, Term, Term], *origin: str, guard: tuple[Formula, ...] = ()) -> Rule:
    return Rule(_atom(*head), (_atom(*body), *guard), name="+".join(origin), origin=origin)


def _atom(s: Term, p: Term, o: Term) -> Atom:
    return Atom(TRIPLE, (s, p, o))


def _inverse(edges: Edges) -> dict[str, set[str]]:
    turned: dict[str, set[str]] = defaultdict(set)
    for start, ends in edges.items():
        for end in ends:
            turned[end].add(start)
    return turned


def _match(terms: tuple[Term, ...], triple: Triple) -> dict[Variable, str] | None:
    bindings: dict[Variable, str] = {}
    for term, token in zip(terms, triple):
        if isinstance(term, Variable):
            bindings[term] = token
        elif term.token != token:
            return None
    return bindings


def _sort_key(rule: Rule) -> str:
    return repr((rule.head, rule.body))
