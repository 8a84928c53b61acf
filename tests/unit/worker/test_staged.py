"""Chains of programs in DuckDB see what the reference evaluation does, however they are cut into steps."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, strategies as st

from engine.ir.rules import RuleSet
from engine.ir.spans import DiagnosticError
from engine.ir.stages import divide
from engine.ir.statement import RuleSource
from engine.plan.timed import Look, StagedPlan
from engine.records import Event
from engine.reference.dataset import EMPTY, Graph
from engine.rewrite.owl2rl import BUILT_IN
from engine.worker.staged import StagedState
from grammar import parse
from grammar.rule_sets import RULE_SET_EXTENSIONS, parse_rules
from server import demo
from tests.examples import examples
from tests.interval_runs import connection, merges_of
from tests.staged_runs import assert_like_the_oracle, assert_looks_like_the_oracle, planned, run, table
from tests.unit.reference.test_mixed import DENSE, GRANULES, events, iri, rules, triples

TICKS = [500, 1_000, 1_500, 2_000, 3_000, 3_700, 4_000, 5_000, 6_500, 8_000]
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


def test_one_set_on_dense_time() -> None:
    given = events((1_200, "x a A"), (3_900, "y a A"), (4_000, "x a A"))
    assert_like_the_oracle([DENSE], given, EMPTY, TICKS, (2, 5))
    assert_like_the_oracle([DENSE], given, EMPTY, [1_201, 3_901, 4_001], on_change=True)


def test_one_set_on_granules() -> None:
    given = events((300, "x a A"), (1_200, "x a A"), (3_900, "y a A"), (4_000, "x a A"))
    assert_like_the_oracle([GRANULES], given, EMPTY, TICKS, (2, 5))
    assert_like_the_oracle([GRANULES], given, EMPTY, [301, 1_201, 3_901, 4_001, 5_000], on_change=True)


def test_granules_then_dense_time_then_granules() -> None:
    after = rules("dmtl", "ex:C(X) :- Boxminus[0,1.5]ex:B(X)")
    last = rules("lars", "GRANULARITY 2 sec\nex:D(X) <- [4 sec] diamond ex:C(X), not ex:E(X).\nex:E(X) <- [2 #] diamond ex:A(X).")
    given = events((1_200, "x a A"), (3_900, "y a A"), (4_000, "x a A"), (5_100, "y a A"))
    plan = planned([GRANULES, after, last], EMPTY)
    assert [(s.timeline.granularity_ms, s.reads) for s in plan.stages] == [(1000, ()), (0, (0,)), (2000, ()), (2000, (1, 2))]
    assert_like_the_oracle([GRANULES, after, last], given, EMPTY, TICKS, (1, 4, 7))


def test_four_languages_and_an_ontology() -> None:
    schema = Graph([(iri("A0"), SUB, iri("A")), (iri("B"), SUB, iri("B1")), *triples("x at home", "y at home")])
    window = rules("rif", "Window 1500 ms Group( Forall ?x ?y ( ?x[ex:busy -> ?y] :- And(?x[ex:at -> ?y] ?x[ex:on -> ex:yes]) ) )")
    dense = rules("dmtl", "ex:idle(X,Y) :- ex:at(X,Y), not Diamondminus[0,0.5]ex:busy(X,Y)\nex:A0(X) :- Boxminus[0.5,1]ex:busy(X,home2)\n"
                          "ex:A0(X) :- Diamondminus[0.3,0.3]ex:busy(X,Y)")
    granules = rules("lars", "ex:B(X) <- [2 sec] diamond ex:A(X).\nex:Calm(X) <- [1 sec] box ex:idle(X, Y).\n"
                             "ex:Late(X) <- ex:B1(X), not ex:Calm(X).")
    after = rules("dmtl", "ex:Warn(X) :- Boxminus[0,1]ex:Late(X)")
    after = RuleSet("after", after.rules)
    given = events((1_200, "x on yes"), (2_100, "y on yes"), (3_900, "y a A"), (4_000, "x on yes"), (5_100, "y on yes"))
    sets = [BUILT_IN["owl2rl"], window, dense, granules, after]
    assert_like_the_oracle(sets, given, schema, TICKS, (3, 6))
    assert_like_the_oracle(sets, given, schema, [1_201, 2_101, 3_901, 4_001, 5_101], (2,), on_change=True)


def test_dated_facts() -> None:
    dated = rules("dmtl", "ex:at(ex:s,ex:t)@[1.2,3)\nex:at(ex:u,ex:t)@7\nex:B(X) :- Diamondminus[0,1]ex:at(X,ex:t)\nex:at(ex:v,ex:t)")
    start = rules("lars", "ex:C(X) <- ex:B(X).\n@2 ex:C(ex:w).\nex:C(ex:z).")
    assert_like_the_oracle([dated, start], events((4_000, "x a A")), EMPTY, TICKS, (3, 6))


def test_what_a_rule_set_says_of_one_value_is_told_from_events_of_another() -> None:
    alarm = rules("lars", "ex:level(X, ex:high) <- [1 sec] diamond ex:A(X).")
    after = rules("dmtl", "ex:seen(X,Y) :- Diamondminus[0,0]ex:level(X,Y)")
    assert_like_the_oracle([alarm, after], events((1_200, "x a A"), (1_600, "x level low"), (2_000, "y level high")), EMPTY, TICKS, (3,))


def test_a_rule_that_says_nothing_shows_nothing() -> None:
    same = rules("dmtl", "ex:p(X,ex:o) :- ex:p(X,ex:o)\nex:B(X) :- Diamondminus[0,1]ex:A(X)")
    assert_like_the_oracle([same], events((1_000, "x a A"), (1_500, "x p o")), EMPTY, [1_001, 1_501], on_change=True)


def test_the_example_of_the_console_has_answers_on_the_demo() -> None:
    """Within its first minute, and of stations on the coast only."""
    folder, begin = demo.EXAMPLES / "weather-closed", 1_700_000_000_000
    sets = [parse_rules(path.read_text("utf-8"), RULE_SET_EXTENSIONS[path.suffix], path.stem) for path in sorted(folder.iterdir())]
    given = [Event(n, "s", begin + 1_000 * n, None, item.triples, 0) for n in range(60) for item in demo.items(n)]
    ticks = [begin + 1_000 * (n + 1) for n in range(60)]
    found = run([BUILT_IN["owl2rl"], *sets], given, Graph(demo.background()), [ticks])
    by_class: dict[str, set[str]] = {}
    for subject, _, class_ in set().union(*found.values()):
        by_class.setdefault(class_.rpartition("/")[2][:-1], set()).add(subject[-4:-1])
    assert by_class["Closed"] == {"BHV", "HEL"} and by_class["Stormy"] > by_class["Closed"] and by_class["Gusty"] >= by_class["Stormy"]
    query = parse((demo.EXAMPLES / "weather-closed.rq").read_text("utf-8"))
    assert query.rules == tuple(map(RuleSource, ("owl2rl", "gusts", "storms", "closing")))


PREDICATES = [("a", "A"), ("a", "B"), ("p", "o"), ("q", "o"), ("r", "o")]


@st.composite
def atom(draw: st.DrawFn) -> str:
    link, name = draw(st.sampled_from(PREDICATES))
    return f"ex:{name}(X)" if link == "a" else f"ex:{link}(X, Y)" if draw(st.booleans()) else f"ex:{link}(X, ex:o)"


@st.composite
def rule(draw: st.DrawFn, kind: str) -> str:
    """A rule; what its head has are terms of its body."""
    parts, bound = [], "X"
    for _ in range(draw(st.integers(1, 2))):
        one = draw(atom())
        bound += "Y" if "Y" in one else ""
        low, more = draw(st.integers(0, 3)), draw(st.integers(0, 4))
        operator = draw(st.sampled_from(["", "some", "all"]))
        if kind == "lars" and operator:
            one = f"[{more} sec] {'diamond' if operator == 'some' else 'box'} {one}"
        elif kind == "dmtl" and operator:
            one = f"{'Diamondminus' if operator == 'some' else 'Boxminus'}[{low / 2},{(low + more) / 2}]{one}"
        parts.append(one)
    if draw(st.integers(0, 3)) == 0:
        negated = draw(atom())
        if "Y" not in negated or "Y" in bound:
            parts.append(f"not {negated}")
    head = draw(atom())
    head = head if "Y" not in head or "Y" in bound else head.replace("Y", "ex:o")
    return f"{head} <- {', '.join(parts)}." if kind == "lars" else f"{head} :- {', '.join(parts)}"


@st.composite
def mixes(draw: st.DrawFn) -> list[tuple[str, str]]:
    kinds = draw(st.lists(st.sampled_from(["lars", "dmtl", "slow"]), min_size=1, max_size=3, unique=True))
    found = []
    for kind in kinds:
        listed = draw(st.lists(rule("dmtl" if kind == "dmtl" else "lars"), min_size=1, max_size=3))
        found.append(("dmtl" if kind == "dmtl" else "lars", "\n".join(["GRANULARITY 2 sec"] * (kind == "slow") + listed)))
    return found


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[int, str]]:
    names = st.sampled_from(["x", "y"])
    found = draw(st.lists(st.tuples(st.integers(0, 16), names, st.sampled_from(PREDICATES)), max_size=8))
    return sorted((t * 500, f"{name} {link} {value}") for t, name, (link, value) in found)


@examples(15, 25)
@given(mixes(), streams(), st.booleans(), st.sets(st.integers(1, 9), max_size=3))
def test_random_mixes(texts: list[tuple[str, str]], given_: list[tuple[int, str]], on_change: bool, cuts: set[int]) -> None:
    try:
        sets = [rules(kind, text) for kind, text in texts]
        assume(divide(sets).is_timed)
        planned(sets, EMPTY)
    except DiagnosticError:     # two timelines that need each other, a cycle through negation
        assume(False)
    ticks = [t + 1 for t in sorted({t for t, _ in given_})] if on_change else TICKS
    if ticks:
        assert_like_the_oracle(sets, events(*given_), Graph(triples("x p o")), ticks, sorted(cuts), on_change)


@examples(15, 25)
@given(mixes(), streams(), st.booleans(), st.sets(st.integers(1, 19), max_size=4), st.sampled_from([(500, 0), (700, 300), (2_500, 0)]))
def test_evaluation_times_follow_from_what_changes(texts: list[tuple[str, str]], given_: list[tuple[int, str]], on_change: bool,
                                                   cuts: set[int], grid: tuple[int, int]) -> None:
    try:
        sets = [rules(kind, text) for kind, text in texts]
        assume(divide(sets).is_timed)
        planned(sets, EMPTY)
    except DiagnosticError:
        assume(False)
    step, start = grid
    ticks = sorted({t + 1 for t, _ in given_} | {t + 1_301 for t, _ in given_}) if on_change else list(range(start, 13_000, step))
    if ticks:
        assert_looks_like_the_oracle(sets, events(*given_), Graph(triples("x p o")), ticks, sorted(cuts), None if on_change else grid)


def test_times_at_which_nothing_changes_do_not_count() -> None:
    dated = rules("dmtl", "ex:at(ex:s,ex:t)@[3.2,5)\nex:B(X) :- Diamondminus[1,2]ex:A(X)\nex:B(X) :- Diamondminus[2,6]ex:A(X)")
    given, ticks = events((1_000, "x a A"), (1_400, "y p o")), list(range(1_000, 12_500, 500))
    assert_looks_like_the_oracle([dated], given, EMPTY, ticks, (1, 2, 9), (500, 0))
    plan = planned([dated], EMPTY)
    assert changes_until(plan, 12_000) == [2_500, 3_500, 5_500, 7_500]


def test_a_year_without_changes_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few merges as a second of it, and the next change is known though a year goes by before it."""
    year = 365 * 86_400
    late = rules("dmtl", f"ex:B(X) :- Diamondminus[{year},{year + 3}]ex:A(X)\nex:C(X) :- Boxminus[0,2]ex:B(X)")
    slow = rules("lars", "ex:D(X) <- [1 sec] diamond ex:B(X).")
    plan = planned([late, slow], EMPTY)
    begin = 1_000 * year + 1_000
    assert changes_until(plan, 2 * begin) == [begin + after for after in (500, 1_000, 2_500, 3_500, 6_000)]
    state = StagedState(connection(), plan, "year_")
    state.advance(table([(triples("x a A")[0], 1_000)]), table([]), [2_000], False)
    assert state.upcoming() == 2 * (begin + 1) - 1
    merges = merges_of(monkeypatch)
    state.advance(table([]), table([]), [begin], False, Look(2_000, frozenset(), ((1_000, 0),)))
    assert 0 < merges() <= 10 * len(state.stages)
    state.drop()


def changes_until(plan: StagedPlan, until: int) -> list[int]:
    """At which multiples of half a second, after the first second, in which x was in A, something else is seen."""
    state = StagedState(connection(), plan, "changes_")
    state.advance(table([(triples("x a A")[0], 1_000)]), table([]), [until], False, Look(1_000, frozenset((until,)), ((500, 0),)))
    state.drop()
    return list(state.ticks)
