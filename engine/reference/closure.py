"""Everything that follows from a graph by rules without time, naively: the oracle of the entailment rules.

Each rule is applied to all that is known until nothing new comes, stratum by stratum (engine/ir/strata.py). The rules may derive
triples that are not RDF, of a literal or through a blank node (generalised RDF: OWL 2 Profiles section 4.3): other rules see them,
the result does not show them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.functions.expressions import Context
from engine.ir.rules import TRIPLE, Assign, Atom, Falsum, Formula, Negation, Rule, RuleSet, Table, Test
from engine.ir.strata import rounds
from engine.ir.terms import Constant, Term
from engine.records import Triple
from engine.reference.dataset import Graph
from engine.reference.formulas import Ground, Inconsistency, Row, computed, ground, in_quick_order, layers, unify
from engine.timeline import ALWAYS


def closure(graph: Graph, rules: RuleSet, facts: Iterable[Ground] = (), context: Context | None = None,
            views: Mapping[int, Graph] | None = None) -> tuple[Graph, tuple[Inconsistency, ...]]:
    """`graph` with every triple that follows from it, the facts of `rules` and the atoms `facts`; and what is inconsistent. A rule with a
    Window of its own sees in place of `graph` what `views` has for it (by its length in ms), and what is derived. Raises Unstratified,
    Unending, and ValueError for a rule that is not safe or that speaks of time."""
    given = [*(ground(fact.atom, {}) for fact in rules.facts), *facts]
    known = Known(graph, given, context or Context(0))
    through = {length: Known(view, given, known.context) for length, view in (views or {}).items()}

    def seen(rule: Rule) -> Known:
        return known if rule.window_ms is None else through.get(rule.window_ms, known)

    for bodies, unending in layers(tuple(rule for rule in rules.rules if not isinstance(rule.head, Falsum)), in_quick_order):
        for _ in rounds(unending):
            found = [atom for rule, body in bodies for atom in _derived(seen(rule), rule, body)]
            if not any([one.add(iter(found)) for one in (known, *through.values())]):
                break
    inconsistencies = dict.fromkeys((rule.name or "", tuple(sorted(row.items()))) for rule in rules.rules if isinstance(rule.head, Falsum)
                                    for row in seen(rule).solutions(in_quick_order(rule.body)))
    shown = Graph(filter(is_rdf, known.graph.triples), graph.times)
    return shown, tuple(Inconsistency(name, dict(row), (ALWAYS,)) for name, row in inconsistencies)


def saturated(graph: Graph, rules: RuleSet) -> Known:
    """All that follows from a graph by rules without time and negation, what is no triple included."""
    known, bodies = Known(graph, [], Context(0)), [(rule, in_quick_order(rule.body)) for rule in rules.rules]
    while known.add(iter([atom for rule, body in bodies for atom in _derived(known, rule, body)])):
        pass
    return known


def is_rdf(triple: Triple) -> bool:
    """Whether a triple is RDF: its subject is no literal, its predicate an IRI."""
    return triple[0][0] != '"' and triple[1][0] == "<"


def _derived(known: Known, rule: Rule, body: Sequence[Formula]) -> Iterator[Ground]:
    if not isinstance(rule.head, Atom):
        raise ValueError(f"a head that speaks of time: {rule.head}")
    for row in known.solutions(body):
        yield ground(rule.head, row)


class Known:
    """Triples and other facts, both indexed."""

    def __init__(self, graph: Graph, facts: Iterable[Ground], context: Context) -> None:
        self.graph = graph
        self.context = context
        self.others: dict[str, set[Ground]] = defaultdict(set)
        self.by_first: dict[tuple[str, str], list[Ground]] = defaultdict(list)
        self.tables: dict[tuple[int, tuple[int, ...]], dict[tuple[str, ...], list[Row]]] = {}
        self.add(iter(facts))

    def add(self, atoms: Iterator[Ground]) -> bool:
        """Whether any of these is new. They are looked at before any is added."""
        triples: set[Triple] = set()
        new: set[Ground] = set()
        for atom in atoms:
            predicate, terms = atom
            if predicate == TRIPLE:
                triples.add((terms[0], terms[1], terms[2]))
            elif atom not in self.others[predicate]:
                new.add(atom)
        for predicate, terms in new:
            self.others[predicate].add((predicate, terms))
            if terms:
                self.by_first[predicate, terms[0]].append((predicate, terms))
        triples -= self.graph.triples
        if triples:
            self.graph = Graph(self.graph.triples | triples, self.graph.times)
        return bool(triples or new)

    def solutions(self, body: Sequence[Formula]) -> Iterator[Row]:
        """The rows that satisfy all formulas, taken in this order."""
        rows: Iterable[Row] = [{}]
        for formula in body:
            rows = self._extended(rows, formula)
        return iter(rows)

    def _extended(self, rows: Iterable[Row], formula: Formula) -> Iterator[Row]:
        for row in rows:
            yield from self.solve(formula, row)

    def solve(self, formula: Formula, row: Row) -> Iterable[Row]:
        """The extensions of `row` that satisfy a formula."""
        match formula:
            case Atom():
                return self._matches(formula, row)
            case Negation(body=body):
                return [] if any(True for _ in self.solve(body, row)) else [row]
            case Table():
                return self._joined(formula, row)
            case Test() | Assign():
                return computed(formula, row, self.context)
        raise ValueError(f"a formula that speaks of time: {formula}")

    def _matches(self, atom: Atom, row: Row) -> Iterator[Row]:
        tokens = [_token(term, row) for term in atom.terms]
        if atom.predicate == TRIPLE:
            found: Iterable[Ground] = ((TRIPLE, triple) for triple in self.graph.match(tokens[0], tokens[1], tokens[2]))
        elif tokens and tokens[0] is not None:
            found = self.by_first.get((atom.predicate, tokens[0]), ())
        else:
            found = self.others.get(atom.predicate, ())
        return (extended for fact in found if (extended := unify(atom, fact, row)) is not None)

    def _joined(self, table: Table, row: Row) -> Iterator[Row]:
        """As formulas.joined, by an index of the table for the columns that the row binds."""
        bound = tuple(i for i, v in enumerate(table.variables) if v.name in row)
        key = id(table), bound
        if key not in self.tables:
            self.tables[key] = defaultdict(list)
            for cells in table.rows:
                named = {v.name: c.token for v, c in zip(table.variables, cells)}
                self.tables[key][tuple(cells[i].token for i in bound)].append(named)
        wanted = tuple(row[table.variables[i].name] for i in bound)
        return ({**row, **cells} for cells in self.tables[key].get(wanted, ()))


def _token(term: Term, row: Row) -> str | None:
    return term.token if isinstance(term, Constant) else row.get(term.name)
