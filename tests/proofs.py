"""Proofs checked without the code that finds them: each step by its rule, each leaf against what the evaluation saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from engine.functions.expressions import Context, evaluate, test
from engine.ir.rules import TRIPLE, Assign, Atom, Negation, Rule, RuleSet, Table, Test, atoms
from engine.ir.statement import TimeWindow
from engine.ir.terms import Constant
from engine.ir.windows import with_rule_windows
from engine.records import Event
from engine.reference import streams
from engine.reference.content import History, window_events
from engine.reference.dataset import Graph
from engine.reference.formulas import ground
from engine.timeline import MAX
from engine.why.explain import Case, Match, Members, Node
from engine.why.trees import Asserted, Derived, Proof, Stated, Static, Step, Streamed


@dataclass(frozen=True, slots=True)
class Seen:
    """An evaluation as the oracle made it, with all that it was made from."""

    case: Case
    evaluation: streams.Evaluation


def watched(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> list[Seen]:
    """The evaluations that a run of the oracle makes."""
    found: list[Seen] = []

    class Watching(streams.ContinuousQuery):
        def evaluate_until(self, watermark: int, graphs: Mapping[str, Graph], rules: Mapping[str, RuleSet]) -> Iterator[Any]:
            for evaluation in super().evaluate_until(watermark, graphs, rules):
                events = [e for iri in dict.fromkeys(self.reads) for e in self.history.between(iri, None, MAX)]
                found.append(Seen(Case(self.statement, evaluation.tick, evaluation.at, self.name, events, dict(graphs), dict(rules)),
                                  evaluation))
                yield evaluation

    monkeypatch.setattr(streams, "ContinuousQuery", Watching)
    run()
    return found


def check(node: Node, case: Case) -> None:
    """Assert that a node proves what it says."""
    match node:
        case Match(premises=premises):
            for premise in premises:
                check(premise, case)
        case Members(shown=shown, count=count):
            assert len(shown) <= count
            for member in shown:
                check(member, case)
        case Asserted() | Derived() | Step():
            check_proof(node, case, ())


def check_proof(proof: Proof, case: Case, above: tuple[object, ...]) -> None:
    """Assert that each step is one of its rule, that no fact stands below itself, and that leaves are in a window or graph at T."""
    if isinstance(proof, Step) or getattr(proof, "during", None) is not None:
        check_timed(proof, case)
        return
    match proof:
        case Asserted(fact=fact, sources=sources):
            assert sources and fact not in above
            for source in sources:
                assert asserted(fact, source, case), f"{fact} is not {source}"
        case Derived(fact=fact, rule=rule, row=row, premises=premises):
            assert fact not in above
            assert any(rule in case.rules[source.name].rules for source in case.statement.rules)
            assert isinstance(rule.head, Atom) and ground(rule.head, row) == fact
            facts = [part for part in premises if isinstance(part, (Asserted, Derived, Step))]
            inner = [part.premises[0] if isinstance(part, Step) else part for part in facts]
            assert [getattr(part, "fact", None) for part in inner] == [ground(part, row) for part in rule.body if isinstance(part, Atom)]
            check_conditions(rule.body, row, case)
            for part in facts:
                if isinstance(part, Step):
                    check_window(part, rule, case)
                else:
                    check_proof(part, case, (*above, fact))


def check_timed(proof: Proof, case: Case) -> None:
    """Assert that what rule sets with a time of their own give comes by their rules from items before T, from graphs and from their facts.
    What operators mean is checked elsewhere (tests/timed_proofs.py)."""
    match proof:
        case Derived(fact=fact, rule=rule, row=row, premises=premises):
            assert any(rule in case.rules[source.name].rules for source in case.statement.rules)
            [head] = atoms(rule.head)
            assert ground(head, row) == fact
            inner = premises if isinstance(rule.head, Atom) else getattr(premises[0], "premises", ())
            assert len(inner) == len([part for part in rule.body if not isinstance(part, (Assign, Table))])
            for part in premises:
                check_timed(part, case)
        case Step(premises=premises):
            for part in premises:
                check_timed(part, case)
        case Asserted(fact=fact, sources=sources):
            for source in sources:
                if isinstance(source, Streamed):
                    known = {(event.t, triple) for event in case.events if event.stream == source.stream for triple in event.triples}
                    assert source.times and all(t < case.tick and (t, fact[1]) in known for t in source.times)
                else:
                    assert asserted(fact, source, case), f"{fact} is not {source}"


def check_window(step: Step, rule: Rule, case: Case) -> None:
    """Assert that a rule's own Window shows a fact at T, at every time that the leaf says."""
    assert step.operator == "window" and rule.window_ms is not None and step.over is not None
    [leaf] = step.premises
    assert isinstance(leaf, Asserted)
    for source in leaf.sources:
        if isinstance(source, Streamed):
            statement = with_rule_windows(case.statement, case.rules)
            inside = {(event.t, triple) for one in statement.rule_windows for event, triple in window_events(
                one, case.tick, history(case.events), statement, statement.on_change)
                if one.stream == source.stream and isinstance(one.window, TimeWindow) and one.window.range_ms == rule.window_ms}
            assert source.times and all((t, leaf.fact[1]) in inside and 2 * t in step.over for t in source.times)
        else:
            assert asserted(leaf.fact, source, case)


def check_conditions(body: Sequence[Any], row: Mapping[str, str], case: Case) -> None:
    context = Context(case.at_ms, case.query)
    for part in body:
        match part:
            case Test(condition=condition):
                assert test(condition, row, context)
            case Assign(variable=variable, expression=expression):
                assert row[variable.name] == evaluate(expression, row, context)
            case Table(variables=variables, rows=rows):
                assert tuple(Constant(row[v.name]) for v in variables) in rows
            case Negation():
                assert isinstance(part.body, Atom) and ground(part.body, row)    # all of it is bound


def asserted(fact: tuple[str, tuple[str, ...]], source: object, case: Case) -> bool:
    """Whether the source has the fact at T: at every time that it says in one of the query's windows on its stream."""
    predicate, terms = fact
    statement = case.statement
    match source:
        case Streamed(stream=stream, times=times):
            inside = {(event.t, triple) for one in statement.streams if one.stream == stream
                      for event, triple in window_events(one, case.tick, history(case.events), statement, statement.on_change)}
            return predicate == TRIPLE and bool(times) and all((t, terms) in inside for t in times)
        case Static(graph=iri):
            named = {graph.iri for graph in (*statement.graphs, *statement.reasoning_graphs)}
            return iri in named and terms in case.graphs[iri].triples
        case Stated(rules=name):
            return any(ground(stated.atom, {}) == fact for stated in case.rules[name].facts)
    return False


def history(events: Sequence[Event]) -> History:
    """Events as the oracle keeps them."""
    found = History()
    for event in events:
        found.add(event)
    return found


def rules_of(node: Node) -> Iterator[str]:
    """The names of the rules of a tree."""
    if isinstance(node, Derived):
        yield node.rule.name or ""
    for part in node.shown if isinstance(node, Members) else getattr(node, "premises", ()):
        yield from rules_of(part)


def leaves(node: Node) -> Iterator[Asserted]:
    """What a tree rests on."""
    if isinstance(node, Asserted):
        yield node
    for part in node.shown if isinstance(node, Members) else getattr(node, "premises", ()):
        yield from leaves(part)
