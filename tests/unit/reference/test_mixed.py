"""What a query sees of rule sets with a time of their own, computed by hand."""

from __future__ import annotations

import pytest

from engine.ir.rules import RuleSet
from engine.ir.stages import MixedTimelines
from engine.records import End, Event, Record, Register, RulesVersion
from engine.reference.dataset import EMPTY, Graph
from engine.reference.mixed import seen_at
from engine.reference.streams import run
from engine.rewrite.owl2rl import BUILT_IN
from grammar import parse
from grammar.rule_sets import parse_rules

EX = "http://ex.org/"
MEDIA = {"lars": "text/x-lars", "dmtl": "text/x-datalogmtl", "rif": "text/x-rif-ps"}


def rules(kind: str, text: str) -> RuleSet:
    """A rule set named by its language, with the prefix ex:."""
    whole = f"Document( Prefix(ex <{EX}>) {text} )" if kind == "rif" else f"PREFIX ex: <{EX}>\n{text}"
    return parse_rules(whole, MEDIA[kind], kind)


def iri(name: str) -> str:
    return "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>" if name == "a" else f"<{EX}{name}>"


def triples(*texts: str) -> list[tuple[str, str, str]]:
    return [tuple(map(iri, text.split())) for text in texts]  # type: ignore[misc]


def events(*given: tuple[int, str]) -> list[Event]:
    """Events of one triple each, at milliseconds."""
    return [Event(number, "s", t, None, tuple(triples(text)), t) for number, (t, text) in enumerate(given, 1)]


def shown(tick: int, sets: list[RuleSet], given: list[Event], static: Graph = EMPTY, on_change: bool = False) -> set[str]:
    found = seen_at(tick, on_change, sets, given, static).triples
    return {" ".join(term[1:-1].removeprefix(EX) if term != iri("a") else "a" for term in triple) for triple in found}


DENSE = rules("dmtl", "ex:B(X) :- Diamondminus[0,2]ex:A(X)")
GRANULES = rules("lars", "ex:B(X) <- [2 sec] diamond ex:A(X).")


def test_dense_rules_are_seen_just_before_an_evaluation_time() -> None:
    given = events((1_500, "x a A"))
    found = {tick: shown(tick, [DENSE], given) for tick in (1_500, 1_501, 3_500, 3_501)}
    assert found == {1_500: set(), 1_501: {"x a B"}, 3_500: {"x a B"}, 3_501: set()}


def test_on_change_they_are_seen_at_the_instant() -> None:
    given = events((1_500, "x a A"), (3_500, "y a A"), (3_501, "y a A"))
    assert shown(3_501, [DENSE], given, on_change=True) == {"x a B", "y a B"}
    assert shown(3_502, [DENSE], given, on_change=True) == {"y a B"}


def test_granules_are_seen_when_they_have_ended() -> None:
    given = events((1_500, "x a A"))
    found = {tick: shown(tick, [GRANULES], given) for tick in (1_600, 1_999, 2_000, 2_500, 4_000, 4_999, 5_000)}
    assert found == {1_600: set(), 1_999: set(), 2_000: {"x a B"}, 2_500: {"x a B"}, 4_000: {"x a B"}, 4_999: {"x a B"}, 5_000: set()}


def test_what_follows_from_granules_waits_for_them() -> None:
    after = rules("dmtl", "ex:C(X) :- Boxminus[0,1.5]ex:B(X)")
    given = events((1_500, "x a A"))
    # B holds during [1 s, 4 s), so C during [2.5 s, 4 s); at 2.9 s the last granule that is known ends at 2 s, at 3 s it is known up to 3 s
    found = {tick: shown(tick, [GRANULES, after], given) - {"x a B"} for tick in (2_900, 3_000, 3_900, 4_000, 5_000)}
    assert found == {2_900: set(), 3_000: {"x a C"}, 3_900: {"x a C"}, 4_000: {"x a C"}, 5_000: set()}


def test_granules_have_what_dense_rules_derive_where_they_touch_it() -> None:
    before = rules("dmtl", "ex:A(X) :- Diamondminus[0.2,0.7]ex:Z(X)")
    given = events((1_500, "x a Z"))      # A during [1.7 s, 2.2 s]: in the granules 1 and 2, so B in 1 to 4
    assert [shown(tick, [before, GRANULES], given) & {"x a B"} for tick in (2_000, 3_000, 5_000, 6_000)] == [{"x a B"}] * 3 + [set()]


def test_rules_without_time_apply_point_by_point_where_timed_rules_need_them() -> None:
    both = rules("rif", "Group( Forall ?x ( ?x[ex:both -> ex:yes] :- And(?x[ex:p -> ex:yes] ?x[ex:q -> ex:yes]) ) )")
    after = rules("dmtl", "ex:late(X,Y) :- Diamondminus[1,1]ex:both(X,Y)")
    given = events((1_000, "x p yes"), (1_001, "x q yes"), (2_000, "y p yes"), (2_000, "y q yes"))
    assert shown(2_001, [both, after], given, on_change=True) == set()
    assert shown(3_001, [both, after], given, on_change=True) == {"y late yes"}


def test_a_window_of_rules_stretches_events_for_other_rules() -> None:
    window = rules("rif", "Window 2 s Group( Forall ?x ( ?x[ex:both -> ex:yes] :- And(?x[ex:p -> ex:yes] ?x[ex:q -> ex:yes]) ) )")
    after = rules("dmtl", "ex:lasting(X,Y) :- Boxminus[0,1]ex:both(X,Y)")
    given = events((1_000, "x p yes"), (1_500, "x q yes"))       # both during [1.5 s, 3 s), lasting during [2.5 s, 3 s)
    assert shown(2_500, [window, after], given) == {"x both yes"}
    assert shown(2_600, [window, after], given) == {"x both yes", "x lasting yes"}
    assert shown(3_001, [window, after], given) == set()


def test_the_ontology_is_applied_between_timed_rules() -> None:
    schema = Graph([*((s, f"<http://www.w3.org/2000/01/rdf-schema#{p}>", o) for s, p, o in
                      ((iri("A0"), "subClassOf", iri("A")), (iri("B"), "subClassOf", iri("B1"))))])
    after = rules("lars", "ex:C(X) <- ex:B1(X).")
    given = events((1_500, "x a A0"))
    assert shown(3_000, [BUILT_IN["owl2rl"], DENSE, after], given, schema) == {"x a B", "x a C"}
    assert shown(3_000, [BUILT_IN["rdfs"], DENSE, after], given, schema) == {"x a B", "x a C"}
    assert shown(3_000, [DENSE, after], given, schema) == set()


def test_what_static_graphs_say_is_there_always_and_not_shown() -> None:
    silent = rules("dmtl", "ex:silent(X,Y) :- ex:at(X,Y), not Diamondminus[0,1]ex:Alive(X)")
    static = Graph(triples("x at home", "y at home", "z silent home"))
    given = events((1_000, "x a Alive"))
    assert shown(1_500, [silent], given, static) == {"y silent home"}
    assert shown(2_500, [silent], given, static) == {"x silent home", "y silent home"}


def test_facts_with_times_are_shown_while_they_hold() -> None:
    dated = rules("dmtl", "ex:at(s,t)@[1,3)\nex:B(X) :- Diamondminus[0,1]ex:A(X)")
    assert not seen_at(2_000, False, [dated], [], EMPTY).triples     # of a literal
    dated = rules("dmtl", "ex:at(ex:s,ex:t)@[1,3)\nex:B(X) :- Diamondminus[0,1]ex:A(X)")
    assert [shown(tick, [dated], []) for tick in (1_000, 1_001, 3_000, 3_001)] == [set(), {"s at t"}, {"s at t"}, set()]


def test_two_timelines_that_need_each_other_are_refused() -> None:
    with pytest.raises(MixedTimelines):
        shown(1_000, [GRANULES, rules("dmtl", "ex:A(X) :- Diamondminus[1,1]ex:B(X)")], [])


def test_the_query_has_the_closure_of_what_is_seen() -> None:
    text = """REGISTER QUERY q AS SELECT ?x ?c FROM STREAM <s> [RANGE 1s STEP 1s] USING RULES rif, lars
              WHERE { ?x a ?c FILTER(?c != <http://ex.org/A>) }"""
    texts = {"rif": f"Document( Prefix(ex <{EX}>) Group( Forall ?x (?x[ex:p -> ex:B] :- ?x[ex:q -> ex:B]) "
                    "Forall ?x (?x[<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> -> ex:D] :- "
                    "?x[<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> -> ex:B]) ) )",
             "lars": f"PREFIX ex: <{EX}>\nex:B(X) <- [1 sec] diamond ex:A(X)."}
    log: list[Record] = [*(RulesVersion(n, name, MEDIA[name], texts[name]) for n, name in enumerate(texts, 1)), Register(3, "q", text, 3),
                         *(Event(4 + n, "s", t, None, tuple(triples("x a A" if t < 3_000 else "y a Z")), t)
                           for n, t in enumerate((500, 2_500, 3_500))), End(9)]
    found = {e.at: {tuple(row[v].removeprefix(f"<{EX}")[:-1] for v in "xc") for row in e.result.rows}
             for e in run(log, parse, parse_rules, dict(BUILT_IN))["q"]}
    assert found == {1_000: {("x", "B"), ("x", "D")}, 2_000: {("x", "B"), ("x", "D")}, 3_000: {("x", "B"), ("x", "D")},
                     4_000: {("x", "B"), ("x", "D"), ("y", "Z")}}
